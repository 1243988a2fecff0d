"""Where the rows of a corpus come from, added up: rows, licences, restrictions, origins, and a hash per source."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

from corpusforge.text.draws import draw

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

# What is counted, as it is called in the manifest, and the column that says it.
_COUNTED: Final = {
    "licenses": "license",
    "restrictions": "restrictions",
    "origins": "origin",
    "generators": "generator",
    "languages": "language",
    "uris": "uri",
    "revisions": "revision",
}
_LISTED: Final = ("uris", "revisions")


@dataclass
class _Source:
    copies: int = 0
    splits: Counter[str] = field(default_factory=Counter)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: {name: Counter() for name in _COUNTED})
    hashes: tuple[int, int] = (0, 0)


@dataclass
class Tally:
    """Counts per source; tallies of partitions add up in any order."""

    sources: dict[str, _Source] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        """Add the counts of other rows."""
        for name, theirs in other.sources.items():
            ours = self.sources.setdefault(name, _Source())
            ours.copies += theirs.copies
            ours.splits.update(theirs.splits)
            for what, counter in theirs.counts.items():
                ours.counts[what].update(counter)
            first, second = (a + b for a, b in zip(ours.hashes, theirs.hashes, strict=True))
            ours.hashes = (first % 2**64, second % 2**64)

    def entries(self, splits: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Per source, sorted by name, what a manifest says of it."""
        names = list(splits)
        return {
            name: {
                "rows": {split: source.splits[split] for split in names},
                "copies": source.copies,
                **{
                    what: sorted(counter) if what in _LISTED else dict(sorted(counter.items()))
                    for what, counter in source.counts.items()
                },
                "hash": "".join(f"{half:016x}" for half in source.hashes),
            }
            for name, source in sorted(self.sources.items())
        }


def tally(rows: pa.Table) -> Tally:
    """Counts over rows that have `split` and `copies`. The hash is over ids and contents, whatever the order."""
    plain = ["row_id", "content_id", "language", "split", "copies", "source"]
    frame = pl.DataFrame(pl.from_arrow(rows.select(plain))).unnest("source")
    frame = frame.with_columns(pl.col("name").fill_null("unknown"))
    whole = frame.select(pl.concat_str("row_id", pl.lit("\0"), pl.col("content_id").fill_null("")))
    texts = whole.to_arrow(compat_level=pl.CompatLevel.oldest()).column(0)
    halves = [draw(texts, f"source {half}") for half in ("a", "b")]
    found = Tally()
    for (name,), part in frame.with_row_index("at").group_by(["name"], maintain_order=True):
        at = part["at"].to_numpy()
        source = found.sources[str(name)] = _Source(copies=int(part["copies"].sum()))
        source.splits.update(dict(part["split"].value_counts().iter_rows()))
        for what, column in _COUNTED.items():
            source.counts[what].update(_counts(part[column]))
        first, second = (int(np.add.reduce(half[at], dtype=np.uint64)) for half in halves)
        source.hashes = (first, second)
    return found


def _counts(values: pl.Series) -> dict[str, int]:
    values = values.explode() if values.dtype == pl.List else values
    return dict(values.drop_nulls().value_counts().iter_rows())
