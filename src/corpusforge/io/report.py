"""The report on disk: reads metrics, ledgers and the columns it needs of the rows, writes report.json and index.html.

Rows are read a partition at a time and only counted; texts are read for the few rows that are shown or measured.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from corpusforge import graph
from corpusforge.io import atomic, leaks, parquet
from corpusforge.io.stored import read_json
from corpusforge.stages.report import BINS, Facts, diversity
from corpusforge.stages.report import report as report_of
from corpusforge.text.views import row_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from corpusforge.project import Project

_BEFORE: Final = ("source", "license", "restrictions", "origin", "kind")
_AFTER: Final = (*_BEFORE, "generator", "language", "domain", "split")
_SOURCE: Final = ("name", "license", "restrictions", "origin", "generator")
_TEXT: Final = ("kind", "messages", "chosen", "rejected", "verifier")
WHOLE: Final = "all"  # the diversity entry of the whole corpus


def run(project: Project, out: Path) -> dict[str, Any]:
    """Write the report of what is on disk into `out`; returns the figures worth comparing between builds."""
    report = report_of(gather(project))
    atomic.write_json(out / "report.json", report)
    atomic.write_text(out / "index.html", page(report))
    return {
        "rows": report["totals"]["rows_in_shards"],
        "tokens": report["totals"]["tokens_in_shards"],
        "adds_up": report["totals"]["adds_up"],
        "warnings": len(report["warnings"]),
        "distinct_2": {name: values["distinct_2"] for name, values in report["diversity"].items()},
    }


def page(report: dict[str, Any]) -> str:
    """The report as one HTML page that needs nothing else."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("corpusforge", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["n"] = _number
    environment.filters["facts"] = _facts
    return environment.get_template("report.html.j2").render(report=report) + "\n"


def _number(value: Any) -> str:
    """A figure for people: thousands separated, at most four digits behind the point."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}" if isinstance(value, float) else str(value)


def _facts(value: Any) -> str:
    """A small nested value on one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_facts(inner)}" for key, inner in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return ", ".join(_facts(inner) for inner in value) or "–"
    return _number(value)


def gather(project: Project) -> Facts:
    """Everything a report is made from. Raises ProjectError when a stage has not run."""
    config = project.params.report
    names = [node.name for node in graph.GRAPH[: graph.NAMES.index("report")]]
    after = _Rows({"kind": config.samples, "origin": config.diversity_rows, "corpus": config.diversity_rows})
    for part in project.parts("blend"):
        after.add(part)
    tables = [name for name in names if name != "shard"]
    return Facts(
        metrics={name: project.metrics(name) for name in names},
        manifest=read_json(project.data("shard") / "manifest.json"),
        before=_tally(project.parts("ingest"), _BEFORE),
        after=[dict(zip(_AFTER, key, strict=True)) | counts for key, counts in sorted(after.counts.items())],
        drops=[line for name in tables for line in _drops(project, name)],
        examples=[line for name in tables for line in _examples(project, name, config.examples)],
        difficulty=[
            {"kind": kind, "method": method, "bin": None if number < 0 else number, "rows": rows}
            for (kind, method, number), rows in sorted(after.difficulty.items())
        ],
        personal=[
            {"source": source, "entity": entity, "findings": findings}
            for (source, entity), findings in sorted(after.personal.items())
        ],
        tokens=after.token_figures(),
        clusters=_clusters(project.parts("dedupe")),
        diversity=_diversity(project, after),
        samples=_samples(project, after, config.sample_chars),
        leaks=leaks.estimate(project, config.leak_rows),
    )


def _flat(part: Path, columns: tuple[str, ...]) -> pl.DataFrame:
    """The columns of a partition, with the fields of `source` that are counted as columns of their own."""
    names = [f"source.{name}" for name in _SOURCE]
    with pq.ParquetFile(part) as file:  # (read_table would flatten the struct)
        frame = pl.DataFrame(pl.from_arrow(file.read(columns=[*columns, *names])))
    fields = [pl.col("source").struct.field(name) for name in _SOURCE if name not in {"name", "restrictions"}]
    restrictions = pl.col("source").struct.field("restrictions").list.sort().list.join(",").fill_null("")
    return frame.with_columns(
        *fields,
        restrictions.alias("restrictions"),
        pl.col("source").struct.field("name").alias("source"),
    ).with_columns(pl.col(pl.String).fill_null(""))


