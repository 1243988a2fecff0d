"""What a table holds, at a glance: ours or a foreign one, a file or a folder.

    corpusforge inspect shards/            cf.inspect("shards/")
    corpusforge inspect train.parquet --row r1042

Every column is described (type, nulls, distinct values or range); columns whose meaning is known (kind, licence,
origin, language, difficulty, tokens, cluster) are counted. The table is read once, some rows at a time; samples and
single rows read only the row groups that hold them.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.errors import SourceError
from corpusforge.present import Block, Showable, Shown

if TYPE_CHECKING:
    from corpusforge.io.tables import Looked

# What a count is called, and where it may stand; the first that the table has is taken.
FACETS: Final = {
    "kind": ("kind",),
    "split": ("split",),
    "source": ("source.name", "source_name", "source", "dataset"),
    "licence": ("source.license", "license", "licence"),
    "origin": ("source.origin", "origin"),
    "generator": ("source.generator", "generator"),
    "domain": ("domain",),
    "language": ("language", "lang"),
    "verifier": ("verifier.kind", "verifier_kind"),
    "difficulty by": ("difficulty.method", "difficulty_method"),
}
NUMBERS: Final = {
    "difficulty": ("difficulty.value", "difficulty"),
    "tokens": ("tokens",),
    "contamination": ("contamination",),
    "rating": ("rating.value", "rating"),
    "copies": ("copies",),
}
NONE: Final = "(none)"
_DISTINCT: Final = 1_000  # distinct values counted per column; beyond it a column is called "many"
_TOP: Final = 8
_QUANTILES: Final = (0.0, 0.5, 0.9, 1.0)
_CLIP: Final = 200  # characters shown of one text


@dataclass
class Column:
    """Figures of one column."""

    name: str
    type: str
    nulls: int = 0
    values: Counter[Any] | None = field(default_factory=Counter)  # None: too many to count
    lengths: list[Any] = field(default_factory=list)  # arrays: characters of texts, or the numbers themselves
    unit: str = ""  # what the lengths measure

    def range(self) -> dict[str, float] | None:
        """Least, median, 90th percentile and greatest."""
        found = [part for part in self.lengths if len(part)]
        return quantiles(np.concatenate(found)) if found else None

    def says(self) -> str:
        """The values in a few words."""
        span = self.range()
        if self.values and len(self.values) <= _TOP and all(len(str(v)) <= 40 for v in self.values):
            return ", ".join(f"{value} ({count:,})" for value, count in _ordered(self.values))
        distinct = "" if not self.values else f"{len(self.values):,} distinct; "
        if span is None:
            return distinct.rstrip("; ")
        low, middle, high, top = (f"{span[name]:,.6g}" for name in ("min", "p50", "p90", "max"))
        return f"{distinct}{self.unit}: {low} to {top}, median {middle}, p90 {high}"


@dataclass
class TableView:
    """What one table holds."""

    label: str
    rows: int
    files: int
    size: int
    metadata: dict[str, str]
    columns: list[Column]
    facets: dict[str, dict[str, int]]
    numbers: dict[str, dict[str, float]]
    clusters: list[tuple[str, int]]
    samples: list[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "table": self.label,
            "rows": self.rows,
            "files": self.files,
            "bytes": self.size,
            "metadata": self.metadata,
            "columns": [
                {
                    "name": column.name,
                    "type": column.type,
                    "nulls": column.nulls,
                    "distinct": None if column.values is None else len(column.values),
                    "range": column.range(),
                    "unit": column.unit,
                }
                for column in self.columns
            ],
            "counts": self.facets,
            "figures": self.numbers,
            "largest_clusters": [{"cluster": name, "rows": count} for name, count in self.clusters],
            "samples": self.samples,
        }


@dataclass(repr=False)
class Inspection(Showable):
    """What the tables at a path hold."""

    path: str
    tables: list[TableView]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"path": self.path, "tables": [table.to_dict() for table in self.tables]}

    def shown(self) -> Shown:
        """The inspection as tables."""
        rows, files = sum(t.rows for t in self.tables), sum(t.files for t in self.tables)
        size = sum(t.size for t in self.tables)
        plural = "s" if files != 1 else ""
        head = f"{self.path}: {rows:,} rows in {files:,} file{plural}, {_size(size)}"
        blocks = [block for table in self.tables for block in _blocks(table, len(self.tables) > 1)]
        return Shown(head, blocks)


def inspect(path: str | Path, *, sample: int = 3, row: str | None = None) -> Inspection:
    """Look at a Parquet file, a folder of them, or any file that `read` can read.

    `sample` rows of each table are shown, texts clipped; with `row`, only the rows with that id (ours or the user's
    own), whole. Raises SourceError when nothing readable is there or no row has the id.
    """
    place = Path(path)
    views = []
    for table in _open(place):
        if row is None:
            views.append(_view(table, sample))
            continue
        found = table.find(row)
        if found.num_rows:
            views.append(_bare(table, [_plain(one, None) for one in _rows(found)]))
    if row is not None and not views:
        raise SourceError(f"{path}: no row has the id {row!r}", hint="ids are looked up in row_id, id and record_id")
    return Inspection(str(path), views)


def _open(place: Path) -> list[Looked]:
    from corpusforge.io import tables

    if not place.exists():
        hint = f"did you mean data/{place}?" if Path("data", place).exists() else ""
        raise SourceError(f"{place} does not exist", hint=hint)
    if not place.is_file() and not place.is_dir():
        raise SourceError(f"{place} is neither a file nor a folder", hint="write what it gives to a file first")
    if tables.is_parquet(place):
        return list(tables.open_tables(place))
    return [tables.read_table(place)]


def _bare(table: Looked, samples: list[dict[str, Any]]) -> TableView:
    return TableView(table.label, table.rows, table.files, table.size, table.metadata, [], {}, {}, [], samples)


def _view(table: Looked, sample: int) -> TableView:
    """Read the table once and describe it."""
    columns = [Column(column.name, type_name(column.type)) for column in table.schema]
    facets: dict[str, Counter[str]] = {}
    numbers: dict[str, list[Any]] = {}
    clusters: list[pl.DataFrame] = []
    for batch in table.batches():
        frame = _frame(batch)
        for column in columns:
            _describe(column, frame[column.name])
        for name, places in FACETS.items():
            values = _values(frame, places)
            if values is not None and values.dtype == pl.String:
                counts = facets.setdefault(name, Counter())
                counts.update(dict(values.fill_null(NONE).value_counts().iter_rows()))
        for name, places in NUMBERS.items():
            values = _values(frame, places)
            if values is not None and values.dtype.is_numeric():
                numbers.setdefault(name, []).append(_numbers(values.drop_nulls()))
        if "cluster" in frame.columns and frame["cluster"].dtype == pl.String:
            clusters.append(frame.select(pl.col("cluster").drop_nulls()))
    view = _bare(table, [_plain(row, _CLIP) for row in _rows(table.head(sample))] if sample else [])
    view.columns = columns
    view.facets = {name: dict(_ordered(counts)) for name, counts in facets.items() if set(counts) != {NONE}}
    spans = {name: quantiles(np.concatenate(parts)) for name, parts in numbers.items()}
    view.numbers = {name: span for name, span in spans.items() if span is not None}
    view.clusters = _largest(clusters)
    return view


def _frame(batch: pa.Table) -> pl.DataFrame:
    """The batch in Polars, extension types (JSON) as the text they are stored as."""
    arrays = []
    for column in batch.columns:
        whole = column.combine_chunks()
        arrays.append(storage(pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole))
    return pl.DataFrame(pl.from_arrow(pa.table(dict(zip(batch.column_names, arrays, strict=True)))))


def storage(array: Any) -> Any:
    """The array with extension types replaced by what they are stored as, also inside lists."""
    if isinstance(array, pa.ExtensionArray):
        return storage(array.storage)
    if pa.types.is_list(array.type) and isinstance(array.values, pa.ExtensionArray):
        mask = array.is_null() if array.null_count else None
        return pa.ListArray.from_arrays(array.offsets, storage(array.values), mask=mask)
    return array


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python values, JSON columns parsed."""
    for number, column in enumerate(table.schema):
        if pa.types.is_temporal(column.type):
            table = table.set_column(number, column.name, pc.cast(table[column.name], pa.string()))
    rows: list[dict[str, Any]] = table.to_pylist()
    for column in table.schema:
        if isinstance(column.type, pa.JsonType):
            for row in rows:
                row[column.name] = _parsed(row[column.name])
        elif pa.types.is_list(column.type) and isinstance(column.type.value_type, pa.JsonType):
            for row in rows:
                row[column.name] = [_parsed(item) for item in row[column.name] or ()]
    return rows


