"""math: equal in meaning, in both directions, within limits, in every kind of thread."""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusforge.errors import MissingExtra
from corpusforge.verify import math as maths
from corpusforge.verify import verify, verify_many

if TYPE_CHECKING:
    from pathlib import Path


def task(gold: Any) -> dict[str, Any]:
    return {"verifier": {"kind": "math", "spec": {"answer": gold}}}


def outcome(gold: Any, completion: str) -> str:
    return verify(task(gold), completion).outcome


EQUAL = [
    ("6", "The answer is $6$."),
    (r"\frac{3}{7}", r"So \boxed{\frac{3}{7}}"),
    (r"\frac34", "0.75"),
    ("x+2", "$2+x$"),
    ("x^2+1", r"\boxed{(x+1)^2-2x}"),
    ("5", r"\boxed{x=5}"),
    ("(1,2)", "1<x<2"),
    (r"x \in [1,2]", "[1,2]"),
    ("3, 5", r"\boxed{5, 3}"),
    (r"\sqrt{2}", r"#### \sqrt2"),
    (r"\begin{pmatrix}1\\2\end{pmatrix}", r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}"),
    (r"\text{Evelyn}", "The answer is Evelyn."),
    ("18", "18 dollars"),
    ("1,000", "1000"),
    ("7", r"\boxed{3+4=7}"),
    ("7", r"\boxed{x=7}"),
    ("7", r"\boxed{7\text{ cm}^2}"),
    ("7", r"\boxed{\frac{14}{2}}"),
    ("60", r"\boxed{60^\circ}"),
    ("100000", r"\boxed{10^5}"),
    ("300", r"\boxed{3 \times 10^{2}}"),
    ("5/2", r"\boxed{2\frac{1}{2}}"),
    ("-7", r"\boxed{- 7}"),
    ("1.414214", r"\boxed{\sqrt{2}}"),
    ("0.866025", r"\boxed{\frac{\sqrt{3}}{2}}"),
    (r"\sqrt{2}/2", r"\boxed{\frac{1}{\sqrt{2}}}"),
    (r"2\sqrt{3}", r"\boxed{\sqrt{12}}"),
    (r"\frac{\pi}{2}", r"\boxed{\pi/2}"),
    ("3+4", r"\boxed{7}"),
    ("3+4", r"\boxed{4+3}"),
    ("2^{10}", r"\boxed{1024}"),
    ("2^{100}", r"\boxed{4^{50}}"),
    (r"\text{not prime}", r"\boxed{\text{not prime}}"),
]
UNEQUAL = [
    ("9", "$8$"),
    ("x+2", "$x-2$"),
    ("(3,5)", r"\boxed{(5,3)}"),
    ("12", r"\boxed{12} or \boxed{13}"),
    (r"\frac{1}{3}", r"\boxed{\frac{1}{4}}"),
    ("1", r"\boxed{2x+z=1}"),
    (r"\sqrt{2}", r"The answer is not $\sqrt{2}$."),
    (r"\sqrt{2}", r"It is not \boxed{\sqrt{2}}."),
    ("1.5", r"\boxed{1+0.5}"),
    ("3", "I do not know."),
    ("3", ""),
]


@pytest.mark.parametrize(("gold", "completion"), EQUAL)
def test_expressions_of_equal_meaning_pass(gold: str, completion: str) -> None:
    assert outcome(gold, completion) == "pass"


@pytest.mark.parametrize(("gold", "completion"), UNEQUAL)
def test_other_expressions_and_no_expression_fail(gold: str, completion: str) -> None:
    assert outcome(gold, completion) == "fail"


@pytest.mark.parametrize(("left", "right"), [*EQUAL[:10], *UNEQUAL[:6], ("2x+z=1", "1")])
def test_swapping_gold_and_answer_gives_the_same_verdict(left: str, right: str) -> None:
    assert outcome(left, right) == outcome(right, left)


PARTS = st.sampled_from(["x", "2", "-3", r"\frac{1}{2}", r"\sqrt{3}", "y", r"\pi"])


@settings(max_examples=30)
@given(PARTS, PARTS, PARTS)
def test_a_sum_is_its_sum_in_any_order_and_no_other_one(a: str, b: str, c: str) -> None:
    assert outcome(f"{a} + ({b}) + ({c})", f"\\boxed{{{c} + ({a}) + ({b})}}") == "pass"
    assert outcome(f"{a} + ({b}) + ({c})", f"\\boxed{{{c} + ({a}) + ({b}) + 1}}") == "fail"


@pytest.mark.parametrize(
    "gold",
    ["", None, True, "Because short waves scatter more.", "Half of 90 is 45, as the 3rd line shows. Answer: see above"],
)
def test_a_gold_that_is_no_expression_is_undecided_whatever_is_said(gold: Any) -> None:
    assert {outcome(gold, completion) for completion in ("", "5", str(gold))} == {"undecided"}


