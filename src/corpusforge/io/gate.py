"""The data gate on disk: looks at the finished shards, asks `gate_data` for a verdict, writes it, and stops the graph.

The verdict of a failed gate is kept in .corpusforge/last_verdict.json, because a stage that fails leaves no output.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.errors import GateError, ProjectError
from corpusforge.io import atomic, manifest
from corpusforge.io.benchmarks import load_benchmarks
from corpusforge.io.stored import read_json, read_table
from corpusforge.sample import SCHEMA
from corpusforge.stages.decontaminate import decontaminate
from corpusforge.stages.gate_data import Evidence, gate_data

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpusforge.project import Project
    from corpusforge.stages.gate_data import Verdict

LAST_VERDICT: Final = ".corpusforge/last_verdict.json"
# The gate's own settings, whatever params say of decontaminate: nearly the whole text, in whatever number of rows.
# Questions under eight words are left to decontaminate, which knows what is common to the corpus.
_LOOK: Final[dict[str, Any]] = {
    "n": 8,
    "threshold": 0.8,
    "thresholds": {},
    "min_words": 8,
    "max_df": 1_000_000,
    "action": "flag",
}
_TRAINED: Final = ("messages", "prompt", "completion", "chosen", "rejected")  # columns whose text a trainer sees
_METHODS: Final = frozenset({"exact", "ngram"})
_TOLD: Final = pl.List(pl.Struct({"source": pl.String, "restrictions": pl.List(pl.String)}))  # of `provenance`
_BATCH: Final = 10_000  # shard rows looked at together
_SHOWN: Final = 10  # failed checks named in the error


def run(project: Project, out: Path) -> dict[str, Any]:
    """Judge the build on disk and write `out`/verdict.json. Raises GateError when a check fails."""
    (project.root / LAST_VERDICT).unlink(missing_ok=True)
    verdict = judge(project)
    atomic.write_json(project.root / LAST_VERDICT, verdict.to_dict())
    if not verdict.passed:
        raise _refusal(verdict)
    atomic.write_json(out / "verdict.json", verdict.to_dict())
    # What training waits for: unlike the verdict, it stays the same when another baseline is accepted.
    atomic.write_json(out / "passed.json", {"build": verdict.build})
    return {
        "passed": len(verdict.checks),
        "failed": 0,
        "found": {check.name: check.found for check in verdict.checks},
    }


def judge(project: Project) -> Verdict:
    """The verdict on what is on disk. Raises ProjectError when shards or report are missing."""
    held = manifest.read_manifest(project.data("shard"))
    report = read_json(project.data("report") / "report.json")
    ingest = project.params.ingest
    evidence = Evidence(
        damaged=manifest.verify(project.data("shard")),
        leaks=leaks(project, held),
        allowed={source.name: [*ingest.allow, *source.allow] for source in ingest.sources},
        stated=stated(project.data("shard"), held),
    )
    return gate_data(report, held, read_baseline(project.root / "baseline.json"), project.params.gate_data, evidence)


def read_baseline(path: Path) -> dict[str, Any]:
    """The accepted figures; `{}` where nothing was accepted. Raises ProjectError when the file is broken."""
    try:
        loaded = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        loaded = None
    if not isinstance(loaded, dict) or (loaded and "build" not in loaded):
        hint = "`corpusforge accept` writes it; `{}` means that nothing was accepted"
        raise ProjectError(f"{path.name} is not a baseline", hint=hint)
    return loaded


def stated(shards: Path, held: dict[str, Any]) -> dict[str, dict[str, int]]:
    """Source -> restriction -> shard rows that it put under it, found in the shards.

    Where rows went for a row, `provenance` says which of their sources stated what: a restriction that a row took on
    from a copy is the copy's.
    """
    total: Counter[tuple[str, str]] = Counter()
    for shard in held["shards"]:
        table = read_table(shards / shard["path"], ["source", "restrictions", "provenance"])
        frame = pl.DataFrame(pl.from_arrow(table)).with_row_index("at")
        told = frame.drop_nulls("provenance").select("at", pl.col("provenance").str.json_decode(_TOLD).alias("told"))
        told = told.explode("told").unnest("told")
        own = frame.filter(pl.col("provenance").is_null()).select("at", "source", "restrictions")
        each = pl.concat([own, told]).explode("restrictions").drop_nulls("restrictions").unique()
        total.update(
            {(name, word): rows for name, word, rows in each.group_by("source", "restrictions").len().iter_rows()}
        )
    found: dict[str, dict[str, int]] = {}
    for (name, word), rows in sorted(total.items()):
        found.setdefault(name, {})[word] = rows
    return found


def leaks(project: Project, held: dict[str, Any]) -> dict[str, list[str]]:
    """Ids of shard rows that hold a question or a long answer of each declared benchmark, found in the shards."""
    sources = project.params.decontaminate.benchmarks
    if not sources:
        return {}
    benchmarks = load_benchmarks(sources, project.root)
    found: dict[str, list[str]] = {source.name: [] for source in sources}
    for shard in held["shards"]:
        for rows in _texts(project.data("shard") / shard["path"]):
            noted = decontaminate(rows, benchmarks=benchmarks, **_LOOK).changes
            for row_id, text in zip(noted["row_id"].to_pylist(), noted["detail"].to_pylist(), strict=True):
                detail = json.loads(text)
                if detail["method"] in _METHODS:  # a worked answer alone says as much as the question
                    found[detail["benchmark"]].append(row_id)
    return dict(sorted(found.items()))


def _texts(path: Path) -> Iterator[pa.Table]:
    """The rows of a shard as rows of the row format that hold nothing but their texts, one message per column."""
    with pq.ParquetFile(path) as file:
        columns = [name for name in ("row_id", *_TRAINED) if name in file.schema_arrow.names]
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
            yield pa.Table.from_pylist([_row(row) for row in batch.to_pylist()], schema=SCHEMA)


def _row(row: dict[str, Any]) -> dict[str, Any]:
    name = row.pop("row_id")
    messages = [{"role": "user", "content": "\n".join(strings(value))} for value in row.values()]
    return {"row_id": name, "content_id": name, "kind": "sft", "messages": messages, "source": {"name": "shards"}}


def strings(value: Any) -> Iterator[str]:
    """Every text inside a value, JSON text opened, in order."""
    if isinstance(value, str):
        opened = _opened(value)
        if opened is value:
            yield value
        else:
            yield from strings(opened)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from strings(inner)


def _opened(text: str) -> Any:
    """The object or list that `text` is the JSON of, else `text` itself."""
    if text[:1] in "{[" and text[-1:] in "}]":
        try:
            loaded = json.loads(text)
        except ValueError:
            return text
        return loaded if isinstance(loaded, (dict, list)) else text
    return text


def _refusal(verdict: Verdict) -> GateError:
    """Every failed check with what was found and what is allowed, at bounded length."""
    failed = verdict.failed
    lines = [
        f"  {check.name}: {check.says} (found {check.found:g}, limit {check.limit:g})" for check in failed[:_SHOWN]
    ]
    if len(failed) > _SHOWN:
        lines.append(f"  and {len(failed) - _SHOWN} more, in {LAST_VERDICT}")
    head = f"gate_data: {len(failed)} of {len(verdict.checks)} checks failed, nothing may be published"
    hint = (
        "see data/report/index.html; undo the change that did this, or raise the limit under gate_data in params.yaml "
        "(baseline.removed_sources names sources that were taken out on purpose)"
    )
    return GateError("\n".join([head, *lines]), hint=hint)