def _parsed(text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError:
        return text


def _size(count: int) -> str:
    return f"{count / 2**20:,.1f} MiB" if count >= 2**20 else f"{count / 2**10:,.1f} KiB"


def _describe(column: Column, values: pl.Series) -> None:
    """Add a batch to the figures of a column."""
    column.nulls += values.null_count()
    present = values.drop_nulls()
    if present.dtype.is_numeric():
        column.unit = "values"
        column.lengths.append(_numbers(present))
    elif present.dtype == pl.String:
        column.unit = "characters"
        column.lengths.append(present.str.len_chars().to_numpy())
    elif present.dtype.base_type() == pl.List:
        column.unit = "items"
        column.lengths.append(present.list.len().to_numpy())
    if column.values is None or present.dtype.is_nested() or present.dtype == pl.Binary:
        column.values = None
        return
    if present.dtype.is_temporal():
        present = _times(present)
    counts = present.value_counts()
    if counts.height > _DISTINCT:
        column.values = None
        return
    column.values.update(dict(counts.iter_rows()))
    if len(column.values) > _DISTINCT:
        column.values = None


def _numbers(values: pl.Series) -> Any:
    """Numbers as NumPy knows them: decimals as floats."""
    return (values.cast(pl.Float64) if values.dtype.is_decimal() else values).to_numpy()


def _times(values: pl.Series) -> pl.Series:
    """Points in time as text: a table can hold some that neither Python nor Polars can show."""
    return pl.Series(values.name, pc.cast(values.to_arrow(), pa.string()).to_pylist(), pl.String)


def _values(frame: pl.DataFrame, places: tuple[str, ...]) -> pl.Series | None:
    """The first of `places` that the frame has, down to a field of a struct."""
    for place in places:
        top, _, rest = place.partition(".")
        if top not in frame.columns:
            continue
        values = frame[top]
        if not rest:
            return values
        if isinstance(values.dtype, pl.Struct) and rest in [f.name for f in values.dtype.fields]:
            return values.struct.field(rest)
    return None


def _largest(parts: list[pl.DataFrame]) -> list[tuple[str, int]]:
    """The clusters with most rows, of those with more than one."""
    if not parts:
        return []
    counts = pl.concat(parts).group_by("cluster").len().filter(pl.col("len") > 1)
    return list(counts.sort(["len", "cluster"], descending=[True, False]).head(5).iter_rows())


def quantiles(values: Any) -> dict[str, float] | None:
    """Least, median, 90th percentile and greatest of an array; None when it is empty."""
    finite = values[np.isfinite(values)] if len(values) else values
    if not len(finite):
        return None
    found = np.quantile(finite, _QUANTILES, method="nearest")
    return {name: value.item() for name, value in zip(("min", "p50", "p90", "max"), found, strict=True)}


def type_name(kind: pa.DataType) -> str:
    """An Arrow type in a few words."""
    if pa.types.is_struct(kind):
        return f"struct({', '.join(kind.field(i).name for i in range(kind.num_fields))})"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"list of {type_name(kind.value_type)}"
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name).removeprefix("arrow.")
    return str(kind)


