"""Overrides: a person's word on single rows, which dedupe obeys within the terms."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import row, table

from corpusforge.errors import ConfigError
from corpusforge.stages._overrides import Override
from corpusforge.stages.dedupe import dedupe

if TYPE_CHECKING:
    import random

    import pyarrow as pa

    from corpusforge.result import StageResult

WORDS = [f"word{i}" for i in range(60)]
LONG = " ".join(WORDS)
NEAR = " ".join([*WORDS[:-1], "other"])
NEARER = " ".join([*WORDS[:-1], "third"])


def says(action: str, of: str, **more: Any) -> Override:
    return Override(action, of, more.pop("name", "Ann"), more.pop("reason", "I looked"), **more)


def ids(result: StageResult) -> list[str]:
    return result.kept["row_id"].to_pylist()


def gone(result: StageResult) -> dict[str, tuple[str, dict[str, Any]]]:
    return {line["row_id"]: (line["reason"], json.loads(line["detail"])) for line in result.dropped.to_pylist()}


def notes(result: StageResult, reason: str) -> dict[str, dict[str, Any]]:
    lines = [line for line in result.changes.to_pylist() if line["reason"] == reason]
    return {line["row_id"]: json.loads(line["detail"]) for line in lines}


def near() -> pa.Table:
    return table([row(1, LONG), row(2, NEAR), row(3, NEARER)])


def test_a_kept_row_stays_beside_the_one_it_repeats_and_the_ledger_says_for_whom_it_would_have_gone() -> None:
    result = dedupe(near(), overrides=[says("keep", "test#2")])
    assert ids(result) == ["test#1", "test#2"]
    assert notes(result, "kept_by_override") == {
        "test#2": {"name": "Ann", "reason": "I looked", "duplicate_of": "test#1", "method": "minhash",
                   "similarity": pytest.approx(55 / 57, abs=1e-6)}
    }  # fmt: skip
    assert gone(result)["test#3"][1]["kept"] in ("test#1", "test#2")
    assert result.metrics["overrides"]["kept"] == 1


def test_a_kept_row_and_the_one_it_repeats_share_a_cluster() -> None:
    result = dedupe(near(), overrides=[says("keep", "test#2")])
    assert len(set(result.kept["cluster"].to_pylist())) == 1


def test_a_dropped_row_goes_with_name_and_reason_and_takes_nobody_with_it() -> None:
    result = dedupe(near(), overrides=[says("drop", "test#1", reason="wrong year")])
    assert gone(result)["test#1"] == ("override", {"name": "Ann", "reason": "wrong year"})
    assert ids(result) == ["test#2"]
    assert gone(result)["test#3"][1]["kept"] == "test#2"
    assert result.metrics["overrides"]["dropped"] == 1
    assert result.metrics["duplicates"]["sources"]["test"]["removed"] == 1


@pytest.mark.parametrize("of", ["test#2", "own-2", "test:own-2"])
def test_a_row_is_called_by_our_id_or_the_users_own(of: str) -> None:
    assert ids(dedupe(near(), overrides=[says("keep", of)])) == ["test#1", "test#2"]


def test_a_kept_exact_copy_stays_in_the_place_of_the_others() -> None:
    rows = table([row(n, LONG) for n in (1, 2, 3)])
    result = dedupe(rows, overrides=[says("keep", "test#3")])
    assert ids(result) == ["test#3"]
    assert {line[1]["kept"] for line in gone(result).values()} == {"test#3"}


def test_a_row_in_the_order_between_two_copies_still_goes_when_the_later_one_is_kept() -> None:
    rows = table([row(1, LONG), row(2, NEAR), row(3, LONG)])
    assert ids(dedupe(rows, overrides=[says("keep", "test#3")])) == ["test#3"]


def test_two_kept_copies_both_stay_under_the_terms_of_both() -> None:
    rows = table([row(1, LONG, license="MIT"), row(2, LONG, license="CC-BY-4.0", restrictions=["no-train"])])
    result = dedupe(rows, overrides=[says("keep", "test#1"), says("keep", "test#2")])
    assert ids(result) == ["test#1", "test#2"]
    sources = [one["source"] for one in result.kept.to_pylist()]
    assert {one["license"] for one in sources} == {"CC-BY-4.0 AND MIT"}
    assert [one["restrictions"] for one in sources] == [["no-train"]] * 2


def test_the_terms_of_a_dropped_copy_still_govern() -> None:
    rows = table([row(1, LONG, restrictions=["no-train"]), row(2, LONG)])
    result = dedupe(rows, overrides=[says("drop", "test#1")])
    assert result.kept["source"].to_pylist()[0]["restrictions"] == ["no-train"]
    assert "test#1" not in notes(result, "stricter_twin")


@pytest.mark.parametrize("text", [LONG, NEAR])
def test_a_kept_copy_of_a_row_refused_for_its_terms_goes(text: str) -> None:
    refused = table([row(1, LONG, source="shut", restrictions=["no-train"])])
    rows = table([row(1, text), row(2, "something else entirely")])
    result = dedupe(rows, refused=refused, overrides=[says("keep", "test#1", line=2)])
    assert ids(result) == ["test#2"]
    assert gone(result)["test#1"][0] == "restricted"
    assert result.metrics["overrides"]["restricted"] == {"lines": 1, "first": [{"line": 2, "row": "test#1"}]}


def test_a_kept_row_stays_though_it_is_there_already() -> None:
    result = dedupe(near(), reference=table([row(9, LONG, source="old")]), overrides=[says("keep", "test#1")])
    assert ids(result) == ["test#1"]
    assert notes(result, "kept_by_override")["test#1"]["duplicate_of"] == "old#9"


def test_lines_that_name_no_row_or_change_nothing_are_told_by_their_number() -> None:
    overrides = [says("keep", "test#1", line=2), says("drop", "nobody", line=3), says("keep", "test#2", line=4)]
    found = dedupe(near(), overrides=overrides).metrics["overrides"]
    assert found == {
        "lines": 3, "kept": 1, "dropped": 0,
        "stale": {"lines": 1, "first": [{"line": 3, "row": "nobody"}]},
        "without_effect": {"lines": 1, "first": [{"line": 2, "row": "test#1"}]},
        "restricted": {"lines": 0, "first": []},
    }  # fmt: skip


def test_a_line_for_one_content_holds_for_no_other() -> None:
    rows = near()
    content = rows["content_id"].to_pylist()
    assert ids(dedupe(rows, overrides=[says("keep", "test#2", content=content[1])])) == ["test#1", "test#2"]
    result = dedupe(rows, overrides=[says("keep", "test#2", content=content[0])])
    assert ids(result) == ["test#1"]
    assert result.metrics["overrides"]["stale"]["lines"] == 1


def test_two_names_of_one_row_must_agree() -> None:
    overrides = [says("keep", "test#2", line=2), says("drop", "test:own-2", line=3)]
    with pytest.raises(ConfigError, match=r"overrides.csv:3: drop test#2, of which line 2 says keep"):
        dedupe(near(), overrides=overrides)


def test_the_row_that_another_person_keeps_twice_is_one_row() -> None:
    overrides = [says("keep", "test#2", line=2), says("keep", "own-2", line=3)]
    assert dedupe(near(), overrides=overrides).metrics["overrides"]["stale"]["lines"] == 0


TEXTS = [" ".join(f"w{(i * step) % 31}" for i in range(24)) for step in (1, 2, 3)]


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[Override]]:
    rows = []
    for number in range(draw(st.integers(2, 9))):
        words = draw(st.sampled_from(TEXTS)).split()
        if draw(st.booleans()):
            words[draw(st.sampled_from([0, -1]))] = draw(st.sampled_from(["x", "y"]))
        rows.append(row(number, " ".join(words), source=draw(st.sampled_from(["a", "b"]))))
    chosen = draw(st.lists(st.sampled_from([one["row_id"] for one in rows]), unique=True, max_size=4))
    return rows, [says(draw(st.sampled_from(["keep", "drop"])), one) for one in chosen]


@settings(max_examples=60, deadline=None)
@given(corpora(), st.randoms(use_true_random=False))
def test_every_override_is_obeyed_and_the_order_of_rows_changes_nothing(
    corpus: tuple[list[dict[str, Any]], list[Override]], shuffle: random.Random
) -> None:
    rows, overrides = corpus
    result = dedupe(table(rows), overrides=overrides)
    stays, went = set(ids(result)), gone(result)
    assert {one.row for one in overrides if one.action == "keep"} <= stays
    dropped = {one.row for one in overrides if one.action == "drop"}
    assert {row for row, (reason, _) in went.items() if reason == "override"} == dropped
    assert all(detail["kept"] in stays for row, (_, detail) in went.items() if row not in dropped)
    shuffle.shuffle(rows)
    shuffle.shuffle(overrides)
    again = dedupe(table(rows), overrides=overrides)
    assert set(ids(again)) == stays
    assert gone(again) == went
    assert again.metrics["duplicates"] == result.metrics["duplicates"]


@settings(max_examples=40, deadline=None)
@given(corpora())
def test_the_others_are_judged_as_if_a_dropped_row_were_not_there(
    corpus: tuple[list[dict[str, Any]], list[Override]],
) -> None:
    rows, overrides = corpus
    dropped = {one.row for one in overrides if one.action == "drop"}
    result = dedupe(table(rows), overrides=overrides)
    without = dedupe(
        table([one for one in rows if one["row_id"] not in dropped]),
        overrides=[one for one in overrides if one.action == "keep"],
    )
    assert ids(result) == ids(without)
    assert {row: why for row, why in gone(result).items() if row not in dropped} == gone(without)


@settings(max_examples=40, deadline=None)
@given(corpora())
def test_figures_between_sources_are_those_of_the_ledger(corpus: tuple[list[dict[str, Any]], list[Override]]) -> None:
    result = dedupe(table(corpus[0]), overrides=corpus[1])
    source = {one["row_id"]: one["source"]["name"] for one in corpus[0]}
    counted: dict[tuple[str, str], list[int]] = {}
    for one, (reason, detail) in gone(result).items():
        if reason != "override":
            pair = counted.setdefault((source[one], source[detail["kept"]]), [0, 0])
            pair[reason == "near_duplicate"] += 1
    told = result.metrics["duplicates"]
    assert {(p["removed"], p["kept"]): [p["exact"], p["near"]] for p in told["pairs"]} == counted
    for name, figures in told["sources"].items():
        removed = sum(sum(pair) for (one, _), pair in counted.items() if one == name)
        assert (figures["removed"], figures["in"]) == (removed, list(source.values()).count(name))
        assert figures["share"] == pytest.approx(removed / figures["in"], abs=1e-6)
        inside = sum(counted.get((name, name), [0, 0]))
        assert figures["within"] == (pytest.approx(inside / removed, abs=1e-6) if removed else None)


def test_pairs_of_sources_beyond_fifty_are_one_line() -> None:
    rows = [row(n, f"{LONG} {n % 60}", source=f"s{n:03d}") for n in range(120)]
    told = dedupe(table(rows), exact_only=True).metrics["duplicates"]
    assert len(told["pairs"]) == 50
    assert told["other_pairs"] == {"pairs": 10, "exact": 10, "near": 0}
    assert told["pairs"][0] == {"removed": "s060", "kept": "s000", "where": "corpus", "exact": 1, "near": 0}
    assert len(told["sources"]) == 50


def test_what_repeats_a_row_from_elsewhere_is_told_apart() -> None:
    there = {"reference": table([row(9, LONG, source="test")]), "refused": table([row(8, TEXTS[0], source="shut")])}
    told = dedupe(table([row(1, LONG), row(2, TEXTS[0])]), **there).metrics["duplicates"]
    pairs = [(pair["kept"], pair["where"], pair["exact"]) for pair in told["pairs"]]
    assert pairs == [("shut", "refused", 1), ("test", "reference", 1)]
    assert told["sources"]["test"] == {"in": 2, "removed": 2, "share": 1.0, "within": 0.0}
