"""One content in every format and packing gives the same records, whatever the file is called."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.io.readers.packing import PACKERS, TABLES

from corpusforge.errors import SourceError
from corpusforge.io.readers import read_file, sniff

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    {"id": "a", "text": 'one\r\ntwo\rthree\u2028four\x85 "five", six;\tseven'},
    {"id": "null", "text": "NaN"},
    {"id": "NA", "text": ""},
    {"id": "007", "text": "nul \x00 🦔 ﻿inside"},
]


def comma(rows: list[dict[str, str]], **options: Any) -> bytes:
    """The rows as CSV."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]), **options)
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


FORMS = {
    "jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "jsonl_utf8": "\r\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode(),
    "jsonl_bom": b"\xef\xbb\xbf" + "\n\n".join(json.dumps(row) for row in ROWS).encode(),
    "array": json.dumps(ROWS).encode(),
    "array_pretty": json.dumps(ROWS, indent=4, ensure_ascii=False).encode(),
    "objects_pretty": "\n".join(json.dumps(row, indent=1) for row in ROWS).encode(),
    "csv": comma(ROWS),
    "csv_bom_lf": b"\xef\xbb\xbf" + comma(ROWS, lineterminator="\n", quoting=csv.QUOTE_ALL),
    "csv_semicolon": comma(ROWS, delimiter=";"),
    "tsv": comma(ROWS, delimiter="\t"),
    **{name: write(pa.Table.from_pylist(ROWS)) for name, write in TABLES.items()},
}
NAMES = {"csv": "a.csv", "tsv": "a.tsv"}


def values(path: Path, **options: Any) -> list[Any]:
    """What the records hold, or why they hold nothing."""
    return [r.value if r.value is not None else r.error for r in read_file(path, path.name, **options)]


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("form", FORMS)
def test_one_content_in_every_form(tmp_path: Path, form: str, pack: str) -> None:
    """Line ends, marks, quotes and packing are of the file, not of the texts."""
    path = tmp_path / NAMES.get(form.partition("_")[0], "a.bin")
    path.write_bytes(PACKERS[pack](FORMS[form]))
    if path.suffix == ".bin" and form.startswith("csv"):
        pytest.skip("a table of text needs a name or a reader")
    assert values(path) == ROWS


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv", "a.parquet", "a.arrow", "a.jsonl.gz"])
@pytest.mark.parametrize("form", ["jsonl", "array_pretty", "objects_pretty", "parquet", "arrow_stream", "feather"])
def test_a_name_that_lies(tmp_path: Path, form: str, name: str) -> None:
    """The first bytes say what a file is."""
    path = tmp_path / name
    path.write_bytes(FORMS[form])
    assert values(path) == ROWS


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.ndjson.gz", "a.tsv"])
def test_a_table_called_json(tmp_path: Path, name: str) -> None:
    """Its first line is no JSON, and its rows have equally many cells."""
    path = tmp_path / name
    path.write_bytes(b"id,text\n1,one\n2,two\n")
    assert values(path) == [{"id": "1", "text": "one"}, {"id": "2", "text": "two"}]


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("a.jsonl", b"", "jsonl"),
        ("a.jsonl", b"\n\n", "jsonl"),
        ("a.jsonl", b'{"a": 1', "jsonl"),
        ("a.json", b'{"a": 1}', "json"),
        ("a.json", b'{"a": 1}\n{"a": 2}', "jsonl"),
        ("a.jsonl", b'{"messages": [\n{"a": 2}\n{"a": 3}\n', "jsonl"),
        ("a.jsonl", b'{"data": [\n{"a": 2},\n{"a": 3}]}\n', "json"),
        ("a.jsonl", b'{"id": "a", "te\n{"id": "b"}\n', "jsonl"),
        ("a.jsonl", b'[{"role": "user"}]\n[{"role": "user"}]\n', "jsonl"),
        ("a.json", b'[{"role": "user"}]\n[{"role": "user"}]\n', "json"),
        ("a.csv", b"[id],{text}\n1,2\n", "csv"),
        ("a.jsonl", b"not json\n{}\n", "jsonl"),
        ("a.jsonl", b'{"text": "' + b"x" * 100_000 + b'"}\n{"a": 1}\n', "jsonl"),
        ("a.jsonl", b'{"id":"g1","text":"half \\ud83e"}\n' + b'{"id":"g2","text":"fine"}\n' * 3, "jsonl"),
        ("a.jsonl", b'{"id":"g1","text":NaN}\n' * 4, "jsonl"),
        ("a.jsonl", b'{"id":"g1","te\n' + b'{"id":"g2","text":"fine"}\n' * 3, "jsonl"),
        ("a.jsonl", b'{"id":"g1","text":"a"}{"id":"g2","text":"b"}\n' * 4, "jsonl"),
        ("a.jsonl", b'oops,{"id"\n' + b'{"id":"g2","text":"fine"}\n' * 3, "jsonl"),
    ],
    ids=range(18),
)
def test_what_it_is(tmp_path: Path, name: str, data: bytes, kind: str) -> None:
    """Also where the first bytes leave a choice."""
    path = tmp_path / name
    path.write_bytes(data)
    assert sniff(path, name) == kind


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"PK\x03\x04\x14\x00\x09\x00\x08\x00", "a zip archive with a password"),
        (b"PK\x03\x04\x14\x00\x00\x00\x08\x00", "is a zip archive"),
        (b"FEA1....", "Feather file of the first version"),
        (b"SQLite format 3\x00....", "reader: sql"),
        (b"\x80\x04\x95.....", "pickles run code"),
        (b"%PDF-1.7", "a PDF document"),
        (b"\x00\x01\x02", "not JSON, CSV, Parquet or Arrow"),
    ],
    ids=["locked zip", "zip", "feather 1", "sqlite", "pickle", "pdf", "noise"],
)
def test_a_file_of_another_kind_says_what_it_is(tmp_path: Path, data: bytes, says: str) -> None:
    """And what to do with it."""
    path = tmp_path / "a.bin"
    path.write_bytes(data)
    with pytest.raises(SourceError, match=says):
        values(path)


