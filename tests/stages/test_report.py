"""The report as a function of counted facts."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.io.report import page
from corpusforge.stages.report import DIVERSITY_WORDS, Facts, diversity
from corpusforge.stages.report import report as report_of

BEFORE = {"source": "a", "license": "MIT", "restrictions": "", "origin": "human", "kind": "sft"}
AFTER = BEFORE | {"generator": "", "language": "en", "domain": "chat", "split": "train"}
TABLE_STAGES = ("dedupe", "filter", "scrub", "health", "grade", "decontaminate", "blend")


def counts(came: int, dropped: int) -> dict[str, Any]:
    inside = {"in": came, "kept": came - dropped, "dropped": dropped}
    return {**inside, "changed": 0, "reasons": {}, "by_source": {"a": inside}}


def facts(**changes: Any) -> Facts:
    """11 records: one broken, 10 rows, of which dedupe drops 2; one row is written twice."""
    ingest = {"records": 11, "with_rows": 10, "quarantined": 1, "rows": 10}
    stages = {name: counts(8, 0) for name in TABLE_STAGES} | {"dedupe": counts(10, 2)}
    stages["decontaminate"] |= {"benchmarks": {"exam": {"items": 5}}, "checks_run": ["exact"]}
    made = Facts(
        metrics={"ingest": {**ingest, "sources": {"a": ingest}}, **stages, "shard": {}},
        manifest={"build": "b1", "shards": [{"rows": 9}]},
        before=[BEFORE | {"rows": 10}],
        after=[AFTER | {"rows": 8, "copies": 9, "tokens": 90}],
        drops=[
            {"stage": "ingest", "source": "a", "reason": "broken_json", "rows": 1},
            {"stage": "dedupe", "source": "a", "reason": "near_duplicate", "rows": 2},
        ],
        examples=[{"stage": "dedupe", "row_id": "a#2", "record_id": None, "reason": "near_duplicate", "detail": {}}],
        difficulty=[
            {"kind": "sft", "method": "static-1", "bin": 4, "rows": 7},
            {"kind": "sft", "method": "none", "bin": None, "rows": 1},
        ],
        personal=[{"source": "a", "entity": "EMAIL_ADDRESS", "findings": 3}],
        tokens={"rows": 8, "p50": 10, "max": 20},
        clusters={"clusters": 7, "with_several_rows": 1, "largest": 2},
        diversity={
            "all": {"rows": 8, "words": 100, "distinct_1": 0.5, "distinct_2": 0.9, "top_1_percent_of_bigrams": 0.1}
        },
        samples=[],
    )
    return dataclasses.replace(made, **changes)


def test_every_stage_adds_up() -> None:
    report = report_of(facts())
    assert [(s["stage"], s["in"], s["kept"], s["dropped"]) for s in report["stages"][:2]] == [
        ("ingest", 11, 10, 1),
        ("dedupe", 10, 8, 2),
    ]
    assert report["totals"]["adds_up"]
    assert report["totals"]["rows_in_shards"] == 9


@pytest.mark.parametrize(
    ("stage", "came", "dropped"), [("filter", 8, 1), ("grade", 9, 0)], ids=["ledger lacks a line", "a row appears"]
)
def test_a_stage_that_does_not_add_up_is_named(stage: str, came: int, dropped: int) -> None:
    wrong = {**facts().metrics, stage: counts(came, dropped)}
    report = report_of(facts(metrics=wrong))
    assert not report["totals"]["adds_up"]
    assert f"stage {stage}: the counts do not add up" in report["warnings"]


def test_tasks_whose_verifier_could_not_be_tried_are_told() -> None:
    tried = {"assert_tests": {"undecided": {"code.unconfined": 3}}, "math": {"undecided": {}}}
    metrics = {**facts().metrics, "health": {**facts().metrics["health"], "verifiers": tried}}
    warning = "verifiers of 3 tasks could not be tried (code.unconfined 3): see health"
    assert warning in report_of(facts(metrics=metrics))["warnings"]


@pytest.mark.parametrize(("ran", "told"), [(None, False), ("container", False), ("unconfined", True)])
def test_code_that_ran_without_walls_is_told(ran: str | None, told: bool) -> None:
    health = {**facts().metrics["health"], **({"code_ran": ran} if ran else {})}
    warnings = report_of(facts(metrics={**facts().metrics, "health": health}))["warnings"]
    assert any("without walls" in warning for warning in warnings) is told


def test_shards_that_miss_a_row_do_not_add_up() -> None:
    report = report_of(facts(manifest={"build": "b1", "shards": [{"rows": 8}]}))
    assert not report["totals"]["adds_up"]


def test_a_source_tells_what_was_lost_where_and_why() -> None:
    source = report_of(facts())["sources"]["a"]
    assert (source["records"], source["rows"], source["rows_in_shards"]) == (11, 10, 9)
    assert source["loss"] == {
        "ingest": {"in": 11, "dropped": 1, "reasons": {"broken_json": 1}},
        "dedupe": {"in": 10, "dropped": 2, "reasons": {"near_duplicate": 2}},
    }


def test_restrictions_are_counted_one_by_one() -> None:
    after = [AFTER | {"restrictions": "no-train,share-alike", "rows": 2, "copies": 2, "tokens": 0}]
    assert report_of(facts(after=after))["restrictions"] == {"no-train": 2, "share-alike": 2}


def test_an_unknown_licence_and_a_vanished_source_are_warned_of() -> None:
    before = [BEFORE | {"license": "unknown", "rows": 10}, BEFORE | {"source": "b", "rows": 3}]
    warnings = " ".join(report_of(facts(before=before))["warnings"])
    assert "source a: licence unknown for 10 rows" in warnings
    assert "source b: none of its rows is in the shards" in warnings


def test_own_ids_that_hold_personal_data_are_warned_of() -> None:
    metrics = facts().metrics
    said = report_of(facts(metrics={**metrics, "scrub": {**metrics["scrub"], "in_own_ids": {"EMAIL_ADDRESS": 2}}}))
    assert any("own ids of rows hold personal data (EMAIL_ADDRESS in 2)" in line for line in said["warnings"])


def test_rows_without_a_grade_are_counted_apart() -> None:
    difficulty = report_of(facts())["difficulty"]
    assert difficulty["bins"] == {"sft": [0, 0, 0, 0, 7, 0, 0, 0, 0, 0]}
    assert difficulty["not_graded"] == {"sft": 1}


def test_equal_facts_give_equal_bytes() -> None:
    assert json.dumps(report_of(facts())) == json.dumps(report_of(facts()))


def test_the_page_needs_nothing_from_elsewhere_and_escapes_texts() -> None:
    sample = {
        "row_id": "a#1", "kind": "sft", "source": "a", "license": "MIT", "origin": "human", "language": "en",
        "domain": None, "split": "train", "difficulty": 0.25, "tokens": 3, "verifier": None,
        "turns": [{"part": "messages", "role": "user", "text": "<script>alert(1)</script>"}],
    }  # fmt: skip
    text = page(report_of(facts(samples=[sample])))
    assert "&lt;script&gt;alert(1)" in text
    assert "<script" not in text
    assert "http" not in text
    assert "prefers-color-scheme" in text


def test_distinct_n_of_a_known_text() -> None:
    figures = diversity(pa.array(["the cat the cat", "The dog"]))
    assert (figures["words"], figures["distinct_1"], figures["distinct_2"]) == (6, 0.5, 0.75)


def test_bigrams_do_not_cross_texts() -> None:
    assert diversity(pa.array(["one", "two"]))["distinct_2"] is None


def test_only_the_first_words_are_looked_at() -> None:
    figures = diversity(pa.array(["a " * DIVERSITY_WORDS, "b " * 50]))
    assert (figures["words"], figures["distinct_1"]) == (DIVERSITY_WORDS, 1 / DIVERSITY_WORDS)


@given(st.lists(st.text(), max_size=8))
def test_diversity_is_a_share_for_any_texts(texts: list[str]) -> None:
    figures = diversity(pa.array([text.encode("utf-8", "replace").decode() for text in texts], pa.string()))
    for name in ("distinct_1", "distinct_2", "top_1_percent_of_bigrams"):
        assert figures[name] is None or 0 < figures[name] <= 1
