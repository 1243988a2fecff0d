"""The `ingest` stage on disk: every declared source, piece by piece, into partitions of a stated number of rows.

Pieces become rows in worker processes, each in a file of its own under `scratch/`; as soon as there are enough rows for
a partition, a worker writes it from these files. Partition cuts depend on the rows alone: the same sources give the
same bytes, however many workers there are. What is no longer declared is simply not written again: a removed source's
rows leave the corpus with the next run. Memory is bounded by the pieces and partitions that are in work.

    scratch/00000.arrow  3,720 rows ┐
    scratch/00001.arrow  3,698 rows ┼─> rows/part-00000.parquet  10,000 rows
    scratch/00002.arrow  3,711 rows ┴─> rows/part-00001.parquet  …
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.engine.local import LocalEngine
from corpusforge.io import forgotten, parquet
from corpusforge.io.pieces import Piece, pieces
from corpusforge.io.settle import settle_folder
from corpusforge.io.sources import check_readable
from corpusforge.result import LEDGER, add_up
from corpusforge.sample import SCHEMA, check_schema
from corpusforge.stages.ingest import check_allowed, load_kernels
from corpusforge.stages.shard import row_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import numpy.typing as npt

    from corpusforge.project import Project
    from corpusforge.stages.ingest import IngestConfig

LARGEST: Final = 256 << 20
"""Bytes of rows that fill a partition, however few they are: a column of Arrow holds 2 GiB of text, and no more."""
_FEW: Final = 4  # pieces that are no work for other processes
_MUCH: Final = 64 << 20  # bytes of files while whose fingerprints are taken other processes may start
_LINES: Final = 20_000  # ledger lines per row group
_NO_FIGURES: Final = {"records": 0, "with_rows": 0, "quarantined": 0, "rows": 0, "sources": {}}


def run(project: Project, out: Path) -> dict[str, Any]:
    """Fill `out` with rows, dropped.parquet and changes.parquet; returns the figures of all sources together."""
    config = project.params.ingest
    terms = check_allowed(config.sources, config.allow, config.policy)
    size = sum(check_readable(source, project.root) for source in config.sources)
    with LocalEngine() as engine:
        if size > _MUCH:
            engine.start(load_kernels)
        figures = _fill(config, project.root, out, project.params.engine.partition_rows, engine, _progress)
    entries = forgotten.read(project.root)
    return settle_folder(out, terms, figures, entries, strict=config.strict)


def run_here(config: IngestConfig, root: Path, out: Path, rows: int) -> dict[str, Any]:
    """The same of sources that are no project's, in this process and without a word; partitions have `rows` rows."""
    terms = check_allowed(config.sources, config.allow, config.policy)
    for source in config.sources:
        check_readable(source, root)
    figures = _fill(config, root, out, rows, LocalEngine(1), lambda _records: None)
    return settle_folder(out, terms, figures, strict=config.strict)


def _fill(
    config: IngestConfig, root: Path, out: Path, rows: int, engine: LocalEngine, say: Callable[[int | None], None]
) -> dict[str, Any]:
    """Lay down all rows and ledger lines, as they were read."""
    (out / "rows").mkdir()
    (out / "scratch").mkdir()
    with _Books(out, say) as books:
        few = 0 if os.environ.get("CORPUSFORGE_WORKERS") else _FEW
        made = engine.stream(make, _jobs(config, root, out / "scratch"), few)
        for part in engine.stream(write, _parts(books.enter(made), out / "rows", rows), few):
            for used in part.used:
                used.unlink()
    if books.figures["rows"] == 0:
        parquet.write(SCHEMA.empty_table(), out / "rows" / parquet.part_name(0))
    shutil.rmtree(out / "scratch")
    return books.figures


@dataclass(frozen=True)
class Job:
    """A piece, and where its rows go."""

    piece: Piece
    target: Path
    detect_language: bool
    strict: bool


@dataclass(frozen=True)
class Made:
    """What became of a piece: its rows in a file, its ledger lines and figures."""

    rows: Path
    count: int
    dropped: pa.Table
    changes: pa.Table
    metrics: dict[str, Any]
    sizes: npt.NDArray[np.int64]  # bytes of each row


