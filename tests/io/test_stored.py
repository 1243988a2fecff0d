"""A missing or damaged file of a stage is named, with how to get it again, and never told as a fault of ours."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corpusforge.errors import ProjectError
from corpusforge.io.stored import read_json, read_table

TABLE = pa.table({"a": [1, 2]})


def test_what_is_whole_is_read(tmp_path):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    (tmp_path / "f.json").write_text('{"build": "x"}')
    assert read_table(tmp_path / "t.parquet", ["a"]) == TABLE
    assert read_json(tmp_path / "f.json", "build") == {"build": "x"}


@pytest.mark.parametrize("text", [b"", b"\xff", b"[]", b"{}", b'{"build":'])
def test_a_damaged_record_is_named(tmp_path, text):
    (tmp_path / "f.json").write_bytes(text)
    with pytest.raises(ProjectError, match=r"f\.json cannot be read") as error:
        read_json(tmp_path / "f.json", "build")
    assert "dvc checkout" in error.value.hint


def test_a_table_that_was_cut_or_is_another_one_is_named(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ProjectError, match=r"t\.parquet cannot be read"):
        read_table(path)
    path.write_bytes(whole)
    with pytest.raises(ProjectError, match=r"t\.parquet cannot be read"):
        read_table(path, ["b"])


def test_a_file_that_is_not_there_is_named(tmp_path):
    for read, name in ((read_table, "t.parquet"), (read_json, "f.json")):
        with pytest.raises(ProjectError, match=f"{name} does not exist"):
            read(tmp_path / name)
