"""The last step of the `ingest` stage on disk: records that may not stay leave the finished partitions.

Only id and licence columns are read; a partition is written again only where a record of it goes. Rows that went for
their terms are laid down in `refused/`, so that `dedupe` knows what their copies are: the stricter licence governs,
whichever copy would survive.

    data/ingest/rows/part-00000.parquet      data/ingest/refused/part-00000.parquet
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.io import forgotten, parquet
from corpusforge.result import LEDGER
from corpusforge.stages._forget import closure
from corpusforge.stages._redelivery import superseded
from corpusforge.stages._settle import STRICT, TERMS, adjusted, all_accepted, base, none_gone, refused, settle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from corpusforge.stages._forget import Entry
    from corpusforge.stages._policy import Terms
    from corpusforge.stages._settle import Settled

_LEFT_OUT: Final = ["row_id", "record_id", "source", "reason"]
REFUSED: Final = "refused"
"""Folder of the rows that went for their terms, beside `rows`."""


def settle_folder(
    out: Path, terms: Terms, figures: dict[str, Any], entries: Sequence[Entry] = (), *, strict: bool = False
) -> dict[str, Any]:
    """Settle the finished partitions and the ledger in `out`; returns the figures as they are then.

    `entries` name what must be forgotten. Raises SourceError where rows of unknown licence are to fail, RecordError
    where two records of one delivery contradict one another and the build is strict.
    """
    ledger = _Ledger(out / "dropped.parquet")
    parts = parquet.parts(out / "rows")
    frames = forgotten.frames_of(parts)
    gone = closure(frames, entries) if entries else none_gone()
    older, redelivered = superseded(frames, terms.sources, _left_out(out, terms), strict=strict)
    gone = pl.concat([gone, older.join(gone, on="base", how="anti", maintain_order="left")])
    for part in parts:
        here = _of_part(part, gone, terms)
        if not len(here):
            continue
        settled = settle(pq.read_table(part), here)
        _lay_down(part, settled)
        ledger.add(settled.lines)
        figures = adjusted(figures, settled)
    ledger.close()
    _remove_empty(parts)
    return {**figures, **({"redelivered": redelivered} if redelivered else {})}


def _left_out(out: Path, terms: Terms) -> pl.DataFrame | None:
    """The ledger's lines, where some source's records have versions: one that was left out may be the last."""
    if not any(source.key for source in terms.sources.values()):
        return None
    return pl.DataFrame(pl.from_arrow(pq.read_table(out / "dropped.parquet", columns=_LEFT_OUT)))


def _of_part(part: Path, gone: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """Records to take out of a partition: those that go anyway, and those whose terms are refused."""
    with pq.ParquetFile(part) as file:  # (read_table would flatten the struct)
        here = gone
        if len(gone):
            ids = pl.DataFrame(pl.from_arrow(file.read(columns=["row_id"]))).select(
                base(pl.col("row_id")).alias("base")
            )
            here = gone.join(ids, on="base", how="semi", maintain_order="left")
        if all_accepted(file.read(columns=list(TERMS))["source"], terms):
            return here
        found = refused(file.read(columns=["row_id", *TERMS]), terms)
    return pl.concat([here, found.join(here, on="base", how="anti", maintain_order="left")])


def _lay_down(part: Path, settled: Settled) -> None:
    parquet.write(settled.kept, part)
    if settled.strict.num_rows:
        folder = part.parent.parent / REFUSED
        folder.mkdir(exist_ok=True)
        parquet.write(settled.strict, folder / part.name)


def _remove_empty(parts: list[Path]) -> None:
    """Partitions that nothing is left of go, all but one."""
    empty = [part for part in parts if pq.read_metadata(part).num_rows == 0]
    for part in empty[1:] if len(empty) == len(parts) else empty:
        part.unlink()


class _Ledger:
    """A ledger file that gains lines: written anew beside the old one, which is replaced when there were any."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.new = path.with_suffix(".new")
        self.writer: pq.ParquetWriter | None = None

    def add(self, lines: pa.Table) -> None:
        if self.writer is None:
            self.writer = pq.ParquetWriter(self.new, LEDGER, compression="zstd")
            with pq.ParquetFile(self.path) as old:
                for batch in old.iter_batches():
                    self.writer.write_batch(batch)
        self.writer.write_table(lines)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.new.replace(self.path)


__all__ = ["REFUSED", "STRICT", "settle_folder"]
