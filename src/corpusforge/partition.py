"""One partition's way through a stage: what a worker process does, and the counting that lets nothing vanish.

A worker imports this module, the stage, and little else. It reads its own partition and writes its own output; what
travels between processes is a path, a config and figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge import graph
from corpusforge.errors import CountError
from corpusforge.io import parquet
from corpusforge.io.scratch import write_mapped
from corpusforge.io.stored import read_table
from corpusforge.result import LEDGER
from corpusforge.sample import check_schema
from corpusforge.stages._stage import RowWise

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.result import StageResult


@dataclass(frozen=True)
class Job:
    """One partition's work, small enough to hand to another process."""

    stage: str
    config: Any
    inputs: dict[str, Any]
    source: Path
    out: Path  # working folder of the stage
    number: int

    def scratch(self, what: str) -> Path:
        """A file of this partition that the stage removes at its end."""
        return self.out / "scratch" / f"{what}-{self.number:05d}.parquet"


def summarise(job: Job) -> None:
    """First half of a Decided stage: lay the partition's summary beside it."""
    rows = _read_checked(job)
    summary = graph.stage(job.stage).summarise(rows, job.config, job.inputs)
    if summary.num_rows != rows.num_rows:
        raise CountError(f"{job.stage}: {summary.num_rows} summaries for {rows.num_rows} rows")
    write_mapped(summary, job.scratch("summary"))


def apply(job: Job) -> dict[str, Any]:
    """Run the method on one partition, check the counting, write rows and ledgers, return the figures."""
    rows = _read_checked(job)
    stage = graph.stage(job.stage)
    if isinstance(stage, RowWise):
        result = stage.run(rows, job.config, job.inputs)
    else:
        result = stage.apply(rows, pq.read_table(job.scratch("verdicts")), job.config, job.inputs)
    check_counts(job.stage, rows, result)
    check_schema(result.kept, f"output of {job.stage}")
    parquet.write(result.kept, job.out / "rows" / parquet.part_name(job.number))
    pq.write_table(result.dropped.cast(LEDGER), job.scratch("dropped"))
    pq.write_table(result.changes.cast(LEDGER), job.scratch("changes"))
    return {**counts(rows, result), **result.metrics}


def _read_checked(job: Job) -> pa.Table:
    rows = read_table(job.source)
    check_schema(rows, f"input of {job.stage} ({job.source.name})")
    return rows


def check_counts(stage: str, rows: pa.Table, result: StageResult) -> None:
    """Raise CountError unless every row id that came in is in `kept` or in `dropped`, once."""
    after = pa.chunked_array([*result.kept["row_id"].chunks, *result.dropped["row_id"].chunks], pa.string())
    problem = ""
    if len(after) != rows.num_rows:
        problem = f"{rows.num_rows} in, {result.kept.num_rows} kept + {result.dropped.num_rows} dropped"
    elif pc.count_distinct(after).as_py() != rows.num_rows:
        problem = "a row is listed twice"
    elif not (pc.all(pc.is_in(after, rows["row_id"])).as_py() or rows.num_rows == 0):
        problem = "a row came out that did not go in"
    if problem:
        raise CountError(f"{stage}: {problem}", hint="this is a fault of the stage: nothing was written")


def counts(rows: pa.Table, result: StageResult) -> dict[str, Any]:
    """The figures that every stage has: in, kept, dropped, changed, reasons, and the first three per source."""
    names = {"in": pc.struct_field(rows["source"], "name"), "dropped": result.dropped["source"]}
    by_source: dict[str, dict[str, int]] = {}
    for what, values in names.items():
        for item in pc.value_counts(values).to_pylist():
            by_source.setdefault(item["values"], {"in": 0, "kept": 0, "dropped": 0})[what] = item["counts"]
    for figures in by_source.values():
        figures["kept"] = figures["in"] - figures["dropped"]
    return {
        "in": rows.num_rows,
        "kept": result.kept.num_rows,
        "dropped": result.dropped.num_rows,
        "changed": pc.count_distinct(result.changes["row_id"]).as_py(),
        "reasons": dict(sorted(result.reasons().items())),
        "by_source": dict(sorted(by_source.items())),
    }
