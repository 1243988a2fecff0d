r"""program: a Python program passes when it prints what is wanted for every input. The tests of APPS and of contests.

    spec   {"tests": [{"input": "2 3\n", "output": "5\n"}]}
    rule   code.tests, code.raised, code.timeout, code.none, …

Hendrycks et al. 2021, Measuring Coding Challenge Competence With APPS. The program runs anew for each input, confined,
in a process of its own (see `trial`); what it prints goes to the judge as a text, so it cannot say that it passed.
Lines are compared without blanks at their ends; where they differ, word by word, decimal fractions within 1e-6.
A program that reads by file descriptor (`open(0)`) finds nothing there: `input` and `sys.stdin` are what is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import _python
from corpusforge.verify._verdict import Verdict, failed, undecided
from corpusforge.verify.trial import Trial, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpusforge.verify._verdict import Task
    from corpusforge.verify.sandbox import Limits

_RUN: Final = "run_program"
_MARK: Final = "__came_to_an_assertion__"
_SOLVER: Final = """
import io as _io
import sys as _sys
_CODE = compile({source!r}, "solution.py", "exec", dont_inherit=True)
def {run}(given):
    kept = _sys.stdin, _sys.stdout
    printed = _io.TextIOWrapper(_io.BytesIO(), encoding="utf-8", errors="replace", write_through=True)
    _sys.stdin = _io.TextIOWrapper(_io.BytesIO(given.encode("utf-8", "surrogatepass")), encoding="utf-8")
    _sys.stdout = printed
    try:
        exec(_CODE, {{"__name__": "__main__"}})
    except SystemExit as end:
        if end.code not in (None, 0):
            raise RuntimeError("exit") from None
    finally:
        _sys.stdin, _sys.stdout = kept
    return printed.buffer.getvalue().decode("utf-8", "replace")
"""
_JUDGE: Final = """
def alike(found, wanted):
    if not isinstance(found, str):
        return False
    if [l.rstrip() for l in found.rstrip().splitlines()] == [l.rstrip() for l in wanted.rstrip().splitlines()]:
        return True
    said, gold = found.split(), wanted.split()
    return len(said) == len(gold) and all(a == b or close(a, b) for a, b in zip(said, gold))
def close(a, b):
    try:
        x, y = float(a), float(b)
    except ValueError:
        return False
    return ("." in b or "e" in b.lower()) and abs(x - y) <= 1e-6 * max(1.0, abs(y))
"""


def check(task: Task, completion: Any, limits: Limits | None = None) -> Verdict:
    """Judge one completion: a text, or the messages of a chat."""
    return check_many([task], [completion], limits)[0]


def check_many(tasks: Sequence[Task], completions: Sequence[Any], limits: Limits | None = None) -> list[Verdict]:
    """Judge completions, each of the task at the same place, on all processors."""
    return verdicts(_trial, tasks, completions, limits)


def _trial(spec: Mapping[str, Any], completion: str) -> Trial | Verdict:
    tests = spec.get("tests")
    if not isinstance(tests, list) or not all(map(_is_test, tests)):
        return undecided("code.unreadable_spec")
    if not tests:
        return undecided("code.no_tests")
    program = _python.code_of(completion, [])
    if program is None:
        return failed("code.none")
    if _python.parsed(program) is None:
        return failed("code.raised")
    asserted = [f"assert alike({_RUN}({test['input']!r}), {test['output']!r})" for test in tests]
    marked = [_python.marked(text, _MARK, number) for number, text in enumerate(asserted)]
    judge = {"names": [_RUN], "modules": [], "setup": _JUDGE, "tests": marked, "mark": _MARK}
    return Trial({"code": _SOLVER.format(source=program, run=_RUN), "before": [], "module": "", "name": ""}, judge)


def _is_test(test: Any) -> bool:
    return isinstance(test, dict) and all(isinstance(test.get(key), str) for key in ("input", "output"))
