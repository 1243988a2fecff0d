"""The same records give the same rows, content id for content id, whatever form they are stored in; strict or not."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from tests.io.readers.packing import PACKERS, TABLES

from corpusforge.errors import RecordError
from corpusforge.io.ingest import read, read_with_ledger

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CALL = {"type": "function", "function": {"name": "lamp", "arguments": {"room": "attic", "percent": 20}}}
CHATS: list[dict[str, Any]] = [
    {
        "id": f"c{number}",
        "messages": [
            {"role": "user", "content": f"Light {number}, please.\r\nNow\rand \u2028 then \x00."},
            {"role": "assistant", "content": None if number % 2 else f"Yes {number}", "tool_calls": [CALL]},
            {"role": "tool", "content": "null"},
            {"role": "assistant", "content": "NaN"},
        ],
        "tools": [{"type": "function", "function": {"name": "lamp", "description": "NA"}}],
    }
    for number in range(25)
]


def as_lines(records: list[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def as_cells(records: list[dict[str, Any]], **options: Any) -> bytes:
    """Lists and objects as JSON text, as tables of text hold them."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]), **options)
    writer.writeheader()
    for record in records:
        writer.writerow({k: v if isinstance(v, str) else json.dumps(v) for k, v in record.items()})
    return text.getvalue().encode()


FORMS: dict[str, Callable[[list[dict[str, Any]]], bytes]] = {
    "a.jsonl": as_lines,
    "a.json": lambda records: json.dumps(records, indent=2).encode(),
    "objects.json": lambda records: "\n".join(json.dumps(one, indent=1) for one in records).encode(),
    "a.csv": as_cells,
    "a.tsv": lambda records: as_cells(records, delimiter="\t", lineterminator="\n"),
    "a.jsonl.zst": lambda records: PACKERS["zst"](as_lines(records)),
    **{f"{form}.bin": lambda records, form=form: TABLES[form](pa.Table.from_pylist(records)) for form in TABLES},
}


@pytest.fixture
def expected(tmp_path: Path) -> list[str]:
    (tmp_path / "expected.jsonl").write_bytes(as_lines(CHATS))
    found = contents(tmp_path, "expected.jsonl")
    assert len(set(found)) == 25
    return found


def contents(root: Path, path: str | list[str], **source: Any) -> list[str]:
    """Content ids of a source's rows."""
    return list(read(path, name="s", root=root, detect_language=False, **source)["content_id"].to_pylist())


@pytest.mark.parametrize("name", FORMS)
def test_files(tmp_path: Path, expected: list[str], name: str) -> None:
    (tmp_path / name).write_bytes(FORMS[name](CHATS))
    assert contents(tmp_path, name) == expected


def test_a_saved_data_set_and_a_query(tmp_path: Path, expected: list[str]) -> None:
    import datasets

    datasets.Dataset.from_list(CHATS).save_to_disk(tmp_path / "saved")
    assert contents(tmp_path, "saved") == expected
    with duckdb.connect(str(tmp_path / "a.duckdb")) as connection:
        connection.register("chats", pa.Table.from_pylist(CHATS))
        connection.execute("CREATE TABLE t AS SELECT * FROM chats")
    query = {"query": "SELECT * FROM t ORDER BY id[2:]::INTEGER", "database": "a.duckdb"}
    assert contents(tmp_path, [], reader="sql", options=query) == expected


def test_split_over_files(tmp_path: Path, expected: list[str]) -> None:
    """Ids of contents do not know in how many files they came."""
    for number in range(5):
        (tmp_path / f"part-{number}.jsonl").write_bytes(as_lines(CHATS[number * 5 : number * 5 + 5]))
    assert contents(tmp_path, "part-*.jsonl") == expected


def with_fault(name: str) -> tuple[bytes, int]:
    """A file whose third record cannot be read, and its line."""
    good = [{"text": "one"}, {"text": "two"}]
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(['"one"', '"two"', "{"]))
    lines, offsets = b"onetwo\xff", pa.py_buffer(b"\0\0\0\0\3\0\0\0\6\0\0\0\7\0\0\0")
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(lines)])
    return {
        "a.jsonl": (as_lines(good) + b"\n{broken\n", 4),
        "a.json": (json.dumps(good, indent=1).encode()[:-2] + b",\n{broken}]", 8),
        "objects.json": (b'{\n"text": "one"}\n{\n"text": "two"}\n{\n"text": tru}', 5),
        "a.csv": (b'text,n\none,1\n"two\nlines",2\nthree\n', 5),
        "a.tsv": (b"text\tn\none\t1\ntwo\t2\nthree\n", 4),
        "a.jsonl.gz": (PACKERS["gz"](as_lines(good) + b"[]\n"), 3),
        "a.parquet": (TABLES["parquet"](pa.table({"text": broken})), 3),
        "a.arrow": (TABLES["arrow_file"](pa.table({"text": column})), 3),
    }[name]


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.json", "objects.json", "a.csv", "a.tsv", "a.jsonl.gz", "a.parquet", "a.arrow"]
)
def test_strict_names_file_and_line(tmp_path: Path, name: str) -> None:
    """In every format; lenient, the two others are kept and this one is listed at the same place."""
    data, line = with_fault(name)
    (tmp_path / name).write_bytes(data)
    with pytest.raises(RecordError, match=rf"^{name.replace('.', '[.]')}, line {line}: "):
        read(name, root=tmp_path, strict=True)
    result = read_with_ledger(name, root=tmp_path)
    assert (result.kept.num_rows, result.dropped.num_rows) == (2, 1)
    detail = json.loads(result.dropped["detail"][0].as_py())
    assert (detail["file"], detail["line"]) == (name, line)


def test_strict_over_records_that_are_no_file(tmp_path: Path) -> None:
    """A query's rows and a callable's records are named by their number."""
    said = """VALUES (1, '[{"role": "user", "content": "x"}]'), (2, '[7]')"""
    query = {"query": f"SELECT * FROM ({said}) AS t(n, messages) ORDER BY n"}
    with pytest.raises(RecordError, match=r"query of s, line 2: "):
        read([], reader="sql", name="s", options=query, root=tmp_path, strict=True)
    (tmp_path / "strict_source.py").write_text("def make():\n    yield {'text': 'x'}\n    yield {'what': 1}\n")
    with pytest.raises(RecordError, match=r"strict_source:make, line 2: unknown_shape"):
        read([], reader="python", name="s", options={"function": "strict_source:make"}, root=tmp_path, strict=True)
