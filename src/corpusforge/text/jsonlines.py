r"""JSON Lines cut into lines, and which of them need a closer look: one pass over the bytes, before anything is parsed.

    {"a": 1}\n\n{"a": 1, "a": 2}\n{"x": 1e30}\n   ->   starts 0, 9, 10, 27   marks 0, BLANK, LOOK, ODD

A parser keeps one of two values of a key that stands twice in an object, and says nothing. So keys are hashed, object
by object, while the bytes pass. A line is marked LOOK when an object may have a key twice (keys of equal hash, a key
with an escape in it, more keys than are remembered) or when it is nested more than DEEPEST levels deep; a line of
valid JSON without this mark has neither fault. ODD marks lines with a fraction that is not written plainly in at most
15 characters, the only values of which two encoders would make two texts.

What is not valid JSON gets some mark or other: the parser refuses it anyway. A line ends with `\n` alone. The pass is
compiled, and loading that takes longer than a few small files: until then every line is marked LOOK.
"""

from __future__ import annotations

import re
import sys
from typing import Final

import numpy as np
import numpy.typing as npt

LOOK: Final = 1
ODD: Final = 2
BLANK: Final = 4
SMALL: Final = 4 << 20
"""Bytes that are looked at line by line before the pass over the bytes is loaded."""

_LINE: Final = re.compile(rb"[^\n]*\n|[^\n]+\Z")
_seen = 0  # bytes that this process was given so far


Cut = tuple["npt.NDArray[np.int64]", "npt.NDArray[np.int64]", "npt.NDArray[np.uint8]"]


def cut(block: bytes) -> Cut:
    r"""Start, end (behind the `\n`) and marks of each line of a block of whole lines."""
    global _seen  # what is seen decides how fast it goes, never what comes out
    _seen += len(block)
    if _seen < SMALL and "corpusforge.text.jsonscan" not in sys.modules:
        return _cut_plainly(block)
    from corpusforge.text.jsonscan import scan

    data = np.frombuffer(block, np.uint8)
    lines = block.count(b"\n") + (block[-1:] not in (b"\n", b""))
    starts, ends = np.empty(lines, np.int64), np.empty(lines, np.int64)
    marks = np.zeros(lines, np.uint8)
    scan(data, starts, ends, marks)
    return starts, ends, marks


def _cut_plainly(block: bytes) -> Cut:
    """The same without marks for plain lines: all are to be looked at."""
    places = [line.span() for line in _LINE.finditer(block)]
    marks = [BLANK if block[start:end].isspace() else LOOK for start, end in places]
    starts, ends = (np.array([place[side] for place in places], np.int64) for side in (0, 1))
    return starts, ends, np.array(marks, np.uint8)


def count(block: bytes) -> tuple[int, int, int]:
    """Lines of a block of whole lines, how many of them are not blank, and the bytes of the longest."""
    if not block:
        return 0, 0, 0
    data = np.frombuffer(block, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if block[-1:] != b"\n":
        ends = np.append(ends, len(block))
    starts = np.concatenate([[0], ends[:-1] + 1])
    first = data[np.minimum(starts, len(block) - 1)]
    doubtful = np.flatnonzero((first <= 32) & (first >= 9)).tolist()  # they begin with a blank, or with their end
    blank = sum(not block[starts[line] : ends[line]].strip() for line in doubtful)
    return len(ends), len(ends) - blank, int((ends - starts).max()) + 1
