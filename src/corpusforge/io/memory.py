"""Records in memory: written to a temporary file and read back, so that they become rows as those of a file do.

    read_records([{"prompt": "…", "completion": "…"}], source={"name": "mine"})
    read_records(polars_or_pandas_frame)

Values that JSON or Parquet cannot hold are refused: a row must be the same whichever way its record came.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa

from corpusforge.errors import SchemaError
from corpusforge.io import parquet
from corpusforge.io.ingest import read_with_ledger
from corpusforge.result import StageResult
from corpusforge.sample import ADDED, SCHEMA, check_schema

_TYPES: Final = {field.name: field.type for field in SCHEMA} | ADDED


def are_paths(data: Any) -> bool:
    """Whether `data` names files rather than being the records themselves."""
    if isinstance(data, (str, os.PathLike)):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(item, (str, os.PathLike)) for item in data)


def read_records(data: Any, source: Mapping[str, Any] | None = None, **options: Any) -> StageResult:
    """Rows of dicts, or of a table (Arrow, Polars, pandas), and the ledger of what could not be read.

    Raises SchemaError for what is neither, and for values that no file could hold.
    """
    with as_file(data) as place:
        return read_with_ledger(place.name, source, root=place.parent, **options)


@contextmanager
def as_file(data: Any) -> Iterator[Path]:
    """A temporary file that holds dicts or a table, for as long as the block lasts. Raises SchemaError."""
    with TemporaryDirectory() as folder:
        yield Path(folder) / _write(data, Path(folder))


def _write(data: Any, folder: Path) -> str:
    columns: Any = getattr(data, "column_names", None)
    columns = getattr(data, "columns", ()) if columns is None else columns
    table = arrow_table(data, _TYPES if set(SCHEMA.names) <= set(columns) else None)
    if table is not None:
        parquet.write(table, folder / "records.parquet")
        return "records.parquet"
    if isinstance(data, Mapping) or not isinstance(data, Iterable):
        raise SchemaError(f"read: expected paths, dicts or a table, got {type(data).__name__}")
    with (folder / "records.jsonl").open("w", encoding="utf-8") as file:
        for number, record in enumerate(data, 1):
            file.write(_line(record, number))
    return "records.jsonl"


def _line(record: Any, number: int) -> str:
    if not isinstance(record, Mapping):
        raise SchemaError(f"read: record {number} is a {type(record).__name__}, expected a dict")
    try:
        return json.dumps(record) + "\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(
            f"read: record {number} holds what JSON cannot ({type(error).__name__})",
            hint="turn its values into text, numbers, lists and dicts first",
        ) from None


def as_rows(given: Any, verb: str) -> pa.Table:
    """The rows that the notebook verb `verb` was given; a Polars or pandas frame goes back into the row format.

    Raises SchemaError for what holds no rows.
    """
    if isinstance(given, StageResult):
        raise SchemaError(f"{verb}: expected rows, got the result of a stage", hint=f"cf.{verb}(result.kept)")
    table = arrow_table(given, _TYPES)
    if table is None:
        hint = "`cf.read` makes rows of files, of dicts and of tables"
        raise SchemaError(f"{verb}: expected a table of rows, got {type(given).__name__}", hint=hint)
    check_schema(table, verb)
    return table


def arrow_table(data: Any, types: Mapping[str, pa.DataType] | None = None) -> pa.Table | None:
    """An Arrow table of an Arrow, Polars or pandas table, columns of these names in these types; None for others."""
    if isinstance(data, pa.Table):
        return data
    if not hasattr(data, "__arrow_c_stream__"):
        return None
    types = types or {}
    try:
        if type(data).__module__.partition(".")[0] == "pandas":  # its own export cannot guess maps
            return pa.table({str(n): pa.array(data[n], types.get(n), from_pandas=True) for n in data.columns})
        if type(data).__module__.partition(".")[0] == "polars":  # its string views cannot be written to Parquet
            import polars as pl

            table = data.to_arrow(compat_level=pl.CompatLevel.oldest())
        else:
            table = pa.table(data)
        return pa.table({n: table[n].cast(types.get(n, table[n].type)) for n in table.column_names})
    except (pa.ArrowException, TypeError) as error:
        kind = type(data).__name__
        raise SchemaError(f"the columns of this {kind} are not what rows have ({type(error).__name__})") from None
