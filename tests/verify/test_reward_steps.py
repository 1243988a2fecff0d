"""Steps of worked maths: what is read, what is right, what counts."""

from __future__ import annotations

import time
from fractions import Fraction

import pytest
from benchmarks import process_steps
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import Task
from corpusforge.verify.layers import process
from corpusforge.verify.layers._expression import Unreadable, value
from corpusforge.verify.layers.arithmetic import arithmetic, steps

ANY = Task("numeric", {"answer": "1"})


def states(text: str, prompt: str = "") -> list[str]:
    return [step.state for step in steps(text, prompt)]


@pytest.mark.parametrize(
    "text",
    [
        "<<48/2=24>>",
        "<<16-3-4=9>>",
        "48 / 2 = 24 clips",
        "She makes 9 * 2 eggs = $18 a day.",
        "3*4+2=14",
        "Total = 3 × 4 = 12",
        "48 ÷ 2 = 24",
        "9 − 4 = 5",
        "３＋４＝７",
        "80,000+50,000=$130,000",
        "$2 * 3 + $4.50 = $10.50",
        "3 apples x 4 = 12 apples",
        "3x4=12",
        "5 divided by 2 = 2.5",
        "20% of 50 = 10",
        "3/4 = 75%",
        "3/4*100 = 75%",
        "2/3 = 66.7%",
        "40% + 10 = 50%",
        "9/21 * 100% = 42.86",
        "10/3 = 3.33",
        "20/3 = 6.67",
        "20/3 = 6.66",
        "20/3 ≈ 7",
        "3 1/2 + 2 = 5 1/2",
        "2 / 1/4 = 8",
        "2(3+4)=14",
        "2^3 = 8",
        "2**3 = 8",
        "3² = 9",
        "14 = 3*4+2",
        "7 // 2 = 3",
        "is -3 + 5 = 2",
        r"$3 \times 4 = 12$",
        r"\frac{3}{4} \times 8 = \boxed{6}",
        r"\(7 \cdot 8 = 56\)",
        "**3*4 = 12**",
        "- 3*4 = 12",
        "1. 5+5=10",
        "(3 + 4 = 7)",
        "Day 1 - 3*4 = 12",
        "3 hours * 60 minutes/hour = 180 minutes",
    ],
)
def test_a_right_step_is_right(text: str) -> None:
    assert states(text) == ["right"]


@pytest.mark.parametrize(
    "text",
    [
        "<<48/2=25>>",
        "<<5=6>>",
        "48 / 2 = 25 clips",
        "2.5*3 = 7.4",
        "10/3 = 3.34",
        "10/3 = 3",
        "20% of 50 = 1000",
        "3/4 = 70%",
        "3 apples + 4 apples = 8 apples",
        "2^3 = 9",
        "15 = 3*4+2",
        "<<4/0=4>>",
    ],
)
def test_a_wrong_step_is_wrong(text: str) -> None:
    assert states(text) == ["wrong"]


@pytest.mark.parametrize(
    "text",
    [
        "x + 3 = 7",
        "2x + 3 = 11",
        "x+4=32-7",
        "f(3) + 2 = 5",
        "sin 30 * 2 = 1",
        "17/5 = 3 R 2",
        "17/5 = 3 remainder 2",
        "4/3 = 1 and 1/3",
        "5 feet + 6 inches = 66 inches",
        "1 hour - 20 minutes = 40 minutes",
        "2 million * 3 = 6",
        "12:30 + 2 = 14",
        "20/240 = 8.333...",
        "5! = 120",
        "|3-8| = 5",
        "a != 3+4, a >= 3+4, a == 3+4",
        "Area of 4 bedrooms = 121*4",
        "```python\nx = 3+4 = 8\n```",
        "no sum at all",
    ],
)
def test_what_cannot_be_read_for_certain_is_no_step(text: str) -> None:
    assert states(text) == []
    assert process(ANY, text) is None


def test_a_chain_has_a_step_at_each_sign() -> None:
    assert states("3*4 = 10+2 = 12") == ["right", "right"]
    assert states("3*4 = 12+2 = 14") == ["wrong", "right"]  # a run-on sum says that 12 is 14


def test_equations_of_one_line_are_read_apart() -> None:
    assert states("3*4 = 12, so 20% of 50 + 12 = 22 and 5 + 5 = 11") == ["right", "right", "wrong"]


def test_identities_and_repeated_steps_do_not_count() -> None:
    assert states("<<5=5>> 3+4 = 3+4") == ["identity", "identity"]
    assert states("x = 5 = 5") == []
    assert states("2+3=5\n3+2=5\n2 + 3 = 5.0") == ["right", "repeated", "repeated"]
    assert states("2+3=6\n2+3=6") == ["wrong", "repeated"]


