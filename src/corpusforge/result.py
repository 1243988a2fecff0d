"""What a stage returns: the rows it kept, the rows it dropped and why, what it changed, and its figures.

    result.kept       rows, in the order they came
    result.dropped    one line per dropped row: row_id, record_id, source, stage, reason, detail (JSON)
    result.changes    the same columns, for rows that stay: what was edited, repaired or noted
    result.metrics    figures that add up over partitions

A detail never holds a row's text: ids, spans, counts, similarities and rule names only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

LEDGER: Final = pa.schema(
    [
        ("row_id", pa.string()),
        ("record_id", pa.string()),
        ("source", pa.string()),
        ("stage", pa.string()),
        ("reason", pa.string()),
        ("detail", pa.string()),
    ]
)


def ledger(
    rows: pa.Table,
    indices: Sequence[int] | Any,
    stage: str,
    reasons: Sequence[str],
    details: Sequence[Mapping[str, Any]],
) -> pa.Table:
    """Ledger lines for the rows of `rows` at `indices` (ints, any order), one reason code and one detail each."""
    taken = rows.select(["row_id", "source"]).take(pa.array(indices, pa.int64()))
    source = taken["source"].combine_chunks()
    if isinstance(source, pa.ChunkedArray):
        source = (
            pa.concat_arrays(source.chunks) if source.num_chunks else pa.array([], rows.schema.field("source").type)
        )
    return pa.table(
        {
            "row_id": taken["row_id"],
            "record_id": pc.struct_field(source, "record_id"),
            "source": pc.struct_field(source, "name"),
            "stage": pa.repeat(stage, len(taken)),
            "reason": pa.array(reasons, pa.string()),
            "detail": pa.array([json.dumps(d, ensure_ascii=False, sort_keys=True) for d in details], pa.string()),
        },
        schema=LEDGER,
    )


def add_up(metrics: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Sum nested figures key by key; keys come out sorted, so that the order of partitions does not matter."""
    total: dict[str, Any] = {}
    for one in metrics:
        for key, value in one.items():
            if isinstance(value, Mapping):
                total[key] = add_up([total.get(key, {}), value])
            else:
                total[key] = total.get(key, 0) + value
    return dict(sorted(total.items()))


@dataclass(frozen=True)
class Explanation:
    """Why one row is where it is. `status` is `kept`, `changed`, `dropped` or `absent`."""

    row_id: str
    status: str
    stage: str
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.status == "dropped":
            facts = ", ".join(f"{key}={value}" for key, value in self.detail.items())
            return f"{self.row_id}: dropped by {self.stage}, {self.reason}" + (f" ({facts})" if facts else "")
        if self.status == "changed":
            return f"{self.row_id}: kept by {self.stage}, changed ({self.reason})"
        return (
            f"{self.row_id}: {self.status} by {self.stage}"
            if self.status == "kept"
            else f"{self.row_id}: not in this table"
        )


@dataclass(frozen=True)
class StageResult:
    """The outcome of one stage over one table."""

    stage: str
    kept: pa.Table
    dropped: pa.Table = field(default_factory=LEDGER.empty_table)
    changes: pa.Table = field(default_factory=LEDGER.empty_table)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    def explain(self, identifier: str | int) -> Explanation:
        """Tell what happened to a row, by its row id or by the user's own id (a number is taken as its digits)."""
        identifier = str(identifier)
        for table, status in ((self.dropped, "dropped"), (self.changes, "changed")):
            mask = pc.or_kleene(pc.equal(table["row_id"], identifier), pc.equal(table["record_id"], identifier))
            found = table.filter(pc.fill_null(mask, False)).slice(0, 1).to_pylist()
            if found:
                line = found[0]
                return Explanation(line["row_id"], status, self.stage, line["reason"], json.loads(line["detail"]))
        if self.kept.num_rows:
            own = pc.struct_field(self.kept["source"], "record_id")
            mask = pc.fill_null(
                pc.or_kleene(pc.equal(self.kept["row_id"], identifier), pc.equal(own, identifier)), False
            )
            ids = self.kept["row_id"].filter(mask)
            if len(ids):
                return Explanation(ids[0].as_py(), "kept", self.stage)
        return Explanation(identifier, "absent", self.stage)

    def to_polars(self) -> Any:
        """The kept rows as a Polars DataFrame."""
        import polars as pl

        return pl.from_arrow(self.kept)

    def reasons(self) -> dict[str, int]:
        """Dropped rows per reason code, most first."""
        counts = pc.value_counts(self.dropped["reason"]).to_pylist()
        return {c["values"]: c["counts"] for c in sorted(counts, key=lambda c: (-c["counts"], c["values"]))}

    def __repr__(self) -> str:
        total = self.kept.num_rows + self.dropped.num_rows
        why = ", ".join(f"{reason} {count}" for reason, count in self.reasons().items())
        figures = f"{total} in, {self.kept.num_rows} kept, {self.dropped.num_rows} dropped"
        return f"<{self.stage}: {figures}{': ' + why if why else ''}>"

    def _repr_html_(self) -> str:
        total = self.kept.num_rows + self.dropped.num_rows
        lines = "".join(f"<tr><td>{escape(r)}</td><td>{n:,}</td></tr>" for r, n in self.reasons().items())
        figures = f"{total:,} in = {self.kept.num_rows:,} kept + {self.dropped.num_rows:,} dropped"
        return f"<b>{escape(self.stage)}</b>: {figures}<table><tr><th>reason</th><th>rows</th></tr>{lines}</table>"
