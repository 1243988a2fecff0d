"""Pairs of similar sets: buckets, exact Jaccard, the greedy choice of survivors, and groups of linked rows.

Sets are sorted arrays of 64-bit hashes, all in one array (`Sets`). The similarity of two sets is |A and B| / |A or B|;
where sets hold hashes with the answer bit, it is the smaller of that and of the same figure over those hashes alone,
so a long shared prompt does not make two different answers alike.
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
_I64_2D: Final = T.Array(nb.int64, 2, "C", readonly=True)
_BANDS: Final = T.Array(nb.int32, 1, "C", readonly=True)
_BOOL: Final = T.Array(nb.boolean, 1, "C", readonly=True)


@dataclass(frozen=True)
class Sets:
    """Sorted sets of hashes: that of row i is `values[starts[i]:starts[i + 1]]`."""

    values: Hashes
    starts: Positions

    def __len__(self) -> int:
        return len(self.starts) - 1


def sets(shingles: Shingles) -> Sets:
    """Sort the shingles of each row and drop repetitions."""
    values, starts = _sets(shingles.hashes.copy(), shingles.starts)
    return Sets(values[: starts[-1]].copy(), starts)


def join(parts: list[Sets]) -> Sets:
    """Put sets behind one another."""
    if not parts:
        return Sets(np.zeros(0, np.uint64), np.zeros(1, np.int64))
    sizes = np.concatenate([np.diff(part.starts) for part in parts])
    return Sets(
        np.concatenate([part.values for part in parts]), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    )


def jaccard(one: Sets, i: int, other: Sets, j: int) -> float:
    """Exact similarity of two sets."""
    a, b = one.values[one.starts[i] : one.starts[i + 1]], other.values[other.starts[j] : other.starts[j + 1]]
    return max(0.0, float(_jaccard(a, b, 0.0)))


def buckets(bands: Hashes) -> npt.NDArray[np.int32]:
    """Number the buckets of each band; -1 where a row is alone. Rows of `bands` are rows, columns are bands."""
    out = np.full(bands.shape, -1, np.int32)
    following = 0
    for band in range(bands.shape[1]):
        values = bands[:, band]
        order = np.argsort(values, kind="stable")
        ranked = values[order]
        new = np.ones(len(ranked), bool)
        new[1:] = ranked[1:] != ranked[:-1]
        number = np.cumsum(new) - 1
        shared = np.bincount(number) > 1 if len(number) else np.zeros(0, bool)
        dense = np.where(shared, np.cumsum(shared) - 1 + following, -1)
        out[order, band] = dense[number]
        following += int(shared.sum())
    return out


def survivors(
    members: npt.NDArray[np.int32],
    sets: Sets,
    places: Positions,
    protected: npt.NDArray[np.bool_],
    threshold: float,
    limit: int,
) -> tuple[Positions, npt.NDArray[np.float64], int, int]:
    """Go through rows in order; a row goes when a kept row in one of its buckets is similar enough.

    `members` holds each row's buckets (see `buckets`), in the order of survival; `places` tells where in `sets` each
    row's set is. A protected row always stays. Rows that share boilerplate meet by the thousand: so a row is held
    against at most the first `limit` kept rows of each bucket, and against `limit` in all, those met most often
    first. Returns for each row the kept row it goes for (-1: it stays) and their similarity; the number of
    comparisons; and the number of rows that stay although the limit left some candidate out.
    """
    count = int(members.max()) + 1 if members.size else 0
    sizes = np.bincount(members[members >= 0].ravel(), minlength=count)
    room = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    spans = np.stack([sets.starts[places], sets.starts[places + 1]], axis=1)
    partner, similarity, figures = _survivors(members, room, sets.values, spans, protected, threshold, limit)
    return partner, similarity, int(figures[0]), int(figures[1])


def components(count: int, left: Positions, right: Positions) -> Positions:
    """Label 0..count-1 so that linked positions share a label: the smallest position among them."""
    return np.asarray(_components(count, np.ascontiguousarray(left), np.ascontiguousarray(right)))


@jit(T.Tuple((nb.uint64[::1], nb.int64[::1]))(nb.uint64[::1], _I64))
def _sets(hashes: Hashes, starts: Positions) -> tuple[Hashes, Positions]:
    out = np.zeros(len(starts), np.int64)
    at = 0
    for row in range(len(starts) - 1):
        part = hashes[starts[row] : starts[row + 1]]
        part.sort()
        for i in range(len(part)):
            if i == 0 or part[i] != part[i - 1]:
                value = part[i]
                hashes[at] = value
                at += 1
        out[row + 1] = at
    return hashes, out


@jit(nb.float64(_U64, _U64, nb.float64))
def _jaccard(a: Hashes, b: Hashes, least: float) -> float:
    """Exact similarity, or -1 as soon as it is certain to lie below `least`."""
    total = len(a) + len(b)
    short = min(len(a), len(b))
    if short == 0:
        return -1.0 if total else 0.0
    # J >= t needs |A and B| >= t/(1+t) * (|A|+|B|): so many elements of the shorter set may miss.
    misses = short - least / (1.0 + least) * total + 1e-9
    if misses < 0:
        return -1.0
    i = j = both = both_answers = 0
    spare = misses
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            both += 1
            both_answers += a[i] >= ANSWER_BIT
            i += 1
            j += 1
        else:
            if a[i] < b[j]:
                i += 1
                lost = len(a) <= len(b)
            else:
                j += 1
                lost = len(b) < len(a)
            if lost:
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
    return min(similar, both_answers / (answers - both_answers)) if answers else similar


@jit(
    T.UniTuple(nb.int64, 2)(
        _BANDS, _I64, nb.int64[::1], nb.int64[::1], nb.int64[::1], nb.int32[::1], nb.int64[::1], nb.int64, nb.int64
    )
)
def _gather(
    own: npt.NDArray[np.int32],
    room: Positions,
    filled: Positions,
    kept: Positions,
    seen: Positions,
    times: npt.NDArray[np.int32],
    found: Positions,
    row: int,
    limit: int,
) -> tuple[int, int]:
    """List in `found` the kept rows of the row's buckets, how often each is met in `times`; give listed, left out."""
    count = left_out = 0
    for band in range(len(own)):
        bucket = own[band]
        if bucket < 0:
            continue
        left_out += max(filled[bucket] - limit, 0)
        for at in range(room[bucket], room[bucket] + min(filled[bucket], limit)):
            other = kept[at]
            if seen[other] != row:
                seen[other] = row
                times[other] = 0
                found[count] = other
                count += 1
            times[other] += 1
    return count, left_out


