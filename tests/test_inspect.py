"""`inspect`: figures of our own and foreign tables, and how little it reads."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge.errors import SourceError
from corpusforge.inspect import inspect
from corpusforge.io.tables import open_tables
from tests.projects import chat, write_jsonl
from tests.rows import message, row, table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    rows = [row(n, f"question {n}", f"answer {n}", cluster="c1" if n < 3 else f"d{n}") for n in range(1, 21)]
    pq.write_table(table(rows), tmp_path / "part-00000.parquet", row_group_size=5)
    return tmp_path / "part-00000.parquet"


def test_rows_kinds_licences_and_origins_are_counted(ours: Path) -> None:
    view = inspect(ours).tables[0]
    assert view.rows == 20
    assert view.facets["kind"] == {"sft": 20}
    assert view.facets["licence"] == {"MIT": 20}
    assert view.facets["origin"] == {"human": 20}


def test_the_largest_cluster_is_told(ours: Path) -> None:
    assert inspect(ours).tables[0].clusters == [("c1", 2)]


@pytest.mark.parametrize("identifier", ["test#17", "own-17"])
def test_one_row_reads_one_row_group(ours: Path, identifier: str) -> None:
    opened = open_tables(ours)[0]
    assert opened.find(identifier).num_rows == 1
    assert opened.groups_read == 1


def test_samples_read_one_row_group(ours: Path) -> None:
    opened = open_tables(ours)[0]
    assert opened.head(5).num_rows == 5
    assert opened.groups_read == 1


def test_a_row_is_found_by_the_users_own_id(ours: Path) -> None:
    shown = inspect(ours, row="own-17").tables[0].samples
    assert [one["row_id"] for one in shown] == ["test#17"]


def test_an_unknown_id_is_an_error(ours: Path) -> None:
    with pytest.raises(SourceError, match="no row has the id 'nobody'"):
        inspect(ours, row="nobody")


def test_a_row_of_shards_of_several_kinds_is_found_and_an_unknown_one_is_an_error(tmp_path: Path) -> None:
    pair = {"chosen": [message("assistant", "a")], "rejected": [message("assistant", "b")]}
    rows = [row(1, "q1", "a1"), row(2, "q2", kind="preference", **pair)]
    cf.write_shards(table(rows), tmp_path / "shards")
    for identifier in ("own-1", "own-2"):
        assert [one.samples[0]["record_id"] for one in inspect(tmp_path / "shards", row=identifier).tables] == [
            identifier
        ]
    with pytest.raises(SourceError, match="no row has the id"):
        inspect(tmp_path / "shards", row="nobody")


def test_a_stages_name_alone_is_told_where_its_rows_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data" / "scrub").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SourceError, match="did you mean data/scrub"):
        inspect("scrub")


def test_counts_of_findings_are_shown_as_an_object(tmp_path: Path) -> None:
    found = pa.array([[("EMAIL_ADDRESS", 2)]], pa.map_(pa.string(), pa.int32()))
    pq.write_table(table([row(1, "a")]).append_column("pii", found), tmp_path / "a.parquet")
    assert 'pii: {"EMAIL_ADDRESS": 2}' in str(inspect(tmp_path / "a.parquet"))


def test_all_files_of_a_folder_are_counted(tmp_path: Path) -> None:
    for name in ("a/x.jsonl", "b/x.jsonl"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text('{"prompt": "p", "completion": "c"}\n', encoding="utf-8")
    view = inspect(tmp_path).tables[0]
    assert (view.rows, view.files, view.size) == (2, 2, 2 * 35)


def test_long_texts_of_samples_are_clipped(tmp_path: Path) -> None:
    pq.write_table(table([row(1, "x" * 5000, "y")]), tmp_path / "a.parquet")
    assert len(json.dumps(inspect(tmp_path / "a.parquet").to_dict()["tables"][0]["samples"])) < 2500


def test_a_foreign_table_is_described_column_by_column(tmp_path: Path) -> None:
    columns = {"n": [1, 2, None], "x": [0.5, float("nan"), 2.0], "when": [None, None, None], "blob": [b"a", b"bb", b""]}
    pq.write_table(pa.table(columns), tmp_path / "foreign.parquet")
    made = {column.name: column for column in inspect(tmp_path / "foreign.parquet").tables[0].columns}
    assert made["n"].nulls == 1
    assert made["n"].range() == {"min": 1, "p50": 1, "p90": 2, "max": 2}
    assert made["x"].range()["max"] == 2.0
    assert made["when"].nulls == 3


def test_json_columns_are_shown_as_text(tmp_path: Path) -> None:
    texts = pa.array(['{"a": 1}', '{"b": 2}'], pa.json_())
    several = pa.ListArray.from_arrays([0, 2, 2], texts)
    pq.write_table(pa.table({"tools": texts, "many": several}), tmp_path / "j.parquet")
    assert '"tools"' in json.dumps(inspect(tmp_path / "j.parquet").to_dict())


def test_a_folder_of_two_forms_is_two_tables(tmp_path: Path) -> None:
    for name in ("sft", "task"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table({name: [1, 2]}), tmp_path / name / "train-00000.parquet")
    assert [(view.label, view.rows) for view in inspect(tmp_path).tables] == [("sft", 2), ("task", 2)]


def test_files_of_other_forms_go_through_the_readers(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "chat.jsonl", [chat(n) for n in range(4)])
    assert inspect(tmp_path / "chat.jsonl").tables[0].rows == 4


def test_an_empty_table_is_no_fault(tmp_path: Path) -> None:
    pq.write_table(table([]), tmp_path / "none.parquet")
    assert "0 rows" in str(inspect(tmp_path / "none.parquet"))


def test_a_broken_parquet_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"bad\.parquet is not a Parquet file"):
        inspect(tmp_path / "bad.parquet")


def test_text_and_notebook_forms_say_the_same(ours: Path) -> None:
    shown = inspect(ours, sample=1)
    for form in (str(shown), shown._repr_html_()):
        assert "question 1" in form
        assert "test#1" in form


def test_control_characters_do_not_reach_the_terminal(tmp_path: Path) -> None:
    pq.write_table(table([row(1, "a\x1b[2Jb", "c")]), tmp_path / "evil.parquet")
    assert "\x1b" not in str(inspect(tmp_path / "evil.parquet"))


def test_odd_types_and_values_are_described(tmp_path: Path) -> None:
    columns = {
        "price": pa.array([Decimal("1.50"), Decimal("2.50"), None]),
        "when": pa.array([0, 2**62, None], pa.timestamp("ms")),
        "long": pa.array([0, 2**62, None], pa.duration("ms")),
    }
    pq.write_table(pa.table(columns), tmp_path / "odd.parquet")
    price, when, _ = inspect(tmp_path / "odd.parquet").tables[0].columns
    assert price.range() == {"min": 1.5, "p50": 1.5, "p90": 2.5, "max": 2.5}
    assert when.values is not None
    assert "1970-01-01 00:00:00.000" in when.values


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    pq.write_table(pa.table({"text": text}), tmp_path / "bad.parquet")
    with pytest.raises(SourceError, match=r"bad\.parquet is not a Parquet file that can be read"):
        inspect(tmp_path / "bad.parquet")


def test_damage_inside_a_parquet_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"n": list(range(1000))}), path)
    data = path.read_bytes()
    path.write_bytes(data[:30] + b"\xff" * 60 + data[90:])
    with pytest.raises(SourceError, match=r"bad\.parquet is not a Parquet file that can be read"):
        inspect(path)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceError, match="neither a file nor a folder"):
        inspect(tmp_path / "pipe")
