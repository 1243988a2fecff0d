"""reasoning_gym: its own scorers, without partial credit and without running what a model wrote."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.errors import MissingExtra
from corpusforge.shapes.tasks import reasoning_gym as shape
from corpusforge.verify import reasoning_gym as kind
from corpusforge.verify import verify, verify_many

if TYPE_CHECKING:
    from pathlib import Path

COUNTDOWN = {"question": "…", "answer": "40 + 7*5", "metadata": {"numbers": [40, 7, 5], "target": 75}}
CHAIN = {"question": "1 + 2 =", "answer": "3", "metadata": {}}


def task(dataset: Any, entry: Any) -> dict[str, Any]:
    return {"verifier": {"kind": "reasoning_gym", "spec": {"dataset": dataset, "entry": entry}}}


@pytest.mark.parametrize(
    "completion", ["40 + 7*5", "<answer>5*7 + 40</answer>", "<think>40?</think>5*7+40", "The answer is 7*5 + 40"]
)
def test_what_the_scorer_accepts_passes_wherever_the_answer_stands(completion: str) -> None:
    assert verify(task("countdown", COUNTDOWN), completion).outcome == "pass"


def test_partial_credit_is_a_fail_that_keeps_its_score() -> None:
    verdict = verify(task("countdown", COUNTDOWN), "40 + 7 + 5")
    assert (verdict.outcome, verdict.score) == ("fail", 0.05)


def test_an_empty_answer_fails() -> None:
    assert verify(task("chain_sum", CHAIN), "<answer></answer>").outcome == "fail"


@pytest.mark.parametrize(
    ("dataset", "entry", "rule"),
    [
        ("no_such_dataset", CHAIN, "unknown_dataset"),
        (None, CHAIN, "unreadable_gold"),
        ("chain_sum", None, "unreadable_gold"),
        ("spell_backward", {**CHAIN, "answer": None}, "no_gold"),
        ("countdown", {**COUNTDOWN, "metadata": None}, "score"),
    ],
)
def test_a_task_that_cannot_be_scored_never_passes(dataset: Any, entry: Any, rule: str) -> None:
    verdict = verify(task(dataset, entry), "3")
    assert verdict.rule == f"reasoning_gym.{rule}"
    assert verdict.outcome == ("fail" if rule == "score" else "undecided")


def test_without_reasoning_gym_the_install_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "find_spec", lambda _: None)
    kind._need_reasoning_gym.cache_clear()
    with pytest.raises(MissingExtra, match=r"pip install 'corpusforge\[verify\]'"):
        verify(task("chain_sum", CHAIN), "3")


@pytest.mark.parametrize("text", ["2**3 - (4 + x)/2", "sqrt(2)*sin(x)", "4! + 1", "-x**2", "Integral(x, x)"])
def test_formulas_are_formulas(text: str) -> None:
    kind._demand_formula(text)


@pytest.mark.parametrize(
    "text",
    [
        "open('x', 'w')",
        "exec('1')",
        "(lambda: 1)()",
        "x.__class__",
        "preview(x)",
        "(preview)(x)",
        "[1][0]",
        "'a'*9",
        "f'{x}'",
        "sin(x, evaluate=1)",
        "__import__",
        "x if x else y",
    ],
)
def test_anything_that_could_run_code_is_no_formula(text: str) -> None:
    with pytest.raises((ValueError, SyntaxError)):
        kind._demand_formula(text)


def test_literals_and_arithmetic_evaluate_and_names_do_not() -> None:
    assert kind._literal("[[1, 0x10 << 2], ['a']]") == [[1, 64], ["a"]]
    with pytest.raises(ValueError, match="not a literal"):
        kind._literal("[open]")


@pytest.fixture(scope="module")
def entries(shared: Path) -> list[dict[str, Any]]:
    text = (shared / "data/reasoning_gym/generated_rg0.1.25_seed42.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line]


def rows(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"verifier": dict(zip(("kind", "spec"), shape(one)[0].verifier, strict=True))} for one in entries]


def test_every_stored_answer_passes(entries: list[dict[str, Any]]) -> None:
    answered = [entry for entry in entries if entry["answer"] is not None]
    verdicts = verify_many(rows(answered), [entry["answer"] for entry in answered])
    assert [entry["task"] for entry, v in zip(answered, verdicts, strict=True) if v.outcome != "pass"] == []


def test_tasks_without_a_stored_answer_are_scored_by_their_metadata(entries: list[dict[str, Any]]) -> None:
    known = {"propositional_logic": "example_answer", "rubiks_cube": "example_correct_answer"}
    open_ones = [entry for entry in entries if entry["answer"] is None and entry["task"] in known]
    answers = [entry["metadata"][known[entry["task"]]] for entry in open_ones]
    assert len(open_ones) == 20
    assert {verdict.outcome for verdict in verify_many(rows(open_ones), answers)} == {"pass"}
    assert {verdict.outcome for verdict in verify_many(rows(open_ones), ["?"] * 20)} == {"fail"}


@pytest.mark.parametrize("text", ["this or that", "5x", "(", "{}", "null", "[[1, 2], [3]]", "\ud800"])
def test_nonsense_fails_on_every_dataset(entries: list[dict[str, Any]], text: str) -> None:
    one_each = list({entry["task"]: entry for entry in entries}.values())
    verdicts = verify_many(rows(one_each), [text] * len(one_each))
    assert [one["task"] for one, v in zip(one_each, verdicts, strict=True) if v.outcome != "fail"] == []


def test_no_scorer_runs_what_a_model_wrote(entries: list[dict[str, Any]], tmp_path: Path) -> None:
    mark = tmp_path / "written"
    one_each = list({entry["task"]: entry for entry in entries}.values())
    attacks = [f"[open({str(mark)!r}, 'w')]", f"open({str(mark)!r}, 'w')", f"exec(\"open({str(mark)!r}, 'w')\")"]
    for attack in attacks:
        verdicts = verify_many(rows(one_each), [f"<answer>{attack}</answer>"] * len(one_each))
        assert {verdict.outcome for verdict in verdicts} == {"fail"}
    assert not mark.exists()


@pytest.mark.parametrize(
    ("dataset", "answer", "said", "outcome"),
    [
        ("complex_arithmetic", "-15.0 + 3.0i", "nan", "fail"),
        ("complex_arithmetic", "-15.0 + 3.0i", "nan+nanj", "fail"),
        ("complex_arithmetic", "-15.0 + 3.0i", "-15 + 3i", "pass"),
        ("coin_flip", "0.234375", "0", "fail"),
        ("coin_flip", "0.234375", "0.23", "fail"),
        ("coin_flip", "0.234375", "15/64", "pass"),
        ("coin_flip", "0.234375", "0.2344", "pass"),
    ],
)
def test_what_a_scorer_takes_by_mistake_fails(dataset: str, answer: str, said: str, outcome: str) -> None:
    metadata = {"result": [-15.0, 3.0]} if dataset == "complex_arithmetic" else {}
    entry = {"question": "What is it?", "answer": answer, "metadata": metadata}
    task = {"verifier": {"kind": "reasoning_gym", "spec": {"dataset": dataset, "entry": entry}}}
    assert verify(task, said).outcome == outcome


@pytest.mark.parametrize("said", ["9**9**9**9", "((9**999)**999)**999", "9**(999*999*999)"])
def test_a_tower_of_powers_fails_at_once(said: str) -> None:
    entry = {"question": "", "answer": "94*4 - 61", "metadata": {"numbers": [94, 4, 61], "target": 315}}
    task = {"verifier": {"kind": "reasoning_gym", "spec": {"dataset": "countdown", "entry": entry}}}
    assert verify(task, "94*4 - 61").outcome == "pass"
    assert verify(task, said).outcome == "fail"
