"""Constraints: form, length, repetition. Each is a function of a completion's text, from 0 to 1.

has_format("<think>2+2</think><answer>4</answer>", ["think", "answer"])          ->  1.0
within(120, at_most=100, slack=50)                                               ->  0.6
varied("no no no no no no", words=2, at_most=0.2)                                ->  0.25
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD: Final = re.compile(r"\w+")
_LONGEST: Final = 1_000_000  # characters in which words are looked for


def has_format(text: str, tags: Sequence[str], *, opened: bool = False) -> float:
    """1 where the text is the tags in order, each once, none empty and nothing but blanks outside them; else 0."""
    if opened:
        text = f"<{tags[0]}>{text}"
    at = 0
    for tag in tags:
        start, end = f"<{tag}>", f"</{tag}>"
        if text.count(start) != tags.count(tag) or text.count(end) != tags.count(tag):
            return 0.0
        begins = text.find(start, at)
        ends = text.find(end, begins + len(start)) if begins >= 0 else -1
        if ends < 0 or text[at:begins].strip() or not text[begins + len(start) : ends].strip():
            return 0.0
        at = ends + len(end)
    return 0.0 if text[at:].strip() else 1.0


def length_of(text: str, unit: str) -> int:
    """Words (runs of letters and digits) or characters of a text."""
    return len(text) if unit == "characters" else sum(1 for _ in _WORD.finditer(text))


def within(length: int, at_least: int = 0, at_most: int | None = None, slack: int = 0) -> float:
    """1 within the bounds; beyond them it falls to 0 over `slack` units."""
    over = max(at_least - length, length - at_most if at_most is not None else 0, 0)
    return 1.0 if not over else max(0.0, 1 - over / slack) if slack else 0.0


def varied(text: str, words: int = 4, at_most: float = 0.2) -> float:
    """1 where at most that share of the runs of words was there before; from there it falls to 0."""
    said = [match[0].lower() for match in _WORD.finditer(text[:_LONGEST])]
    runs = len(said) - words + 1
    if runs < 2:
        return 1.0
    repeated = 1 - len({tuple(said[at : at + words]) for at in range(runs)}) / runs
    return 1.0 if repeated <= at_most else (1 - repeated) / (1 - at_most)
