"""What scrub changes where nothing personal should be: each changed row, and whether code still runs.

A reference solution is put into a row as what an assistant said, so that it is searched like any other text; what comes
out is run against the tests as they were published.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from _scrub_texts import HARM, rows_of

from corpusforge.stages.scrub import scan, scrub
from corpusforge.verify import verify_many

if TYPE_CHECKING:
    from pathlib import Path


def changed(data: Path, name: str, names: str) -> tuple[int, dict[str, list[tuple[str, str, str]]]]:
    """Rows, and per changed row its findings that are replaced: field, entity, recogniser."""
    rows = rows_of(data, name)
    result = scrub(rows, key="public-demo", names=names)
    touched = {line["row_id"] for line in [*result.changes.to_pylist(), *result.dropped.to_pylist()]}
    found: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for one in scan(rows, names=names).to_pylist():
        if one["row_id"] in touched and one["action"] != "keep":
            found[one["row_id"]].append((one["field"], one["entity"], one["recogniser"]))
    return rows.num_rows, {row_id: found[row_id] for row_id in sorted(touched)}


def told(data: Path, names: str, real: frozenset[str]) -> tuple[str, bool]:
    """All changed rows, and whether those that hold nothing personal are at most one in a thousand."""
    lines, total, wrong = [], 0, 0
    for name in HARM:
        rows, found = changed(data, name, names)
        total += rows
        wrong += sum(row_id not in real for row_id in found)
        lines.append(f"{name:12} {rows:6,} rows, {len(found)} changed")
        for row_id, what in found.items():
            mark = "personal in form" if row_id in real else "NOT PERSONAL"
            lines.append(f"    {row_id:36} {mark:18} " + "; ".join(" ".join(one) for one in what))
    lines.append(f"not personal: {wrong} of {total:,} rows ({100 * wrong / total:.3f} %, at most 0.1 %)")
    return "\n".join(lines), wrong <= total / 1000


def references(data: Path, name: str, names: str) -> tuple[int, int, int]:
    """References, how many came out changed, and how many pass their tests afterwards."""
    rows = rows_of(data, name).to_pylist()
    asked = [(row["verifier"], _reference(row)) for row in rows]
    for row, (_, code) in zip(rows, asked, strict=True):
        said = {**dict.fromkeys(row["messages"][0]), "role": "assistant", "content": code}
        row["messages"] = [*row["messages"], said]
    table = pa.Table.from_pylist(rows, schema=rows_of(data, name).schema)
    kept = {row["row_id"]: row for row in scrub(table, key="public-demo", names=names).kept.to_pylist()}
    codes = [kept[row["row_id"]]["messages"][-1]["content"] if row["row_id"] in kept else "" for row in rows]
    verdicts = verify_many([{"verifier": verifier} for verifier, _ in asked], codes)
    altered = sum(code != before for code, (_, before) in zip(codes, asked, strict=True))
    return len(rows), altered, sum(one.outcome == "pass" for one in verdicts)


def _reference(row: dict[str, Any]) -> str:
    """The published solution; one without a fence is code as it is."""
    return json.loads(row["verifier"]["spec"])["reference"]