@dataclass
class Part:
    """A partition to be written: slices of files with rows (first row and number of rows), in their order."""

    target: Path
    slices: list[tuple[Path, int, int]] = field(default_factory=list)
    used: list[Path] = field(default_factory=list)  # files of which nothing is needed any more

    def __len__(self) -> int:
        return sum(count for _, _, count in self.slices)


def make(job: Job | Made) -> Made:
    """Make the rows of a piece (what a worker does). Raises RecordError when strict."""
    if isinstance(job, Made):
        return job
    result = job.piece.rows(detect_language=job.detect_language, strict=job.strict)
    check_schema(result.kept, "output of ingest")
    with pa.ipc.new_file(job.target, SCHEMA) as file:
        file.write_table(result.kept)
    sizes = row_bytes(result.kept)
    return Made(job.target, result.kept.num_rows, result.dropped, result.changes, dict(result.metrics), sizes)


def write(part: Part) -> Part:
    """Write a partition (what a worker does)."""
    tables = []
    for path, start, count in part.slices:
        with pa.memory_map(str(path)) as file:
            tables.append(pa.ipc.open_file(file).read_all().slice(start, count))
    parquet.write(pa.concat_tables(tables).combine_chunks(), part.target)
    return part


def _jobs(config: IngestConfig, root: Path, scratch: Path) -> Iterator[Job | Made]:
    number = 0
    for source in config.sources:
        for piece in pieces(source, root):
            job = Job(piece, scratch / f"{number:05d}.arrow", config.detect_language, config.strict)
            yield job if piece.may_travel else make(job)
            number += 1


def _parts(made: Iterable[Made], rows: Path, size: int) -> Iterator[Part]:
    """Partitions of `size` rows, fewer where rows are large (and in the last), as soon as the rows for each are there.

    A partition ends with the row that makes it LARGEST bytes or more.
    """
    number = held = 0
    part = Part(rows / parquet.part_name(0))
    for one in made:
        start, ends = 0, np.cumsum(one.sizes)
        while start < one.count:
            before = int(ends[start - 1]) if start else 0
            full = int(np.searchsorted(ends, before + LARGEST - held)) + 1 - start
            taken = min(size - len(part), one.count - start, full)
            part.slices.append((one.rows, start, taken))
            start += taken
            held += int(ends[start - 1]) - before
            if len(part) == size or held >= LARGEST:
                held = 0
                if start == one.count:
                    part.used.append(one.rows)
                yield part
                number += 1
                part = Part(rows / parquet.part_name(number))
        if part.slices and part.slices[-1][0] == one.rows:
            part.used.append(one.rows)
    if part.slices:
        yield part


class _Books:
    """The ledgers and figures of all pieces, entered in their order."""

    def __init__(self, out: Path, say: Callable[[int | None], None]) -> None:
        self.say = say
        self.files = {name: _Ledger(out / f"{name}.parquet") for name in ("dropped", "changes")}
        self.figures: dict[str, Any] = dict(_NO_FIGURES)

    def __enter__(self) -> _Books:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self.files.values():
            file.close()

    def enter(self, made: Iterable[Made]) -> Iterator[Made]:
        """The same, each entered before it goes on."""
        for one in made:
            self.files["dropped"].add(one.dropped)
            self.files["changes"].add(one.changes)
            self.figures = add_up([self.figures, one.metrics])
            self.say(self.figures["records"])
            yield one
        self.say(None)


class _Ledger:
    """A ledger file, whose row groups do not depend on the pieces that lines come from."""

    def __init__(self, path: Path) -> None:
        self.writer = pq.ParquetWriter(path, LEDGER, compression="zstd")
        self.waiting = LEDGER.empty_table()

    def add(self, lines: pa.Table) -> None:
        if lines.num_rows:
            self.waiting = pa.concat_tables([self.waiting, lines])
        while self.waiting.num_rows >= _LINES:
            self.writer.write_table(self.waiting.slice(0, _LINES).combine_chunks())
            self.waiting = self.waiting.slice(_LINES)

    def close(self) -> None:
        if self.waiting.num_rows:
            self.writer.write_table(self.waiting.combine_chunks())
        self.writer.close()


def _progress(records: int | None) -> None:
    """Tell how many records were read, on a terminal only."""
    if sys.stderr.isatty():
        sys.stderr.write("\n" if records is None else f"\ringest: {records:,} records")
        sys.stderr.flush()
