"""Results add up over partitions, whatever the cuts, and can explain any row."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.result import LEDGER, StageResult, add_up, ledger
from corpusforge.sample import SCHEMA

SHAPED = st.lists(
    st.fixed_dictionaries(
        {}, optional={"in": st.integers(0, 9), "by": st.dictionaries(st.sampled_from("xyz"), st.integers(0, 9))}
    )
)


def rows(count):
    """`count` rows `s#1`, `s#2`, … whose own ids are `u1`, `u2`, …"""
    made = [
        dict.fromkeys(SCHEMA.names)
        | {"row_id": f"s#{n}", "kind": "sft", "source": {"name": "s", "record": n, "record_id": f"u{n}"}}
        for n in range(1, count + 1)
    ]
    return pa.Table.from_pylist(made, schema=SCHEMA)


@given(SHAPED, st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order_of_partitions(parts, random):
    shuffled = parts.copy()
    random.shuffle(shuffled)
    assert json.dumps(add_up(parts)) == json.dumps(add_up(shuffled))


@given(SHAPED, st.integers(0, 5))
def test_sums_do_not_depend_on_the_cuts(parts, cut):
    assert add_up(parts) == add_up([add_up(parts[:cut]), add_up(parts[cut:])])


@given(st.lists(st.integers(0, 9), unique=True))
def test_a_ledger_has_the_lines_it_was_asked_for_in_that_order(indices):
    lines = ledger(rows(10), indices, "filter", ["empty"] * len(indices), [{"length": n} for n in indices])
    assert lines.schema == LEDGER
    assert lines["row_id"].to_pylist() == [f"s#{n + 1}" for n in indices]
    assert lines["record_id"].to_pylist() == [f"u{n + 1}" for n in indices]
    assert [json.loads(d)["length"] for d in lines["detail"].to_pylist()] == indices


def test_a_ledger_over_a_table_in_several_chunks():
    table = pa.concat_tables([rows(3), rows(3).slice(0, 0), rows(5).slice(3)])
    assert ledger(table, [4, 0], "filter", ["empty"] * 2, [{}, {}])["row_id"].to_pylist() == ["s#5", "s#1"]


def test_a_ledger_over_no_rows():
    assert ledger(rows(0), [], "filter", [], []).num_rows == 0


def result():
    """Row 1 kept, row 2 kept and changed, row 3 dropped."""
    table = rows(3)
    return StageResult(
        "scrub",
        table.slice(0, 2),
        ledger(table, [2], "scrub", ["pii_phone"], [{"count": 2}]),
        ledger(table, [1], "scrub", ["scrubbed"], [{"email": 1}]),
    )


def test_explain_finds_a_row_by_both_ids():
    for identifier in ("s#3", "u3"):
        assert str(result().explain(identifier)) == "s#3: dropped by scrub, pii_phone (count=2)"


def test_explain_tells_the_four_states_apart():
    states = [result().explain(identifier).status for identifier in ("u1", "u2", "u3", "u4")]
    assert states == ["kept", "changed", "dropped", "absent"]


def test_explain_on_a_result_without_rows():
    assert StageResult("filter", rows(0)).explain("s#1").status == "absent"


def test_text_forms_state_the_counts():
    assert repr(result()) == "<scrub: 3 in, 2 kept, 1 dropped: pii_phone 1>"
    assert "3 in = 2 kept + 1 dropped" in result()._repr_html_()


def test_reasons_are_counted_most_first():
    table = rows(4)
    dropped = ledger(table, range(4), "filter", ["b", "a", "c", "c"], [{}] * 4)
    assert list(StageResult("filter", rows(0), dropped).reasons().items()) == [("c", 2), ("a", 1), ("b", 1)]


def test_html_escapes_what_a_reason_holds():
    table = rows(1)
    shown = StageResult("filter", rows(0), ledger(table, [0], "filter", ["<script>"], [{}]))._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
