"""JSON Schemas of what a project's files hold, written from the models that check them.

    params.schema.json     params.yaml, from config.Params (editors complete and check with it)
    sample.schema.json     a row between stages, from the Arrow schema in sample.py
    ledger.schema.json     a line of dropped.parquet and changes.parquet, from the Arrow schema in result.py
    manifest.schema.json   manifest.json beside the shards, from io.manifest.Manifest

`python -m corpusforge.schemas schemas` writes the folder, `--check` says whether it is up to date. The pages are for
people and for other tools; the models themselves stay the judge.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from corpusforge.config import Params
from corpusforge.io import atomic
from corpusforge.io.manifest import Manifest
from corpusforge.result import LEDGER
from corpusforge.sample import ADDED, KINDS, ORIGINS, ROLES, SCHEMA

_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"

COLUMNS: Final = {
    "row_id": "identity: source#record, and .number from the second row of a record on; unique, never changes",
    "content_id": "128-bit BLAKE2b of the canonical content (32 hex digits); key order and Unicode form do not count",
    "kind": "what the row can train: sft, preference, task (has a verifier) or rated",
    "messages": "the conversation; for the other kinds, the prompt",
    "chosen": "preference rows: the better answer",
    "rejected": "preference rows: the worse answer",
    "rating": "rated rows: the value, its scale, and by whom",
    "tools": "tool schemas, JSON text",
    "verifier": "task rows: how an answer is checked; spec is JSON text",
    "images": "images as `datasets` stores them",
    "source": "where the row came from, under which licence, and what it was made from",
    "domain": "subject, such as maths, code or chat",
    "language": "ISO 639-1 code, or null where no language could be told",
    "cluster": "group of near duplicates and equal prompts; held-out splits never cut through one",
    "extra": "every field of the record that the row format does not know, JSON text",
    "provenance": "dedupe: JSON text, who stated which terms for the row and what went for it; null where nothing went",
    "pii": "scrub: how many findings of each entity were replaced in the row",
    "difficulty": "grade: 0 easy to 1 hard, and how it was measured; a null value was not measurable",
    "tokens": "grade: length, by the counter that params name",
    "contamination": "decontaminate: highest coverage of any benchmark item, 0 to 1",
    "split": "blend: train or heldout",
    "copies": "blend: how often shard writes the row",
}
LINES: Final = {
    "row_id": "the row that was dropped, changed or noted",
    "record_id": "the user's own id of its record, where the source has one",
    "source": "name of its source",
    "stage": "stage that wrote the line",
    "reason": "snake_case code; docs/stages/<stage>.md lists them",
    "detail": "facts behind the reason as JSON text: ids, spans, counts and similarities, never the row's text",
}
_ENUMS: Final = {"kind": KINDS, "origin": ORIGINS, "role": ROLES}


def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its file name."""
    columns = {**{field.name: field.type for field in SCHEMA}, **ADDED}
    lines = {field.name: field.type for field in LEDGER}
    return {
        "params.schema.json": {"$schema": _DRAFT, **Params.model_json_schema()},
        "sample.schema.json": _table("CorpusForge row", columns, COLUMNS, required=SCHEMA.names),
        "ledger.schema.json": _table("CorpusForge ledger line", lines, LINES, required=LEDGER.names),
        "manifest.schema.json": {"$schema": _DRAFT, **Manifest.model_json_schema()},
    }


def _table(title: str, types: dict[str, Any], says: dict[str, str], required: list[str]) -> dict[str, Any]:
    """The schema of one row of a table, as `Table.to_pylist` gives it."""
    properties = {name: {"description": says[name], **_value(kind, name)} for name, kind in types.items()}
    return {
        "$schema": _DRAFT,
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _value(kind: pa.DataType, name: str) -> dict[str, Any]:
    """JSON Schema of an Arrow type; every value may be null, as in Arrow."""
    if name in _ENUMS:
        return {"enum": [*_ENUMS[name], None]}
    if pa.types.is_map(kind):
        # as pyarrow gives a map: a list of pairs
        pair = {"type": "array", "prefixItems": [_value(kind.key_type, ""), _value(kind.item_type, "")]}
        return {"type": ["array", "null"], "items": pair}
    if pa.types.is_list(kind):
        return {"type": ["array", "null"], "items": _value(kind.value_type, "")}
    if pa.types.is_struct(kind):
        fields = {field.name: _value(field.type, field.name) for field in kind}
        return {"type": ["object", "null"], "properties": fields, "additionalProperties": False}
    return {"type": [_scalar(kind), "null"]}


def _scalar(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "number"
    return "string"


def texts() -> dict[str, str]:
    """Every schema file's text by its name."""
    return {name: json.dumps(schema, indent=2, ensure_ascii=False) + "\n" for name, schema in schemas().items()}


def stale(folder: Path) -> list[str]:
    """Names of the schema files in `folder` that are missing or do not follow the models."""
    current = texts()
    return [
        name
        for name, text in current.items()
        if not (folder / name).is_file() or (folder / name).read_text(encoding="utf-8") != text
    ]


def write(folder: Path) -> list[str]:
    """Bring the schema files in `folder` up to date; returns the names of those that changed."""
    changed = stale(folder)
    current = texts()
    for name in changed:
        atomic.write_text(folder / name, current[name])
    return changed


def main(arguments: list[str]) -> int:
    """`FOLDER` writes, `FOLDER --check` exits 1 when something is out of date."""
    folder = Path(next((a for a in arguments if not a.startswith("-")), "schemas"))
    if "--check" in arguments:
        names = stale(folder)
        sys.stderr.writelines(f"{folder / name} does not follow the models: run `make schemas`\n" for name in names)
        return 1 if names else 0
    sys.stdout.writelines(f"{folder / name} written\n" for name in write(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