SUMS = [
    "3+4", "3 + 4", r"3 \times 4", r"\frac{14}{2}+0", r"2^{10}", "5!", r"\log_{2}(128)", r"\sqrt{49}", r"\binom{7}{1}",
    r"\left(3+4\right)", "7-0", "2(3)+1", r"14\div 2", "3·4", r"(10)(2)", "x=3+4", "7,3+4", "1+", "7^", r"\frac{7}",
]  # fmt: skip


@pytest.mark.parametrize("said", SUMS)
@pytest.mark.parametrize("gold", ["7", "12", "1024", "20", "1.5"])
def test_numbers_left_to_be_worked_out_fail_without_a_parser_as_they_do_with_it(
    gold: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "disable", lambda _: None)  # which is for a worker
    if maths.unworked(gold, f"${said}$"):
        assert maths.decide(f"${gold}$", f"${said}$", True) in ("unworked", "unequal", "no_answer")
    else:
        assert maths.worked(gold, said) or "x" in said or said in ("1+", "7^")


@pytest.mark.parametrize(
    "bomb",
    [
        r"7^{7^{7^{7^{7}}}}",
        r"\frac{(10^{9})!}{(10^{9}-1)!}",
        r"\log_{2^{40}}(\log_{2^{20}} 9^{9^{9}})",
        "9^" * 900 + "9",
    ],
)
def test_bombs_of_plain_numbers_need_no_worker(bomb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maths._limits, "hold", lambda *_: pytest.fail("a worker was asked"))
    for said in (f"\\boxed{{{bomb}}}", f"${bomb}$", f"The answer is ${bomb}$."):
        assert verify(task("4"), said).rule == "math.expression"


def test_plain_numbers_need_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maths._limits, "call", lambda *_: pytest.fail("a worker was asked"))
    assert (outcome("72", "#### 72"), outcome("72", "#### 73")) == ("pass", "fail")


def test_without_math_verify_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maths, "find_spec", lambda _: None)
    maths._need_math_verify.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'corpusforge\[verify\]'"):
        verify(task("x"), "$x$")


def _outcomes(pairs: list[tuple[str, str]]) -> list[str]:
    return [outcome(gold, completion) for gold, completion in pairs]


def test_threads_processes_and_asyncio_give_the_verdicts_of_the_main_thread() -> None:
    pairs = EQUAL[:5] + UNEQUAL[:4]
    expected = ["pass"] * 5 + ["fail"] * 4

    async def aside() -> list[str]:
        return list(await asyncio.gather(*(asyncio.to_thread(outcome, *pair) for pair in pairs)))

    assert _outcomes(pairs) == expected
    assert [v.outcome for v in verify_many([task(gold) for gold, _ in pairs], [said for _, said in pairs])] == expected
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(outcome, *zip(*pairs, strict=True))) == expected
    assert asyncio.run(aside()) == expected


@pytest.mark.slow
def test_spawned_processes_give_the_same_verdicts() -> None:
    with get_context("spawn").Pool(2) as processes:
        assert processes.map(_outcomes, [EQUAL[:3], UNEQUAL[:3]]) == [["pass"] * 3, ["fail"] * 3]


@pytest.mark.slow
def test_an_expression_without_end_never_passes_and_costs_its_neighbours_nothing() -> None:
    hostile = [r"$7^{7^{7^{7^{7}}}} + x$", r"$\frac{(10^{9})!}{(10^{9}-1)!} + x$", "$5$", "$6$"]
    found = [verdict.outcome for verdict in verify_many([task("$5$")] * 4, hostile)]
    assert found[2:] == ["pass", "fail"]
    assert "pass" not in found[:2]


@pytest.mark.slow
def test_an_expression_without_end_fails_and_is_undecided_where_the_gold_has_no_end_either() -> None:
    bomb = r"$\frac{(10^{9})!}{(10^{9}-1)!} + x$"
    over = verify(task("12"), bomb)
    assert over.outcome == "fail"
    assert over.rule.removeprefix("math.") in ("timeout", "memory")
    assert verify(task(bomb), "$12$").outcome == "undecided"


@pytest.mark.slow
@pytest.mark.parametrize("case", ["P34", "P35"])
def test_public_cases_get_their_verdict_within_their_limits(shared: Path, case: str) -> None:
    right = {"equal": {"pass"}, "unequal": {"fail"}, "undecided or unequal within the limit": {"undecided", "fail"}}
    lines = (shared / f"cases/{case}.jsonl").read_text(encoding="utf-8").splitlines()
    for one in map(json.loads, lines):
        assert outcome(one["gold"], one["pred"]) in right[one["verdict"]], one["id"]
