"""How two texts differ, word by word: what one has that the other lacks, with the words around it.

    kept     The ferry leaves the north pier at seven on weekdays.
    removed  The ferry leaves the north pier at eight on weekdays.
    -> … the north pier at [-seven-] {+eight+} on weekdays.

Equal beginnings and ends are set aside first, so that long texts with few changes cost little; of what is left, at most
`COMPARED` words of each text are aligned (Ratcliff and Obershelp 1988, as difflib has it), the rest is one change. In
scripts without spaces each sign is a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMPARED: Final = 2_000  # words of each text that are aligned
_UNSPACED: Final = (  # Thai, Lao, Tibetan, Burmese, Khmer, Japanese, Chinese
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
)
_WORD: Final = re.compile(rf"(?:[{_UNSPACED}]|(?:(?![{_UNSPACED}])\w)+|[^\w\s])\s*")
_AROUND: Final = 6  # words shown on either side of a change


@dataclass(frozen=True)
class Change:
    """Words that differ, and those around them; texts are clipped to a bounded length."""

    before: str
    removed: str
    """What the second text has in the place of `kept`."""
    kept: str
    """What the first text has there."""
    after: str

    def __str__(self) -> str:
        marks = [f"[-{self.kept}-]" if self.kept else "", f"{{+{self.removed}+}}" if self.removed else ""]
        return " ".join(part for part in (self.before, *marks, self.after) if part)


def word_diff(kept: str, removed: str, *, changes: int = 8, width: int = 240) -> tuple[list[Change], int]:
    """The first `changes` places where the texts differ, each text of them at most `width` long, and how many more."""
    one, other = _words(kept), _words(removed)
    found = list(_changes([word.rstrip() for word in one], [word.rstrip() for word in other]))
    shown = [
        Change(
            _clip(("… " if a > _AROUND else "") + _join(one[max(0, a - _AROUND) : a]), width),
            _clip(_join(other[c:d]), width),
            _clip(_join(one[a:b]), width),
            _clip(_join(one[b : b + _AROUND]) + (" …" if b + _AROUND < len(one) else ""), width),
        )
        for a, b, c, d in found[:changes]
    ]
    return shown, max(0, len(found) - changes)


def _changes(one: Sequence[str], other: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """Spans of the two lists that differ, in order."""
    start = _same(zip(one, other, strict=False))
    end = _same(zip(reversed(one[start:]), reversed(other[start:]), strict=False))
    a, b = one[start : len(one) - end], other[start : len(other) - end]
    head, tail = a[:COMPARED], b[:COMPARED]
    last = (0, 0)
    for tag, i, j, k, m in SequenceMatcher(None, head, tail, autojunk=False).get_opcodes():
        if tag != "equal" and (j, m) == (len(head), len(tail)):
            break  # it goes on to the end, and beyond what was compared
        if tag != "equal":
            yield start + i, start + j, start + k, start + m
        last = (j, m)
    if last != (len(a), len(b)):
        yield start + last[0], start + len(a), start + last[1], start + len(b)


def _same(pairs: Iterator[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _words(text: str) -> list[str]:
    """The words, each with the blanks behind it."""
    return _WORD.findall(text)


def _join(words: Sequence[str]) -> str:
    return " ".join("".join(words).split())


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + " …"
