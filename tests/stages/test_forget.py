"""What is named goes, with all that was made from it and says the same; nothing else does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.stages._forget import Entry, closure, own_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.stages._forget import Frames

SCHEMA = {
    **dict.fromkeys(("base", "row_id", "content_id", "name", "revision", "own"), pl.String),
    "parents": pl.List(pl.String),
}
Row = tuple[str, str, str | None, list[str]]  # row id, content, own id, parents


def frames(rows: list[Row], cut: int = 3) -> Frames:
    """Facts of rows, a few at a time."""
    facts = [
        (
            *(row.partition(".")[0], row, content, row.partition("#")[0].partition("/")[0], "r1", own),
            parents,
        )
        for row, content, own, parents in rows
    ]
    whole = pl.DataFrame(facts, schema=SCHEMA, orient="row")

    def parts() -> Iterator[pl.DataFrame]:
        for start in range(0, len(whole), cut):
            yield whole.slice(start, cut)

    return parts


def gone(rows: list[Row], *entries: Entry) -> dict[str, dict[str, str]]:
    found = closure(frames(rows), entries)
    return {base: {"reason": why, **json.loads(detail)} for base, why, detail in found.iter_rows()}


FAMILY: list[Row] = [
    ("made#1", "d", "m1", ["made#0", "u7"]),  # states an own id of another source
    ("made#2", "e", "m2", ["m1"]),  # of its own source
    ("made#3", "f", None, ["forum#9"]),  # a row id that does not go
    ("copy#1", "e", None, []),  # says what made#2 says
    ("copy#2", "g", None, ["copy#1"]),
    ("forum#7", "a", "u7", []),
    ("forum#7.1", "b", "u7", ["forum#7"]),
    ("forum#8", "b", "u8", []),  # says what the second row of forum#7 says
    ("forum#9", "z", "u9", []),
]


@pytest.mark.parametrize(
    "entry",
    [
        Entry("forget", content="a"),
        Entry("forget", content="b"),
        Entry("forget", row="forum#7", revision="r1"),
        Entry("forget", row="forum#7.1", revision="r1"),
        Entry("forget", source="forum", own=own_hash("u7")),
        Entry("forget", own=own_hash("u7")),
    ],
    ids=["content", "content of a second row", "row", "second row", "own id", "own id of any source"],
)
def test_it_spreads_over_generations_sources_and_copies(entry: Entry) -> None:
    found = gone(FAMILY, entry)
    assert set(found) == {"forum#7", "forum#8", "made#1", "made#2", "copy#1", "copy#2"}
    assert found["made#1"] == {"reason": "forgotten", "because": "descendant", "of": "forum#7"}
    assert found["copy#1"] == {"reason": "forgotten", "because": "copy", "of": "made#2"}
    assert found["copy#2"]["of"] == "copy#1"


def test_a_row_id_counts_in_its_revision_only() -> None:
    """A line put in front of others moves row ids: another person's row must not go."""
    assert set(gone(FAMILY[5:], Entry("forget", row="forum#9", revision="r0"))) == set()


def test_children_go_when_the_source_file_no_longer_has_the_parent() -> None:
    entry = Entry("forget", row="forum#7", source="forum", revision="r0", own=own_hash("u7"), content="a")
    assert set(gone(FAMILY[:5], entry)) == {"made#1", "made#2", "copy#1", "copy#2"}


def test_a_source_goes_whole_and_its_children_even_when_it_is_no_longer_declared() -> None:
    entry = Entry("forget", source="forum")
    assert set(gone(FAMILY, entry)) == {row.partition(".")[0] for row, *_ in FAMILY}
    assert set(gone(FAMILY[:5], entry)) == {"made#3"}
    assert set(gone([("forums#1", "a", None, ["forums#0"])], entry)) == set()


def test_an_id_of_ones_own_source_goes_before_that_of_another() -> None:
    rows: list[Row] = [
        ("a#1", "x", "7", []),
        ("b#1", "y", "7", []),
        ("b#2", "z", None, ["7"]),  # b's own record 7, which stays
        ("c#1", "w", None, ["7"]),  # c has no record 7: somebody's
    ]
    assert set(gone(rows, Entry("forget", content="x"))) == {"a#1", "c#1"}


def test_a_held_near_copy_stays_out_until_it_is_decided() -> None:
    held = Entry("hold", content="z")
    assert gone(FAMILY, held) == {"forum#9": {"reason": "near_copy_of_forgotten"}}
    assert gone(FAMILY, Entry("keep", content="z")) == gone(FAMILY, Entry("ask", content="z")) == {}
    assert gone(FAMILY, held, Entry("forget", content="z"))["forum#9"]["reason"] == "forgotten"


IDS = st.sampled_from(["1", "2", "3", "4"])
RECORDS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from("stuvwxyz"),
        st.none() | IDS,
        st.lists(st.one_of(IDS, st.builds("{}#{}".format, st.sampled_from("abc"), IDS)), max_size=2),
    ),
    max_size=10,
)


@given(RECORDS, st.sampled_from("stuvwxyz"), st.integers(1, 4))
def test_the_closure_is_what_a_plain_loop_finds(
    records: list[tuple[str, str, str | None, list[str]]], content: str, cut: int
) -> None:
    rows: list[Row] = [(f"{name}#{n}", said, own, parents) for n, (name, said, own, parents) in enumerate(records, 1)]
    by_own = {
        (row[0], own): [r for r, _, o, _ in rows if o == own and r[0] == row[0]] for row, _, own, _ in rows if own
    }
    out = {row for row, said, _, _ in rows if said == content}
    for _ in rows:
        contents = {said for row, said, _, _ in rows if row in out}
        for row, said, _, parents in rows:
            for parent in (one for one in parents if one != row):
                mine = by_own.get((row[0], parent))
                theirs = [r for (name, own), held in by_own.items() if own == parent and name != row[0] for r in held]
                if parent in out or out & set(mine if mine is not None else theirs):
                    out.add(row)
            if said in contents:
                out.add(row)
    found = closure(frames(rows, cut), [Entry("forget", content=content)])
    assert set(found["base"]) == out
