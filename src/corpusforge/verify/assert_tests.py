r"""assert_tests: a solution in Python passes when every assertion holds. The tests of MBPP and of HumanEval.

    spec   {"tests": ["assert add(1, 2) == 3"], "setup": "", "reference": "def add…"}
           {"tests": ["def check(candidate): …\n\ncheck(add)"], "prompt": "def add(a, b):…", "entry_point": "add"}
    rule   code.tests, code.tests_shared, code.raised, code.missing, code.timeout, code.none, …

MBPP: Austin et al. 2021, Program Synthesis with Large Language Models. HumanEval: Chen et al. 2021, Evaluating Large
Language Models Trained on Code. The tests run in a process of their own, confined, and hold the solution's functions
by a thread of plain values (see `trial._wire`); a solution cannot say that it passed, only return the right values.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import _python
from corpusforge.verify._verdict import Verdict, failed, undecided
from corpusforge.verify.trial import Trial, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpusforge.verify._verdict import Task
    from corpusforge.verify.sandbox import Limits

_MARK: Final = "__came_to_an_assertion__"


def check(task: Task, completion: Any, limits: Limits | None = None) -> Verdict:
    """Judge one completion: a text, or the messages of a chat."""
    return check_many([task], [completion], limits)[0]


def check_many(tasks: Sequence[Task], completions: Sequence[Any], limits: Limits | None = None) -> list[Verdict]:
    """Judge completions, each of the task at the same place, on all processors."""
    return verdicts(_trial, tasks, completions, limits)


def _trial(spec: Mapping[str, Any], completion: str) -> Trial | Verdict:
    tests, setup = spec.get("tests"), spec.get("setup") or ""
    if not isinstance(tests, list) or not all(isinstance(text, str) for text in (*tests, setup)):
        return undecided("code.unreadable_spec")
    texts = [spec.get(name) for name in ("entry_point", "reference", "prompt")]
    read = _read(tuple(tests), setup, *(text if isinstance(text, str) else "" for text in texts))
    if isinstance(read, Verdict):
        return read
    before, judge = read
    names = judge["names"]
    program = _program(spec, completion, names)
    if program is None:
        return failed("code.none")
    return Trial({"code": program, "before": before, "module": "", "name": ""}, judge, shared=len(names) > 1)


@lru_cache(maxsize=512)
def _read(
    tests: tuple[str, ...], setup: str, entry: str, reference: str, prompt: str
) -> Verdict | tuple[list[str], dict[str, Any]]:
    """Imports for the solution, and the judge's plan, from texts of a task: once, as a task is tried many times."""
    marked = [_python.marked(test, _MARK, number) for number, test in enumerate(tests)]
    ready = [test for test in marked if test is not None]
    if len(ready) < len(marked) or _python.parsed(setup) is None:
        return undecided("code.unreadable_spec")
    if not any(asserts for _, asserts in ready):
        return undecided("code.no_tests")
    imported = _python.imports(reference)
    own = ({entry} if entry else set()) | (_python.defined(reference) - _python.defined("\n".join(imported)))
    whole = "\n".join([*_needed(imported, tests), _helpers(prompt, entry, tests), setup])
    names, modules = _python.needed([whole, *tests], own)
    judge = {"names": names, "modules": modules, "setup": whole, "tests": ready, "mark": _MARK}
    return _python.imports(setup), judge


def _needed(imported: Sequence[str], tests: Sequence[str]) -> list[str]:
    """Imports of the reference that tests live on: `sys.getsizeof` is Python's, not a `sys` of the solution."""
    names, _ = _python.needed(tests)
    standard = [line for line in imported if line.split()[1].partition(".")[0] in sys.stdlib_module_names]
    return [line for line in standard if _python.defined(line) & set(names)]


def _helpers(prompt: str, entry: str, tests: Sequence[str]) -> str:
    """What the prompt defines beside the function under test, if tests call it: theirs is the prompt's own.

    HumanEval 32, 38 and 50: `decode(encode(x)) == x` would hold for a solution whose `encode` does nothing.
    """
    if not (prompt and entry):
        return ""
    helpers = _python.beside(prompt, entry)
    return helpers if _python.defined(helpers) & set(_python.needed(tests)[0]) else ""


def _program(spec: Mapping[str, Any], completion: str, names: Sequence[str]) -> str | None:
    prompt, entry = spec.get("prompt"), spec.get("entry_point")
    if isinstance(prompt, str) and prompt and isinstance(entry, str):
        return _python.completed(prompt, completion, entry)
    return _python.code_of(completion, [entry] if isinstance(entry, str) and entry else names)
