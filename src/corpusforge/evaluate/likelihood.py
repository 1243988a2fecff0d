"""What a model thinks of answers that it did not write: loss on held-out conversations, margins on held-out pairs.

The loss of a conversation is the mean negative log-likelihood, in nats, of the tokens that the assistant said. A pair's
margin is the log-likelihood of the chosen answer less that of the rejected one, each summed over its tokens: the
quantity that DPO raises against its reference (Rafailov et al. 2023, arXiv 2305.18290).

    <|user|>What is 2 + 2?<|end|><|assistant|>It is 4.<|end|>
                                              ^^^^^^^^^^^^^^ scored: what stands behind the generation prompt

Which tokens the assistant said is found by writing the conversation up to each of its turns with the chat template, so
that any template will do, whether or not it marks what it generates. A turn that the template writes otherwise once
more follows (old reasoning is often left out) is not scored. Batches are padded on the right and do not change a score.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError, TrainingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    Messages = Sequence[Mapping[str, Any]]

CELLS: Final = 1 << 26  # logits in memory at once (a quarter GiB in float32), unless one row alone has more


@dataclass(frozen=True)
class Text:
    """A conversation as token ids, and which of them count."""

    ids: list[int]
    said: list[bool]
    """True where the token is the assistant's."""
    size: int
    """UTF-8 bytes of what counts: with them, losses under two tokenizers can be compared."""

    @property
    def tokens(self) -> int:
        """How many tokens count."""
        return sum(self.said)


@dataclass(frozen=True)
class Loss:
    """Loss of one conversation."""

    value: float
    """Nats per token."""
    tokens: int
    size: int
    """UTF-8 bytes."""


def losses(model: Any, tokenizer: Any, rows: Sequence[Mapping[str, Any]], limit: int) -> list[Loss | None]:
    """Mean negative log-likelihood of the assistant's tokens in each row (messages, tools), cut at `limit` tokens.

    None where the template raises or nothing is left to score.
    """
    texts = [encode(tokenizer, row["messages"], row.get("tools"), limit) for row in rows]
    scores = iter(log_likelihoods(model, [text for text in texts if text]))
    return [Loss(-next(scores) / text.tokens, text.tokens, text.size) if text else None for text in texts]


def margins(model: Any, tokenizer: Any, pairs: Sequence[Mapping[str, Any]], limit: int) -> list[float | None]:
    """Log-likelihood of `chosen` less that of `rejected`, in nats, of each pair (prompt, chosen, rejected, tools).

    Above 0 the model prefers what people chose. None where the template raises or an answer is cut away whole.
    """
    sides: list[tuple[Text, Text] | None] = []
    for pair in pairs:
        prompt, tools = list(pair["prompt"]), pair.get("tools")
        chosen, rejected = (
            encode(tokenizer, [*prompt, *pair[side]], tools, limit, len(prompt)) for side in ("chosen", "rejected")
        )
        sides.append((chosen, rejected) if chosen and rejected else None)
    scores = iter(log_likelihoods(model, [text for side in sides if side for text in side]))
    return [next(scores) - next(scores) if side else None for side in sides]


def encode(tokenizer: Any, messages: Messages, tools: Any, limit: int, first: int = 0) -> Text | None:
    """A conversation as tokens; the assistant's turns from message `first` on count.

    None where the template raises or no token counts within `limit`. Raises ConfigError for a tokenizer that cannot
    tell where its tokens stand in a text.
    """
    whole = write(tokenizer, messages, tools)
    spans = list(_spans(tokenizer, messages, tools, first, whole)) if whole else []
    if not whole or not spans:
        return None
    if not tokenizer.is_fast:
        raise ConfigError(
            "the tokenizer cannot tell where its tokens stand in a text", hint="evaluation needs a tokenizer.json"
        )
    coded = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    ids, places = coded["input_ids"][:limit], coded["offset_mapping"][:limit]
    said = [
        number > 0 and any(start <= begin and end <= stop for start, stop in spans)
        for number, (begin, end) in enumerate(places)
    ]
    if not any(said):
        return None
    last = places[-1][1]
    size = sum(len(whole[start : min(stop, last)].encode()) for start, stop in spans if start < last)
    return Text(ids, said, size)


def write(tokenizer: Any, messages: Messages, tools: Any, *, ask: bool = False) -> str | None:
    """A conversation as the chat template writes it, with `ask` up to where the assistant begins; None if it raises."""
    offered = json.loads(tools) if isinstance(tools, str) else tools
    try:
        text = tokenizer.apply_chat_template(
            list(messages), tools=offered or None, tokenize=False, add_generation_prompt=ask
        )
    except Exception:  # noqa: BLE001 - a template is a program of somebody else's and may raise anything
        return None
    return str(text)


def log_likelihoods(model: Any, texts: Sequence[Text]) -> list[float]:
    """Summed log-likelihood, in nats, of what counts in each text. Batches go by length and content, not by order.

    Raises TrainingError when the model's output is not finite.
    """
    import torch

    found = [0.0] * len(texts)
    training = model.training
    model.eval()
    with torch.inference_mode():
        for places in _batches(texts, model.config.get_text_config().vocab_size):
            for place, score in zip(places, _batch(model, [texts[place] for place in places]), strict=True):
                found[place] = score
    model.train(training)
    if not all(map(math.isfinite, found)):
        raise TrainingError("the model's output is not finite", hint="train it with a lower learning_rate")
    return found


def _batches(texts: Sequence[Text], vocabulary: int) -> Iterator[list[int]]:
    """Places of texts of like length, as many as fit."""
    order = sorted(range(len(texts)), key=lambda place: (len(texts[place].ids), texts[place].ids))
    batch: list[int] = []
    for place in order:
        if batch and (len(batch) + 1) * len(texts[place].ids) * vocabulary > CELLS:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _batch(model: Any, texts: Sequence[Text]) -> list[float]:
    import torch

    width = max(len(text.ids) for text in texts)
    ids = torch.zeros(len(texts), width, dtype=torch.long)
    there, said = torch.zeros_like(ids), torch.zeros_like(ids, dtype=torch.bool)
    for number, text in enumerate(texts):
        length = len(text.ids)
        ids[number, :length] = torch.tensor(text.ids)
        there[number, :length] = 1
        said[number, :length] = torch.tensor(text.said)
    ids, there, said = (tensor.to(model.device) for tensor in (ids, there, said))
    logits = model(input_ids=ids, attention_mask=there, use_cache=False).logits
    counts = said[:, 1:]  # a token is foretold by the position before it
    scores = torch.log_softmax(logits[:, :-1][counts].float(), -1)
    scores = scores.gather(-1, ids[:, 1:][counts][:, None])[:, 0].double()
    owner = counts.nonzero()[:, 0]
    total = torch.zeros(len(texts), dtype=torch.float64, device=scores.device).index_add_(0, owner, scores)
    sums: list[float] = total.tolist()
    return sums


def _spans(tokenizer: Any, messages: Messages, tools: Any, first: int, whole: str) -> Iterator[tuple[int, int]]:
    """Where the assistant's turns stand in the text: from behind the generation prompt to the end of the turn."""
    for place in range(first, len(messages)):
        if messages[place].get("role") != "assistant":
            continue
        before = write(tokenizer, messages[:place], tools, ask=True)
        after = whole if place == len(messages) - 1 else write(tokenizer, messages[: place + 1], tools)
        if before is not None and after and after.startswith(before) and whole.startswith(after):
            yield len(before), len(after)
