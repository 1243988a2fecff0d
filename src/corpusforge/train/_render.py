"""Render and tokenize conversations exactly as TRL does, a batch at a time, and survive rows that the template refuses.

TRL calls `apply_chat_template(messages, tools=…, tokenize=True)` row by row; one row that the template raises on ends
its run. Here the row comes back as a Fault, and the others go on. Tokens are the same: a template's text is tokenized
without special tokens, and the assistant's tokens are those that overlap a `{% generation %}` block.

    Talk([{"role": "user", "content": "Hi"}, …])  ->  Read("<|user|>Hi<|end|><|assistant|>…", [3, 42, 1, 4, …], None)
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corpusforge.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What a template, a program of somebody else's, is known to raise on a row. Jinja's own errors come on top.
_RAISED: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class Talk(NamedTuple):
    """One conversation to render. `tools` is JSON text, as in the shards; `opened` asks for the generation prompt."""

    messages: Sequence[Mapping[str, Any]]
    tools: str | None = None
    opened: bool = False


class Read(NamedTuple):
    """A rendered conversation: its text, its token ids, and 1 for each token of the assistant's (None: not asked)."""

    text: str
    ids: Sequence[int]
    mask: Sequence[int] | None


@dataclass(frozen=True)
class Fault:
    """What the template raised: the exception's name, and its message where that is the template's own text."""

    error: str
    says: str = ""

    def detail(self) -> dict[str, str]:
        """The facts for the ledger; nothing of the row is in them."""
        return {"error": self.error, **({"says": self.says} if self.says else {})}


@dataclass(frozen=True)
class Renderer:
    """A tokenizer with the template and options that the trainer gives it.

    `template` is None for the tokenizer's own. With `masks`, tokens of the assistant are marked.
    """

    tokenizer: Any
    template: str | None = None
    masks: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    def text(self, talk: Talk, tools: list[Any] | None = None) -> str | Fault:
        """The text of a conversation. `tools` stands in for those of `talk` when given.

        Raises ConfigError when the template is not valid Jinja at all.
        """
        import jinja2

        try:
            return str(
                self.tokenizer.apply_chat_template(
                    talk.messages,
                    tools=parsed(talk.tools) if tools is None else tools,
                    chat_template=self.template,
                    add_generation_prompt=talk.opened,
                    tokenize=False,
                    **self.options,
                )
            )
        except jinja2.TemplateSyntaxError as error:
            raise ConfigError(
                f"the chat template is not valid Jinja (line {error.lineno})", hint="mend it, or name another one"
            ) from None
        except (jinja2.TemplateError, *_RAISED) as error:
            return Fault(type(error).__name__, self._own_words(str(error)))

    def _own_words(self, says: str) -> str:
        """A message when it is the template's own: it, or the name it misses, stands in the template word by word.

        Others may hold a row's text.
        """
        source = self.template or self.tokenizer.chat_template
        missing = re.fullmatch(r"'(\w+)' is undefined", says)
        own = missing[1] if missing else says
        return says if isinstance(source, str) and own and own in source else ""

    def read(self, talks: Sequence[Talk]) -> list[Read | Fault]:
        """Text and tokens of each conversation, in order."""
        found: list[Any] = [self.text(talk) for talk in talks]
        whole = [place for place, text in enumerate(found) if isinstance(text, str)]
        tokens = self._masked(talks, whole) if self.masks else self._plain([found[place] for place in whole])
        for place, (ids, mask) in zip(whole, tokens, strict=True):
            found[place] = Read(found[place], ids, mask)
        return found

    def _plain(self, texts: list[str]) -> list[tuple[Sequence[int], None]]:
        """What `apply_chat_template` does with a rendered text."""
        return [(ids, None) for ids in self.tokenizer(texts, add_special_tokens=False)["input_ids"]] if texts else []

    def _masked(self, talks: Sequence[Talk], places: list[int]) -> list[tuple[Sequence[int], Sequence[int]]]:
        """Tokens and masks; one call per set of tools, because a call takes one."""
        groups: dict[str | None, list[int]] = {}
        for place in places:
            groups.setdefault(talks[place].tools, []).append(place)
        made: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
        for tools, members in groups.items():
            batch = self.tokenizer.apply_chat_template(
                [talks[place].messages for place in members],
                tools=parsed(tools),
                chat_template=self.template,
                tokenize=True,
                return_dict=True,
                return_assistant_tokens_mask=True,
                **self.options,
            )
            made.update(zip(members, zip(batch["input_ids"], batch["assistant_masks"], strict=True), strict=True))
        return [made[place] for place in places]


@lru_cache(maxsize=256)
def parsed(tools: str | None) -> list[Any] | None:
    """Tool schemas from JSON text; many rows of a corpus share theirs."""
    found: list[Any] | None = json.loads(tools) if tools is not None else None
    return found