def test_integers_floats_and_words_stay(tmp_path: Path) -> None:
    """Beyond 2^53 and 2^64, the smallest and the longest fraction; words that other readers take for nothing."""
    row = {"n": [2**53 + 1, 2**64 + 1, -(10**40)], "x": [5e-324, 0.1, -0.0, 1e300], "w": ["null", "NA", "NaN", ""]}
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(row) + "\n" + json.dumps([row])[1:-1])
    assert list(map(repr, values(path))) == [repr(row)] * 2


def test_keys_first_seen_late_and_mixed_types(tmp_path: Path) -> None:
    """No schema is guessed from the first records, so none is broken by a later one."""
    path = tmp_path / "a.jsonl"
    with path.open("w") as file:
        file.writelines(f'{{"n": {n}}}\n' for n in range(100_000))
        file.write('{"n": "text", "late": {"a": [1, "b", null]}}\n')
    records = list(read_file(path, "a.jsonl"))
    assert records[99_999].value == {"n": 99_999}
    assert records[-1].value == {"n": "text", "late": {"a": [1, "b", None]}}


@pytest.mark.slow
def test_a_record_of_100_megabytes(tmp_path: Path) -> None:
    """As a line and as an element of an array."""
    text = "word \u2028 " * 12_500_000
    data = json.dumps({"text": text}, ensure_ascii=False).encode()
    assert len(data) > 100 << 20
    for name, around in {"a.jsonl": b"%s\n%s\n", "a.json": b"[%s,%s]"}.items():
        path = tmp_path / name
        path.write_bytes(around % (data, b'{"text": "after"}'))
        (large, after) = values(path)
        assert (large["text"] == text, after) == (True, {"text": "after"})
        path.unlink()


CELLS = st.text(st.characters(codec="utf-8"), max_size=8)


@given(
    st.lists(st.tuples(CELLS, CELLS), max_size=5),
    st.sampled_from([",", ";", "\t", "|"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_any_cells_come_back(cells: list[tuple[str, str]], separator: str, ending: str, quoting: int) -> None:
    """Line ends, quotes and separators inside of them too. A row of one empty cell would be a blank line."""
    from corpusforge.io.readers.cells import csv_records

    rows = [{"first name": first, "b": second} for first, second in cells]
    data = comma([*rows, {"first name": "end", "b": "."}], delimiter=separator, lineterminator=ending, quoting=quoting)
    found = csv_records(io.BytesIO(data), "a.csv", "", "csv")
    assert [record.value for record in found][:-1] == rows
