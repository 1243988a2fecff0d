"""doctest: a function is right when its examples hold, as Python's own doctest judges."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpusforge.io.doctests import functions
from corpusforge.shapes.code import doctest as shape
from corpusforge.verify import sandbox
from corpusforge.verify._verdict import Task
from corpusforge.verify.doctest import check, check_many

confined = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))


def example(source: str, want: str = "", *options: str) -> dict[str, Any]:
    return {"source": source + "\n", "want": want and want + "\n", "options": list(options)}


def rule(code: str, *examples: dict[str, Any], module: str = "") -> str:
    spec = {"entry_point": "f", "module": module, "examples": list(examples)}
    verdict = check(Task("doctest", spec), f"```python\n{code}\n```")
    return f"{verdict.outcome} {verdict.rule}"


@confined
@pytest.mark.parametrize(
    ("code", "examples"),
    [
        ("def f(x): return x", [example("f([1, 'a'])", "[1, 'a']")]),
        ("def f(x): print('hi', x)", [example("f(2)", "hi 2")]),
        ("def f(x): return x", [example("a = f(2)"), example("for i in range(2):\n    print(a * i)", "0\n2")]),
        (
            "def f(x): raise ValueError('no')",
            [example("f(2)", "Traceback (most recent call last):\n    ...\nValueError: no")],
        ),
        ("def f(x): return 1 / 3", [example("f(2)", "0.33...", "ELLIPSIS")]),
        ("def f(x): return [1,  2]", [example("f(2)", "[1,\n 2]", "NORMALIZE_WHITESPACE")]),
        ("def f(x): return x", [example("f(1)", "99", "SKIP"), example("f(2)", "2")]),
        ("import collections\ndef f(x): return collections.Counter(x)", [example("f('aa')", "Counter({'a': 2})")]),
        ("def f(x): return x.read(1)", [example("import io"), example("f(io.BytesIO(b'ab'))", "b'a'")]),
        ("def f(x):\n    print('a\\n\\nb')", [example("f(1)", "a\n<BLANKLINE>\nb")]),
    ],
)
def test_examples_hold_as_in_a_docstring(code: str, examples: list[dict[str, Any]]) -> None:
    assert rule(code, *examples) == "pass code.tests"
    assert rule("def f(x): return 'other'", *examples).startswith("fail")


@confined
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(x): return 3", "fail code.tests"),
        ("def f(x): raise KeyError", "fail code.raised"),
        ("def g(x): return 2", "fail code.missing"),
        ("import os; os._exit(0)", "fail code.exited"),
    ],
)
def test_the_rule_says_what_decided(code: str, expected: str) -> None:
    assert rule(code, example("f(1)", "2")) == expected


@pytest.mark.parametrize("examples", [[], [example("f(1)")], [example("f(1)", "2", "SKIP")]])
def test_without_an_example_that_checks_nothing_is_decided(examples: list[dict[str, Any]]) -> None:
    assert rule("def f(x): return 2", *examples) == "undecided code.no_tests"


@confined
def test_a_function_that_the_examples_bring_along_is_not_the_solution() -> None:
    spec = {
        "entry_point": "gcd",
        "module": "math",
        "examples": [example("from math import gcd"), example("gcd(4, 6)", "2")],
    }
    assert check(Task("doctest", spec), "```\ndef gcd(a, b): return 0\n```").rule == "code.no_tests"


@confined
def test_a_function_lives_among_the_names_of_its_module_but_never_is_the_one_it_replaces() -> None:
    call = example("f(2)", "2.0")
    assert rule("def f(x): return sqrt(x * x)", call, module="math") == "pass code.tests"
    spec = {"entry_point": "sqrt", "module": "math", "examples": [example("sqrt(4)", "2.0")]}
    assert check(Task("doctest", spec), "```\nx = 1\n```").rule == "code.missing"


@pytest.mark.parametrize("spec", [{}, {"entry_point": "f", "examples": ["f(1)"]}, {"entry_point": 1, "examples": []}])
def test_a_specification_that_cannot_be_read_decides_nothing(spec: dict[str, Any]) -> None:
    assert check(Task("doctest", spec), "```\nx = 1\n```").rule == "code.unreadable_spec"


@confined
def test_harvested_functions_pass_their_own_examples_and_an_empty_one_does_not() -> None:
    found = [record.value for record in functions(["statistics", "textwrap", "heapq", "pickletools"])]
    pairs = [(shape(value)[0].verifier, value["code"]) for value in found if value and value.get("examples")][:8]
    tasks = [Task(verifier[0], json.loads(verifier[1])) for verifier, _ in pairs if verifier]
    assert len(tasks) == 8
    assert {v.outcome for v in check_many(tasks, [f"```\n{code}\n```" for _, code in pairs])} == {"pass"}
    assert {v.outcome for v in check_many(tasks, ["def f(*a, **k): ..."] * len(tasks))} == {"fail"}
