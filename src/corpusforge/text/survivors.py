"""Who stays: rows in the order of survival, each held against the kept rows that it met.

Most candidates of boilerplate are told apart before their sets are read: each set has 512 bits, one for each of its
members, several of which may share one. A bit of A that B lacks stands for a member of A that B lacks, which bounds
|A and B| from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.kernels import T, jit
from corpusforge.text.pairs import empty_table, similarity
from corpusforge.text.registers import ones, prefetch

if TYPE_CHECKING:
    from corpusforge.text.pairs import Positions, Sets
    from corpusforge.text.shingles import Hashes

_U64: Final = T.Array(nb.uint64, 1, "C", readonly=True)
_I64: Final = T.Array(nb.int64, 1, "C", readonly=True)
_I32_2D: Final = T.Array(nb.int32, 2, "C", readonly=True)
_I64_2D: Final = T.Array(nb.int64, 2, "C", readonly=True)
_BITS: Final = T.Array(nb.uint64, 2, "C", readonly=True)
_BANDS: Final = T.Array(nb.int32, 1, "C", readonly=True)
_STAYS: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_WORDS: Final = 8  # 64 bits each: a cache line
_AHEAD: Final = 6  # candidates that are asked for before they are compared


def survivors(
    members: npt.NDArray[np.int32],
    sets: Sets,
    places: Positions,
    protected: npt.NDArray[np.bool_] | npt.NDArray[np.uint8],
    threshold: float,
    limit: int,
) -> tuple[Positions, npt.NDArray[np.float64], int, int]:
    """Go through rows in order; a row goes when a kept row in one of its buckets is similar enough.

    `members` holds each row's buckets, numbered apart for each band, in the order of survival; `places` tells where in
    `sets` each row's set is. A protected row always stays (2: it is told all the same for whom it would go). Rows that
    share boilerplate meet by the thousand: so a row is held against at most the first `limit` kept rows of each bucket,
    and against `limit` in all, those met most often first. Returns for each row the kept row it goes for (-1: it stays)
    and their similarity; the number of comparisons; and the number of rows that stay although the limit left some
    candidate out.
    """
    count = int(members.max(initial=-1)) + 1
    sizes = np.bincount(members[members >= 0].ravel(), minlength=count)
    room = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    spans = np.stack([sets.starts[places], sets.starts[places + 1]], axis=1)
    table = empty_table(int(np.diff(sets.starts).max(initial=0)))
    stays = protected.astype(np.uint8)
    bits = _bits_of(sets.values, spans)
    partner, similarity, figures = _survivors(members, room, sets.values, spans, bits, table, stays, threshold, limit)
    return partner, similarity, int(figures[0]), int(figures[1])


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


@jit(nb.uint64[:, ::1](_U64, _I64_2D))
def _bits_of(values: Hashes, spans: Positions) -> Hashes:
    """512 bits for each set."""
    out = np.zeros((len(spans), _WORDS), np.uint64)
    for row in range(len(spans)):
        for at in range(spans[row, 0], spans[row, 1]):
            bit = (values[at] >> np.uint64(20)) & np.uint64(64 * _WORDS - 1)
            out[row, bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))
    return out


@jit(nb.boolean(_BITS, _I64_2D, nb.int64, nb.int64, nb.float64))
def _may_reach(bits: Hashes, spans: Positions, row: int, other: int, least: float) -> bool:
    """Whether two sets can be as similar as `least`, by their sizes and bits."""
    size, size_other = spans[row, 1] - spans[row, 0], spans[other, 1] - spans[other, 0]
    alone = alone_other = 0
    for word in range(_WORDS):
        a, b = bits[row, word], bits[other, word]
        alone += ones(a & ~b)
        alone_other += ones(b & ~a)
    need = least / (1.0 + least) * (size + size_other) - 1e-9
    return bool(min(size - alone, size_other - alone_other) >= need)


@jit(nb.void(nb.uint64[:, ::1], nb.uint64, _U64))
def _lay(table: Hashes, number: np.uint64, own: Hashes) -> None:
    """Put the members of a set into the table."""
    mask = len(table) - 1
    for value in own:
        at = np.int64(value) & mask
        while table[at, 1] == number:
            at = (at + 1) & mask
        table[at, 0] = value
        table[at, 1] = number


@jit(
    T.Tuple((nb.int64, nb.float64, nb.int64))(
        nb.int64,
        nb.int64[::1],
        nb.int32[::1],
        _U64,
        _I64_2D,
        _BITS,
        nb.uint64[:, ::1],
        nb.int64,
        nb.float64,
        nb.int64,
    )
)
def _first_similar(
    row: int,
    found: Positions,
    times: npt.NDArray[np.int32],
    values: Hashes,
    spans: Positions,
    bits: Hashes,
    table: Hashes,
    count: int,
    threshold: float,
    limit: int,
) -> tuple[int, float, int]:
    """Compare with the rows met thrice, then twice, then once, each in order; give the first hit (or -1)."""
    made = 0
    if count == 0:
        return -1, 0.0, made
    number = np.uint64(row + 1)
    own = values[spans[row, 0] : spans[row, 1]]
    _lay(table, number, own)
    for often in (3, 2, 1):
        for place in range(count):
            other = found[place]
            if min(times[other], 3) != often:
                continue
            if made == limit:
                return -1, 0.0, made
            made += 1
            if place + _AHEAD < count:
                prefetch(bits, _WORDS * found[place + _AHEAD])
            if not _may_reach(bits, spans, row, other, threshold):
                continue
            alike = similarity(table, number, own, values[spans[other, 0] : spans[other, 1]], threshold)
            if alike >= threshold:
                return other, alike, made
    return -1, 0.0, made


@jit(
    T.Tuple((nb.int64[::1], nb.float64[::1], nb.int64[::1]))(
        _I32_2D, _I64, _U64, _I64_2D, _BITS, nb.uint64[:, ::1], _STAYS, nb.float64, nb.int64
    )
)
def _survivors(
    members: npt.NDArray[np.int32],
    room: Positions,
    values: Hashes,
    spans: Positions,
    bits: Hashes,
    table: Hashes,
    protected: npt.NDArray[np.uint8],
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
        if protected[row] != 1:
            count, left_out = _gather(members[row], room, filled, kept, seen, times, found, row, limit)
            partner[row], similarity[row], made = _first_similar(
                row, found, times, values, spans, bits, table, count, threshold, limit
            )
            figures[0] += made
            figures[1] += partner[row] < 0 and made < count + left_out
        if partner[row] < 0 or protected[row]:
            for bucket in members[row]:
                if bucket >= 0:
                    kept[room[bucket] + filled[bucket]] = row
                    filled[bucket] += 1
    return partner, similarity, figures
