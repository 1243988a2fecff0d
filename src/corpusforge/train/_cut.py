"""Judge one rendered row as TRL's trainers treat it: where they cut it, what is left to learn, what the text lacks.

SFTTrainer cuts ids and labels at `max_length` and drops rows whose labels are all masked. DPOTrainer lets the answers
begin where prompt and prompt + answer differ, drops pairs whose prompt reaches the limit (`keep_start`), and cuts each
side in the collator. The loss of both is on the next token, so the first token left of a row is never learned.

    limit 8, 6 tokens of prompt, 5 of answer  ->  Found(length=11, tokens=8, trained=2, reasons=[("cut", …)])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusforge.train._lost import Loss
from corpusforge.train._render import Fault, Read, Talk, parsed
from corpusforge.train._seen import Found, Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from corpusforge.train._lost import Finder


@dataclass(frozen=True)
class Window:
    """Which part of a sequence is left after the cut: `limit` tokens from its start or end, or all (limit None)."""

    limit: int | None
    at_end: bool = False

    @classmethod
    def of(cls, trl: Mapping[str, Any], max_length: int) -> Window:
        """The cut of SFTTrainer. Packing cuts from the start whatever the mode, or splits and loses nothing."""
        if not trl.get("packing"):
            return cls(max_length, trl.get("truncation_mode") == "keep_end")
        return cls(max_length if trl.get("packing_strategy", "bfd") == "bfd" else None)

    def span(self, length: int) -> tuple[int, int]:
        """First and last (exclusive) position that is left of a sequence of `length` tokens."""
        if self.limit is None or length <= self.limit:
            return 0, length
        return (length - self.limit, length) if self.at_end else (0, self.limit)

    def cuts(self, length: int) -> bool:
        """Whether a sequence of `length` tokens is cut."""
        return self.limit is not None and length > self.limit


def conversation(talk: Talk, read: Read | Fault, finder: Finder, window: Window) -> Found:
    """A conversation, and what the renderer made of it."""
    if isinstance(read, Fault):
        return _faulty(read)
    low, high = window.span(len(read.ids))
    # The first token has nothing before it to be predicted from.
    trained = max(0, high - low - 1) if read.mask is None else sum(read.mask[low + 1 : high])
    reasons = _losses(finder, [(talk, read.text)])
    facts = {"tokens": len(read.ids), "limit": window.limit, "trained_tokens": trained}
    if not trained:
        reasons.append(("no_trained_token", facts))
    if window.cuts(len(read.ids)):
        reasons.append(("cut", facts))
    return Found(len(read.ids), high - low, trained, reasons)


def pair(talks: Sequence[Talk], texts: Sequence[Read | Fault], finder: Finder, window: Window) -> Found:
    """A pair: prompt, prompt + chosen and prompt + rejected, in this order, and what each became."""
    whole = [text for text in texts if isinstance(text, Read)]
    if len(whole) < len(texts):
        return _faulty(next(text for text in texts if isinstance(text, Fault)))
    prompt, *sides = (text.ids for text in whole)
    reasons = _losses(finder, zip(talks[1:], (text.text for text in whole[1:]), strict=True))
    begin = min(_shared(prompt, side) for side in sides)
    spans = [window.span(len(side)) for side in sides]
    trained = [max(0, high - max(begin, low + 1)) for low, high in spans]
    left = [side[low:high] for side, (low, high) in zip(sides, spans, strict=True)]
    longest = max(map(len, sides))
    facts = {"tokens": longest, "limit": window.limit, "trained_tokens": sum(trained)}
    if not window.at_end and window.limit is not None and begin >= window.limit:
        reasons.append(("prompt_at_limit", {**facts, "prompt_tokens": begin}))
    if not all(trained):
        reasons.append(("no_trained_token", facts))
    if left[0] == left[1] and trained[0] == trained[1]:
        reasons.append(("equal_after_cut", facts))
    if window.cuts(longest):
        reasons.append(("cut", facts))
    return Found(longest, sum(map(len, left)), sum(trained), reasons)


def task(talk: Talk, tools: str | None, read: Read | Fault, finder: Finder, room: int) -> Found:
    """A task: its prompt, the tools that the trainer will not show, and the tokens that a prompt has room for."""
    if isinstance(read, Fault):
        return _faulty(read)
    length = len(read.ids)
    unseen: list[Reason] = [("lost_field", Loss("tools").detail())]
    reasons = unseen if parsed(tools) else _losses(finder, [(talk, read.text)])
    if length > room:
        reasons.append(("prompt_at_limit", {"tokens": length, "limit": room}))
    return Found(length, length, 0, reasons)


def _faulty(fault: Fault) -> Found:
    return Found(reasons=[("template_error", fault.detail())])


def _losses(finder: Finder, rendered: Iterable[tuple[Talk, str]]) -> list[Reason]:
    losses = (finder.lost(talk, text) for talk, text in rendered)
    first = next((loss for loss in losses if loss), None)
    return [("lost_field", first.detail())] if first else []


def _shared(ids: Sequence[int], others: Sequence[int]) -> int:
    """Leading tokens that two sequences have in common."""
    if others[: len(ids)] == ids:
        return len(ids)
    return next((n for n, (one, other) in enumerate(zip(ids, others, strict=False)) if one != other), len(others))
