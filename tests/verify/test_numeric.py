"""numeric: which number is the answer, and when two numbers are one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.shapes.tasks import question_answer
from corpusforge.verify import verify, verify_many
from corpusforge.verify.numeric import parse_number

if TYPE_CHECKING:
    from fractions import Fraction
    from pathlib import Path


def outcome(gold: Any, completion: str, **spec: Any) -> str:
    return verify({"verifier": {"kind": "numeric", "spec": {"answer": gold, **spec}}}, completion).outcome


@pytest.mark.parametrize(
    ("gold", "completion"),
    [
        ("1000", "#### 1,000"),
        ("1,000", "1000"),
        ("72", "72.0"),
        ("72", "So she sold 72."),
        ("-5", "−5"),
        ("-18", "-$18"),
        ("3/4", "0.75"),
        ("0.75", "The answer is 3/4"),
        ("0.75", r"$\boxed{\frac{3}{4}}$"),
        ("3.5", "3 1/2"),
        ("50", "50%"),
        ("50%", "50"),
        ("18", "The answer is $18."),
        ("18", "18 dollars"),
        ("18", r"\boxed{18\text{ dollars}}"),
        ("1000", r"\boxed{1{,}000}"),
        ("2000000", "The answer is 2 million people."),
        ("5", "５"),
        ("12", "The answer is 5 + 7 = 12."),
        ("12", "The answer is 12 apples, 3 of them red."),
        ("72", "**Final answer:** **72**"),
        ("72", "Answer:\n\n72"),
        ("72", "<think>it may be 71</think><answer>72</answer>"),
        ("72", "#### 72\n\nThat was problem 3."),
        (72, "72"),
        (0.5, "1/2"),
        ("0.5", "½"),
        ("0.75", "It takes ¾ of an hour."),
        ("1.5", "1½"),
        ("1.5", "The answer is 1 ½ cups."),
        ("-1.5", "#### -1½"),
        ("2/3", r"\boxed{⅔}"),
        ("0.5", "1⁄2"),
        ("-3", r"\boxed{- 3}"),
        ("-3", r"\boxed{x = - 3}"),
        ("-0.75", r"\boxed{- \frac{3}{4}}"),
        ("100000", "10^5"),
        ("100000", "Answer: $10^{5}$"),
        ("100000", "10**5"),
        ("100000", "10⁵"),
        ("0.001", r"\boxed{10^{-3}}"),
        ("300000", r"\boxed{3 \times 10^{5}}"),
        ("300000", "about 3 × 10⁵"),
        ("100003", "#### 10^5 + 3 = 100003"),
        ("1024", r"\boxed{2^{10} = 1024}"),
        ("72", "The area is 72 cm^2."),
        ("72", r"\boxed{72\,\text{cm}^{2}}"),
        ("72", "It is 0.72 × 100 = 72 g·mol^{-1}."),
        ("72", "Answer: <b>72</b>"),
        ("72", "**Answer:**\n> 72"),
        ("72", "So that is it.\n> 72"),
    ],
)
def test_the_same_number_in_another_form_passes(gold: Any, completion: str) -> None:
    assert outcome(gold, completion) == "pass"


@pytest.mark.parametrize(
    "completion",
    [
        "The number of clips rose from 48 to 72.",
        "That adds up to 72.",
        "The answer is about 72.",
        "The answer is 72 or so.",
        "The answer is 72!",
        "The answer is 72, or 72.0",
        "The answer is 72, but Natalia sold only 48 of them in April.",
        "The answer is 72 clips, of which she may have sold 24 in May.",
        "The answer is 72 (48 in April and 24 in May).",
        "The answer is 72, which is 24 more than 48.",
        "#### 72\n\nIn April it could not have been 48.",
        "It was not 48 + 23, so it is 72.",
        "If not, then 72.",
        r"So we need at least $\boxed{72}$ of them.",
        "48 + 24 = <<48+24=72>>72 clips",
        "→ 72",
        "=> 72",
        "She gave out 72 over the year.",
        "The answer is 72, as 73 is not a multiple of 9.",
    ],
)
def test_prose_around_the_answer_takes_nothing_back(completion: str) -> None:
    assert outcome("72", completion) == "pass"


@pytest.mark.parametrize("tower", ["9^9^9^9", "10^{10^{10}}", "10**10**10", "10^9999", "9" * 900 + "^" + "9" * 900])
def test_a_tower_of_powers_is_not_worked_out(tower: str) -> None:
    assert verify({"verifier": {"kind": "numeric", "spec": {"answer": "1"}}}, tower).outcome == "fail"
    assert outcome(tower, "1") == "undecided"


@pytest.mark.parametrize(
    "completion",
    [
        "",
        "I do not know.",
        "12 or 13",
        "It is 13, or maybe 12.",
        "The answer is 12 or 13",
        "The answer is 12 apples or 13 apples.",
        "#### 12, 13",
        "#### 12-13",
        r"\boxed{12} or \boxed{13}",
        "The answer is 5 + 7.",
        "<think>So it is 12",
        "<think>12</think> It is 13.",
        "The answer is not 12, it is 13.",
        "12 million",
        "12%0",
        "H12",
    ],
)
def test_no_answer_several_answers_and_another_answer_fail(completion: str) -> None:
    assert outcome("12", completion) == "fail"


def test_half_is_not_fifty_percent() -> None:
    assert outcome("0.5", "50%") == "fail"


def test_of_an_answer_given_twice_the_last_counts() -> None:
    text = "The answer is 12. No: the answer is 13."
    assert (outcome("13", text), outcome("12", text)) == ("pass", "fail")


def test_a_marked_answer_goes_before_the_last_number() -> None:
    assert outcome("12", "#### 12\nThat took 3 steps.") == "pass"


@pytest.mark.parametrize("gold", ["", "twelve", "12 or 13", None, True, [12], "nan", "inf", "1/0", "12 apples"])
def test_a_gold_that_is_no_number_is_undecided(gold: Any) -> None:
    assert outcome(gold, "12") == "undecided"


def test_the_tolerance_is_relative_and_closed() -> None:
    assert outcome("200", "202", tolerance=0.01) == "pass"
    assert outcome("200", "202.01", tolerance=0.01) == "fail"
    assert outcome("200", "202") == "fail"


@pytest.mark.parametrize("tolerance", [-0.1, 2, "0.1", True, float("nan")])
def test_a_tolerance_that_is_none_is_undecided(tolerance: Any) -> None:
    assert outcome("200", "200", tolerance=tolerance) == "undecided"


def test_a_literal_of_a_million_digits_fails() -> None:
    assert outcome("5", "0" * 1_000_000 + "5") == "fail"


@given(st.integers(-(10**12), 10**12))
def test_every_integer_is_read_with_and_without_separators(number: int) -> None:
    assert parse_number(f"{number:,}") == parse_number(str(number)) == number


@given(st.decimals(-(10**6), 10**6, places=3), st.sampled_from(["{}", "#### {}", r"\boxed{{{}}}", "The answer is {}."]))
def test_every_decimal_passes_in_every_form_and_its_neighbour_fails(number: Any, form: str) -> None:
    assert outcome(str(number), form.format(number)) == "pass"
    assert outcome(str(number + 1), form.format(number)) == "fail"


@given(st.fractions(max_denominator=10**6))
def test_every_fraction_is_read_exactly(number: Fraction) -> None:
    assert parse_number(f"{number.numerator}/{number.denominator}") == number


@pytest.mark.parametrize("part", ["train", "test"])
def test_every_solution_of_gsm8k_passes_its_own_task_and_no_other(shared: Path, part: str) -> None:
    text = (shared / f"data/gsm8k/{part}.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in text.split("\n") if line]
    rows = [{"verifier": dict(zip(("kind", "spec"), question_answer(one)[0].verifier, strict=True))} for one in records]
    solutions = [record["answer"] for record in records]
    golds = [parse_number(solution.split("####")[1]) for solution in solutions]
    assert {verdict.outcome for verdict in verify_many(rows, solutions)} == {"pass"}
    others = verify_many(rows, solutions[1:] + solutions[:1])
    equal = [left == right for left, right in zip(golds, golds[1:] + golds[:1], strict=True)]
    assert [verdict.outcome == "pass" for verdict in others] == equal


def measured(answer: str, unit: Any, completion: str, **more: Any) -> tuple[str, str]:
    spec = {"answer": answer, "unit": unit, **more}
    verdict = verify({"verifier": {"kind": "numeric", "spec": spec}}, completion)
    return verdict.outcome, verdict.rule.removeprefix("numeric.")


@pytest.mark.parametrize(
    ("answer", "unit", "completion"),
    [
        ("5000 m", "m", "5 km"),
        ("5000", "m", "So it is 5 kilometers."),
        ("5 km", "m", "#### 5000 m"),
        ("5000", "m", "5000"),
        ("5000", "m", "5000 in total"),
        ("5000", "m", "The answer is 5km, as asked"),
        ("5000", "m", "\\boxed{5\\,\\mathrm{km}}"),
        ("36 km/h", "m/s", "10 m s^{-1}"),
        ("36 km/h", "m/s", "$10\\,\\mathrm{m\\,s^{-1}}$"),
        ("36 km/h", "m/s", "10 m·s⁻¹"),
        ("36 km/h", "m/s", "36 kilometers per hour"),
        ("1", "m^2", "10,000 cm²"),
        ("1", "m^2", "1 square metre"),
        ("300", "K", "300K"),
        ("300", "K", "26.85 °C"),
        ("25", "degC", "77 degrees Fahrenheit"),
        ("25", "degC", "25^\\circ\\text{C}"),
        ("5", "µm", "5 × 10^{-6} m"),
        ("50", "%", "50%"),
        ("2", "hours", "120 min"),
        ("6", "1/mol", "6"),
        ("6", "1/mol", "6 mol^{-1}"),
        ("6", "mol^{-1}", "6 1/mol"),
        ("6", "mol^-1", "6/mol"),
        ("6", "1/mol", "6000 per kmol"),
        ("6 1/s", "1/min", "360 /min"),
        ("6", "mol⁻¹", "\\boxed{6\\,\\frac{1}{\\text{mol}}}"),
        ("3.5", "1/mol", "3 1/2 1/mol"),
    ],
)
def test_a_unit_that_converts_passes(answer: str, unit: str, completion: str) -> None:
    assert measured(answer, unit, completion)[0] == "pass"


@pytest.mark.parametrize(
    ("completion", "rule"),
    [("5 kg", "unit"), ("5 m", "last_number"), ("5000 s", "unit"), ("5 km²", "unit"), ("5 km or 6 km", "several")],
)
def test_another_unit_or_another_number_fails(completion: str, rule: str) -> None:
    assert measured("5000", "m", completion) == ("fail", rule)


@pytest.mark.parametrize("unit", ["parsnips", "", 5, [], "9**9**9 m", "m**99", "__class__", "$", "x" * 1_000])
def test_a_unit_that_is_none_is_undecided(unit: Any) -> None:
    assert measured("5", unit, "5 m") == ("undecided", "unreadable_unit")


@pytest.mark.parametrize("completion", ["6 /mol", "6 1/mol", "6 mol", "6 per mole"])
def test_a_quotient_of_another_unit_fails(completion: str) -> None:
    assert measured("6", "1/s", completion) == ("fail", "unit")


def test_a_gold_in_another_kind_of_unit_is_undecided() -> None:
    assert measured("5 kg", "m", "5") == ("undecided", "unparsable_gold")


def test_without_a_unit_units_are_dropped_as_ever() -> None:
    assert outcome("5", "5 kg") == outcome("5", "5 km") == "pass"


@pytest.mark.parametrize(
    ("completion", "expected"), [("1.3", "pass"), ("0.7", "pass"), ("1.31", "fail"), ("130 cm", "pass")]
)
def test_an_absolute_tolerance_is_in_the_unit(completion: str, expected: str) -> None:
    assert measured("1", "m", completion, atol=0.3)[0] == expected


def test_the_wider_of_two_tolerances_counts() -> None:
    said = [outcome("100", text, tolerance=0.01, atol=5) for text in ("105", "106", "101")]
    assert said == ["pass", "fail", "pass"]
    assert [outcome("1000", text, tolerance=0.01, atol=5) for text in ("1010", "1011")] == ["pass", "fail"]


@pytest.mark.parametrize("atol", [-1, True, "1", float("nan"), float("inf"), [1], None])
def test_an_absolute_tolerance_that_is_none_is_undecided(atol: Any) -> None:
    verdict = verify({"verifier": {"kind": "numeric", "spec": {"answer": "1", "atol": atol}}}, "1")
    assert verdict.rule == "numeric.unreadable_tolerance"


@pytest.mark.parametrize(
    ("tolerance", "edge", "beyond"), [(0.3, "13", "13.001"), (0.7, "17", "17.001"), (0.1, "9", "8.999")]
)
def test_a_tolerance_is_the_decimal_that_is_written(tolerance: float, edge: str, beyond: str) -> None:
    assert outcome("10", edge, tolerance=tolerance) == "pass"  # as a binary fraction, 0.3 is less than 3/10
    assert outcome("10", beyond, tolerance=tolerance) == "fail"
