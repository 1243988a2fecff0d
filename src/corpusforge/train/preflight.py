"""Preflight: what the trainer will really see, on the real tokenizer and limits.

TRL cuts rows that are too long and drops, without a word, those in which nothing is left to learn; a chat template
leaves out fields that it does not know, or raises and ends the run. Here each row is rendered, tokenized and cut as
TRL 1.16 does it, and every row that would not be trained on whole goes into a ledger, with its reason. TRL must then
keep all the rows that are left, or the stage fails. What the trainers do is read from their sources (SFTTrainer and
DPOTrainer: `_prepare_dataset`; DataCollatorForPreference; GRPOTrainer: `_tokenize_prompts`).

    row_id  reason            detail
    faq#17  no_trained_token  {"limit": 1024, "tokens": 1490, "trained_tokens": 0}    the question fills the limit

docs/preflight.md explains the reasons.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError
from corpusforge.train._cut import Window, conversation, pair, task
from corpusforge.train._lost import Finder
from corpusforge.train._render import Renderer, Talk
from corpusforge.train._seen import REASONS, WHO, Seen, Tally
from corpusforge.train.model import needs_training, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from corpusforge.train._config import TrainConfig

__all__ = ["REASONS", "Seen", "assistant_only", "preference", "sft", "tasks"]

_BATCH: Final = 1000  # rows in memory at a time


def sft(rows: Any, tokenizer: Any, stage: str, config: TrainConfig, max_length: int) -> Seen:
    """Conversations (a `datasets.Dataset` with messages, tools, ids) as SFTTrainer will see them.

    Raises ConfigError when the template is not valid Jinja, or cannot mark the assistant's turns though it is told to.
    """
    needs_training()
    window = Window.of(config.trl, max_length)
    only = assistant_only(tokenizer, config.trl)
    template = _training_template(tokenizer, stage) if only else None
    renderer = Renderer(tokenizer, template, only, _special_tokens(config.trl))
    finder, tally = Finder(renderer), Tally(stage, config)
    for batch in _batches(rows, ("messages", "tools")):
        talks = [Talk(*both) for both in zip(batch["messages"], batch["tools"], strict=True)]
        read = zip(talks, renderer.read(talks), strict=True)
        tally.add(batch, [conversation(talk, text, finder, window) for talk, text in read])
    return tally.seen()


def preference(rows: Any, tokenizer: Any, stage: str, config: TrainConfig, max_length: int) -> Seen:
    """Pairs (a `datasets.Dataset` with prompt, chosen, rejected, tools, ids) as DPOTrainer will see them.

    Raises ConfigError when the template is not valid Jinja.
    """
    needs_training()
    window = Window(max_length, config.trl.get("truncation_mode") == "keep_end")
    renderer = Renderer(tokenizer, options=_special_tokens(config.trl))
    finder, tally = Finder(renderer), Tally(stage, config)
    for batch in _batches(rows, ("prompt", "chosen", "rejected", "tools")):
        columns = (batch[name] for name in ("prompt", "chosen", "rejected", "tools"))
        threes = [
            (Talk(prompt, tools, opened=True), Talk([*prompt, *chosen], tools), Talk([*prompt, *rejected], tools))
            for prompt, chosen, rejected, tools in zip(*columns, strict=True)
        ]
        read = iter(renderer.read([talk for three in threes for talk in three]))
        tally.add(batch, [pair(three, (next(read), next(read), next(read)), finder, window) for three in threes])
    return tally.seen()


def tasks(rows: Any, tokenizer: Any, stage: str, config: TrainConfig, max_length: int) -> Seen:
    """Tasks (a `datasets.Dataset` with prompt, tools, ids) as GRPOTrainer will see them.

    The trainer never shows the `tools` of a row to the template, so a task with tools loses them. Raises ConfigError
    when the template is not valid Jinja.
    """
    needs_training()
    options = {**_special_tokens(config.trl), **_template_options(config.trl)}
    renderer = Renderer(tokenizer, options=options)
    finder, tally = Finder(renderer), Tally(stage, config, answers=False)
    room = max_length - _answer_length(config.trl)
    for batch in _batches(rows, ("prompt", "tools")):
        talks = [Talk(prompt, opened=True) for prompt in batch["prompt"]]
        read = zip(talks, batch["tools"], renderer.read(talks), strict=True)
        tally.add(batch, [task(talk, tools, text, finder, room) for talk, tools, text in read])
    return tally.seen()


def assistant_only(tokenizer: Any, trl_options: Mapping[str, Any]) -> bool:
    """Whether to train on the assistant's turns alone: as `assistant_only_loss` of the options says, where it is there.

    Else True when the chat template, or the one that TRL swaps in for it, marks those turns, the token that ends them
    included (a model that never learns to stop would be the result otherwise).
    """
    if "assistant_only_loss" in trl_options:
        return bool(trl_options["assistant_only_loss"])
    needs_training()
    from trl.chat_template_utils import is_chat_template_stop_token_trained

    found, template = _marking_template(tokenizer)
    try:
        return found and bool(is_chat_template_stop_token_trained(tokenizer, chat_template=template))
    except Exception:  # noqa: BLE001 - what a template raises on TRL's sample it will raise on rows, which are counted
        return False


def _batches(rows: Any, columns: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The rows as columns of Python values, a thousand at a time, with advice of transformers kept off the terminal."""
    with quiet():
        yield from rows.select_columns([*WHO, *columns]).iter(batch_size=_BATCH)


def _special_tokens(trl: Mapping[str, Any]) -> dict[str, Any]:
    """Special tokens that the trainer gives the tokenizer, and with it the template."""
    return {name: trl[name] for name in ("eos_token", "pad_token") if trl.get(name)}


def _template_options(trl: Mapping[str, Any]) -> dict[str, Any]:
    given = trl.get("chat_template_kwargs") or {}
    try:
        return dict(json.loads(given) if isinstance(given, str) else given)
    except (ValueError, TypeError):
        raise ConfigError("trl.chat_template_kwargs is no JSON object", hint="write it as a YAML mapping") from None


def _answer_length(trl: Mapping[str, Any]) -> int:
    """Tokens that GRPOTrainer lets an answer have; at least one, where that is left open."""
    from trl import GRPOConfig

    default: Any = GRPOConfig.__dataclass_fields__["max_completion_length"].default
    return int(trl.get("max_completion_length", default) or 1)


def _marking_template(tokenizer: Any) -> tuple[bool, str | None]:
    """Whether SFTTrainer can mark the assistant's turns, and the template it swaps in for that (None: none needed)."""
    from trl.chat_template_utils import get_training_chat_template, has_generation_markers

    if not tokenizer.chat_template or has_generation_markers(tokenizer.chat_template):
        return bool(tokenizer.chat_template), None
    try:
        return True, get_training_chat_template(tokenizer)
    except Exception:  # noqa: BLE001 - TRL has none for this template, or the template raises on TRL's samples
        return False, None


def _training_template(tokenizer: Any, stage: str) -> str | None:
    found, template = _marking_template(tokenizer)
    if not found:
        raise ConfigError(
            f"{stage}.trl: assistant_only_loss is on, but the chat template does not mark the assistant's turns",
            hint="leave it out, or name a template with {% generation %} blocks in model.chat_template",
        )
    return template