def test_a_step_works_with_numbers_of_the_prompt_or_of_a_step_before() -> None:
    prompt = "Ann has 48 clips, Bob half as many, Cat twelve."
    text = "48/2 = 24\n24+12 = 36\n7+7 = 14\n14+1 = 15\n7+8 = 14"
    assert states(text, prompt) == ["right", "right", "ungrounded", "ungrounded", "wrong"]
    assert states(text)[2:4] == ["right", "right"]  # a prompt without numbers says nothing


def test_all_that_the_assistant_says_is_read() -> None:
    said = [
        {"role": "assistant", "content": "<think>48/2 = 24</think>"},
        {"role": "tool", "content": "1+1 = 3"},
        {"role": "assistant", "content": "24+1 = 26"},
    ]
    assert arithmetic(ANY, said) == (1, 1)


@pytest.mark.parametrize(
    "text",
    ["2^65", "9^9^9", "1e5", "2**0.5", "9" * 41, "(" * 30 + "1" + ")" * 30, "-" * 30 + "1", "3 4", "", "()", "1+", "a"],
)
def test_what_is_too_large_or_no_expression_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        value(text)


EXPRESSIONS = st.recursive(
    st.integers(0, 999).map(str),
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda it: f"({it[0]}{it[1]}{it[2]})"),
    max_leaves=6,
)


@given(EXPRESSIONS)
def test_every_expression_has_the_value_that_other_code_finds(text: str) -> None:
    expected = process_steps.exact(text)
    if expected is None:
        with pytest.raises(ZeroDivisionError):
            value(text)
    else:
        assert value(text).number == expected


@given(EXPRESSIONS, st.integers(1, 9))
def test_a_true_equation_is_never_wrong_and_a_false_one_never_right(text: str, off: int) -> None:
    number = process_steps.exact(f"({text})+0")
    if number is not None and number.denominator == 1 and number >= 0 and not text.isdigit():
        assert states(f"<<{text}={number}>>") == states(f"so {text} = {number}.") == ["right"]
        assert states(f"<<{text}={number + off}>>") == states(f"so {text} = {number + off}.") == ["wrong"]


PIECES = st.sampled_from(
    ["1", "2/3", "=", "+", "*", "(", ")", "%", "$", "<<", ">>", "x", " ", "\n", "≈", "\\frac{", "}"]
)


@given(st.text() | st.lists(PIECES, max_size=60).map("".join))
def test_every_text_has_a_share_from_0_to_1_or_none(text: str) -> None:
    share = process(ANY, text)
    assert share is None or 0 <= share <= 1


@pytest.mark.parametrize(
    "piece",
    ["1+1=2, ", "1=", "=", "(", "1/", "<<", "<<1=1>>", "\\frac{", "9", "```", "- ", "a ", "1 1", "≈", "^{", "1+1=2\n"],
)
def test_a_megabyte_takes_seconds_at_most(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    assert process(ANY, text) in (None, 0, 1)
    assert process(ANY, f"{text}=1") in (None, 0, 1)
    assert time.process_time() - began < 10


def test_a_megabyte_of_steps_that_are_all_different() -> None:
    began = time.process_time()
    assert process(ANY, "".join(f"{n}+1={n + 1}, " for n in range(70_000))) == 1
    assert time.process_time() - began < 10


def test_gsm8k_has_99_in_100_steps_accepted_and_99_in_100_spoilt_ones_rejected(shared: object) -> None:
    worked = process_steps.solutions(process_steps.SHARED / "data" / "gsm8k", 0)
    asked = process_steps.annotations(worked)
    assert len(asked) == 27_998
    whole, broken, _ = process_steps.measured("annotated", asked[::4])
    assert process_steps.share(whole, "right", "identity") >= 0.99
    assert process_steps.share(broken, "wrong", "still true") >= 0.99
    whole, broken, _ = process_steps.measured("plain", asked[::16])
    assert process_steps.share(whole, "right", "identity") >= 0.99
    assert process_steps.share(broken, "wrong", "still true") >= 0.99


def test_gsm8k_has_hardly_a_wrong_step_in_its_prose(shared: object) -> None:
    found = process_steps.prose(process_steps.solutions(process_steps.SHARED / "data" / "gsm8k", 1_000))
    assert found["right"] > 3_000
    assert found["wrong"] <= 0.005 * found["right"]  # nearly all of them slips of the data


def test_fractions_are_exact() -> None:
    assert value("1/3+1/6").number == Fraction(1, 2)
    assert value("0.1+0.2").number == Fraction(3, 10)
    assert value("-2^2").number == -4