@jit(
    T.Tuple((nb.int64, nb.float64, nb.int64))(
        nb.int64, nb.int64[::1], nb.int32[::1], _U64, _I64_2D, nb.int64, nb.float64, nb.int64
    )
)
def _first_similar(
    row: int,
    found: Positions,
    times: npt.NDArray[np.int32],
    values: Hashes,
    spans: Positions,
    count: int,
    threshold: float,
    limit: int,
) -> tuple[int, float, int]:
    """Compare with the rows met thrice, then twice, then once, each in order; give the first hit (or -1)."""
    made = 0
    own = values[spans[row, 0] : spans[row, 1]]
    for often in (3, 2, 1):
        for at in range(count):
            other = found[at]
            if min(times[other], 3) != often:
                continue
            if made == limit:
                return -1, 0.0, made
            made += 1
            similarity = _jaccard(own, values[spans[other, 0] : spans[other, 1]], threshold)
            if similarity >= threshold:
                return other, similarity, made
    return -1, 0.0, made


@jit(
    T.Tuple((nb.int64[::1], nb.float64[::1], nb.int64[::1]))(_I32_2D, _I64, _U64, _I64_2D, _BOOL, nb.float64, nb.int64)
)
def _survivors(
    members: npt.NDArray[np.int32],
    room: Positions,
    values: Hashes,
    spans: Positions,
    protected: npt.NDArray[np.bool_],
    threshold: float,
    limit: int,
) -> tuple[Positions, npt.NDArray[np.float64], Positions]:
    rows = len(members)
    partner = np.full(rows, -1, np.int64)
    similarity = np.zeros(rows, np.float64)
    figures = np.zeros(2, np.int64)
    filled = np.zeros(len(room), np.int64)
    kept = np.empty(room[-1], np.int64)  # kept rows of each bucket, in order
    seen = np.full(rows, -1, np.int64)
    times = np.zeros(rows, np.int32)
    found = np.empty(rows, np.int64)
    for row in range(rows):
        if not protected[row]:
            count, left_out = _gather(members[row], room, filled, kept, seen, times, found, row, limit)
            partner[row], similarity[row], made = _first_similar(
                row, found, times, values, spans, count, threshold, limit
            )
            figures[0] += made
            figures[1] += partner[row] < 0 and made < count + left_out
        if partner[row] < 0:
            for bucket in members[row]:
                if bucket >= 0:
                    kept[room[bucket] + filled[bucket]] = row
                    filled[bucket] += 1
    return partner, similarity, figures


@jit(nb.int64[::1](nb.int64, _I64, _I64))
def _components(count: int, left: Positions, right: Positions) -> Positions:
    label = np.arange(count)
    for edge in range(len(left)):
        a = left[edge]
        b = right[edge]
        while label[a] != a:
            label[a] = label[label[a]]
            a = label[a]
        while label[b] != b:
            label[b] = label[label[b]]
            b = label[b]
        if a < b:
            label[b] = a
        else:
            label[a] = b
    for i in range(count):
        while label[i] != label[label[i]]:
            label[i] = label[label[i]]
    return label
