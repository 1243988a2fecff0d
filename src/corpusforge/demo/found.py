"""What the demo found of what was planted, and what training made of it: `python -m corpusforge.demo.found`.

A copy is found when it or its original is gone as a duplicate; a leak when `decontaminate` dropped it, naming the
right item; a personal value when no shard holds it; an unhealthy task when `health` dropped it; any other fault when it
is in no shard and the ledger says why.
Exit code 1 when anything was missed. Where the project trained, its models follow: base, SFT, DPO and GRPO, and what
the same training made of the rows as they came in.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from corpusforge.demo import digits, plant
from corpusforge.evaluate.profile import evaluation_table
from corpusforge.project import Project


def main(*arguments: str) -> int:
    """Print the stage table, found / planted for each fault, and the models; 0 when all was found.

    Arguments are the project's folder (default: here) and `--brief`, which leaves out stages and tests.
    """
    brief = "--brief" in arguments
    project = Project.find(next((one for one in arguments if one != "--brief"), "."))
    console = Console(width=None if sys.stdout.isatty() else 118)
    if not brief:
        console.print(stage_table(project))
        console.print()
    planted = plant.truth() | digits.truth()
    missed = {fault: _missed(project, fault, facts) for fault, facts in planted.items()}
    table = Table(
        "planted fault",
        "planted",
        "found",
        "missed",
        title="Found / planted",
        box=None,
        pad_edge=False,
        title_justify="left",
    )
    for fault, facts in planted.items():
        gone = missed[fault]
        table.add_row(fault, str(len(facts)), str(len(facts) - len(gone)), ", ".join(gone[:5]) or "-")
    console.print(table)
    console.print()
    if "evaluate" in project.params.training:
        figures = project.metrics("evaluate")
        console.print(evaluation_table(figures | {"tests": {}} if brief else figures))
        console.print()
    if not brief:
        console.print("Next: data/report/index.html, `corpusforge trace near-copy-0`, `corpusforge inspect data/shard`")
    return 1 if any(missed.values()) else 0


def stage_table(project: Project) -> Table:
    """Rows through every stage, as `dvc metrics` has them, with a check that they add up."""
    columns = ("stage", "in", "kept", "dropped", "adds up", "most frequent reasons")
    table = Table(*columns, title="Rows through the stages", box=None, pad_edge=False, title_justify="left")
    ingest = project.metrics("ingest")
    right = ingest["records"] == ingest["with_rows"] + ingest["quarantined"]
    kept = f"{ingest['with_rows']:,} gave {ingest['rows']:,} rows"
    reasons = _top(ingest["quarantine"])
    table.add_row("ingest", f"{ingest['records']:,} records", kept, f"{ingest['quarantined']:,}", _mark(right), reasons)
    before = ingest["rows"]
    for stage in (*project.table_stages()[1:], "shard"):
        figures = project.metrics(stage)
        right = figures["in"] == before == figures["kept"] + figures["dropped"]
        counts = (f"{figures[key]:,}" for key in ("in", "kept", "dropped"))
        table.add_row(stage, *counts, _mark(right), _top(figures.get("reasons", {})))
        before = figures["kept"]
    return table


def _mark(right: bool) -> str:
    return "yes" if right else "NO"


def _top(reasons: dict[str, int]) -> str:
    most = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))[:2]
    return ", ".join(f"{reason} {count}" for reason, count in most)


def _missed(project: Project, fault: str, facts: list[dict[str, Any]]) -> list[str]:
    """Ids of the planted records of one fault that the build did not deal with."""
    if fault in ("near_copy", "exact_copy", "stuck"):
        gone = _dropped(project, ["dedupe"])
        return [f["id"] for f in facts if not ({f["id"], f["original"]} & gone.keys())]
    if fault == "leak":
        gone = _dropped(project, ["decontaminate"])
        return [f["id"] for f in facts if f["item"] not in gone.get(f["id"], "")]
    if fault == "unhealthy":
        return [f["id"] for f in facts if f["id"] not in _dropped(project, ["health"])]
    if fault == "personal":
        text = _shard_text(project)
        return [f["id"] for f in facts if any(value in text for value in f["values"])]
    in_shards = set(project.rows("blend", ["source"])["source"].combine_chunks().field("record_id").to_pylist())
    gone = _dropped(project, ["ingest", *project.table_stages()[1:]])
    return [f["id"] for f in facts if f["id"] in in_shards or f["id"] not in gone]


def _dropped(project: Project, stages: list[str]) -> dict[str, str]:
    """The user's own id -> detail, for what the stages dropped."""
    tables = pa.concat_tables([project.ledger(stage) for stage in stages])
    lines = tables.filter(pc.is_valid(tables["record_id"]))
    return dict(zip(lines["record_id"].to_pylist(), lines["detail"].to_pylist(), strict=True))


def _shard_text(project: Project) -> str:
    """All values of all shards as text."""
    pieces = []
    for file in sorted(project.data("shard").rglob("*.parquet")):
        pieces += [json.dumps(row, ensure_ascii=False, default=str) for row in pq.read_table(file).to_pylist()]
    return "\n".join(pieces)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
