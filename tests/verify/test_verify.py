"""The door to all verifiers: a verdict comes back whatever task and completion hold."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import Verdict, verify, verify_many

SPECS: dict[str, dict[str, Any]] = {
    "numeric": {"answer": "5"},
    "exact": {"answer": "5"},
    "choice": {"answer": "A", "choices": ["A", "B"]},
    "tool_call": {"calls": [{"f": {"a": [5]}}]},
    "instructions": {"instructions": [{"id": "startend:quotation", "kwargs": {}}]},
}


def task(kind: str, spec: Any = None) -> dict[str, Any]:
    return {"verifier": {"kind": kind, "spec": SPECS.get(kind, {}) if spec is None else spec}}


def test_a_row_a_shard_line_and_a_text_specification_mean_the_same() -> None:
    rows = [
        task("numeric"),
        {"verifier": {"kind": "numeric", "spec": '{"answer": "5"}'}},
        {"verifier": {"kind": "numeric", "answer": "5"}},
        {"prompt": "2 + 3?", "verifier_kind": "numeric", "verifier_spec": '{"answer": "5"}'},
    ]
    assert [verdict.outcome for verdict in verify_many(rows, ["5"] * 4)] == ["pass"] * 4


def test_text_and_messages_mean_the_same() -> None:
    said = [{"role": "assistant", "content": "It is 5."}]
    assert verify(task("numeric"), said).outcome == verify(task("numeric"), "It is 5.").outcome == "pass"


def test_verdicts_keep_the_order_of_the_pairs() -> None:
    asked = [task("numeric"), task("choice"), task("nobody_knows"), task("numeric")]
    outcomes = [verdict.outcome for verdict in verify_many(asked, ["5", "B", "5", "6"])]
    assert outcomes == ["pass", "fail", "undecided", "fail"]


def test_lists_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        verify_many([task("numeric")], [])


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        (task("nobody_knows"), "verify.unknown_kind"),
        (task("numeric", "{{"), "verify.unreadable"),
        ({"verifier": 7}, "verify.unreadable"),
        ({}, "verify.unreadable"),
        (None, "verify.unreadable"),
    ],
)
def test_a_task_that_asks_for_nothing_decidable_is_undecided(row: Any, rule: str) -> None:
    assert verify(row, "5") == Verdict("undecided", None, rule)


@pytest.mark.parametrize("completion", [None, 5, b"5", [None], {"role": "assistant"}])
@pytest.mark.parametrize("kind", SPECS)
def test_what_is_no_completion_is_undecided(kind: str, completion: Any) -> None:
    assert verify(task(kind), completion).rule == "verify.unreadable_completion"


@given(
    st.sampled_from(sorted(SPECS)),
    st.text(st.characters(exclude_categories=[]), max_size=60)
    | st.text("0159.,-−+/%$#\\boxed{}()[]<>answer is:=fA\n\ud800", max_size=60),
)
def test_no_text_raises_and_none_is_left_undecided(kind: str, text: str) -> None:
    assert verify(task(kind), text).outcome in ("pass", "fail")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(SPECS)), JSON, JSON)
def test_no_specification_raises(kind: str, value: Any, other: Any) -> None:
    spec = {"answer": value, "choices": other, "calls": value, "tolerance": other, "ignore_case": other}
    spec |= {"instructions": value, "loose": other, "unit": value, "atol": other}
    assert verify(task(kind, spec), "5").outcome in ("pass", "fail", "undecided")


@pytest.mark.parametrize("kind", SPECS)
@pytest.mark.parametrize("piece", ["x", "1", "1,", "answer: ", "\\boxed{", "<think>", "[f(", "#### "])
def test_a_completion_of_ten_megabytes_gets_a_verdict(kind: str, piece: str) -> None:
    text = piece * (10_000_000 // len(piece))
    assert verify(task(kind), text).outcome == "fail"


def test_a_verdict_says_how_long_it_took() -> None:
    assert verify(task("numeric"), "5").seconds > 0


def test_the_door_loads_nothing_heavy() -> None:
    heavy = [
        "torch",
        "trl",
        "transformers",
        "reasoning_gym",
        "math_verify",
        "sympy",
        "sandlock",
        "jsonschema",
        "pint",
        "fasttext",
    ]
    code = (
        "import json, sys, corpusforge.verify, corpusforge.verify.reward;"
        f"print(json.dumps([name for name in {heavy} if name in sys.modules]))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == []
