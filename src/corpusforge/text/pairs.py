"""Pairs of similar sets: buckets, exact Jaccard, and groups of linked rows; `survivors.py` chooses who stays.

Sets are arrays of distinct 64-bit hashes, all in one array (`Sets`). The similarity of two sets is |A and B| / |A or
B|; where sets hold hashes with the answer bit, it is the smaller of that and of the same figure over those hashes
alone, so a long shared prompt does not make two different answers alike.

A set is compared by putting it into a table of twice its size and looking up the other's members: the hashes are well
mixed, so their low bits are the places. The table is not cleared: each set that is put in has a number of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.kernels import T, jit
from corpusforge.text.shingles import ANSWER_BIT, Hashes, Shingles

Positions = npt.NDArray[np.int64]
_U64: Final = T.Array(nb.uint64, 1, "C", readonly=True)
_I64: Final = T.Array(nb.int64, 1, "C", readonly=True)
_I32_2D: Final = T.Array(nb.int32, 2, "C", readonly=True)


@dataclass(frozen=True)
class Sets:
    """Sets of distinct hashes: that of row i is `values[starts[i]:starts[i + 1]]`, those with the answer bit last."""

    values: Hashes
    starts: Positions

    def __len__(self) -> int:
        return len(self.starts) - 1

    def take(self, places: Positions) -> Sets:
        """The sets at `places`, in that order."""
        return Sets(*gather(self.values, self.starts, places))


def sets(shingles: Shingles) -> Sets:
    """The distinct shingles of each row, in the order of the text."""
    return distinct(shingles.hashes.copy(), shingles.starts)


def distinct(values: Hashes, starts: Positions) -> Sets:
    """The distinct values of each row; `values` is used up."""
    ends = _sets(values, starts)
    return Sets(values[: ends[-1]], ends)


def gather(values: Hashes, starts: Positions, places: Positions) -> tuple[Hashes, Positions]:
    """The values of the rows at `places`, one row behind the other, and where each begins."""
    to = np.concatenate([[0], np.cumsum(np.diff(starts)[places])]).astype(np.int64)
    return np.asarray(_take(values, starts, np.asarray(places, np.int64), to)), to


def jaccard(one: Sets, i: int, other: Sets, j: int) -> float:
    """Exact similarity of two sets."""
    a, b = one.values[one.starts[i] : one.starts[i + 1]], other.values[other.starts[j] : other.starts[j + 1]]
    return float(_jaccard(a, b))


def buckets(band: Hashes) -> npt.NDArray[np.int32]:
    """Number the buckets of one band, from 0 on, in the order in which they are met; -1 where a row is alone."""
    return np.asarray(_buckets(np.ascontiguousarray(band)))


def linked(members: npt.NDArray[np.int32]) -> Positions:
    """Label rows so that rows which share a bucket, and rows linked through others, have the same label.

    `members` holds each row's buckets (-1: none), numbered apart for each band. The label is the first row's place.
    """
    return np.asarray(_linked(members, int(members.max(initial=-1)) + 1))


def components(count: int, left: Positions, right: Positions) -> Positions:
    """Label 0..count-1 so that linked positions share a label: the smallest position among them."""
    return np.asarray(_components(count, np.ascontiguousarray(left), np.ascontiguousarray(right)))


def empty_table(longest: int) -> Hashes:
    """An empty table for sets of at most `longest` members: a place is a hash and the number of the set it is of."""
    return np.zeros((2 << max(longest - 1, 1).bit_length(), 2), np.uint64)


@jit(nb.int64(nb.uint64[:, ::1], nb.uint64, nb.uint64[::1], nb.int64, nb.int64, nb.int64))
def _fill(table: Hashes, number: np.uint64, values: Hashes, begin: int, end: int, to: int) -> int:
    """Put values[begin:end] into the table as set `number`, the distinct ones to values[to:]; give the place behind."""
    mask = len(table) - 1
    for i in range(begin, end):
        value = values[i]
        at = np.int64(value) & mask
        while table[at, 1] == number and table[at, 0] != value:
            at = (at + 1) & mask
        if table[at, 1] != number:
            table[at, 0] = value
            table[at, 1] = number
            values[to] = value
            to += 1
    return to


@jit(nb.uint64[::1](_U64, _I64, _I64, _I64))
def _take(values: Hashes, starts: Positions, places: Positions, to: Positions) -> Hashes:
    out = np.empty(to[-1], np.uint64)
    for i in range(len(places)):
        out[to[i] : to[i + 1]] = values[starts[places[i]] : starts[places[i] + 1]]
    return out


@jit(nb.int64[::1](nb.uint64[::1], _I64))
def _sets(values: Hashes, starts: Positions) -> Positions:
    """Drop repetitions in each row's part, in place; give the new starts."""
    longest = 1
    for row in range(len(starts) - 1):
        longest = max(longest, starts[row + 1] - starts[row])
    size = 2
    while size < 2 * longest:
        size *= 2
    table = np.zeros((size, 2), np.uint64)
    out = np.zeros(len(starts), np.int64)
    for row in range(len(starts) - 1):
        out[row + 1] = _fill(table, np.uint64(row + 1), values, starts[row], starts[row + 1], out[row])
    return out