def _tally(parts: list[Path], keys: tuple[str, ...]) -> list[dict[str, Any]]:
    total: Counter[tuple[str, ...]] = Counter()
    for part in parts:
        for *key, rows in _flat(part, ("kind",)).group_by(keys).len().iter_rows():
            total[tuple(key)] += rows
    return [dict(zip(keys, key, strict=True)) | {"rows": rows} for key, rows in sorted(total.items())]


@dataclass
class _Rows:
    """Counts over the finished rows, and the positions of the few whose text is looked at.

    Rows are chosen by the smallest content ids: a hash, so the choice is as good as random, and it stays the same
    when rows are added elsewhere.
    """

    limits: dict[str, int]  # column -> rows to choose for each of its values
    chosen: dict[str, dict[str, list[tuple[str, int]]]] = field(default_factory=dict)
    counts: dict[tuple[str, ...], dict[str, int]] = field(default_factory=dict)
    difficulty: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    personal: Counter[tuple[str, str]] = field(default_factory=Counter)
    tokens: list[Any] = field(default_factory=list)
    rows: int = 0

    def add(self, part: Path) -> None:
        """Count one partition."""
        columns = ("content_id", "kind", "language", "domain", "split", "copies", "tokens", "difficulty", "pii")
        frame = _flat(part, columns).with_columns(
            pl.col("copies", "tokens").cast(pl.Int64).fill_null(0),
            pl.int_range(self.rows, self.rows + pl.len(), dtype=pl.Int64).alias("position"),
            pl.lit(WHOLE).alias("corpus"),
        )
        self.rows += frame.height
        self._count(frame)
        self._grades(frame)
        self._findings(frame)
        self.tokens.append(frame["tokens"].to_numpy())
        for column, limit in self.limits.items():
            self._choose(frame, column, limit)

    def _choose(self, frame: pl.DataFrame, column: str, limit: int) -> None:
        best = self.chosen.setdefault(column, {})
        for (value,), group in frame.group_by(column):
            near = group.sort("content_id", "position").head(limit).select("content_id", "position").iter_rows()
            best[str(value)] = heapq.nsmallest(limit, [*best.get(str(value), []), *near])

    def positions(self, column: str) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
        """The chosen rows for each value of `column`, as positions in the whole."""
        for value, rows in sorted(self.chosen.get(column, {}).items()):
            yield value, np.array([position for _, position in rows], np.int64)

    def _count(self, frame: pl.DataFrame) -> None:
        grouped = frame.group_by(_AFTER).agg(
            pl.len().alias("rows"), pl.col("copies").sum(), (pl.col("tokens") * pl.col("copies")).sum()
        )
        for *key, rows, copies, tokens in grouped.iter_rows():
            counts = self.counts.setdefault(tuple(key), {"rows": 0, "copies": 0, "tokens": 0})
            for name, value in zip(counts, (rows, copies, tokens), strict=True):
                counts[name] += value

    def _grades(self, frame: pl.DataFrame) -> None:
        value = pl.col("difficulty").struct.field("value")
        grouped = (
            frame.select(
                "kind",
                pl.col("difficulty").struct.field("method").fill_null("none").alias("method"),
                (value * BINS).floor().clip(0, BINS - 1).cast(pl.Int64).fill_null(-1).alias("bin"),
            )
            .group_by("kind", "method", "bin")
            .len()
        )
        for kind, method, number, rows in grouped.iter_rows():
            self.difficulty[kind, method, number] += rows

    def _findings(self, frame: pl.DataFrame) -> None:
        """Sum the `pii` map per source and entity."""
        entries = pl.col("pii").cast(pl.List(pl.Struct({"key": pl.String, "value": pl.Int64})))
        found = frame.select("source", entries).filter(pl.col("pii").list.len() > 0).explode("pii").unnest("pii")
        for source, entity, findings in found.group_by("source", "key").agg(pl.col("value").sum()).iter_rows():
            self.personal[source, entity] += findings

    def token_figures(self) -> dict[str, Any]:
        """Percentiles of the rows' lengths."""
        lengths = np.concatenate([np.zeros(0, np.int64), *self.tokens])
        if not len(lengths):
            return {"rows": 0}
        marks = {f"p{share}": int(np.percentile(lengths, share, method="lower")) for share in (5, 50, 95, 99)}
        return {"rows": len(lengths), "sum": int(lengths.sum()), **marks, "max": int(lengths.max())}


