"""Small tables of rows for tests, in the row format."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from corpusforge.sample import MESSAGE_FIELDS, SCHEMA, content_id, row_id


def message(role: str, content: str | None, **more: Any) -> dict[str, Any]:
    """A message with every field of the schema."""
    return {**dict.fromkeys(MESSAGE_FIELDS), "role": role, "content": content, **more}


def row(record: int, *turns: str, source: str = "test", **more: Any) -> dict[str, Any]:
    """An sft row whose turns alternate between user and assistant; `more` overrides top-level fields."""
    roles = ("user", "assistant")
    origin = more.pop("origin", "human")
    restrictions = more.pop("restrictions", [])
    values = {
        **dict.fromkeys(SCHEMA.names),
        "row_id": row_id(source, record),
        "kind": "sft",
        "messages": [message(roles[i % 2], turn) for i, turn in enumerate(turns)],
        "source": {
            "name": source,
            "uri": f"{source}.jsonl",
            "revision": "r1",
            "record": record,
            "record_id": more.pop("record_id", f"own-{record}"),
            "license": more.pop("license", "MIT"),
            "restrictions": restrictions,
            "origin": origin,
            "generator": None,
            "parents": more.pop("parents", []),
            "depth": 0,
            "created": None,
        },
        "language": "en",
        "domain": "chat",
        **more,
    }
    values["content_id"] = content_id(values)
    return values


def table(rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as a table of the schema."""
    return pa.Table.from_pylist(rows, schema=SCHEMA)
