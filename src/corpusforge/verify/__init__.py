"""Verifiers: how an answer to a task is checked. `verify(task, completion)` says pass, fail or undecided.

    verify({"verifier": {"kind": "numeric", "spec": {"answer": "72"}}}, "…so 48 + 24 = 72 clips.")
        ->  Verdict(outcome="pass", score=1.0, rule="numeric.last_number", seconds=0.0001)

A kind is a file of this folder with `check(task, completion) -> Verdict` and, where many at once are cheaper,
`check_many(tasks, completions) -> list[Verdict]`; it is imported when a task asks for it. `register` adds kinds of
one's own. Whatever a task or a completion holds, a verdict comes back, never an exception: what a kind cannot cope
with is undecided, and a fail only where the task itself could be coped with (`_limits.hold`).
"""

from __future__ import annotations

import importlib
import re
import sys
import time
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import CorpusForgeError
from corpusforge.verify import _plugins
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided, understood

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = [
    "KINDS",
    "Task",
    "Verdict",
    "failed",
    "kinds",
    "passed",
    "register",
    "text_of",
    "undecided",
    "verify",
    "verify_many",
]

KINDS: Final = (
    "numeric",
    "exact",
    "math",
    "choice",
    "regex",
    "json_schema",
    "instructions",
    "tool_call",
    "reasoning_gym",
    "assert_tests",
    "doctest",
    "program",
    "judge",
)
"""Kinds that are built in. Each is a module of this package of the same name."""
_OUTCOMES: Final = ("pass", "fail", "undecided")
_RULE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,100}")


def verify(task: Task | Mapping[str, Any], completion: Any) -> Verdict:
    """Check one completion: a text, or the messages a chat trainer hands over.

    `task` is a row, a line of a task shard, or a Task. Raises MissingExtra when the package that a kind needs is not
    installed, and nothing because of what task or completion hold.
    """
    return verify_many([task], [completion])[0]


def verify_many(tasks: Sequence[Task | Mapping[str, Any]], completions: Sequence[Any]) -> list[Verdict]:
    """One verdict per pair, in order; kinds that check many at once get all of theirs together.

    Raises ValueError when the two lists are not equally long, else what `verify` raises.
    """
    verdicts: list[Verdict | None] = [None] * len(tasks)
    waiting: dict[str, list[tuple[int, Task, Any]]] = {}
    known: dict[str, _plugins.Kind | None] = {"unreadable": None}
    for number, (row, completion) in enumerate(zip(tasks, completions, strict=True)):
        task = _task(row)
        if task.kind not in known:
            known[task.kind] = _kind(task.kind)
        said = understood(completion)
        if known[task.kind] is None:
            verdicts[number] = undecided(f"verify.{'unreadable' if task.kind == 'unreadable' else 'unknown_kind'}")
        elif said is None:
            verdicts[number] = undecided("verify.unreadable_completion")
        else:
            waiting.setdefault(task.kind, []).append((number, task, said))
    for name, asked in waiting.items():
        kind = known[name]
        assert kind is not None
        answers = _checked(name, kind, [task for _, task, _ in asked], [said for _, _, said in asked])
        for (number, _, _), verdict in zip(asked, answers, strict=True):
            verdicts[number] = verdict
    return [verdict for verdict in verdicts if verdict is not None]


def register(kind: str, *, many: _plugins.CheckMany | None = None) -> Callable[[_plugins.Check], _plugins.Check]:
    """A decorator that adds a kind: `check(task, completion) -> Verdict`, and `many` for lists of both.

    The completion is a text or a list of messages (`text_of` gives the text). The kind is known to this process; for
    workers and `dvc repro` name the function in the entry points `corpusforge.verifiers` of a package. Raises
    ConfigError for a name that is built in, taken by another function, or no name.
    """

    def add(check: _plugins.Check) -> _plugins.Check:
        _plugins.add(kind, _plugins.Kind(check, many), KINDS)
        return check

    return add


def kinds() -> tuple[str, ...]:
    """All kinds: the built-in ones, then those of users and of installed packages, by name."""
    return (*KINDS, *_plugins.names(KINDS))


def _task(row: Any) -> Task:
    try:
        return Task.of(row)
    except Exception:  # noqa: BLE001 - a row that cannot be read at all asks for nothing that could be decided
        return Task("unreadable", {})


def _kind(name: str) -> _plugins.Kind | None:
    if name not in KINDS:
        return _plugins.find(name, KINDS)
    module = importlib.import_module(f"corpusforge.verify.{name}")
    return _plugins.Kind(module.check, getattr(module, "check_many", None))


def _checked(name: str, kind: _plugins.Kind, tasks: list[Task], completions: list[Any]) -> list[Verdict]:
    if kind.check_many is not None and len(tasks) > 1:
        started = time.perf_counter()
        verdicts = _guarded(name, kind.check_many, tasks, completions)
        if isinstance(verdicts, list) and len(verdicts) == len(tasks):
            share = (time.perf_counter() - started) / len(tasks)
            return [_sound(name, verdict, share) for verdict in verdicts]
    return [_timed(name, kind.check, task, completion) for task, completion in zip(tasks, completions, strict=True)]


def _timed(name: str, check: Any, task: Task, completion: Any) -> Verdict:
    started = time.perf_counter()
    verdict = _guarded(name, check, task, completion)
    return _sound(name, verdict, time.perf_counter() - started)


def _guarded(name: str, check: Any, *arguments: Any) -> Any:
    """What `check` says; undecided when it raises. Errors of the family (a package is missing) are for the caller."""
    try:
        return check(*arguments)
    except CorpusForgeError:
        raise
    except Exception:  # noqa: BLE001 - no fault of a library, a task or a completion may stop a run
        return undecided(f"{name}.error")


def _sound(name: str, verdict: Any, seconds: float) -> Verdict:
    """A verdict with its time; undecided where a function of a user's gave none, or a rule that could hold a text."""
    good = (
        isinstance(verdict, Verdict)
        and verdict.outcome in _OUTCOMES
        and isinstance(verdict.rule, str)
        and _RULE.fullmatch(verdict.rule)
        and (verdict.score is None or (isinstance(verdict.score, (int, float)) and 0 <= verdict.score <= 1))
    )
    said: Verdict = verdict if good else undecided(f"{name}.error")
    return said if said.seconds else replace(said, seconds=seconds)


class _Callable(ModuleType):
    """`cf.verify(task, completion)` and `import corpusforge.verify.reward` are one name: this module can be called."""

    def __call__(self, task: Task | Mapping[str, Any], completion: Any) -> Verdict:
        return verify(task, completion)


sys.modules[__name__].__class__ = _Callable
