"""JSON is read exactly, or refused with a reason."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text.jsontext import JsonFault, parse, parse_record, parse_text, remnant

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)


@given(VALUES, st.booleans())
def test_reads_what_json_writes(value: object, ascii_only: bool) -> None:
    """Integers of any size, floats and texts come back equal, keys and all."""
    assert parse_record(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a": NaN}', "nan_or_infinity"),
        (b'{"a": -Infinity}', "nan_or_infinity"),
        (b'{"a": 1e400}', "number_out_of_range"),
        (b'{"a": "\\ud83e"}', "invalid_unicode"),
        (b'{"a": "\xff"}', "invalid_unicode"),
        (b'{"a": 1}{"b": 2}', "concatenated_objects"),
        (b'{"a": 1} rest', "broken_json"),
        (b'{"a": "x', "broken_json"),
        (b'{"a": "x\x00"}', "broken_json"),
        (b"[" * 20_000, "nested_too_deeply"),
        (b"[" * 201 + b"]" * 201, "nested_too_deeply"),
        (b'{"a": 1, "a": 2}', "duplicate_key"),
        (b'{"m": [{"a": 1, "\\u0061" : 2}]}', "duplicate_key"),
    ],
)
def test_refuses_with_a_reason(data: bytes, reason: str) -> None:
    """What cannot be held exactly is refused, and the code says why."""
    with pytest.raises(JsonFault) as caught:
        parse_record(data)
    assert caught.value.reason == reason


def test_a_text_that_only_looks_like_a_twin_key_is_fine() -> None:
    """Colons and quotes inside texts are no keys."""
    assert parse_record(b'{"a": "\\"b\\":1, \\"b\\":2", "c" : 1}') == {"a": '"b":1, "b":2', "c": 1}


def test_half_a_surrogate_in_a_string_is_refused() -> None:
    """A str with half a pair cannot become bytes."""
    with pytest.raises(JsonFault, match="invalid_unicode"):
        parse_text('"\ud83e"')


def test_whole_pairs_are_one_character() -> None:
    """Escaped pairs are the character that they mean."""
    assert parse(b'"\\ud83e\\udd94"') == "\U0001f994"


@pytest.mark.parametrize(
    ("data", "left"),
    [
        (b'{"id": "a", "x": "\\ud83e"}', {"id": "a", "x": "\ud83e"}),
        (b'{"id": "a", "x": "\xff"}', {"id": "a", "x": "\udcff"}),
        (b'{"id": "a", "x": 1e400}', {"id": "a", "x": float("inf")}),
        (b'{"id": "a", "x": 1, "x": 2}', {"id": "a"}),
        (b'{"id": "a", "te', None),
        (b'{"id": "a"}{"id": "b"}', None),
        (b"[" * 200_000, None),
    ],
    ids=range(7),
)
def test_what_can_be_read_of_what_is_refused(data: bytes, left: object) -> None:
    """Enough to say which record it was; nothing of a key that has two values."""
    assert remnant(data) == left
