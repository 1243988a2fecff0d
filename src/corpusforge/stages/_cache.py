"""What the last build knew of rows that are as they were: bands and shingle sets are not made from their text again.

A row is as it was when every byte that these depend on is (`READ`; the fingerprint is text/prints.py): `content_id`
would not do, since it passes over the order of keys in JSON text, and a gold is compared by its bytes. What else stands
in a summary (who the row is, its terms, its rank) is made anew each time, from the row at hand.

    summarise   a print per row  ->  known: its columns from the cache; else made from its text
    decide      sets of rows that meet: known ones from the cache, the others from texts; the next build has all

The result is that without a cache, byte for byte. Where a cache lies and whether it fits is told in io/cache.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.stages._guard import flat
from corpusforge.stages._stage import SLICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from corpusforge.stages._stage import Fetch, Store
    from corpusforge.text.pairs import Sets
    from corpusforge.text.prints import Prints

READ: Final = ("kind", "messages", "chosen", "rejected", "rating", "tools", "verifier", "images")
"""Columns on which bands, keys and sets depend."""
PRINTS: Final = ("print_0", "print_1")
"""Columns of a summary: the fingerprint of its row, where there is a cache."""
MADE: Final = ("units", "prompt", "asked", "gold")
"""Columns of a summary that are known, beside the bands."""

Positions = npt.NDArray[np.int64]
Columns = dict[str, npt.NDArray[Any]]


class Cache(Protocol):
    """What the last build knew, and where what this one knows is put."""

    def find(self, own: Prints) -> Positions:
        """The place of each row among those of the last build, by its print; -1 where it was not there."""

    def columns(self, places: Positions) -> Mapping[str, npt.NDArray[Any]]:
        """What is known of the rows at `places`: `MADE` and the bands."""

    def begin(self, own: Prints) -> Positions:
        """Take these prints for the rows of this build; give the number of each one's known set, -1 for none."""

    def sets(self, numbers: Positions) -> Sets | None:
        """Known sets by their numbers; None where one of them is not what was written."""

    def keep(self, positions: Positions, sets: Sets) -> None:
        """Let the next build know the sets of rows of this one."""


def known_or_made(rows: pa.Table, cache: Cache | None, make: Callable[[pa.Table], Columns]) -> Columns:
    """The columns that `make` gives of rows, made of those alone that the cache does not know; then with prints."""
    rows = rows.select(READ)  # so that nothing can depend on another
    if cache is None:
        return make(rows)
    from corpusforge.text.prints import prints

    own = prints(flat(rows[name]) for name in READ)
    places = cache.find(own)
    missing = np.flatnonzero(places < 0)
    told = {name: np.ascontiguousarray(own[:, number]) for number, name in enumerate(PRINTS)}
    if len(missing) == len(places):
        return make(rows) | told
    known = dict(cache.columns(places[places >= 0]))
    if len(missing):
        made = make(rows.take(pa.array(missing)))
        known = {name: _merged(places >= 0, known[name], made[name]) for name in made}
    return known | told


def _merged(known: npt.NDArray[np.bool_], old: npt.NDArray[Any], new: npt.NDArray[Any]) -> npt.NDArray[Any]:
    whole = np.empty(len(known), new.dtype)
    whole[known], whole[~known] = old, new
    return whole


def without_prints(summary: pa.Table, fetch: Fetch, cache: Cache | None) -> tuple[pa.Table, Fetch]:
    """The summary as it is without a cache, and its rows, whose sets are known where the cache knows them."""
    if cache is None:
        return summary, fetch
    own = np.stack([summary[name].to_numpy() for name in PRINTS], axis=1)
    return summary.drop_columns(list(PRINTS)), Cached(fetch, cache, cache.begin(own))


@dataclass(frozen=True)
class Cached:
    """The rows of a corpus, and the known set of each."""

    rows: Fetch
    cache: Cache
    numbers: Positions

    def __call__(self, positions: Positions, columns: list[str]) -> pa.Table:
        """Columns of the rows at `positions`."""
        return self.rows(positions, columns)

    def map(self, job: Callable[[Positions, pa.Table], Any], positions: Positions, columns: list[str]) -> Iterator[Any]:
        """`job(positions, rows)` for slices of `positions`."""
        return self.rows.map(job, positions, columns)

    def spread(self, job: Callable[[int], Any], items: Iterable[int]) -> Iterator[Any]:
        """`job(item)` for each item."""
        return self.rows.spread(job, items)

    def store(self) -> Store:
        """A new place for what is too much to hold."""
        return self.rows.store()

    def sets(self, positions: Positions) -> Iterator[tuple[Positions, Sets]]:
        """Positions among those given whose sets are known, and these; a slice at a time."""
        known = positions[self.numbers[positions] >= 0]
        for at in range(0, len(known), SLICE):
            own = known[at : at + SLICE]
            found = self.cache.sets(self.numbers[own])
            if found is not None:
                yield own, found

    def keeping(self, parts: Iterable[tuple[Positions, Sets]]) -> Iterator[tuple[Positions, Sets]]:
        """The same parts; the sets of rows of the corpus are kept for the next build as they pass."""
        for positions, sets in parts:
            own = positions < len(self.numbers)
            if own.all():
                self.cache.keep(positions, sets)
            elif own.any():
                self.cache.keep(positions[own], sets.take(np.flatnonzero(own)))
            yield positions, sets
