"""Near duplicates among many rows: which rows meet, in what groups they are compared, who goes for whom.

    bands of all rows  ->  buckets, a band at a time     (8 bytes per row in memory, and what is shared)
                       ->  groups of rows that are linked through buckets, put together into batches
    texts, a slice at a time  ->  shingle sets of the rows that meet, laid down by batch
    each batch by itself      ->  survivors              (memory: one batch per thread)

Rows of different groups are never compared, so a batch is decided by itself and the result is that of all at once. A
batch holds whole groups and at most `_BATCH` shingles, or one group that is larger. Nothing here depends on the order
of rows, slices or threads: rows are taken in the order of survival, which the caller states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from corpusforge.text.pairs import Sets, buckets, linked
from corpusforge.text.survivors import survivors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corpusforge.stages._stage import Store
    from corpusforge.text.shingles import Hashes

    Spread = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]

_COMPARISONS: Final = 1_000  # per row; only much boilerplate or a very low threshold gets there, and metrics count it
_BATCH: Final = 16_000_000  # shingles whose rows are decided together: 128 MB

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Meetings:
    """The rows that share a bucket with another, in the order of survival."""

    positions: Positions
    members: npt.NDArray[np.int32]  # (rows, bands): their buckets, -1 where alone in that band
    batch: Positions  # of each row
    batches: int


def meetings(
    ranked: Positions, band: Callable[[int], Hashes], count: int, sizes: npt.NDArray[np.int32], spread: Spread = map
) -> Meetings:
    """Find which of the rows `ranked` (positions, in the order of survival) meet, and put them into batches.

    `band` gives the hashes of all rows for each of `count` bands; `sizes` is about how many shingles each row has.
    """

    def shared(number: int) -> tuple[Positions, npt.NDArray[np.int32], int]:
        numbers = buckets(band(number)[ranked])
        at = np.flatnonzero(numbers >= 0)
        return at, numbers[at], int(numbers.max(initial=-1)) + 1

    found, following = [], 0
    meets = np.zeros(len(ranked), bool)
    for at, numbers, more in spread(shared, range(count)):
        meets[at] = True
        found.append((at, numbers + np.int32(following)))
        following += more
    place = np.cumsum(meets) - 1
    members = np.full((int(meets.sum()), len(found)), -1, np.int32)
    for column, (at, numbers) in enumerate(found):
        members[place[at], column] = numbers
    positions = ranked[meets]
    batch = _batches(linked(members), sizes[positions])
    return Meetings(positions, members, batch, int(batch.max(initial=-1)) + 1)


def _batches(label: Positions, sizes: npt.NDArray[np.int32]) -> Positions:
    """Number the batch of each row: groups in the order of their first row, as many as a batch holds."""
    weight = np.bincount(label, sizes, minlength=len(label)).astype(np.int64)
    before = (np.cumsum(weight) - weight) // _BATCH
    _, number = np.unique(before, return_inverse=True)
    return np.asarray(number, np.int64)[label]


def lay_down(met: Meetings, parts: Iterable[tuple[Positions, Sets]], store: Store) -> None:
    """Put the sets of the rows that meet into the store, by batch."""
    order = np.argsort(met.positions)
    known, batch = met.positions[order], met.batch[order]
    for positions, part in parts:
        own = batch[np.searchsorted(known, positions)]
        for number in np.unique(own):
            chosen = np.flatnonzero(own == number)
            one = part if len(chosen) == len(own) else part.take(chosen)
            store.put(int(number), positions[chosen], np.diff(one.starts), one.values)


def decide_batch(
    met: Meetings, number: int, store: Store, protected: npt.NDArray[Any], threshold: float
) -> tuple[Positions, Positions, npt.NDArray[np.float64], int, int]:
    """Decide one batch: positions in order, the kept position each goes for (-1: stays), similarity, two figures.

    `protected` is by position. The figures are the comparisons made, and the rows that stay although some candidate
    was left out.
    """
    rows = np.flatnonzero(met.batch == number)
    positions = met.positions[rows]
    held, sizes, values = store.take(number)
    whole = Sets(values, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
    in_order = np.argsort(held)[np.argsort(np.argsort(positions))]
    kept, similarity, made, cut = survivors(
        _renumbered(met.members[rows]), whole, in_order, protected[positions], threshold, _COMPARISONS
    )
    return positions, np.where(kept >= 0, positions[kept], -1), similarity, made, cut


def _renumbered(members: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """The same buckets numbered without gaps."""
    used = np.zeros(int(members.max(initial=-1)) + 2, np.int32)
    used[members + 1] = 1
    used[0] = 0
    number = np.cumsum(used, dtype=np.int32) - 1
    return np.where(members >= 0, number[members + 1], np.int32(-1))


def near(
    met: Meetings,
    parts: Iterable[tuple[Positions, Sets]],
    protected: npt.NDArray[Any],
    threshold: float,
    store: Store,
    spread: Spread = map,
) -> tuple[Positions, npt.NDArray[np.float64], dict[str, int]]:
    """For each position the kept position it goes for (-1: it stays), and their similarity.

    `parts` gives the sets of all rows that meet; `protected` says of each position whether its row stays whatever it
    is like (2: it is told all the same for whom it would go); `spread` maps over batches, perhaps in threads.
    """
    partner, similarity = np.full(len(protected), -1, np.int64), np.ones(len(protected))
    lay_down(met, parts, store)
    figures = {"comparisons": 0, "comparisons_cut": 0}

    def one(number: int) -> Any:
        return decide_batch(met, number, store, protected, threshold)

    for positions, kept, alike, made, cut in spread(one, range(met.batches)):
        partner[positions], similarity[positions] = kept, np.where(kept >= 0, alike, 1.0)
        figures["comparisons"] += made
        figures["comparisons_cut"] += cut
    return partner, similarity, figures
