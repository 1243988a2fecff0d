"""JSON files are cut into records as they stream by, and nothing depends on where a chunk ends."""

from __future__ import annotations

import io
import json
import tracemalloc
from typing import IO, TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import SourceError
from corpusforge.io.readers import cutter
from corpusforge.io.readers.arrays import json_records

if TYPE_CHECKING:
    from corpusforge.stages.ingest import Record

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=6,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), max_size=6)


class Drops:
    """A file that gives a few bytes at a time, after the first three."""

    def __init__(self, data: bytes, size: int) -> None:
        self.inner = io.BytesIO(data)
        self.size = size

    def read(self, size: int = -1) -> bytes:
        return self.inner.read(min(size, self.size) if self.inner.tell() else size)


def records(data: bytes, size: int = 1 << 20, field: str | None = None) -> list[Record]:
    """All records of a JSON text, read `size` bytes at a time."""
    file: Any = Drops(data, size)
    return list(json_records(file, "a.json", "", field))


def outcome(data: bytes, size: int = 1 << 20, field: str | None = None) -> list[Any]:
    """What the records hold, or why they hold nothing."""
    return [record.value if record.value is not None else record.error for record in records(data, size, field)]


@given(OBJECTS, st.sampled_from([None, 1]), st.booleans(), st.integers(1, 9))
def test_any_array_comes_back(values: list[Any], indent: int | None, ascii_only: bool, size: int) -> None:
    """Whatever its strings hold, however it is laid out."""
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    expected = json.loads(json.dumps(values))
    assert outcome(data, size) == expected
    wrapped = b'{"skip": [{"data": "]"}], "data": {"rows": ' + data + b'}, "more": "}"}\n'
    assert outcome(wrapped, size, "data.rows") == expected


@given(st.lists(st.dictionaries(st.text(max_size=4), VALUES, min_size=1, max_size=3), min_size=1, max_size=4))
def test_objects_one_after_another(values: list[Any]) -> None:
    """Printed over several lines each, as jq does."""
    texts = [json.dumps(value, indent=2) for value in values]
    found = records("\n".join(texts).encode())
    assert [record.value for record in found] == values
    lines = [1 + sum(text.count("\n") + 1 for text in texts[:number]) for number in range(len(texts))]
    assert [record.line for record in found] == lines


@given(st.binary(max_size=40), st.integers(1, 5), st.data())
def test_no_bytes_stop_the_reader_and_chunks_change_nothing(noise: bytes, size: int, data: Any) -> None:
    """Something thrown into an array is told as a fault or read as what it is."""
    whole = b'[{"a": "x\\"y"}, {"b": [1, {"c": null}]},\n{"d": "e"}]'
    at = data.draw(st.integers(0, len(whole)))
    text = whole[:at] + noise + whole[at + data.draw(st.integers(0, 8)) :]
    found = [(r.position, r.value, r.error, r.line, r.detail) for r in records(text)]
    assert found == [(r.position, r.value, r.error, r.line, r.detail) for r in records(text, size)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'[{"a": 1}, {"a": tru}, {"a": 3}]', [{"a": 1}, "broken_json", {"a": 3}]),
        (b'[{"a": 1}, 7, null, "x", [2], {"a": 3},]', [{"a": 1}, *["not_an_object"] * 4, {"a": 3}]),
        (b'[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
        (b'[{"a": NaN}, {"a": 2}]', ["nan_or_infinity", {"a": 2}]),
        (b'[{"a": [1}, {"a": 2}]', ["broken_json"]),
        (b'[{"a": "open}, {"a": 2}]\n', ["broken_json"]),
        (b'[{"a": "line\nend"}, {"a": 2}]', ["broken_json"]),
        (b'[{"a": 1}, }, {"a": 2}]', [{"a": 1}, "broken_json"]),
        (b'[{"a": 1}', [{"a": 1}, "array_not_closed"]),
        (b"[]", []),
        (b" \n ", []),
        (b"\xef\xbb\xbf[{}]", [{}]),
        (b'{"a": 1}{"b": 2}\n{"c": 3}', ["concatenated_objects", "concatenated_objects", {"c": 3}]),
        (b'{"a": 1} rest', ["concatenated_objects", "broken_json"]),
        (b"7", ["not_an_object"]),
        (b'{"a": 1', ["broken_json"]),
        (b'{"a": "\\ud83e"}\n\n{"b": 1}', ["invalid_unicode", {"b": 1}]),
    ],
)
def test_a_fault_costs_as_little_as_can_be(data: bytes, expected: list[Any]) -> None:
    """Only where the end of an element cannot be told, the rest goes with it, and says so."""
    assert outcome(data) == expected
    assert outcome(data, 1) == expected


def test_a_value_over_many_chunks() -> None:
    """Its length costs no more than reading it once."""
    long = {"text": 'x\\"\n' * 300_000, "more": [{"deep": "y" * 2_000_000}]}
    assert outcome(json.dumps([long, {"a": 1}]).encode(), 1000) == [long, {"a": 1}]


@pytest.mark.parametrize(
    ("data", "field", "says"),
    [
        (b'{"data": [], "rows": 1}', "items", r"no field is called 'items'[\s\S]*fields: data, rows"),
        (b'{"data": {"rows": 1}}', "data.rows", "'data.rows' is no list"),
        (b'{"data": [1]}', "data.rows", "'data' is no object"),
        (b'[{"data": [1]}]', "data", "it is no object"),
    ],
)
def test_a_wrong_field_is_answered(data: bytes, field: str, says: str) -> None:
    """With what there is, as far as it is a name."""
    with pytest.raises(SourceError, match=says):
        outcome(data, field=field)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"rows": [{"a": 1}], "rows": [{"a": 2}]}', [{"a": 1}, "duplicate_key"]),
        (b'{"rows": [{"a": 1}]', [{"a": 1}, "broken_json"]),
        (b'{"rows": [{"a": 1}]} {"rows": []}', [{"a": 1}, "text_after_array"]),
        (b'{"other": {"rows": [{"a": 2}]}, "rows": [{"a": 1}]}', [{"a": 1}]),
    ],
)
def test_what_stands_around_the_list_is_read_too(data: bytes, expected: list[Any]) -> None:
    """A second list of the name, or a file that breaks off behind it, is not passed over."""
    assert outcome(data, field="rows") == expected


class Endless:
    """An array of three thousand records of ten kilobytes, made as it is asked for."""

    def __init__(self) -> None:
        record = b'{"text": "' + b"x" * 10_000 + b'"}'
        self.pieces = iter([b"[" + record, *[b"," + record] * 2_999, b"]"])

    def read(self, _size: int = -1) -> bytes:
        return next(self.pieces, b"")


def test_memory_is_that_of_a_chunk() -> None:
    """30 MB of array pass through a few megabytes."""
    file: IO[bytes] = Endless()  # type: ignore[assignment]
    tracemalloc.start()
    count = sum(1 for record in json_records(file, "a.json", "") if record.error is None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 3000
    assert peak < 8 << 20


def test_a_record_that_is_too_large_costs_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cutter, "LARGEST", 20)
    assert outcome(b'[{"a": 1}, {"a": "' + b"x" * 30 + b'"}, {"a": 2}]', 7) == [{"a": 1}, "record_too_large", {"a": 2}]