@jit(nb.float64(nb.uint64[:, ::1], nb.uint64, _U64, _U64, nb.float64))
def similarity(table: Hashes, number: np.uint64, a: Hashes, b: Hashes, least: float) -> float:
    """Exact similarity of `a`, set `number` of the table, to `b`; -1 once it is certain to be below `least`."""
    total = len(a) + len(b)
    if not total:
        return 0.0
    # J >= t needs |A and B| >= t/(1+t) * (|A|+|B|): so many members of b may miss.
    need = least / (1.0 + least) * total - 1e-9
    if need > min(len(a), len(b)):
        return -1.0
    spare = len(b) - need
    mask = len(table) - 1
    both = both_answers = 0
    for i in range(len(b)):
        value = b[i]
        at = np.int64(value) & mask
        while table[at, 1] == number and table[at, 0] != value:
            at = (at + 1) & mask
        if table[at, 1] == number:
            both += 1
            both_answers += value >= ANSWER_BIT
        else:
            spare -= 1
            if spare < 0:
                return -1.0
    similar = both / (total - both)
    answers = 0
    for side in (a, b):
        k = len(side) - 1
        while k >= 0 and side[k] >= ANSWER_BIT:
            answers += 1
            k -= 1
    return float(min(similar, both_answers / (answers - both_answers)) if answers else similar)


@jit(nb.float64(_U64, _U64))
def _jaccard(a: Hashes, b: Hashes) -> float:
    size = 2
    while size < 2 * len(a):
        size *= 2
    table = np.zeros((size, 2), np.uint64)
    own = a.copy()
    _fill(table, np.uint64(1), own, 0, len(own), 0)
    return float(similarity(table, np.uint64(1), a, b, 0.0))


@jit(nb.int32[::1](nb.uint64[::1]))
def _buckets(band: Hashes) -> npt.NDArray[np.int32]:
    size = 2
    while size < 2 * len(band):
        size *= 2
    first = np.full(size, -1, np.int32)  # the first row with the value of this place
    out = np.full(len(band), -1, np.int32)
    following = np.int32(0)
    for row in range(len(band)):
        value = band[row]
        at = np.int64((value ^ (value >> np.uint64(32))) & np.uint64(size - 1))
        while first[at] >= 0 and band[first[at]] != value:
            at = (at + 1) & (size - 1)
        other = first[at]
        if other < 0:
            first[at] = row
            continue
        if out[other] < 0:
            out[other] = following
            following += np.int32(1)
        out[row] = out[other]
    return out


@jit(nb.int64(nb.int64[::1], nb.int64))
def _root(label: Positions, at: int) -> int:
    while label[at] != at:
        label[at] = label[label[at]]
        at = label[at]
    return at


@jit(nb.int64[::1](_I32_2D, nb.int64))
def _linked(members: npt.NDArray[np.int32], count: int) -> Positions:
    label = np.arange(len(members))
    first = np.full(count, -1, np.int64)
    for row in range(len(members)):
        for bucket in members[row]:
            if bucket < 0:
                continue
            if first[bucket] < 0:
                first[bucket] = row
                continue
            a = _root(label, first[bucket])
            b = _root(label, row)
            label[max(a, b)] = min(a, b)
    for row in range(len(members)):
        label[row] = _root(label, row)
    return label


@jit(nb.int64[::1](nb.int64, _I64, _I64))
def _components(count: int, left: Positions, right: Positions) -> Positions:
    label = np.arange(count)
    for edge in range(len(left)):
        a = _root(label, left[edge])
        b = _root(label, right[edge])
        label[max(a, b)] = min(a, b)
    for i in range(count):
        label[i] = _root(label, i)
    return label
