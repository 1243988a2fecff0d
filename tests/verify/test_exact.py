"""exact: one text, in whatever Unicode form and spacing."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import verify


def outcome(gold: Any, completion: str, **spec: Any) -> str:
    return verify({"verifier": {"kind": "exact", "spec": {"answer": gold, **spec}}}, completion).outcome


@pytest.mark.parametrize(
    "completion",
    [
        "New York",
        " New \n York ",
        "The answer is New York",
        "The answer is **New York**.",
        "#### New York",
        r"\boxed{New York}",
        r"$\boxed{\text{New York}}$",
        "<think>Boston?</think> New York",
        "<answer>New York</answer>",
    ],
)
def test_the_whole_text_or_the_marked_answer_may_be_the_gold_text(completion: str) -> None:
    assert outcome("New York", completion) == "pass"


@pytest.mark.parametrize(
    "completion", ["", "new york", "New York or Boston", "It is New York", "NewYork", "Answer: New York, NY"]
)
def test_anything_else_fails(completion: str) -> None:
    assert outcome("New York", completion) == "fail"


def test_case_counts_unless_the_specification_says_otherwise() -> None:
    assert outcome("Straße", "STRASSE", ignore_case=True) == "pass"
    assert outcome("Straße", "STRASSE") == "fail"


@pytest.mark.parametrize("gold", ["", "  ", None, True, ["a"]])
def test_a_gold_without_text_is_undecided(gold: Any) -> None:
    assert outcome(gold, "a") == "undecided"


@given(st.text(st.characters(categories=["L", "M", "N"]), min_size=1), st.sampled_from(["NFC", "NFD"]))
def test_every_text_equals_itself_in_either_canonical_form(text: str, form: Any) -> None:
    assert outcome(text, unicodedata.normalize(form, text)) == "pass"
