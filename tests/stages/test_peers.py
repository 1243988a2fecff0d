"""Partners and conflicts among tasks, found by sorting hashes: those that a look at each pair would find."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.stages._peers import conflicting, partners

LINE = st.tuples(
    st.sampled_from(["numeric", "math"]),
    st.sampled_from(["a", "b", "c", "d"]),
    st.none() | st.integers(0, 2),
    st.none() | st.integers(0, 2),
)


def known(lines: list[Any]) -> pa.Table:
    """Tasks of (group, content id, what is asked, gold)."""
    group, content, asked, gold = zip(*lines, strict=True) if lines else [[], [], [], []]
    rows = [f"r{number:05}" for number in range(len(lines))]
    ids = {"row_id": pa.array(rows, pa.string()), "content_id": pa.array(content, pa.string())}
    hashes = {"asked": pa.array(asked, pa.uint64()), "gold": pa.array(gold, pa.uint64())}
    return pa.table({**ids, "group": pa.array(group, pa.string()), **hashes})


@given(st.lists(LINE, max_size=12))
def test_a_partner_is_the_next_of_its_group_with_another_gold(lines: list[Any]) -> None:
    """In the order of content ids, the first after the last."""
    found = partners(known(lines)).tolist()
    for at, (group, _, _, gold) in enumerate(lines):
        members = [n for n, (g, _, _, own) in enumerate(lines) if g == group and own is not None]
        order = sorted(members, key=lambda n: (lines[n][1], n))
        behind = [*order[order.index(at) :], *order[: order.index(at)]] if gold is not None else []
        assert found[at] == next((n for n in behind if lines[n][3] != gold), -1)


@given(st.lists(LINE, max_size=12))
def test_tasks_conflict_that_ask_the_same_and_want_another_answer(lines: list[Any]) -> None:
    found = conflicting(known(lines))
    for at, (_, _, asked, gold) in enumerate(lines):
        others = [f"r{n:05}" for n, (_, _, its, own) in enumerate(lines) if its == asked and own not in (None, gold)]
        assert found.get(at, []) == (others[:5] if asked is not None and gold is not None else [])


def test_thousands_of_tasks_that_ask_the_same_are_compared_in_no_time() -> None:
    count = 30_000
    began = time.perf_counter()
    found = conflicting(known([("numeric", "a", 7, number) for number in range(count)]))
    assert time.perf_counter() - began < 10  # each with each would take minutes
    assert found[0] == ["r00001", "r00002", "r00003", "r00004", "r00005"]
    assert found[count - 1] == ["r00000", "r00001", "r00002", "r00003", "r00004"]
    assert len(found) == count
