"""A SQL query as a source: DuckDB over a database file, and over files of the project. Read-only, and as a stream.

    reader: sql
    path: raw/tickets                                  # the files and folders that the query may read
    options:
      query: SELECT id, question AS prompt, reply AS completion FROM 'raw/tickets/*.parquet' WHERE stars = 5
      database: raw/app.duckdb                         # optional: its tables, by name

The query reaches what `path` and `database` name and nothing else, no network either: so DVC watches all that it reads,
and `source.revision` is a hash of all of it. Rows are numbered in the order of an ORDER BY at the query's end; without
one they are ordered by all columns from the left, because the order in which DuckDB finds them means nothing.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from corpusforge.errors import MissingExtra, SourceError, StorageError
from corpusforge.io.files import Found, Snapshot, shown
from corpusforge.io.readers import table_records

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from corpusforge.stages.ingest import Record, SourceConfig

_BATCH: Final = 1000
_OF_THE_QUERY: Final = ("ParserException", "BinderException", "CatalogException")
"""Errors that are about the query's text, which may be shown; others may hold values of rows."""
_SQLITE: Final = b"SQLite format 3\x00"
_MEMORY: Final = "1GB"


def open_sql(source: SourceConfig, root: Path) -> tuple[str, str, Iterator[Record]]:
    """Uri, revision and records of a query. Raises SourceError, MissingExtra."""
    files = _files(source, root)
    snapshot = Snapshot(files)
    revision = hashlib.sha256(f"{source.options.query}\0{snapshot.revision}".encode()).hexdigest()[:16]
    uri = "sql:" + ",".join(file.label for file in files)
    return uri, revision, _records(source, root, files, snapshot)


def check_query(source: SourceConfig, root: Path) -> None:
    """Raise SourceError for a file that is missing, and for what is no single SELECT."""
    with _connected(source, root, _files(source, root)) as connection:
        _prepared(source, connection)


def _files(source: SourceConfig, root: Path) -> list[Found]:
    found = []
    for path in source.paths():
        if "://" in path or any(sign in path for sign in "*?["):
            raise SourceError(
                f"source {source.name!r}: {shown(path, root)!r} is a glob or a URL", hint="name a file or its folder"
            )
        if not (root / path).exists():
            raise SourceError(f"source {source.name!r}: {shown(path, root)!r} does not exist")
        found.append(Found(root / path, shown(path, root), Path(path).as_posix()))
    return found


def _records(source: SourceConfig, root: Path, files: list[Found], snapshot: Snapshot) -> Iterator[Record]:
    label = f"query of {source.name}"
    with _connected(source, root, files) as connection:
        text = _prepared(source, connection)
        with _told(source):
            reader = connection.sql(text).to_arrow_reader(_BATCH)
            yield from table_records(reader, label, "")
    for file in files:
        snapshot.check(file)


def _prepared(source: SourceConfig, connection: duckdb.DuckDBPyConnection) -> str:
    """The query in an order that means something. Raises SourceError for anything but one SELECT."""
    import duckdb

    with _told(source):
        statements = connection.extract_statements(source.options.query or "")
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise SourceError(f"source {source.name!r}: options.query is not one SELECT", hint="it reads, and no more")
        text = statements[0].query.strip().rstrip(";")
        columns = connection.sql(text).columns
        if len(set(columns)) < len(columns):
            raise SourceError(f"source {source.name!r}: two columns have one name", hint="rename one with AS")
        (described,) = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [text]).fetchall()
    node = json.loads(described[0]).get("statements", [{}])[0].get("node", {})
    ordered = any(modifier["type"] == "ORDER_MODIFIER" for modifier in node.get("modifiers", []))
    return text if ordered else f"SELECT * FROM (\n{text}\n) ORDER BY ALL"  # noqa: S608 - it is the user's own query


@contextmanager
def _connected(source: SourceConfig, root: Path, files: list[Found]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that can read the source's files, spill to a folder of its own, and do nothing else."""
    with tempfile.TemporaryDirectory(prefix="corpusforge-sql-") as scratch:
        with _told(source):
            connection = _database(source, root)
        try:
            with _told(source):
                for name, value in {
                    "threads": 1,  # the same rows in the same order, also where an ORDER BY leaves ties
                    "memory_limit": _MEMORY,
                    "temp_directory": scratch,
                    "file_search_path": str(root.resolve()),
                    "allowed_directories": _reach(source, root, files, folders=True),
                    "allowed_paths": _reach(source, root, files, folders=False),
                    "enable_external_access": False,
                    "lock_configuration": True,
                }.items():
                    connection.execute(f"SET {name} = {_literal(value)}")
            yield connection
        finally:
            connection.close()


def _literal(value: object) -> str:
    """A setting's value as SQL."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def _reach(source: SourceConfig, root: Path, files: list[Found], *, folders: bool) -> list[str]:
    """Paths that the query may read: as they are, and as they are declared (DuckDB compares both)."""
    asked = [path for path in source.paths() if (root / path).is_dir() == folders]
    return [place for path in asked for place in (str((root / path).resolve()), path)] if files else []


def _database(source: SourceConfig, root: Path) -> duckdb.DuckDBPyConnection:
    """A connection to the database that is named, which is not written to, or to none."""
    import duckdb

    if source.options.database is None:
        return duckdb.connect(":memory:")
    place = root / source.options.database
    with place.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            return duckdb.connect(str(place), read_only=True)
    connection = duckdb.connect(":memory:", config={"autoinstall_known_extensions": "false"})
    try:
        connection.execute("LOAD sqlite")
    except duckdb.Error:
        connection.close()
        raise MissingExtra(
            f"source {source.name!r}: DuckDB reads SQLite with an extension that is not installed",
            hint="once, with a network: python -c \"import duckdb; duckdb.sql('INSTALL sqlite')\"",
        ) from None
    connection.execute(f"ATTACH {_literal(str(place))} AS source (TYPE sqlite, READ_ONLY)")
    connection.execute("USE source")
    return connection


@contextmanager
def _told(source: SourceConfig) -> Iterator[None]:
    """Say whose query it was, and why it failed, without a value of any row."""
    import duckdb
    import pyarrow as pa

    place = f"source {source.name!r}: the query"
    try:
        yield
    except (SourceError, MissingExtra):
        raise
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        kind = type(error).__name__
        if kind == "PermissionException" or "operations are disabled" in str(error):
            hint = "name the files and folders that it reads in `path`"
            raise SourceError(f"{place} reads what the source does not name", hint=hint) from None
        full = StorageError.of(error, f"source {source.name!r}")
        if full is not None and "is full" in full.message:
            raise full from None
        if kind in _OF_THE_QUERY:
            raise SourceError(f"{place} is wrong: {str(error).splitlines()[0][:200]}") from None
        raise SourceError(f"{place} failed ({kind})", hint="run it with DuckDB to see where") from None
