"""What is already there, as an index: new rows are held against it without reading what it was made of.

An index has, for each of its rows, the hashes of its bands and its shingle set (hashes, never a text), and sorted
lookups from a band's hash, a content fingerprint or a prompt's key to the rows that have it. Held against it, new rows
meet only the rows that share one of these (`related`), and the similarity of a pair is exact as it is among new rows.

An index is of one method: the same view, shingles, permutations, bands. One made otherwise would answer wrongly, so it
is refused (`check`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.errors import ConfigError
from corpusforge.stages._guard import flat

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpusforge.stages.dedupe import DedupeConfig
    from corpusforge.text.pairs import Sets
    from corpusforge.text.shingles import Hashes

Positions = npt.NDArray[np.int64]
BAND: Final = "band_"
_VERSION = 2  # raise it when shingles, guards or signatures change


@dataclass(frozen=True)
class Lookup:
    """Values in order, and the row that each is of."""

    values: Hashes
    rows: npt.NDArray[np.uint32]

    @classmethod
    def of(cls, values: Hashes) -> Lookup:
        """A lookup of a value per row; 0 stands for none."""
        order = np.argsort(values, kind="stable")
        order = order[np.searchsorted(values[order], 1) :]
        return cls(values[order], order.astype(np.uint32))

    def find(self, wanted: Hashes) -> npt.NDArray[np.uint32]:
        """Rows that have one of the wanted values (sorted, without repetition)."""
        first, last = (np.searchsorted(self.values, wanted, side) for side in ("left", "right"))
        hit = last > first
        sizes = (last - first)[hit]
        starts = np.cumsum(sizes) - sizes
        return np.asarray(self.rows[np.repeat(first[hit] - starts, sizes) + np.arange(sizes.sum())])


@dataclass(frozen=True)
class SignatureIndex:
    """An index of the rows that are already there."""

    name: str
    method: Mapping[str, Any]
    facts: pa.Table
    bands: Hashes  # (rows, bands)
    lookups: Mapping[str, Lookup]
    sets: Sets

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return len(self.bands)

    def related(self, wanted: Mapping[str, Iterable[Hashes]]) -> Positions:
        """Positions of the rows that share a value with the new ones, whose values `wanted` has for each lookup."""
        found = [self.lookups[name].find(np.unique(values)) for name, parts in wanted.items() for values in parts]
        return np.unique(np.concatenate([np.zeros(0, np.uint32), *found])).astype(np.int64)


@runtime_checkable
class Unopened(Protocol):
    """An index that is opened where it is looked into: what is handed to worker processes stays small."""

    def open(self) -> SignatureIndex:
        """The index."""


@dataclass(frozen=True)
class Indexed:
    """The rows of an index that given new rows may be like."""

    index: SignatureIndex
    chosen: Positions
    summary: pa.Table

    @classmethod
    def of(cls, known: Any, new: pa.Table, config: DedupeConfig) -> Indexed | None:
        """The related rows, where `known` is an index; `new` is the summary of the new rows.

        Raises ConfigError for an index of another method.
        """
        known = known.open() if isinstance(known, Unopened) else known
        if not isinstance(known, SignatureIndex):
            return None
        from corpusforge.text.shingles import byte_keys

        check(known, config, "rows")
        names = [name for name in new.column_names if name.startswith(BAND)]
        wanted = {name: [new[name].to_numpy()] for name in names}
        wanted |= {"content": [byte_keys(flat(new["content_id"]))], "prompt": [new["prompt"].to_numpy()]}
        chosen = known.related(wanted)
        summary = known.facts.take(pa.array(chosen))
        for number, name in enumerate(names):
            summary = summary.append_column(name, pa.array(known.bands[chosen, number]))
        for name in set(new.column_names) - set(summary.column_names):
            summary = summary.append_column(name, pa.nulls(len(chosen), new.schema.field(name).type))
        return cls(known, chosen, summary.select(new.column_names).cast(new.schema))

    def sets(self, positions: Positions) -> Sets:
        """Shingle sets of the chosen rows at `positions`."""
        return self.index.sets.take(self.chosen[positions])


def band(number: int) -> str:
    """The name of a band's column, and of its lookup."""
    return f"{BAND}{number:03d}"


def method_of(config: DedupeConfig, view: str) -> dict[str, Any]:
    """All on which bands and sets depend."""
    from corpusforge.text.minhash import parameters

    bands, height = parameters(config.threshold, config.num_perm, config.recall)
    return {
        "version": _VERSION,
        "view": view,
        "shingle": config.shingle,
        "numbers_matter": config.numbers_matter if view == "rows" else None,
        "scheme": "affine32",
        "seed": config.seed,
        "bands": bands,
        "rows_per_band": height,
    }


def check(index: SignatureIndex, config: DedupeConfig, view: str) -> None:
    """Raise ConfigError, naming what differs, unless the index was made as `config` would make it."""
    wanted = method_of(config, view)
    if index.method.get("view") != view:
        kinds = {"texts": "plain texts (Parquet with a text column)", "rows": "rows (conversations, pairs, tasks)"}
        raise ConfigError(
            f"index {index.name} is of {kinds.get(str(index.method.get('view')), 'something else')}, "
            f"and what is held against it are {kinds[view]}",
            hint="hold files of one form against an index of that form: corpusforge index FILE FOLDER",
        )
    wrong = [
        f"{key} {index.method.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if index.method.get(key) != value
    ]
    if wrong:
        raise ConfigError(
            f"index {index.name} was made in another way: {'; '.join(wrong)}",
            hint="make it anew with these options: corpusforge index",
        )
