"""Files are read as what they are, and a bad line costs only itself."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge.errors import SourceError
from corpusforge.io.readers import read_file, sniff

if TYPE_CHECKING:
    from pathlib import Path

LINES = b'{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n'
TWO = [{"id": "a", "text": "one"}, {"id": "b", "text": "two"}]


def put(folder: Path, name: str, data: bytes) -> Path:
    """A file with these bytes."""
    path = folder / name
    path.write_bytes(data)
    return path


def values(path: Path, **options: Any) -> list[Any]:
    """What the records hold, or why they hold nothing."""
    return [
        record.value if record.value is not None else record.error for record in read_file(path, path.name, **options)
    ]


def zst(data: bytes) -> bytes:
    """Bytes as a zstd file."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress, zst], ids=lambda f: f.__name__)
def test_unpacks_by_content(tmp_path: Path, pack: Any) -> None:
    """Whatever the name says; also of two parts written one after the other."""
    half = LINES.index(b"\n") + 1
    assert values(put(tmp_path, "a.jsonl", pack(LINES))) == TWO
    assert values(put(tmp_path, "b.jsonl", pack(LINES[:half]) + pack(LINES[half:]))) == TWO


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", b"\xef\xbb\xbf" + LINES.replace(b"\n", b"\r\n")),
        ("a.jsonl", b"\n  \n" + LINES + b"\n"),
        ("a.jsonl", LINES.rstrip()),
        ("a.json", LINES),
        ("a.json", json.dumps(TWO, indent=2).encode()),
        ("a.jsonl", json.dumps(TWO).encode()),
        ("a.csv", b"id,text\na,one\nb,two\n"),
        ("a.csv", b"id; text\r\na;one\r\nb;two\r\n".replace(b"; ", b";")),
        ("a.csv", b"id, text\na, one\nb, two\n"),
        ("a.tsv", b"\xef\xbb\xbfid\ttext\na\tone\nb\ttwo\n"),
    ],
)
def test_one_content_in_many_forms(tmp_path: Path, name: str, data: bytes) -> None:
    """Byte order marks, line ends, wrong extensions, separators."""
    assert values(put(tmp_path, name, data)) == TWO


def test_parquet(tmp_path: Path) -> None:
    """Columns become fields; null keys of structs are absent; a missing number is null and counted."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": ["a"], "m": [{"x": 1, "y": None}], "score": [float("nan")]}), path)
    (record,) = read_file(path, "a.parquet")
    assert record.value == {"id": "a", "m": {"x": 1}, "score": None}
    assert record.detail == {"nan_as_null": 1}


def test_a_saved_data_set(tmp_path: Path) -> None:
    """All splits in their order, or one."""
    import datasets

    parts = {name: datasets.Dataset.from_list([{"text": name}]) for name in ("train", "test")}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "d")
    assert values(tmp_path / "d") == [{"text": "train"}, {"text": "test"}]
    assert values(tmp_path / "d", split="test") == [{"text": "test"}]
    with pytest.raises(SourceError, match="has no split 'dev'"):
        values(tmp_path / "d", split="dev")


def test_a_bad_line_costs_only_itself(tmp_path: Path) -> None:
    """Its physical line is named; separators inside texts end no line."""
    data = LINES + b'{"id": "c", "te\n\n[1]\n' + '{"text": "left\u2028right\x85end"}\n'.encode()
    records = list(read_file(put(tmp_path, "a.jsonl", data), "a.jsonl"))
    assert [(r.line, r.error) for r in records] == [
        (1, None),
        (2, None),
        (3, "broken_json"),
        (5, "not_an_object"),
        (6, None),
    ]
    assert records[-1].value == {"text": "left\u2028right\x85end"}


def test_lines_of_an_array(tmp_path: Path) -> None:
    """Each element has the line that it begins on; a bad one costs only itself."""
    data = b'[\n {"text": "a"},\n\n {"text": "\\ud83e"},\n {"text": "a"}, 3\n]'
    records = list(read_file(put(tmp_path, "a.json", data), "a.json"))
    assert [(r.line, r.error) for r in records] == [(2, None), (4, "invalid_unicode"), (5, None), (5, "not_an_object")]


@pytest.mark.parametrize(
    ("data", "reason"), [(b'[{"text": "a"},\n{"te', "broken_json"), (b'[{"text": "a"}', "array_not_closed")]
)
def test_an_array_that_breaks_off(tmp_path: Path, data: bytes, reason: str) -> None:
    """What stands before the break is read, and the break is listed."""
    records = list(read_file(put(tmp_path, "a.json", data), "a.json"))
    assert [r.error for r in records] == [None, reason]
    assert records[1].detail == {"rest_unread": True}


def test_one_object_over_several_lines(tmp_path: Path) -> None:
    """A pretty-printed file is one record."""
    assert values(put(tmp_path, "a.json", json.dumps(TWO[0], indent=2).encode())) == TWO[:1]


def test_csv_keeps_every_cell_as_text(tmp_path: Path) -> None:
    """No number, date or empty cell is made of a text; rows that do not fit are listed."""
    data = b'id,when,text\n007,1e5,"a\n""b"""\n8,2024-02-30\n9,,\xff\n10,,ok\n'
    records = list(read_file(put(tmp_path, "a.csv", data), "a.csv"))
    assert records[0].value == {"id": "007", "when": "1e5", "text": 'a\n"b"'}
    assert [(r.line, r.error) for r in records[1:]] == [
        (4, "wrong_number_of_fields"),
        (5, "invalid_unicode"),
        (6, None),
    ]