def _drops(project: Project, stage: str) -> Iterator[dict[str, Any]]:
    path = project.data(stage) / "dropped.parquet"
    if not path.exists():
        return
    frame = pl.DataFrame(pl.from_arrow(pq.read_table(path, columns=["source", "reason"])))
    for source, reason, rows in frame.group_by("source", "reason").len().sort("source", "reason").iter_rows():
        yield {"stage": stage, "source": source, "reason": reason, "rows": rows}


def _examples(project: Project, stage: str, limit: int) -> Iterator[dict[str, Any]]:
    """The first lines of each reason, in ledger order."""
    path = project.data(stage) / "dropped.parquet"
    if not path.exists() or not limit:
        return
    seen: Counter[str] = Counter()
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=20_000):
            frame = pl.DataFrame(pl.from_arrow(batch)).group_by("reason", maintain_order=True).head(limit)
            for line in frame.iter_rows(named=True):
                seen[line["reason"]] += 1
                if seen[line["reason"]] <= limit:
                    yield {key: line[key] for key in ("row_id", "record_id", "reason")} | {
                        "stage": stage,
                        "detail": json.loads(line["detail"]),
                    }


def _clusters(parts: list[Path]) -> dict[str, int]:
    """How the rows that dedupe kept fall into clusters (rows that share a prompt, or nearly a text)."""
    frames = [pl.DataFrame(pl.from_arrow(pq.read_table(part, columns=["cluster"]))) for part in parts]
    if not frames:
        return {"clusters": 0, "with_several_rows": 0, "largest": 0}
    sizes = pl.concat(frames).drop_nulls().group_by("cluster").len()["len"].to_numpy()
    return {
        "clusters": len(sizes),
        "with_several_rows": int((sizes > 1).sum()),
        "largest": int(sizes.max(initial=0)),
    }


def _diversity(project: Project, after: _Rows) -> dict[str, dict[str, Any]]:
    """Figures of the whole corpus, then of each origin."""
    read = parquet.Gather(project.parts("blend"))
    return {
        value: diversity(row_text(read(positions, list(_TEXT))))
        for column in ("corpus", "origin")
        for value, positions in after.positions(column)
    }


def _samples(project: Project, after: _Rows, limit: int) -> list[dict[str, Any]]:
    """A few finished rows per kind, their texts cut. They come after scrubbing, never from before it."""
    read = parquet.Gather(project.parts("blend"))
    columns = ["row_id", *_TEXT, "source", "language", "domain", "split", "difficulty", "tokens"]
    return [
        _sample(row, limit) for _, positions in after.positions("kind") for row in read(positions, columns).to_pylist()
    ]


def _sample(row: dict[str, Any], limit: int) -> dict[str, Any]:
    turns = [
        {"part": part, "role": turn["role"], "text": _cut(turn["content"] or turn["tool_calls"] or "", limit)}
        for part in ("messages", "chosen", "rejected")
        for turn in row[part] or []
    ]
    verifier = row["verifier"] or {}
    return {
        "row_id": row["row_id"],
        "kind": row["kind"],
        "source": row["source"]["name"],
        "license": row["source"]["license"],
        "origin": row["source"]["origin"],
        "language": row["language"],
        "domain": row["domain"],
        "split": row["split"],
        "difficulty": (row["difficulty"] or {}).get("value"),
        "tokens": row["tokens"],
        "verifier": verifier.get("kind"),
        "turns": turns,
    }


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + f" … ({len(text):,} characters)"
