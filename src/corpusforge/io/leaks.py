"""What may be left in scrubbed rows: a fixed sample of a project's rows, searched again at the lowest thresholds.

The sample is the rows with the smallest content ids: a hash, so it is as good as random, and the same for the same
build. Counts leave this module, and no value.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import sample
from corpusforge.evaluate.statistics import wilson
from corpusforge.io import parquet
from corpusforge.io.stored import reading
from corpusforge.pii import lowest
from corpusforge.stages.scrub import scan

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project


def estimate(project: Project, rows: int) -> dict[str, Any]:
    """Look again at `rows` of the rows that scrub kept; 0 looks at none.

    `entities` has, for each, findings at the lowest threshold, rows with one, and the 95 % interval (Wilson) of their
    share; `by_rules` are those that scrub itself would still replace, which should be none. Raises ProjectError for
    parts that cannot be read.
    """
    parts = project.parts("scrub")
    with reading(project.figures_path("scrub").parent):
        total, table = _sampled(parts, rows)
    if not table.num_rows:
        return {"rows": total, "sampled": 0, "entities": {}, "by_rules": {}}
    config = project.params.scrub
    found = lowest.of_rows(table.to_pylist(), named=config.names != "off")
    every = sum(found, Counter[str]())
    holding = Counter(entity for one in found for entity in one)
    left = Counter(
        line["entity"]
        for line in scan(table, config).to_pylist()
        if line["action"] in ("stand_in", "tag", "drop") and not line["field"].startswith("verifier")
    )
    entities = {name: _line(every[name], holding[name], len(found)) for name in sorted(every)}
    return {"rows": total, "sampled": len(found), "entities": entities, "by_rules": dict(sorted(left.items()))}


def _line(findings: int, rows: int, of: int) -> dict[str, Any]:
    low, high = wilson(rows, of)
    return {"findings": findings, "rows": rows, "low": round(low, 6), "high": round(high, 6)}


def _sampled(parts: list[Path], rows: int) -> tuple[int, pa.Table]:
    """The number of all rows, and the sample."""
    total = sum(pq.ParquetFile(part).metadata.num_rows for part in parts)
    positions = _sample(parts, rows)
    if not len(positions):
        return total, sample.empty()
    return total, parquet.Gather(parts)(positions, pq.read_schema(parts[0]).names)


def _sample(parts: list[Path], rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Positions of the rows with the smallest content ids, in order."""
    best: list[tuple[str, int]] = []
    start = 0
    for part in parts:
        ids = pq.read_table(part, columns=["content_id"])["content_id"].to_pylist()
        best = heapq.nsmallest(rows, [*best, *((one, start + n) for n, one in enumerate(ids))])
        start += len(ids)
    return np.array(sorted(position for _, position in best), np.int64)