def test_a_long_cell(tmp_path: Path) -> None:
    """Longer than the csv module's own limit."""
    assert values(put(tmp_path, "a.csv", b"text\n" + b"x" * 300_000 + b"\n")) == [{"text": "x" * 300_000}]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.jsonl.gz", gzip.compress(LINES, mtime=0)[:-12], "a.jsonl.gz is cut off or damaged"),
        ("a.jsonl.zst", zst(LINES * 50)[:-4], "a.jsonl.zst cannot be read"),
        ("a.jsonl", LINES.decode().encode("utf-16"), "is UTF-16"),
        ("a.bin", b"\x00\x01\x02", "not JSON, CSV, Parquet or Arrow"),
        ("a.csv", b"x,x\n1,2\n", "two columns have one name"),
        ("a.parquet", b"PAR1 and then nothing", "cannot be read"),
    ],
    ids=["gz", "zst", "utf-16", "bin", "csv", "parquet"],
)
def test_a_file_that_is_not_whole_is_no_source(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    """A part of a source is not the source: the file is named and nothing is guessed."""
    with pytest.raises(SourceError, match=says):
        values(put(tmp_path, name, data))


def test_a_missing_file_names_itself(tmp_path: Path) -> None:
    """With the label that the user knows."""
    with pytest.raises(SourceError, match=r"raw/a\.jsonl does not exist"):
        list(read_file(tmp_path / "a.jsonl", "raw/a.jsonl"))


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    """It is JSON Lines without lines."""
    path = put(tmp_path, "a.jsonl", b"")
    assert (sniff(path, "a.jsonl"), values(path)) == ("jsonl", [])


def test_two_files_put_together_lose_nothing_unseen(tmp_path: Path) -> None:
    """What stands behind an array is told."""
    path = put(tmp_path, "a.json", b'[{"text": "one"}]\n[{"text": "two"}]')
    assert values(path) == [{"text": "one"}, "text_after_array"]


@pytest.mark.parametrize("between", [b" ", b"\t", b"\n", b" \t"])
def test_a_key_twice_is_seen_however_it_is_written(tmp_path: Path, between: bytes) -> None:
    path = put(tmp_path, "a.json", b'[{"text": "one", "text"' + between + b': "two"}]')
    assert values(path) == ["duplicate_key"]


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("a.csv", "prompt,completion\n".encode("utf-16-le"), "is UTF-16"),
        ("a.jsonl", LINES.decode().encode("utf-16-be"), "is UTF-16"),
        ("a.jsonl", b"PK\x03\x04 and more", "is a zip archive"),
    ],
)
def test_a_file_of_another_kind_says_what_it_is(tmp_path: Path, name: str, data: bytes, says: str) -> None:
    with pytest.raises(SourceError, match=says):
        values(put(tmp_path, name, data))


def test_a_table_that_begins_like_bzip2(tmp_path: Path) -> None:
    assert values(put(tmp_path, "a.csv", b"BZh,text\n1,2\n")) == [{"BZh": "1", "text": "2"}]


def test_a_value_that_python_cannot_hold_costs_its_row(tmp_path: Path) -> None:
    """Parquet may hold bytes that are no text, and times far outside the calendar."""
    lengths, texts = pa.py_buffer(b"\0\0\0\0\2\0\0\0\3\0\0\0\4\0\0\0"), pa.py_buffer(b"\xff\xfebc")
    text = pa.Array.from_buffers(pa.string(), 3, [None, lengths, texts])
    when = pa.array([0, 2**62, 0], pa.timestamp("ms"))
    pq.write_table(pa.table({"text": text, "when": when}), tmp_path / "a.parquet")
    third = {"text": "c", "when": "1970-01-01T00:00:00"}
    assert values(tmp_path / "a.parquet") == ["invalid_unicode", "value_out_of_range", third]


def test_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    twins = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])
    pq.write_table(twins, tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="two columns have one name"):
        values(tmp_path / "a.parquet")


def test_a_saved_data_set_that_is_not_whole(tmp_path: Path) -> None:
    """It is not called missing: it is there."""
    put(tmp_path, "state.json", b"{}")
    with pytest.raises(SourceError, match="`datasets` cannot load it"):
        values(tmp_path)
