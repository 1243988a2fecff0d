"""Rows and tokens per source, licence and restrictions: of what was read, of what is shipped, of any table of rows."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow.parquet as pq

from corpusforge.io import manifest
from corpusforge.io.stored import read_table
from corpusforge.io.tokenizer import load_tokenizer
from corpusforge.stages._policy import DENIED, NO_LICENCE, RESTRICTED
from corpusforge.stages.grade import token_counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from corpusforge.project import Project

_SOURCE: Final = ("name", "license", "restrictions")
_TEXT: Final = ("kind", "messages", "chosen", "rejected", "verifier", "tools")
_REASONS: Final = (RESTRICTED, DENIED, NO_LICENCE)
_BATCH: Final = 10_000  # rows whose texts are in memory at once


@dataclass(frozen=True)
class Count:
    """What stands under the same terms; tokens are None where nobody counted them."""

    source: str
    license: str
    restrictions: tuple[str, ...]
    rows: int
    tokens: int | None


def of_rows(tables: Iterable[pa.Table], counter: str, root: Path) -> list[Count]:
    """Counts over rows in the row format; tokens by `counter`, as `grade` counts them."""
    tokenizer = load_tokenizer(counter, root)

    def frames() -> Iterator[pl.DataFrame]:
        for rows in tables:
            source = pl.DataFrame(pl.from_arrow(rows.select(["source"]))).unnest("source")
            yield source.select(*_SOURCE).with_columns(tokens=pl.Series(token_counts(rows, tokenizer), dtype=pl.Int64))

    return _counted(frames())


def ingested(project: Project) -> list[Count]:
    """Counts over what `ingest` read."""
    return of_rows(_batches(project), project.params.grade.counter, project.root)


def _batches(project: Project) -> Iterator[pa.Table]:
    import pyarrow as pa

    columns = [*_TEXT, *(f"source.{name}" for name in _SOURCE)]
    for part in project.parts("ingest"):
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
                yield pa.Table.from_batches([batch])


def shipped(shards: Path) -> list[Count]:
    """Counts over the lines of shards: copies count. Raises ProjectError where there is no manifest."""
    held = manifest.read_manifest(shards)["shards"]
    columns = ["source", "license", "restrictions", "tokens"]
    tables = (pl.DataFrame(pl.from_arrow(read_table(shards / shard["path"], columns))) for shard in held)
    return _counted(table.rename({"source": "name"}).cast({"tokens": pl.Int64}) for table in tables)


def _counted(frames: Iterable[pl.DataFrame]) -> list[Count]:
    total: dict[tuple[str, str, str], tuple[int, int, bool]] = {}
    for frame in frames:
        joined = pl.col("restrictions").list.sort().list.join(",").fill_null("")
        grouped = frame.with_columns(pl.col("name", "license").fill_null("unknown"), joined)
        counts = grouped.group_by(*_SOURCE).agg(
            pl.len(), pl.col("tokens").sum().alias("sum"), pl.col("tokens").is_null().any().alias("unknown")
        )
        for name, licence, said, rows, tokens, unknown in counts.iter_rows():
            before = total.get((name, licence, said), (0, 0, False))
            total[name, licence, said] = (before[0] + rows, before[1] + tokens, before[2] or unknown)
    return [
        Count(name, licence, tuple(one for one in said.split(",") if one), rows, None if unknown else tokens)
        for (name, licence, said), (rows, tokens, unknown) in sorted(total.items())
    ]


def refused(project: Project) -> list[dict[str, Any]]:
    """Rows that went for their terms, by stage, source, reason and what was refused."""
    total: Counter[tuple[str, ...]] = Counter()
    said = (pl.col("detail").str.json_path_match(f"$.{name}") for name in ("refused", "restrictions"))
    keys = (pl.col("source"), pl.col("reason"), pl.coalesce(*said).fill_null("[]").alias("what"))
    for stage in ("ingest", "dedupe"):
        path = project.data(stage) / "dropped.parquet"
        if not path.exists():
            continue
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=["source", "reason", "detail"]):
                lines = pl.DataFrame(pl.from_arrow(batch)).filter(pl.col("reason").is_in(_REASONS))
                for *key, rows in lines.group_by(*keys).len().iter_rows():
                    total[stage, *key] += rows
    return [
        {"stage": stage, "source": source, "reason": reason, "refused": json.loads(what), "rows": rows}
        for (stage, source, reason, what), rows in sorted(total.items())
    ]
