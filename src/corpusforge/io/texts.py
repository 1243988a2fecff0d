"""Parquet files with a text column, read in slices: what `corpusforge dedupe` takes as it is.

A slice is one or more row groups of one file, read by itself; its texts are handed out some rows and bytes at a time.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge.errors import SchemaError, SourceError
from corpusforge.text.arrow import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ROWS: Final = 16_384  # row groups smaller than this are read together
_AT_ONCE: Final = 8_192  # rows whose shingles are in memory at once: more cost more than they save
_BYTES: Final = 16 << 20  # text that is worked on at once, unless one row has more
_TEXT_TYPES: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


@dataclass(frozen=True)
class Slice:
    """Row groups of one file, and where their rows stand among all."""

    start: int
    rows: int
    file: int
    groups: tuple[int, ...]


class Texts:
    """The rows of files, in the order of the files."""

    def __init__(self, files: list[Path], text: str, own_id: str | None = None) -> None:
        self.files = files
        self.text = text
        self.own_id = own_id
        self.slices: list[Slice] = []
        self.rows = 0
        for number, file in enumerate(files):
            self._add(number, _metadata(file))

    def _add(self, number: int, metadata: pq.FileMetaData) -> None:
        groups: list[int] = []
        held = 0
        for group in range(metadata.num_row_groups):
            groups.append(group)
            held += metadata.row_group(group).num_rows
            if held >= _ROWS or group == metadata.num_row_groups - 1:
                self.slices.append(Slice(self.rows, held, number, tuple(groups)))
                self.rows += held
                groups, held = [], 0

    def read(self, part: Slice, columns: list[str] | None = None) -> pa.Table:
        """Rows of a slice. Raises SourceError for a file that cannot be read."""
        file = self.files[part.file]
        try:
            with pq.ParquetFile(file) as opened:
                return _without_views(opened.read_row_groups(list(part.groups), columns, use_threads=False))
        except (OSError, pa.ArrowException) as error:
            raise SourceError(f"{file.name} cannot be read: {type(error).__name__} in its row groups") from None

    def codec(self, part: Slice) -> str:
        """How the file compresses."""
        with pq.ParquetFile(self.files[part.file]) as opened:
            told = str(opened.metadata.row_group(part.groups[0]).column(0).compression)
        return "none" if told == "UNCOMPRESSED" else told

    def texts(self, part: Slice) -> Iterator[tuple[int, pa.Array]]:
        """Texts of a slice (null: empty) with the position of the first, some rows and bytes at a time."""
        column = self.read(part, [self.text])[self.text]
        at = part.start
        for chunk in column.chunks:
            self._must_be_text(part, at, chunk)
            sizes = numbers(pc.binary_length(chunk)).astype(np.int64)
            for a, b in itertools.pairwise(_cuts(sizes)):
                some = chunk.slice(a, b - a).cast(pa.string())
                yield at + a, pc.fill_null(some, "") if some.null_count else some
            at += len(chunk)

    def ids(self) -> pa.ChunkedArray | None:
        """The users' own ids as text; None where there is no such column."""
        if self.own_id is None:
            return None
        try:
            parts = [self.read(part, [self.own_id])[self.own_id].cast(pa.string()) for part in self.slices]
        except pa.ArrowException:
            raise SchemaError(
                f"the column {self.own_id!r} of {self.files[0].name} holds no ids that are text"
            ) from None
        chunks = [(part, chunk) for part, whole in zip(self.slices, parts, strict=True) for chunk in whole.chunks]
        for part, chunk in chunks:
            self._must_be_text(part, part.start, chunk)
        return pa.chunked_array([chunk for _, chunk in chunks], pa.string())

    def _must_be_text(self, part: Slice, at: int, values: pa.Array) -> None:
        """Raise SourceError, naming the first row, where a value is not UTF-8: a text cut within a character, say."""
        try:
            values.validate(full=True)
        except pa.ArrowException:
            first = next((i for i in range(len(values)) if not _is_text(values.slice(i, 1))), 0)
            before = next(one.start for one in self.slices if one.file == part.file)
            name = self.files[part.file].name
            raise SourceError(
                f"{name}: row {at + first - before + 1:,} is not UTF-8",
                hint="write it anew with whole characters; `corpusforge check` reads other forms",
            ) from None


def _is_text(values: pa.Array) -> bool:
    try:
        values.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def is_plain(file: Path, text: str) -> bool:
    """Whether a file is Parquet with this text column and nothing that makes a conversation of it."""
    if file.suffix != ".parquet":
        return False
    names = _metadata(file).schema.to_arrow_schema()
    if text not in names.names:
        return False
    if names.names.count(text) > 1:
        raise SchemaError(f"{file.name} has more than one column {text!r}")
    other = {"messages", "conversations", "chosen", "rejected", "row_id"} & set(names.names)
    return not other and any(is_text(names.field(text).type) for is_text in _TEXT_TYPES)


def id_column(file: Path, asked: str | None) -> str | None:
    """The column of the users' own ids: the one asked for, else `id` where there is one. Raises SchemaError."""
    names = _metadata(file).schema.to_arrow_schema().names
    if asked is not None and asked not in names:
        raise SchemaError(f"{file.name} has no column {asked!r}; it has {', '.join(names[:8])}")
    chosen = asked or ("id" if "id" in names else None)
    if chosen and names.count(chosen) > 1:
        raise SchemaError(f"{file.name} has more than one column {chosen!r}")
    return chosen


def _metadata(file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{file.name} is no readable Parquet file ({type(error).__name__})") from None


def _without_views(table: pa.Table) -> pa.Table:
    """The table with plain strings for views, which many functions do not take yet."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string_view(field.type) or pa.types.is_binary_view(field.type):
            plain = pa.large_string() if pa.types.is_string_view(field.type) else pa.large_binary()
            table = table.set_column(at, field.with_type(plain), table.column(at).cast(plain))
    return table


def _cuts(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """Where to cut rows of these sizes: at most `_AT_ONCE` rows and `_BYTES` bytes, at least one row."""
    ends = np.cumsum(sizes)
    cuts = [0]
    while cuts[-1] < len(sizes):
        done = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        fits = int(np.searchsorted(ends, done + _BYTES, "right"))
        cuts.append(min(max(fits, cuts[-1] + 1), cuts[-1] + _AT_ONCE, len(sizes)))
    return cuts
