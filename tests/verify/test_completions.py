"""Completions of every form before every kind: a verdict comes back, without a text of theirs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import KINDS, Verdict, verify

SPECS: dict[str, dict[str, Any]] = {
    "numeric": {"answer": "5", "unit": "m"},
    "exact": {"answer": "5"},
    "math": {"answer": "\\frac{3}{7}"},
    "choice": {"answer": "A", "choices": ["A", "B"]},
    "regex": {"pattern": "[0-9]"},
    "json_schema": {"schema": {"const": 5}},
    "instructions": {
        "instructions": [{"id": "length_constraints:number_words", "kwargs": {"num_words": 2, "relation": "less than"}}]
    },
    "tool_call": {"calls": [{"f": {"a": [5]}}]},
    "reasoning_gym": {"dataset": "leg_counting", "entry": {"question": "?", "answer": "5", "metadata": {}}},
    "assert_tests": {"tests": ["assert f(5) == 5"]},
    "doctest": {"entry_point": "f", "module": "", "examples": [{"source": "f(5)\n", "want": "5\n", "options": []}]},
    "program": {"tests": [{"input": "5\n", "output": "5\n"}]},
    "judge": {"rubric": "Is it 5?"},
}
CODE = ("assert_tests", "doctest", "program")  # a confined process each time
JUNK = random.Random(5).randbytes(1_000_000)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.binary(max_size=8)
NAMES = st.sampled_from(["role", "content", "text", "type", "tool_calls", "name"]) | st.text(max_size=4)
WORDS = st.sampled_from(["assistant", "user", "text", "image_url", "5"])
FORMS = st.recursive(
    LEAVES | WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)


def ask(kind: str, completion: Any) -> Verdict:
    return verify({"verifier": {"kind": kind, "spec": SPECS.get(kind, {})}}, completion)


def said(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "5?"}, {"role": "assistant", "content": content}]


@pytest.mark.parametrize(
    "completion",
    [
        None,
        b"5",
        bytearray(b"5"),
        5,
        ["5"],
        [{"type": "text", "text": None}],
        [{"type": "text", "text": b"5"}],
        said(b"5"),
        said(5),
        said([{"type": "text", "text": None}]),
        said([b"5"]),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_no_text_is_undecided(kind: str, completion: Any) -> None:
    verdict = ask(kind, completion)
    assert (verdict.outcome, verdict.rule) == ("undecided", "verify.unreadable_completion")


@pytest.mark.parametrize("kind", KINDS)
def test_parts_are_read_as_their_text(kind: str) -> None:
    parts = [{"type": "text", "text": "4"}, {"type": "image_url", "image_url": "x"}, {"text": "2"}]
    forms = ["42", parts, tuple(parts), said("42"), said(parts), said(["4", "2"])]
    verdicts = [ask(kind, form) for form in forms]
    assert len({(verdict.outcome, verdict.rule) for verdict in verdicts}) == 1
    assert verdicts[0].rule != "verify.unreadable_completion"


@pytest.mark.parametrize("coding", [("latin-1", "strict"), ("utf-8", "surrogateescape"), ("utf-8", "replace")])
@pytest.mark.parametrize("kind", KINDS)
def test_a_megabyte_of_junk_passes_nothing(kind: str, coding: tuple[str, str]) -> None:
    verdict = ask(kind, JUNK.decode(*coding))
    assert verdict.outcome in ("fail", "undecided")
    assert verdict.rule.isascii()
    assert len(verdict.rule) < 60


@given(st.sampled_from([kind for kind in KINDS if kind not in CODE]), FORMS | st.lists(FORMS, max_size=2))
def test_no_form_raises(kind: str, completion: Any) -> None:
    verdict = ask(kind, completion)
    assert verdict.outcome in ("pass", "fail", "undecided")
    assert verdict.rule.partition(".")[0] in (kind, "verify", "code")
    assert not verdict.rule.endswith(".error")
