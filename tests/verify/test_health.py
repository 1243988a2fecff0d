"""Answers that a verifier is tried on: right by the task's own word, or wrong for certain, the same in every run."""

from __future__ import annotations

import ast
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import Task, verify_many
from corpusforge.verify._mutants import mutants
from corpusforge.verify.health import Exam, exam, examine, probes

CODE = "def f(a, b):\n    if a < b and a != 3:\n        return a + b\n    return [x * 2 for x in range(b)]"
TASKS = [
    Task("numeric", {"answer": "72"}),
    Task("numeric", {"answer": "-0.5"}),
    Task("numeric", {"answer": "3/4"}),
    Task("numeric", {"answer": "$1,000"}),
    Task("numeric", {"answer": 1000, "tolerance": 0.05}),
    Task("exact", {"answer": "Paris"}),
    Task("exact", {"answer": "x", "ignore_case": True}),
    Task("choice", {"answer": "(b)", "choices": ["A", "B", "C"]}),
    Task("choice", {"answer": "A", "choices": ["one", "two"]}),
    Task("tool_call", {"calls": [{"f": {"a": [1, 2], "b": ["x", ""]}}, {"g": {}}]}),
    Task("tool_call", {"calls": [{"f": {"place": [{"city": ["Rome"], "zip": ["", "1"]}]}}]}),
    Task("tool_call", {"calls": []}, tools=[{"type": "function", "function": {"name": "f"}}]),
    Task("numeric", {"answer": 100, "atol": 5}),
    Task("numeric", {"answer": "1" + "0" * 400, "tolerance": 0.01}),
]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.kind)
def test_gold_passes_and_every_wrong_answer_fails(task: Task) -> None:
    """Of kinds whose wrong answers are wrong for certain."""
    tried = probes(exam(task), mutants=10)
    verdicts = verify_many([task] * len(tried), [probe.completion for probe in tried])
    assert [v.outcome for v in verdicts] == ["pass" if p.check == "gold" else "fail" for p in tried]
    assert {"gold", "mutant"} <= {probe.check for probe in tried}


def test_a_tool_call_has_five_faults() -> None:
    """Another function, one more call, an argument renamed, of another type, left out."""
    tried = probes(exam(TASKS[9]), mutants=10)
    names = {probe.what for probe in tried if probe.check == "mutant"}
    assert names == {"other function", "extra call", "renamed argument", "wrong type", "argument left out"}


@given(st.fractions(max_denominator=1), st.floats(0, 1))
def test_a_wrong_number_is_beyond_the_tolerance(number: Any, tolerance: float) -> None:
    """Whatever the tolerance allows is not called wrong."""
    task = Task("numeric", {"answer": str(number), "tolerance": tolerance})
    wrong = [probe.completion for probe in probes(exam(task), 10) if probe.check == "mutant"]
    assert {verdict.outcome for verdict in verify_many([task] * len(wrong), wrong)} <= {"fail"}


def test_programs_with_one_fault_of_each_kind() -> None:
    """Each is Python, unlike the others, and changes one thing."""
    found = mutants(CODE, 20)
    kinds = {fault for fault, _ in found}
    expected = {"comparison", "boundary", "arithmetic", "constant", "connective", "condition", "nothing returned"}
    assert kinds == {*expected, "off by one"}
    assert len({program for _, program in found} | {ast.unparse(ast.parse(CODE))}) == len(found) + 1


def test_the_first_faults_are_of_different_kinds() -> None:
    """And fewer are the first of more."""
    assert len({fault for fault, _ in mutants(CODE, 6)}) == 6
    assert mutants(CODE, 3) == mutants(CODE, 12)[:3]


def test_nothing_in_a_while_is_touched() -> None:
    """It would most often never end."""
    assert mutants("while x < 3:\n    x = x + 1\n", 9) == []
    assert mutants("not python (", 9) == []


@pytest.mark.parametrize(
    "spec", [{}, {"answer": None}, {"answer": ""}, {"answer": ["a"]}, {"calls": [1]}, {"tests": 3}]
)
@pytest.mark.parametrize("kind", ["numeric", "exact", "math", "choice", "tool_call", "reasoning_gym", "program", "x"])
def test_a_task_without_a_gold_answer_has_probes_all_the_same(kind: str, spec: dict[str, Any]) -> None:
    """Nothing that a specification holds stops it."""
    assert {probe.check for probe in probes(exam(Task(kind, spec)))} <= {"empty", "refusal", "noop"}


def test_what_the_task_holds_to_be_right_is_not_tried_as_wrong() -> None:
    """An answer of the very words of a refusal, a decision that no tool fits."""
    refusing = Task("exact", {"answer": "I'm sorry, but I can't help with that."})
    assert [p.check for p in probes(exam(refusing), 0)] == ["gold", "empty", "noop"]
    assert [p.check for p in probes(exam(TASKS[11]), 0)] == ["gold"]


def test_a_judge_is_not_asked_and_a_form_is_tried_on_nothing() -> None:
    """One costs a model, of the other a refusal may well have the form."""
    assert probes(exam(Task("judge", {"rubric": "?"}))) == []
    assert [p.check for p in probes(exam(Task("instructions", {"instructions": []})))] == ["empty"]


def test_a_judge_that_nobody_could_ask_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule says what of it; no model is asked, also where there is one."""
    monkeypatch.setenv("CORPUSFORGE_JUDGE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("CORPUSFORGE_JUDGE_MODEL", "m")
    specs: list[dict[str, Any]] = [{}, {"rubric": "?", "scale": 5}, {"rubric": "?", "mode": "pair"}, {"rubric": "?"}]
    found = examine([exam(Task("judge", spec)) for spec in specs])
    assert [(one.reason, one.rule or one.undecided) for one in found] == [
        ("unreadable_task", "judge.unreadable_rubric"),
        ("unreadable_task", "judge.unreadable_scale"),
        ("unreadable_task", "judge.unreadable_answer"),
        ("", "judge.not_tried"),
    ]


def test_another_tasks_gold_is_tried() -> None:
    """As it is, without its task's help."""
    other = (TASKS[1], "-0.5")
    assert [p.completion for p in probes(Exam(TASKS[0], "72", other)) if p.check == "other_gold"] == ["-0.5"]


def test_the_solution_of_code_may_stand_beside_the_task() -> None:
    """Where the harvester put it."""
    row = {"verifier": {"kind": "doctest", "spec": json.dumps({"entry_point": "f", "examples": []})}}
    assert exam(row, {"solution": CODE}).gold == f"```python\n{CODE}\n```"
    assert exam(row).gold is None


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["", "72", "B", "m", "9" * 400, "\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "f", "id"]), inner, max_size=2),
    max_leaves=8,
)
FIELDS = ("answer", "tolerance", "atol", "choices", "ignore_case", "calls", "instructions", "loose", "tests")


@given(
    st.sampled_from(["numeric", "exact", "choice", "tool_call", "instructions", "judge", "nonsense"]),
    st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=5),
    ANY,
    ANY,
)
def test_whatever_a_task_holds_it_is_examined(kind: str, spec: dict[str, Any], prompt: Any, tools: Any) -> None:
    task = {"verifier": {"kind": kind, "spec": spec}, "prompt": prompt, "tools": tools}
    (health,) = examine([exam(task)])
    assert health.reason or health.undecided or health.wrong["fail"] or health.golds["pass"]


def test_accepted_calls_of_which_one_is_none_are_no_gold() -> None:
    (health,) = examine([exam(Task("tool_call", {"calls": [{"f": 5}, {"g": {"a": [1]}}]}))])
    assert health.reason == "unverifiable_gold"
