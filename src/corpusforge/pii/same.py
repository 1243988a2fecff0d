"""The same values at other places of a text: as they were found, a street without its town, a number in other groups.

A text is gone through once, whatever the number of values: where the first characters of one stand, the few lengths
that values with that beginning have are looked up. Thousands of addresses in one text take seconds, not hours.

    values  zoe@corp.com, 2124567890 (spaced)      text  "zoe@corp.com, 212 456-7890"
    ->      (0, 12, "zoe@corp.com"), (14, 26, "2124567890")
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_HEAD: Final = 6  # characters of a value that tell where it may begin
_FEW: Final = 16  # beginnings that are looked for one by one
_RUN: Final = re.compile(r"[0-9](?:[ .()/\-]{0,2}[0-9])*")


class SameValues:
    """Values to look for; those that map to True are digits, which may stand in groups, with `+` or `(` in front."""

    def __init__(self, values: Mapping[str, bool]) -> None:
        self._plain = _Values(value for value, spaced in values.items() if not spaced)
        self._spaced = _Values(value for value, spaced in values.items() if spaced)

    def find(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Start, end and value, disjoint: the leftmost, then the longest value."""
        last = 0
        for start, _, value, end in sorted(self._candidates(text)):
            if start >= last:
                yield start, end, value
                last = end

    def _candidates(self, text: str) -> Iterator[tuple[int, int, str, int]]:
        for start, value in self._plain.find(text):
            yield start, -len(value), value, start + len(value)
        for run in _RUN.finditer(text) if self._spaced else ():
            digits = [at for at in range(run.start(), run.end()) if text[at].isdecimal()]
            for number, value in self._spaced.find("".join(text[at] for at in digits)):
                start, end = digits[number], digits[number + len(value) - 1] + 1
                start -= text[max(0, start - 1) : start] == "("
                start -= text[max(0, start - 1) : start] == "+"
                yield start, -len(value), value, end


class _Values:
    """Strings, by their beginnings."""

    def __init__(self, values: Iterable[str]) -> None:
        self._all = set(values)
        self._size = min([_HEAD, *map(len, self._all)])
        lengths: dict[str, set[int]] = {}
        for value in self._all:
            lengths.setdefault(value[: self._size], set()).add(len(value))
        self._lengths = {head: sorted(some, reverse=True) for head, some in lengths.items()}

    def __bool__(self) -> bool:
        return bool(self._all)

    def find(self, text: str) -> Iterator[tuple[int, str]]:
        """Where the values begin, and the longest one at each place."""
        for start, lengths in self._starts(text):
            for length in lengths:
                if (value := text[start : start + length]) in self._all:
                    yield start, value
                    break

    def _starts(self, text: str) -> Iterator[tuple[int, list[int]]]:
        if len(self._lengths) > _FEW:
            size, known = self._size, self._lengths
            for start in range(len(text) - size + 1):
                if (lengths := known.get(text[start : start + size])) is not None:
                    yield start, lengths
            return
        for head, lengths in self._lengths.items():
            start = text.find(head)
            while start >= 0:
                yield start, lengths
                start = text.find(head, start + 1)
