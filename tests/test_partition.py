"""The border checks: nothing leaves a stage uncounted."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import CountError
from corpusforge.partition import check_counts, counts
from corpusforge.result import LEDGER, StageResult, ledger
from tests.rows import row, table

ROWS = table([row(i, "a question", f"answer {i}", source="one" if i % 3 else "two") for i in range(1, 9)])


def split(drop: list[int]) -> StageResult:
    """A result that drops the rows at `drop` and keeps the others."""
    keep = [i for i in range(ROWS.num_rows) if i not in drop]
    return StageResult(
        "filter",
        ROWS.take(pa.array(keep, pa.int64())),
        ledger(ROWS, drop, "filter", ["x"] * len(drop), [{}] * len(drop)),
    )


@given(st.sets(st.integers(0, 7)))
def test_any_split_of_the_rows_adds_up(drop):
    result = split(sorted(drop))
    check_counts("filter", ROWS, result)
    figures = counts(ROWS, result)
    assert figures["in"] == 8
    assert figures["kept"] + figures["dropped"] == 8
    assert sum(s["in"] for s in figures["by_source"].values()) == 8
    assert sum(s["kept"] for s in figures["by_source"].values()) == figures["kept"]


def test_a_lost_row_stops_the_stage():
    result = StageResult("filter", ROWS.slice(1))
    with pytest.raises(CountError, match=r"8 in, 7 kept \+ 0 dropped"):
        check_counts("filter", ROWS, result)


def test_a_row_kept_and_dropped_stops_the_stage():
    kept = pa.concat_tables([ROWS.slice(0, 7), ROWS.slice(0, 1)])
    with pytest.raises(CountError, match="listed twice"):
        check_counts("filter", ROWS, StageResult("filter", kept))


def test_an_invented_row_stops_the_stage():
    stranger = table([row(99, "who", "me")])
    with pytest.raises(CountError, match="did not go in"):
        check_counts("filter", ROWS, StageResult("filter", pa.concat_tables([ROWS.slice(1), stranger])))


def test_an_empty_partition_adds_up():
    empty = ROWS.slice(0, 0)
    check_counts("filter", empty, StageResult("filter", empty))
    assert counts(empty, StageResult("filter", empty, LEDGER.empty_table()))["in"] == 0
