"""The pass over the bytes behind `corpusforge.text.jsonlines`: a state machine, compiled."""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.jsonlines import BLANK, LOOK, ODD
from corpusforge.text.jsontext import DEEPEST
from corpusforge.text.kernels import Bytes, T, jit

_MOST: Final = 64  # keys of one object that are compared
_LONGEST: Final = 15  # characters of a number that every encoder writes alike
_DEPTHS: Final = DEEPEST + 2
_PRIME: Final = np.uint64(0x100000001B3)  # FNV-1a
_BASIS: Final = np.uint64(0xCBF29CE484222325)  # FNV-1a

_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_I64: Final = nb.int64[::1]
_U64: Final = nb.uint64[::1]
_U8: Final = nb.uint8[::1]


@jit(nb.int64(_BYTES, nb.int64))
def _number(data: Bytes, begins: int) -> int:
    """Where the number ends that begins at `begins` (its exponent not included), negative where it is an odd one.

    Odd are exponents, fractions of more than 15 characters, and what starts with 0.000.
    """
    size, at, point = len(data), begins, 0
    while at < size and (48 <= data[at] <= 57 or data[at] == 43 or data[at] == 45 or data[at] == 46):
        if data[at] == 46:
            point = at
        at += 1
    if at < size and (data[at] == 69 or data[at] == 101):
        return -at
    if point and (
        at - begins > _LONGEST or (at > point + 3 and data[point + 1] == data[point + 2] == data[point + 3] == 48)
    ):
        return -at
    return at


@jit(nb.boolean(_U64, _I64, nb.int64, nb.uint64))
def _remember(keys: Any, counts: Any, depth: int, hashed: Any) -> bool:
    """Whether the key is new in the object that is open at `depth`, as far as can be told."""
    count = counts[depth]
    if count < 0 or count >= _MOST:
        return False
    first = depth * _MOST
    for other in range(first, first + count):
        if keys[other] == hashed:
            return False
    keys[first + count] = hashed
    counts[depth] = count + 1
    return True


@jit(nb.int64(_BYTES, nb.int64, _U64, _I64, _U8, nb.int64))
def _line(data: Bytes, at: int, keys: Any, counts: Any, marks: Any, line: int) -> int:  # noqa: C901 # one state machine
    """Mark the line that begins at `at`; where the next one begins."""
    size, depth, wants_key, blank, mark = len(data), 0, False, True, 0
    while at < size:
        sign = data[at]
        if sign == 10:
            at += 1
            break
        if sign == 32 or (9 <= sign <= 13):
            at += 1
            continue
        blank = False
        if sign == 34:  # "
            at += 1
            hashed, escaped = _BASIS, False
            while at < size:
                if wants_key:
                    while data[at] != 34 and data[at] != 92 and data[at] != 10:
                        hashed = (hashed ^ np.uint64(data[at])) * _PRIME
                        at += 1
                        if at == size:
                            break
                else:
                    while data[at] != 34 and data[at] != 92 and data[at] != 10:
                        at += 1
                        if at == size:
                            break
                if at == size or data[at] != 92:
                    break
                escaped = True  # a backslash, and what it escapes
                at += 1
                if at < size and data[at] != 10:
                    at += 1
            if at < size and data[at] == 34:
                at += 1
            if wants_key:
                wants_key = False
                if escaped or depth >= _DEPTHS or not _remember(keys, counts, depth, hashed):
                    mark |= LOOK
            continue
        if sign == 123 or sign == 91:  # { [
            depth += 1
            wants_key = sign == 123
            if depth > DEEPEST:
                mark |= LOOK
            else:
                counts[depth] = 0 if wants_key else -1
        elif sign == 125 or sign == 93:  # } ]
            depth = max(depth - 1, 0)
            wants_key = False
        elif sign == 44:  # ,
            wants_key = 0 < depth <= DEEPEST and counts[depth] >= 0
        elif sign == 45 or 48 <= sign <= 57:
            ends = _number(data, at)
            if ends < 0:
                mark |= ODD
            at = abs(ends)
            continue
        at += 1
    marks[line] = BLANK if blank else mark
    return at


@jit(nb.void(_BYTES, _I64, _I64, _U8))
def scan(data: Bytes, starts: Any, ends: Any, marks: npt.NDArray[np.uint8]) -> None:
    """Fill in where each line starts and ends, and its marks."""
    keys = np.empty(_DEPTHS * _MOST, np.uint64)
    counts = np.zeros(_DEPTHS, np.int64)  # keys of the object that is open at each depth; -1 where it is an array
    at = 0
    for line in range(len(starts)):
        starts[line] = at
        at = _line(data, at, keys, counts, marks, line)
        ends[line] = at
