"""What scrub changes where nothing personal should be: each changed row, and whether code still runs.

A reference solution is put into a row as what an assistant said, so that it is searched like any other text; what comes
out is run against the tests as they were published.

With names, most changed rows hold a name: word problems are about people, who are made up, which no rule can tell from
the text. So rows are sorted by a rule: a name counts as one by its form when no word of it is written in small
letters anywhere in the five sets. Places and organisations are nobody's personal data by themselves.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from _scrub_texts import HARM, rows_of

from corpusforge.pii import leaves
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


SORTS = ("personal in form", "a name by its form", "places and organisations", "no name by its form", "something else")
_WORD = re.compile(r"[^\W\d_][^\W_]*")


def named(data: Path, most: int, real: frozenset[str]) -> str:
    """A table: per set, rows changed with names on, and how many of each sort; at most `most` rows of each set."""
    sets = {name: rows_of(data, name).slice(0, most) for name in HARM}
    small = {word for rows in sets.values() for word in _in_small_letters(rows)}
    lines = [f"{'names: spacy':14}{'rows':>7}{'changed':>9}{'share':>8}  " + "  ".join(SORTS)]
    for name, rows in sets.items():
        sorts = _sorted(rows, small, real)
        changed_rows = sum(sorts.values())
        cells = "  ".join(f"{sorts[sort]:>{len(sort)},}" for sort in SORTS)
        lines.append(f"{name:14}{rows.num_rows:7,}{changed_rows:9,}{changed_rows / rows.num_rows:8.1%}  {cells}")
    return "\n".join(lines)


def _in_small_letters(rows: pa.Table) -> set[str]:
    texts = (leaf.text for row in rows.to_pylist() for leaf in leaves.leaves(row))
    return {word for text in texts for word in _WORD.findall(text) if word.islower()}


def _sorted(rows: pa.Table, small: set[str], real: frozenset[str]) -> Counter[str]:
    """Changed rows per sort, the first of SORTS that holds."""
    result = scrub(rows, key="public-demo", names="spacy")
    touched = {line["row_id"] for line in [*result.changes.to_pylist(), *result.dropped.to_pylist()]}
    some = rows.filter(pc.is_in(rows["row_id"], value_set=pa.array(sorted(touched), pa.string())))
    texts = {row["row_id"]: {leaf.path: leaf.text for leaf in leaves.leaves(row)} for row in some.to_pylist()}
    found: dict[str, set[str]] = {row_id: set() for row_id in touched}
    for one in scan(some, names="spacy").to_pylist():
        if one["action"] != "keep":
            value = texts[one["row_id"]].get(one["field"], "")[one["start"] : one["end"]]
            is_name = one["entity"] == "PERSON" and not any(w.lower() in small for w in _WORD.findall(value))
            found[one["row_id"]].add("name" if is_name else one["entity"])
    return Counter(_sort(row_id in real, what) for row_id, what in found.items())


def _sort(is_real: bool, what: set[str]) -> str:
    if is_real:
        return SORTS[0]
    if "name" in what:
        return SORTS[1]
    if what and what <= {"LOCATION", "ORGANIZATION"}:
        return SORTS[2]
    return SORTS[3] if "PERSON" in what else SORTS[4]


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
