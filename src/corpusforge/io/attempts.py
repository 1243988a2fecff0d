"""Pass rates between builds: `rollouts.parquet`, a file in git that `accept` writes and `blend` reads.

A corpus cannot wait for the model that will be trained on it, so `blend` goes by what the last accepted model could do.
The file has a line per task that was ever tried; a task that the accepted build no longer holds (`blend` may have
dropped it, as solved) keeps its line, else it would come back with every other build.

    content_id  passes  attempts  undecided  model             sampling
    9f0c…            8         8          0  3b1e70d6c1f2a498  {"attempts": 8, "temperature": 1.0, …}
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.errors import ProjectError, SchemaError, SourceError
from corpusforge.io import atomic, manifest
from corpusforge.io.stored import read_table

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

NAME: Final = "rollouts.parquet"
ACCEPTED: Final = pa.schema(
    [
        ("content_id", pa.string()),
        ("passes", pa.int32()),
        ("attempts", pa.int32()),
        ("undecided", pa.int32()),
        ("model", pa.string()),
        ("sampling", pa.string()),
    ]
)
_COUNTS: Final = ("passes", "attempts")
_READ: Final = pa.schema([("content_id", pa.string()), ("passes", pa.int64()), ("attempts", pa.int64())])


def read(path: Path) -> pa.Table:
    """Passes and decided attempts by content id, each content once (lines of one content are added up).

    Any Parquet file with the columns content_id, passes and attempts will do. Raises SourceError when it cannot be
    read, SchemaError when it is another table.
    """
    try:
        with pq.ParquetFile(path) as file:
            held = file.schema_arrow.names
            missing = [name for name in ("content_id", *_COUNTS) if name not in held]
            if missing:
                raise SchemaError(
                    f"{path.name}: no column {missing[0]!r}",
                    hint="`corpusforge accept` writes it: content_id, passes, attempts, one line per task",
                )
            table = file.read(["content_id", *_COUNTS])
    except FileNotFoundError:
        hint = "`corpusforge accept` writes it once rollout has run; until then leave out blend.rollouts"
        raise SourceError(f"{path} does not exist", hint=hint) from None
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{path} is not a Parquet file that can be read ({type(error).__name__})") from None
    return _counted(table, path.name)


def _counted(table: pa.Table, name: str) -> pa.Table:
    for column, fits, kind in (
        ("content_id", pa.types.is_string, "text"),
        *((column, pa.types.is_integer, "whole numbers") for column in _COUNTS),
    ):
        if not fits(table[column].type):
            raise SchemaError(f"{name}: {column} is {table[column].type}, expected {kind}")
    lines = pl.DataFrame(pl.from_arrow(table)).drop_nulls().cast(dict.fromkeys(_COUNTS, pl.Int64))
    bad = lines.filter((pl.col("passes") < 0) | (pl.col("passes") > pl.col("attempts"))).height
    if bad:
        raise SchemaError(f"{name}: {bad} lines without 0 <= passes <= attempts")
    summed = lines.group_by("content_id").agg(pl.col(*_COUNTS).sum()).sort("content_id")
    return summed.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(_READ)


def accept(project: Project, build: str) -> int:
    """Write what `rollout` measured to rollouts.parquet, beside what is known of other tasks; returns the tasks tried.

    A task that was tried now keeps no older line. 0, and no file, where `rollout` has not run, or the shards on disk
    are not those of `build`.
    """
    measured, shards = project.data("rollout") / "attempts.parquet", project.data("shard")
    if not measured.exists() or not (shards / manifest.NAME).exists():
        return 0
    if manifest.read_manifest(shards)["build"] != build:
        return 0
    tried = pl.DataFrame(pl.from_arrow(read_table(measured, ACCEPTED.names)))
    tried = tried.filter(pl.col("attempts") + pl.col("undecided") > 0).unique("content_id", keep="first")
    path = project.root / NAME
    lines = [tried]
    if path.exists():
        try:
            known = pl.DataFrame(pl.from_arrow(read_table(path, ACCEPTED.names)))
        except ProjectError:
            raise ProjectError(f"{NAME} cannot be read", hint=f"`git checkout {NAME}`, or delete it") from None
        lines.append(known.join(tried, on="content_id", how="anti"))
    table = pl.concat(lines).sort("content_id").to_arrow(compat_level=pl.CompatLevel.oldest()).cast(ACCEPTED)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", use_content_defined_chunking=True)
    atomic.write_bytes(path, buffer.getvalue())
    return tried.height
