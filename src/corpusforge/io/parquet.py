"""Partitions on disk: a folder of part-00000.parquet, part-00001.parquet, … with one schema.

The same tables give the same bytes: one writer version, one compression, no clock and no path in the file.
"""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.engine.local import in_threads
from corpusforge.errors import ProjectError
from corpusforge.io.scratch import Scratch
from corpusforge.io.stored import read_table
from corpusforge.sample import SCHEMA
from corpusforge.stages._stage import SLICE, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from corpusforge.stages._stage import Store

R = TypeVar("R")

_REPEATED: Final = (
    *(
        "kind",
        "tools",
        "domain",
        "language",
        "split",
        "verifier.kind",
        "rating.scale",
        "rating.by",
        "difficulty.method",
    ),
    *(f"{name}.list.element.{field}" for name in ("messages", "chosen", "rejected") for field in ("role", "name")),
    *(f"source.{name}" for name in ("name", "uri", "revision", "license", "origin", "generator", "created")),
    "source.restrictions.list.element",
)
"""Columns of the row format with few values: the others would fill a dictionary only for it to be thrown away."""


def write(table: pa.Table, path: Path, *, row_group_rows: int = 10_000, content_defined: bool = False) -> None:
    """Write one Parquet file (zstd). `content_defined` chunks pages so that an insertion changes few bytes."""
    repeated: Any = list(_REPEATED) if set(SCHEMA.names) <= set(table.column_names) else True
    pq.write_table(
        table,
        path,
        compression="zstd",
        use_dictionary=repeated,
        row_group_size=row_group_rows,
        use_content_defined_chunking=content_defined,
    )


def parts(folder: Path) -> list[Path]:
    """The partition files of a folder, in order. Raises ProjectError when there is no such folder."""
    if not folder.is_dir():
        raise ProjectError(f"{folder} does not exist", hint="run `dvc repro` first")
    return sorted(folder.glob("part-*.parquet"))


def part_name(number: int) -> str:
    """File name of a partition."""
    return f"part-{number:05d}.parquet"


def read(folder: Path, columns: list[str] | None = None) -> pa.Table:
    """All partitions as one table, in order."""
    return pa.concat_tables([read_table(part, columns) for part in parts(folder)])


def rechunk(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.Table]:
    """The same rows in tables of exactly `rows` rows (the last one may be shorter), whatever the input's cuts."""
    waiting: list[pa.Table] = []
    held = 0
    for table in tables:
        waiting.append(table)
        held += table.num_rows
        while held >= rows:
            joined = pa.concat_tables(waiting)
            yield joined.slice(0, rows).combine_chunks()
            rest = joined.slice(rows)
            waiting, held = [rest], rest.num_rows
    if held:
        yield pa.concat_tables(waiting).combine_chunks()


class Gather:
    """Rows of a partitioned folder by their global position; reads only the partitions and columns it needs.

    `workers` threads go through many rows; what is too much to hold is laid down under `scratch`, else in memory.
    """

    def __init__(self, files: list[Path], workers: int = 1, scratch: Path | None = None) -> None:
        self.files = files
        self.workers = workers
        self.scratch = scratch
        self.starts = np.cumsum([0, *(pq.read_metadata(file).num_rows for file in files)])

    def tables(self) -> Iterator[pa.Table]:
        """All rows, a file at a time."""
        for file in self.files:
            yield read_table(file)

    def __call__(self, positions: npt.NDArray[np.int64], columns: list[str]) -> pa.Table:
        """The rows at `positions`, in that order."""
        order = np.argsort(positions, kind="stable")
        wanted = positions[order]
        pieces = []
        for number, file in enumerate(self.files):
            low, high = np.searchsorted(wanted, [self.starts[number], self.starts[number + 1]])
            if high > low:
                local = pa.array(wanted[low:high] - self.starts[number])
                pieces.append(read_table(file, columns).take(local))
        if not pieces:
            schema = pq.read_schema(self.files[0])
            return pa.schema([schema.field(name) for name in columns]).empty_table()
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_tables(pieces).take(pa.array(back))

    def map(
        self, job: Callable[[npt.NDArray[np.int64], pa.Table], R], positions: npt.NDArray[np.int64], columns: list[str]
    ) -> Iterator[R]:
        """`job(positions, rows)` for slices of `positions` (ascending), in their order; a slice is of one file."""
        cuts = np.unique([*range(0, len(positions), SLICE), *np.searchsorted(positions, self.starts)])
        slices = [positions[a:b] for a, b in itertools.pairwise(cuts)]
        return in_threads(lambda part: job(part, self(part, columns)), slices, self.workers)

    def spread(self, job: Callable[[int], R], items: Iterable[int]) -> Iterator[R]:
        """`job(item)` for each item, in their order."""
        return in_threads(job, items, self.workers)

    def store(self) -> Store:
        """A new place for what is too much to hold."""
        if self.scratch is None:
            return Memory()
        place = self.scratch / f"store-{uuid.uuid4().hex}"
        place.mkdir()
        return Scratch(place)
