"""schemas/ follows the models, and what it says is true of real values."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from corpusforge import schemas
from corpusforge.sample import ADDED, MESSAGE_FIELDS, SCHEMA

ROOT = Path(__file__).resolve().parent.parent


def test_the_files_follow_the_models():
    assert schemas.stale(ROOT / "schemas") == [], "run `make schemas`"


def test_no_file_is_left_over():
    assert {path.name for path in (ROOT / "schemas").iterdir()} == set(schemas.texts())


@pytest.mark.parametrize("name", sorted(schemas.texts()))
def test_every_schema_is_a_schema(name):
    Draft202012Validator.check_schema(json.loads((ROOT / "schemas" / name).read_text(encoding="utf-8")))


def test_every_column_is_described():
    assert set(schemas.COLUMNS) == set(SCHEMA.names) | set(ADDED)


def test_every_parameter_is_described():
    """By its own words, or by those of the model that it holds."""
    models = schemas.schemas()["params.schema.json"]["$defs"]
    held = {f"#/$defs/{model}": says.get("description") for model, says in models.items()}
    silent = [
        f"{model}.{field}"
        for model, says in models.items()
        for field, about in says.get("properties", {}).items()
        if not (about.get("description") or held.get(about.get("$ref")))
    ]
    assert silent == []


def row(**fields):
    """A row with every column, as Arrow gives it back."""
    message = dict.fromkeys(MESSAGE_FIELDS) | {"role": "user", "content": "2 + 2?"}
    source = {"name": "s", "record": 1, "origin": "human", "restrictions": ["no-train"], "parents": []}
    values = {"row_id": "s#1", "kind": "sft", "messages": [message], "source": source, "pii": [("email", 2)], **fields}
    schema = pa.schema([*SCHEMA, *(pa.field(name, kind) for name, kind in ADDED.items())])
    return pa.Table.from_pylist([dict.fromkeys(schema.names) | values], schema=schema).to_pylist()[0]


def test_a_row_is_valid():
    faults = Draft202012Validator(schemas.schemas()["sample.schema.json"]).iter_errors(json.loads(json.dumps(row())))
    assert [fault.message for fault in faults] == []


@pytest.mark.parametrize("fault", [{"kind": "chat"}, {"surprise": 1}, {"tokens": "many"}, {"messages": "hello"}])
def test_a_faulty_row_is_not(fault):
    assert not Draft202012Validator(schemas.schemas()["sample.schema.json"]).is_valid(
        json.loads(json.dumps(row() | fault))
    )


def test_check_says_what_is_stale(tmp_path, capsys):
    schemas.write(tmp_path)
    assert schemas.main([str(tmp_path), "--check"]) == 0
    (tmp_path / "ledger.schema.json").write_text("{}")
    assert schemas.main([str(tmp_path), "--check"]) == 1
    assert "ledger.schema.json does not follow the models" in capsys.readouterr().err
    assert schemas.write(tmp_path) == ["ledger.schema.json"]
