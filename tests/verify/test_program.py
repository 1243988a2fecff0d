"""program: what a program prints for each input decides, and nothing that it says of itself."""

from __future__ import annotations

from typing import Any

import pytest

from corpusforge.shapes.code import apps
from corpusforge.verify import sandbox, verify
from corpusforge.verify._verdict import Task
from corpusforge.verify.program import check, check_many

confined = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))
SUM = [{"input": "2 3\n", "output": "5\n"}, {"input": "10 -4\n", "output": "6"}]


def rule(code: str, tests: Any = SUM) -> str:
    verdict = check(Task("program", {"tests": tests}), f"Here:\n```python\n{code}\n```")
    return f"{verdict.outcome} {verdict.rule}"


@confined
@pytest.mark.parametrize(
    "code",
    [
        "a, b = map(int, input().split())\nprint(a + b)",
        "import sys\nprint(sum(int(x) for x in sys.stdin.read().split()))",
        "import sys\nsys.stdout.write(str(sum(map(int, sys.stdin.buffer.read().split()))) + '  \\n\\n')",
        "def main():\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()",
        "import sys\nprint(sum(map(int, input().split())))\nsys.exit(0)",
    ],
    ids=["input", "stdin", "buffer", "main", "exit"],
)
def test_every_way_to_read_and_print(code: str) -> None:
    assert rule(code) == "pass code.tests"


@confined
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(5)", "fail code.tests"),  # right for the first input alone
        ("a, b = input().split()\nprint(int(a) + int(c))", "fail code.raised"),
        ("import sys\nprint(sum(map(int, input().split())))\nsys.exit(1)", "fail code.raised"),
        ("print(", "fail code.raised"),
        ("import sys\nsys.modules['solution'].run_program = lambda given: 'passed'", "fail code.tests"),
        ("class S(str):\n    def split(self): return []\nprint(S('x'))", "fail code.tests"),
        ("import os\nos._exit(0)", "fail code.exited"),
    ],
    ids=["constant", "raises", "exit code", "no python", "patches", "a text of its own", "leaves"],
)
def test_what_is_no_pass(code: str, expected: str) -> None:
    assert rule(code) == expected


@confined
@pytest.mark.parametrize(
    ("printed", "wanted", "passes"),
    [
        ("0.33333333", "0.3333333", True),
        ("1.0", "1", False),
        ("3", "3.0", True),
        ("0.34", "0.33", False),
        ("YES\nNO", "YES NO", True),
        ("yes", "YES", False),
        ("a b", "a b c", False),
    ],
)
def test_texts_are_alike_by_lines_or_by_words(printed: str, wanted: str, passes: bool) -> None:
    """Blanks and line ends do not count, a rounded fraction is the same, a word is not."""
    tests = [{"input": "", "output": wanted}]
    assert rule(f"print({printed!r})", tests) == ("pass code.tests" if passes else "fail code.tests")


@pytest.mark.parametrize("tests", [None, "x", [{"input": 1, "output": "2"}], [{"input": "1"}]])
def test_a_specification_that_cannot_be_read_decides_nothing(tests: Any) -> None:
    assert rule("print(1)", tests) == "undecided code.unreadable_spec"


def test_without_tests_or_code_nothing_is_run() -> None:
    assert rule("print(1)", []) == "undecided code.no_tests"
    assert check_many([Task("program", {"tests": SUM})], ["I would rather not."])[0].rule == "code.none"


@confined
def test_it_is_a_kind_of_verifier() -> None:
    task = {"verifier": {"kind": "program", "spec": {"tests": SUM}}}
    assert verify(task, "print(sum(map(int, input().split())))").outcome == "pass"


@confined
@pytest.mark.parametrize(
    ("code", "starter", "outcome"),
    [
        (
            "class Solution:\n    def pairs(self, xs):\n        return tuple((x, x + 1) for x in xs)",
            "class Solution:",
            "pass",
        ),
        ("def pairs(xs):\n    return [[x, x + 1] for x in xs]", "", "pass"),
        ("def pairs(xs):\n    return [[x, x] for x in xs]", "", "fail"),
    ],
    ids=["method", "function", "wrong"],
)
def test_a_problem_that_names_its_function_is_checked_by_what_that_returns(
    code: str, starter: str, outcome: str
) -> None:
    """The tests that the shape writes; a list that holds the wanted value alone is that value, as in APPS."""
    given = {"inputs": [[[1, 2]], [[]]], "outputs": [[[1, 2], [2, 3]], [[]]], "fn_name": "pairs"}
    (draft,) = apps({"question": "Pairs.", "input_output": given, "starter_code": starter})
    assert draft.verifier is not None
    task = {"verifier": {"kind": draft.verifier[0], "spec": draft.verifier[1]}}
    assert verify(task, f"```python\n{code}\n```").outcome == outcome
