"""Tables to look at: any Parquet file or folder read a batch at a time, any other file through the readers of `ingest`.

A folder may hold several tables (shards of several kinds): files with equal columns belong together. Looking at a
few rows reads only the row groups that hold them.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH = 5_000  # rows decoded at once
_ID_COLUMNS = ("row_id", "id", "record_id", "source.record_id")


class Looked(Protocol):
    """One table, wherever its rows are."""

    label: str
    schema: pa.Schema
    rows: int
    size: int  # bytes on disk
    files: int
    metadata: dict[str, str]

    def batches(self) -> Iterator[pa.Table]:
        """All rows, some at a time."""
        ...

    def head(self, count: int) -> pa.Table:
        """The first rows."""
        ...

    def find(self, identifier: str) -> pa.Table:
        """The rows with this id (ours or the user's own)."""
        ...


@dataclass
class ParquetTable:
    """Parquet files with one schema."""

    label: str
    paths: list[Path]
    schema: pa.Schema
    rows: int = 0
    size: int = 0
    files: int = 0
    row_groups: int = 0
    metadata: dict[str, str] = field(default_factory=dict)
    groups_read: int = 0  # row groups decoded by `head` and `find`, all columns

    def batches(self) -> Iterator[pa.Table]:
        """All rows, `_BATCH` at a time."""
        for path in self.paths:
            with _opened(path) as file:
                for batch in file.iter_batches(batch_size=_BATCH):
                    batch.validate(full=True)
                    yield pa.Table.from_batches([batch])

    def head(self, count: int) -> pa.Table:
        """The first rows, from as few row groups as hold them."""
        pieces: list[pa.Table] = []
        missing = count
        for path in self.paths:
            with _opened(path) as file:
                for number in range(file.num_row_groups):
                    if missing <= 0:
                        return pa.concat_tables(pieces)
                    pieces.append(self._group(file, number).slice(0, missing))
                    missing -= pieces[-1].num_rows
        return _joined(pieces, self.schema)

    def find(self, identifier: str) -> pa.Table:
        """The rows with this id: reads id columns, then the row groups that hold a match."""
        pieces = []
        for path in self.paths:
            with _opened(path) as file:
                columns = [c for c in _ID_COLUMNS if _has(self.schema, c)]
                for number in range(file.num_row_groups) if columns else ():
                    mask = _matches(file.read_row_group(number, columns=columns), identifier)
                    if pc.any(mask).as_py():
                        pieces.append(self._group(file, number).filter(mask))
        return _joined(pieces, self.schema)

    def _group(self, file: pq.ParquetFile, number: int) -> pa.Table:
        self.groups_read += 1
        group = file.read_row_group(number)
        group.validate(full=True)
        return group


@dataclass
class MemoryTable:
    """Rows that a reader of `ingest` made from a file of another form."""

    label: str
    table: pa.Table
    size: int
    files: int = 1
    metadata: dict[str, str] = field(default_factory=dict)
    schema: pa.Schema = field(init=False)
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.schema = self.table.schema
        self.rows = int(self.table.num_rows)

    def batches(self) -> Iterator[pa.Table]:
        """All rows, `_BATCH` at a time."""
        for start in range(0, self.rows, _BATCH):
            yield self.table.slice(start, _BATCH)

    def head(self, count: int) -> pa.Table:
        """The first rows."""
        return self.table.slice(0, count)

    def find(self, identifier: str) -> pa.Table:
        """The rows with this id."""
        return self.table.filter(_matches(self.table, identifier))


def read_table(path: Path) -> MemoryTable:
    """The rows of a data file, or of a folder of them, that `ingest` can read. Raises SourceError."""
    from corpusforge.io.files import find_files
    from corpusforge.io.ingest import read_with_ledger
    from corpusforge.stages.ingest import SourceConfig

    rows = read_with_ledger(str(path)).kept
    found = [file.path for file in find_files(SourceConfig(name="rows", path=str(path)), path.cwd())]
    files = [file for file in found if isinstance(file, Path)]
    return MemoryTable(path.name, rows, sum(file.stat().st_size for file in files), len(files))


def open_tables(path: Path) -> list[ParquetTable]:
    """The Parquet tables at `path`, a file or a folder. Raises SourceError when there is none or one is broken."""
    if not path.exists():
        raise SourceError(f"{path} does not exist")
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*.parquet") if not _hidden(p, path))
    tables: dict[tuple[str, str], ParquetTable] = {}
    for file in files:
        with _opened(file) as opened:
            meta, schema = opened.metadata, opened.schema_arrow
        if len(set(schema.names)) < len(schema.names):
            raise SourceError(f"{file}: two columns have one name", hint="give each column its own name")
        label = "." if path.is_file() else file.parent.relative_to(path).as_posix()
        plain = schema.remove_metadata()
        table = tables.setdefault((label, str(plain)), ParquetTable(label, [], plain))
        table.paths.append(file)
        table.rows += meta.num_rows
        table.size += file.stat().st_size
        table.files += 1
        table.row_groups += meta.num_row_groups
        for key, value in _own_metadata(meta.metadata).items():
            said = table.metadata.setdefault(key, value)
            if value not in said:
                table.metadata[key] = f"{said}, {value}"
    return list(tables.values())


def _joined(pieces: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """One table; not `schema.empty_table()` for none, which Arrow cannot make of lists of JSON."""
    return pa.concat_tables(pieces) if pieces else pa.Table.from_batches([], schema)


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """The file, open; SourceError naming it when it (or something in it, such as bytes that are no text) is broken."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} is not a Parquet file that can be read ({type(error).__name__})") from None


def is_parquet(path: Path) -> bool:
    """Whether the file starts as Parquet does, or the folder holds Parquet files."""
    if path.is_dir():
        return any(not _hidden(p, path) for p in path.rglob("*.parquet"))
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _hidden(path: Path, below: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(below).parts)


def _own_metadata(metadata: dict[bytes, bytes] | None) -> dict[str, str]:
    """What CorpusForge wrote into the file's key-value metadata."""
    found = {}
    for key, value in (metadata or {}).items():
        name = key.decode("utf-8", "replace")
        if name.startswith("corpusforge"):
            found[name] = value.decode("utf-8", "replace")
    return found


def _has(schema: pa.Schema, name: str) -> bool:
    top, _, rest = name.partition(".")
    if top not in schema.names:
        return False
    kind = schema.field(top).type
    return not rest or (pa.types.is_struct(kind) and kind.get_field_index(rest) >= 0)


def _matches(table: pa.Table, identifier: str) -> pa.ChunkedArray:
    """A mask over the rows: some id column equals `identifier`."""
    mask = pa.chunked_array([pa.repeat(False, table.num_rows)])
    for name in _ID_COLUMNS:
        if _has(table.schema, name):
            top, _, rest = name.partition(".")
            values = pc.struct_field(table[top], rest) if rest else table[top]
            if not pa.types.is_nested(values.type):
                mask = pc.or_(mask, pc.fill_null(pc.equal(pc.cast(values, pa.string()), identifier), False))
    return mask
