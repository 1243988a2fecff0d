"""choice: the letter that is given as the answer."""

from __future__ import annotations

from typing import Any

import pytest

from corpusforge.verify import verify


def outcome(completion: str, answer: Any = "B", choices: Any = ("A", "B", "C", "D")) -> tuple[str, str]:
    verdict = verify({"verifier": {"kind": "choice", "spec": {"answer": answer, "choices": choices}}}, completion)
    return verdict.outcome, verdict.rule.removeprefix("choice.")


@pytest.mark.parametrize(
    "completion",
    [
        "B",
        "b",
        "(B)",
        "(b)",
        "B.",
        "B) Paris",
        "**B**",
        "Option B",
        "Answer: B",
        "**Answer:** (B)",
        "The answer is B",
        "The correct answer is option B, because A is too small.",
        "#### B",
        r"\boxed{B}",
        r"$\boxed{\text{(B)}}$",
        "<think>A?</think> <answer>B</answer>",
        "A is too small and C too large.\n\nB",
        "The answer is not A. The answer is B.",
        "The correct option is B",
        "**Correct choice:** (B)",
        "Ｂ",
        "B) C",  # the text of an option may be a letter
        "B, because A is wrong.",
        "B, but C was close.",
        "B. vitamins A and C",
        "The best option is not A. The best option is B.",
    ],
)
def test_the_usual_forms_of_an_answer_pass(completion: str) -> None:
    assert outcome(completion) == ("pass", "letter")


@pytest.mark.parametrize(
    ("completion", "rule"),
    [
        ("A", "letter"),
        ("The answer is C.", "letter"),
        ("", "no_letter"),
        ("Paris", "no_letter"),
        ("B lies north of A", "letter"),
        ("I think that B is right.", "no_letter"),
        ("A triangle has three sides.", "no_letter"),
        ("The answer is a triangle.", "no_letter"),
        ("E", "not_offered"),
        ("Answer: Z", "not_offered"),
        ("Answer: A or B", "several"),
        ("B, C", "several"),
        (r"\boxed{A} or \boxed{B}", "several"),
        ("The answer is A. On second thought, the answer is B.", "several"),
    ],
)
def test_other_letters_no_letter_and_several_letters_do_not_pass(completion: str, rule: str) -> None:
    assert outcome(completion, answer="D" if completion.startswith("B lies") else "B") == ("fail", rule)


@pytest.mark.parametrize(
    ("answer", "choices"),
    [
        ("E", ["A", "B"]),
        ("", ["A", "B"]),
        (None, ["A", "B"]),
        ("A", None),
        ("A", []),
        ("A", "AB"),
        ("Paris", ["A", "B"]),
    ],
)
def test_a_gold_that_was_not_offered_is_undecided(answer: Any, choices: Any) -> None:
    assert outcome("A", answer, choices) == ("undecided", "unreadable_gold")


def test_options_that_are_texts_have_the_letters_of_their_places() -> None:
    assert outcome("B", "B", ["Paris", "Rome"]) == ("pass", "letter")
    assert outcome("C", "B", ["Paris", "Rome"]) == ("fail", "not_offered")


@pytest.mark.parametrize(
    "completion",
    [
        "B or maybe C",
        "B, but possibly C",
        "B (or C)",
        "Answer: B or perhaps option C",
        "Answer: B; alternatively C",
        "Answer: B. Or C.",
        "B, but it could also be C",
        "B. Paris or C. Rome",
        "(B) Paris or (C) Rome",
        "B C",
        "Answer: B C D",
    ],
)
def test_a_second_letter_behind_a_hedge_fails_like_one_behind_or(completion: str) -> None:
    assert outcome(completion) == ("fail", "several")
