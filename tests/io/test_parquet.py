"""Partitions: cuts do not matter, bytes repeat, rows are found by their position."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import ProjectError
from corpusforge.io import parquet

CUTS = st.lists(st.integers(0, 7), min_size=1, max_size=6)


def numbered(sizes):
    """Tables of the given sizes whose column `n` counts on from one to the next."""
    total = sum(sizes)
    whole = pa.table(
        {"n": pa.array(range(total), pa.int64()), "t": pa.array([f"row {n}" for n in range(total)], pa.string())}
    )
    return [whole.slice(sum(sizes[:k]), size) for k, size in enumerate(sizes)]


@given(CUTS, st.integers(1, 9))
def test_rechunk_keeps_rows_and_order_and_fills_every_table_but_the_last(sizes, rows):
    tables = list(parquet.rechunk(numbered(sizes), rows))
    assert [n for table in tables for n in table["n"].to_pylist()] == list(range(sum(sizes)))
    assert all(table.num_rows == rows for table in tables[:-1])


@given(CUTS, CUTS, st.integers(1, 9))
def test_rechunk_does_not_depend_on_the_cuts(one, other, rows):
    total = min(sum(one), sum(other))
    tables = [[t.to_pylist() for t in parquet.rechunk(_first(numbered(sizes), total), rows)] for sizes in (one, other)]
    assert tables[0] == tables[1]


def _first(tables, rows):
    """The first `rows` rows of some tables, in their cuts."""
    for table in tables:
        yield table.slice(0, max(0, rows))
        rows -= table.num_rows


@pytest.fixture
def parts(tmp_path):
    """Three partition files with 3, 0 and 4 rows."""
    for number, table in enumerate(numbered([3, 0, 4])):
        parquet.write(table, tmp_path / parquet.part_name(number))
    return tmp_path


def test_read_gives_all_partitions_in_order(parts):
    assert parquet.read(parts, ["n"])["n"].to_pylist() == list(range(7))


@pytest.mark.parametrize("wanted", [[6, 0, 3], [2, 2, 2], [5], []])
def test_gather_gives_rows_in_the_order_asked_for(parts, wanted):
    found = parquet.Gather(parquet.parts(parts))(np.array(wanted, np.int64), ["t"])
    assert found["t"].to_pylist() == [f"row {n}" for n in wanted]
    assert found.column_names == ["t"]


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in "ab":
        parquet.write(numbered([50])[0], tmp_path / name, content_defined=True)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_row_groups_have_the_size_asked_for(tmp_path):
    parquet.write(numbered([25])[0], tmp_path / "a", row_group_rows=10)
    assert pq.ParquetFile(tmp_path / "a").num_row_groups == 3


def test_a_missing_folder_says_what_to_run(tmp_path):
    with pytest.raises(ProjectError, match="dvc repro"):
        parquet.parts(tmp_path / "rows")
