"""What makes two rows the same, and what does not."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import SchemaError
from corpusforge.sample import (
    ADDED,
    MESSAGE_FIELDS,
    SCHEMA,
    canonical_json,
    check_schema,
    content_id,
    dumps,
    empty,
    row_id,
)

# Characters that exist in UTF-8: lone surrogates have a test of their own.
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=4)


def message(**fields):
    """A message struct as Arrow gives it: every field, null where nothing is said."""
    return dict.fromkeys(MESSAGE_FIELDS) | {"role": "user"} | fields


def row(**fields):
    """A row dict as Arrow gives it."""
    return dict.fromkeys(SCHEMA.names) | {"kind": "sft", "messages": [message(content="2 + 2?")]} | fields


def reversed_keys(value):
    """The same JSON value with every object's keys in the other order."""
    if isinstance(value, dict):
        return {key: reversed_keys(value[key]) for key in reversed(value)}
    return [reversed_keys(item) for item in value] if isinstance(value, list) else value


# Fixed vectors: these change only with a changelog entry under "Changes to output".
VECTORS = {
    "question": (row(), "dcd85c90bae0deed5d1dd24c9f5f9542"),
    "task": (row(kind="task", verifier={"kind": "n", "spec": '{"answer":"4"}'}), "466e5ef3bd10ef1d85edaeff50e00ae9"),
    "empty": (row(messages=None), "507846696c4663e1e9e8bd4af908eedb"),
    "call": (row(messages=[message(tool_calls='[{"type":"function"}]')]), "930c2959f7f9d372e0210085422c78d7"),
}


@pytest.mark.parametrize("name", VECTORS)
def test_content_id_of_fixed_rows(name):
    given_row, expected = VECTORS[name]
    assert content_id(given_row) == expected


def test_content_id_is_blake2b_of_the_canonical_text():
    text = '{"kind":"sft","messages":[{"content":"2 + 2?","role":"user"}]}'
    assert content_id(row()) == hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def test_content_id_does_not_depend_on_the_hash_seed():
    code = "from corpusforge.sample import content_id as c; print(c({'kind': 'sft', 'tools': '{\"b\":1,\"a\":[2]}'}))"
    runs = [
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert len(runs[0].strip()) == 32
    assert runs[0] == runs[1]


@given(OBJECT)
def test_key_order_of_json_fields_does_not_count(value):
    one, other = dumps(value), dumps(reversed_keys(value))
    assert content_id(row(tools=one)) == content_id(row(tools=other))
    assert content_id(row(messages=[message(extra=one)])) == content_id(row(messages=[message(extra=other)]))


@given(OBJECT)
def test_stored_json_reads_back_in_the_order_of_the_source(value):
    back = json.loads(dumps(value))
    assert back == value
    assert list(back) == list(value)


@given(TEXT)
def test_unicode_form_does_not_count(text):
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    assert len({content_id(row(messages=[message(content=form)])) for form in forms}) == 1


@given(TEXT, TEXT)
def test_different_text_is_different_content(one, other):
    same = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", other)
    ids = {content_id(row(messages=[message(content=text)])) for text in (one, other)}
    assert len(ids) == (1 if same else 2)


def test_unicode_form_of_a_key_does_not_count():
    """NFD of é sorts before f, NFC of é after it: keys are ordered after they are normalised."""
    forms = [unicodedata.normalize(form, '{"é":1,"f":2}') for form in ("NFC", "NFD")]
    assert forms[0] != forms[1]
    assert content_id(row(tools=forms[0])) == content_id(row(tools=forms[1]))


def test_null_and_absent_are_the_same():
    assert content_id({"kind": "sft", "messages": [{"role": "user", "content": "2 + 2?"}]}) == content_id(row())


@pytest.mark.parametrize("field", ["row_id", "domain", "language", "cluster", "extra"])
def test_where_a_row_came_from_does_not_count(field):
    assert content_id(row(**{field: "something"})) == content_id(row())


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "rated"},
        {"chosen": [message(role="assistant", content="4")]},
        {"rejected": [message(role="assistant", content="5")]},
        {"rating": {"value": 1.0, "scale": None, "by": None}},
        {"verifier": {"kind": "numeric", "spec": '{"answer":"4"}'}},
        {"tools": "[]"},
        {"images": [{"bytes": b"1", "path": None}]},
    ],
)
def test_what_a_row_says_counts(change):
    assert content_id(row(**change)) != content_id(row())


def test_a_lone_surrogate_has_an_id():
    assert len(content_id(row(messages=[message(content="\ud83d")]))) == 32


def test_a_value_that_json_lacks_is_refused():
    with pytest.raises(ValueError, match="JSON"):
        canonical_json({"score": float("nan")})


@given(st.integers(1, 10**9), st.integers(0, 99), st.integers(1, 10**9), st.integers(0, 99))
def test_row_ids_of_one_source_differ(record, fan, other, other_fan):
    assert (row_id("gsm8k", record, fan) == row_id("gsm8k", other, other_fan)) == ((record, fan) == (other, other_fan))


def test_schema_accepts_its_own_table_and_added_columns():
    table = empty()
    for name, kind in ADDED.items():
        table = table.append_column(name, pa.array([], kind))
    check_schema(table, "here")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda t: t.drop_columns(["kind"]), "'kind' is missing"),
        (lambda t: t.set_column(0, "row_id", pa.array([], pa.int64())), "'row_id' has type int64, expected string"),
        (lambda t: t.append_column("tokens", pa.array([], pa.string())), "'tokens' has type string, expected int32"),
        (lambda t: t.append_column("score", pa.array([], pa.string())), r"unknown columns \['score'\]"),
    ],
)
def test_schema_fault_names_column_and_place(spoil, message):
    with pytest.raises(SchemaError, match=f"here.*{message}"):
        check_schema(spoil(empty()), "here")
