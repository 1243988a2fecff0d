"""The row: one Arrow schema from `ingest` to `blend`, and what makes two rows the same.

One record of a source becomes one or more rows. A row has an identity (`row_id`: source, record number, fan-out
number), which the ledger and all counting use, and a content (`content_id`: a 128-bit hash that key order and
Unicode form do not change), which `dedupe` and the releases use. Free-form JSON (tool calls, tool schemas, verifier
specs, unknown fields) stays JSON text, because Arrow structs would give every call the keys of all the others.

    row_id      gsm8k#7          content_id  9f0c…(32 hex digits)      kind  task
    messages    [{role: user, content: "Natalia sold clips …"}]
    verifier    {kind: numeric, spec: {"answer":"72"}}
    source      {name: gsm8k, record: 7, record_id: null, license: MIT, origin: human, …}
"""

from __future__ import annotations

import json
from typing import Any, Final

import pyarrow as pa

from corpusforge.content import canonical_json, content_id
from corpusforge.errors import SchemaError

__all__ = [
    "ADDED",
    "KINDS",
    "MESSAGE",
    "MESSAGES",
    "MESSAGE_FIELDS",
    "ORIGINS",
    "ROLES",
    "SCHEMA",
    "SOURCE",
    "canonical_json",
    "check_schema",
    "content_id",
    "dumps",
    "empty",
    "row_id",
]

KINDS: Final = ("sft", "preference", "task", "rated")
ORIGINS: Final = ("human", "synthetic", "mixed")
ROLES: Final = ("system", "user", "assistant", "tool")

MESSAGE: Final = pa.struct(
    [
        ("role", pa.string()),
        ("content", pa.string()),  # null where the source had none (an assistant turn that only calls tools)
        ("name", pa.string()),
        ("tool_call_id", pa.string()),
        ("reasoning", pa.string()),
        ("parts", pa.string()),  # JSON text: a list of content parts (images, audio); content holds their text
        ("tool_calls", pa.string()),  # JSON text: [{"id"?, "type": "function", "function": {"name", "arguments": {…}}}]
        ("extra", pa.string()),  # JSON text: an object with the message fields that the schema does not know
    ]
)
MESSAGES: Final = pa.list_(MESSAGE)
SOURCE: Final = pa.struct(
    [
        ("name", pa.string()),
        ("uri", pa.string()),  # as declared, never with credentials
        ("revision", pa.string()),
        ("record", pa.int64()),  # 1-based position in the source
        ("record_id", pa.string()),  # the user's own id
        ("license", pa.string()),  # SPDX expression, LicenseRef-…, or "unknown"
        ("restrictions", pa.list_(pa.string())),  # no-train, non-commercial, share-alike, provider-terms, …
        ("origin", pa.string()),
        ("generator", pa.string()),
        ("parents", pa.list_(pa.string())),  # row ids
        ("depth", pa.int32()),  # generations away from a human text
        ("created", pa.string()),
    ]
)
SCHEMA: Final = pa.schema(
    [
        ("row_id", pa.string()),
        ("content_id", pa.string()),
        ("kind", pa.string()),
        ("messages", MESSAGES),
        ("chosen", MESSAGES),
        ("rejected", MESSAGES),
        ("rating", pa.struct([("value", pa.float64()), ("scale", pa.string()), ("by", pa.string())])),
        ("tools", pa.string()),
        ("verifier", pa.struct([("kind", pa.string()), ("spec", pa.string())])),
        ("images", pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))),
        ("source", SOURCE),
        ("domain", pa.string()),
        ("language", pa.string()),
        ("cluster", pa.string()),
        ("extra", pa.string()),
    ]
)
# Columns that stages add behind the schema, in the order of the graph.
ADDED: Final = {
    "provenance": pa.string(),  # dedupe: JSON text, who stated which terms for it; null where nothing went for the row
    "pii": pa.map_(pa.string(), pa.int32()),  # scrub: entity -> findings replaced in the row
    "difficulty": pa.struct([("value", pa.float64()), ("method", pa.string())]),  # grade: 0 easy to 1 hard
    "tokens": pa.int32(),  # grade: length by the counter that params name
    "contamination": pa.float64(),  # decontaminate: highest coverage of any benchmark item, 0 to 1
    "split": pa.string(),  # blend: train or heldout
    "copies": pa.int32(),  # blend: how often shard writes the row
}

MESSAGE_FIELDS: Final = tuple(field.name for field in MESSAGE)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def dumps(value: Any) -> str:
    """JSON text as rows store it: compact, the source's key order, no escapes beyond what JSON needs."""
    return _ENCODER.encode(value)  # `json.dumps` would make an encoder each time


def row_id(source: str, record: int, fan: int = 0) -> str:
    """`source#record`, and `source#record.fan` from the second row of a record on."""
    return f"{source}#{record}.{fan}" if fan else f"{source}#{record}"


def empty(schema: pa.Schema = SCHEMA) -> pa.Table:
    """A table without rows."""
    return schema.empty_table()


def check_schema(table: pa.Table, where: str) -> None:
    """Raise SchemaError unless `table` has every column of the row format with its type, and known added columns."""
    for field in SCHEMA:
        if field.name not in table.column_names:
            raise SchemaError(
                f"{where}: column {field.name!r} is missing",
                hint="`cf.read` makes rows of other data; schemas/sample.schema.json describes them",
            )
        found = table.schema.field(field.name).type
        if found != field.type:
            raise SchemaError(f"{where}: column {field.name!r} has type {found}, expected {field.type}")
    for name, kind in ADDED.items():
        if name in table.column_names and table.schema.field(name).type != kind:
            found = table.schema.field(name).type
            raise SchemaError(f"{where}: column {name!r} has type {found}, expected {kind}")
    unknown = set(table.column_names) - set(SCHEMA.names) - set(ADDED)
    if unknown:
        raise SchemaError(f"{where}: unknown columns {sorted(unknown)}", hint="unknown fields belong in `extra`")
