r"""doctest: a function passes when the examples of a docstring hold, as Python's doctest judges them.

    spec   {"entry_point": "mean", "module": "statistics",
            "examples": [{"source": "mean([1, 2, 3, 4, 4])\n", "want": "2.8\n", "options": []}]}
    rule   code.tests, code.raised, code.missing, code.timeout, code.none, …

See https://docs.python.org/3/library/doctest.html for what an example is and for its options. The function is put
among the names of its module, where that is a module of the standard library, because it was written to live there.
The examples run in another process than the function (see `trial._wire`).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from corpusforge.verify import _python
from corpusforge.verify._verdict import Verdict, failed, undecided
from corpusforge.verify.trial import Trial, verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpusforge.verify._verdict import Task
    from corpusforge.verify.sandbox import Limits


def check(task: Task, completion: Any, limits: Limits | None = None) -> Verdict:
    """Judge one completion: a text, or the messages of a chat."""
    return check_many([task], [completion], limits)[0]


def check_many(tasks: Sequence[Task], completions: Sequence[Any], limits: Limits | None = None) -> list[Verdict]:
    """Judge completions, each of the task at the same place, on all processors."""
    return verdicts(_trial, tasks, completions, limits)


def _trial(spec: Mapping[str, Any], completion: str) -> Trial | Verdict:
    entry, examples, module = spec.get("entry_point"), spec.get("examples"), spec.get("module")
    if not isinstance(entry, str) or not isinstance(examples, list) or not all(map(_is_example, examples)):
        return undecided("code.unreadable_spec")
    if not any(example["want"] and "SKIP" not in (example.get("options") or ()) for example in examples):
        return undecided("code.no_tests")
    program = _python.code_of(completion, [entry])
    if program is None:
        return failed("code.none")
    home = module if isinstance(module, str) and module.partition(".")[0] in sys.stdlib_module_names else ""
    judge = {
        "names": [entry],
        "modules": [],
        "examples": "".join(map(_as_typed, examples)),
        "options": [example.get("options") or [] for example in examples],
    }
    return Trial({"code": program, "before": [], "module": home, "name": entry}, judge)


def _is_example(example: Any) -> bool:
    return isinstance(example, dict) and all(isinstance(example.get(key), str) for key in ("source", "want"))


def _as_typed(example: Mapping[str, Any]) -> str:
    """An example as it stands in a docstring."""
    first, *more = example["source"].rstrip("\n").split("\n")
    return "\n".join([f">>> {first}", *(f"... {line}" for line in more), example["want"].rstrip("\n"), "", ""])