def _ordered(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))


def _plain(value: Any, clip: int | None) -> Any:
    """A value of a row for JSON: nulls left out of objects, bytes as their length, long texts clipped."""
    if isinstance(value, dict):
        return {key: _plain(inner, clip) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) for one in value) and len(dict(value)) == len(value):  # a map
            return _plain(dict(value), clip)
        items = [_plain(inner, clip) for inner in value[: _TOP if clip else None]]
        return [*items, f"(and {len(value) - _TOP} more)"] if clip and len(value) > _TOP else items
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if isinstance(value, str) and clip and len(value) > clip:
        return f"{value[:clip]}… ({len(value):,} characters)"
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _blocks(table: TableView, several: bool) -> list[Block]:
    """The tables that show one table."""
    name = f"{table.label}: " if several else ""
    blocks = []
    if table.columns:
        rows = [(c.name, c.type, c.nulls, c.says()) for c in table.columns]
        made = "; ".join(f"{key} {value}" for key, value in sorted(table.metadata.items()))
        blocks.append(Block(f"{name}{table.rows:,} rows", ("column", "type", "nulls", "values"), rows, made))
    facets = [
        (what, ", ".join(f"{value} {count:,}" for value, count in list(counts.items())[:_TOP]) + _more(counts))
        for what, counts in table.facets.items()
    ]
    if facets:
        blocks.append(Block(f"{name}what the rows are", ("", "rows"), facets))
    if table.numbers:
        figures = [(what, s["min"], s["p50"], s["p90"], s["max"]) for what, s in table.numbers.items()]
        blocks.append(Block(f"{name}figures", ("", "min", "median", "p90", "max"), figures))
    if table.clusters:
        blocks.append(Block(f"{name}largest clusters of near-duplicates", ("cluster", "rows"), table.clusters))
    for number, sample in enumerate(table.samples, 1):
        blocks.append(Block(f"{name}row {number}", note=sample_text(sample)))
    return blocks


def _more(counts: dict[str, int]) -> str:
    return f", and {len(counts) - _TOP} more" if len(counts) > _TOP else ""


def sample_text(sample: dict[str, Any]) -> str:
    """A row as a person reads it: turns as `role: text`, other values on a line each."""
    lines = []
    for key, value in sample.items():
        if isinstance(value, list) and value and all(isinstance(item, dict) and "role" in item for item in value):
            lines.append(f"{key}:")
            for turn in value:
                rest = {k: v for k, v in turn.items() if k not in {"role", "content"}}
                more = f" {json.dumps(rest, ensure_ascii=False)}" if rest else ""
                lines.append(f"  {turn['role']}: {turn.get('content', '')}{more}")
        elif value not in ({}, []):
            lines.append(f"{key}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}")
    return "\n".join(lines)
