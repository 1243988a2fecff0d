"""The two sides of a diff: the rows of a project, a release, a shard folder or any file, as identity and content.

A side is read a table at a time; what stays in memory per row is its identity, a 64-bit hash of what it says, and the
few words that are counted.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from corpusforge.errors import ProjectError, SourceError
from corpusforge.io import tables
from corpusforge.io.lookup import Build, open_build
from corpusforge.project import Project

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

COLUMNS: Final = {"row_id": pl.String, "content": pl.UInt64, "source": pl.String, "kind": pl.String}
# What says where a row stands, not what it says: a change of these alone is no change of the row.
_BESIDE: Final = frozenset(
    (
        *("row_id", "record_id", "content_id", "source", "license", "restrictions", "origin", "generator", "parents"),
        *(
            "provenance",
            "split",
            "cluster",
            "copies",
            "copy",
            "difficulty",
            "difficulty_method",
            "tokens",
            "contamination",
            "pii",
        ),
        *("provenance", "domain", "language", "depth"),
    )
)
_IDS: Final = ("row_id", "id", "record_id")


@dataclass(frozen=True)
class Side:
    """One side: `rows` has the columns row_id (null where rows have no id), content (hash), source, kind."""

    label: str
    rows: pl.DataFrame
    params: dict[str, Any] = field(default_factory=dict)
    build: Build | None = None
    build_id: str | None = None


def load_side(place: Path | str | Project, keyed: frozenset[str] = frozenset()) -> Side:
    """The side at `place`; rows of the sources `keyed` are told by the user's own ids (`support:1042`).

    Raises SourceError or ProjectError when there is nothing to compare.
    """
    build = _build_at(place)
    if build is None:
        path = Path(str(place))
        return Side(path.name, _frame(_read(path), keyed))
    if not build.shards.is_dir():
        raise ProjectError(f"{build.root.name} has no shards", hint="run `dvc repro` first")
    rows = _frame(_read(build.shards) if tables.is_parquet(build.shards) else iter(()), keyed)
    return Side(build.root.name, rows, _params(build.root), build, _build_id(build.shards))


def keyed_sources(place: Path | str | Project) -> frozenset[str]:
    """The sources that params give a `key`: their records keep their ids from delivery to delivery."""
    build = _build_at(place)
    sources = _params(build.root).get("ingest", {}).get("sources", []) if build else []
    return frozenset(one["name"] for one in sources if isinstance(one, dict) and one.get("key") and "name" in one)


def _build_at(place: Path | str | Project) -> Build | None:
    if isinstance(place, Project):
        return Build(place.root)
    path = Path(place)
    is_project = (path / "params.yaml").is_file() and (path / "dvc.yaml").is_file()
    is_release = (path / "ledgers").is_dir() and (path / "shards").is_dir()
    return open_build(path) if is_project or is_release else None


def _read(path: Path) -> Iterator[tuple[str, pa.Table]]:
    """Tables with the folder they lie in, which for shards is their kind."""
    if not path.exists():
        raise SourceError(f"{path} does not exist")
    if tables.is_parquet(path):
        for table in tables.open_tables(path):
            for batch in table.batches():
                yield table.label, batch
    elif path.is_dir():
        raise SourceError(f"{path} holds no Parquet file", hint="give a project, a release, a shard folder or a file")
    else:
        from corpusforge.io.ingest import read

        yield ".", _own_ids(read(path))


def _own_ids(rows: pa.Table) -> pa.Table:
    """Rows of a foreign file under the user's own ids; without one, a row is its content: line numbers move."""
    fan = pl.col("row_id").str.extract(r"#\d+(\.\d+)$").fill_null("")
    ids = pl.DataFrame(pl.from_arrow(rows.select(["row_id", "source"]))).select(
        (pl.col("source").struct.field("record_id") + fan).alias("row_id")
    )
    return rows.set_column(rows.column_names.index("row_id"), "row_id", ids["row_id"].to_arrow().cast("string"))


def _frame(read: Iterator[tuple[str, pa.Table]], keyed: frozenset[str]) -> pl.DataFrame:
    frames = [_identity(table, label, keyed) for label, table in read]
    return pl.concat(frames) if frames else pl.DataFrame(schema=COLUMNS)


def _identity(table: pa.Table, label: str, keyed: frozenset[str]) -> pl.DataFrame:
    """Identity, content hash, source and kind of each row of a table."""
    frame = pl.DataFrame(pl.from_arrow(table))
    own = next((name for name in _IDS if name in frame.columns), None)
    said = [name for name in frame.columns if name not in _BESIDE and name not in _IDS]
    kind = pl.col("kind") if "kind" in frame.columns else pl.lit(label.split("_")[0] if label != "." else "")
    identity = pl.col(own).cast(pl.String) if own else pl.lit(None, pl.String)
    if own == "row_id" and "record_id" in frame.columns:
        identity = called(_source_name(frame), pl.col("record_id"), identity, keyed)
    return frame.select(
        identity.alias("row_id"),
        _content(said).alias("content"),
        _source_name(frame).alias("source"),
        kind.fill_null("").alias("kind"),
    )


def called(source: pl.Expr, own: pl.Expr, row_id: pl.Expr, keyed: frozenset[str]) -> pl.Expr:
    """What a row is called: by the user's own id where its source has a key, else by its row id."""
    fan = row_id.str.extract(r"#\d+(\.\d+)$").fill_null("")
    by_key = source.is_in(sorted(keyed)) & own.is_not_null()
    return pl.when(by_key).then(pl.concat_str(source, pl.lit(":"), own, fan)).otherwise(row_id)


def _content(columns: list[str]) -> pl.Expr:
    """A hash of what the columns hold, in which an absent column and a null are the same."""
    total = pl.lit(0, pl.UInt64)
    for name in columns:
        value = pl.struct(name).hash(seed=zlib.crc32(name.encode()))
        total = total ^ pl.when(pl.col(name).is_null()).then(pl.lit(0, pl.UInt64)).otherwise(value)
    return total


def _source_name(frame: pl.DataFrame) -> pl.Expr:
    if "source" not in frame.columns:
        return pl.lit("")
    column = pl.col("source")
    return column.struct.field("name") if isinstance(frame.schema["source"], pl.Struct) else column.cast(pl.String)


def reasons(side: Side, row_ids: set[str], keyed: frozenset[str] = frozenset()) -> dict[str, tuple[str, str]]:
    """Row id -> stage and reason, from the ledgers of a side's build, for the rows that it dropped."""
    found: dict[str, tuple[str, str]] = {}
    if side.build is None:
        return found
    for stage in side.build.stages():
        path = side.build.ledger(stage, "dropped")
        lines = pl.DataFrame(pl.from_arrow(pq.read_table(path, columns=["row_id", "record_id", "source", "reason"])))
        name = called(pl.col("source"), pl.col("record_id"), pl.col("row_id"), keyed)
        hit = lines.select(name.alias("called"), "reason").filter(pl.col("called").is_in(list(row_ids)))
        found |= {row: (stage, reason) for row, reason in hit.iter_rows()}
    return found


def _params(root: Path) -> dict[str, Any]:
    """params.yaml as plain values."""
    path = root / "params.yaml"
    if not path.exists():
        return {}
    loaded = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    return json.loads(json.dumps(loaded, default=str)) if isinstance(loaded, dict) else {}


def _build_id(shards: Path) -> str | None:
    path = shards / "manifest.json"
    return json.loads(path.read_text(encoding="utf-8")).get("build") if path.exists() else None
