"""Verifiers: how an answer to a task is checked. `verify(task, completion)` says pass, fail or undecided.

    verify({"verifier": {"kind": "numeric", "spec": {"answer": "72"}}}, "…so 48 + 24 = 72 clips.")
        ->  Verdict(outcome="pass", score=1.0, rule="numeric.last_number", seconds=0.0001)

A kind is a file of this folder with `check(task, completion) -> Verdict` and, where many at once are cheaper,
`check_many(tasks, completions) -> list[Verdict]`; it is imported when a task asks for it. Whatever a task or a
completion holds, a verdict comes back: what a kind cannot cope with is undecided, never a fail and never an exception.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import CorpusForgeError
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["KINDS", "Task", "Verdict", "failed", "passed", "text_of", "undecided", "verify", "verify_many"]

KINDS: Final = (
    "numeric",
    "exact",
    "math",
    "choice",
    "tool_call",
    "reasoning_gym",
    "assert_tests",
    "doctest",
    "program",
)
"""Kinds that can be decided. Each is a module of this package of the same name."""


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
    for number, (row, completion) in enumerate(zip(tasks, completions, strict=True)):
        task = _task(row)
        if task.kind not in KINDS:
            verdicts[number] = undecided(f"verify.{'unreadable' if task.kind == 'unreadable' else 'unknown_kind'}")
        elif not _readable(completion):
            verdicts[number] = undecided("verify.unreadable_completion")
        else:
            waiting.setdefault(task.kind, []).append((number, task, completion))
    for kind, asked in waiting.items():
        answers = _checked(kind, [task for _, task, _ in asked], [completion for _, _, completion in asked])
        for (number, _, _), verdict in zip(asked, answers, strict=True):
            verdicts[number] = verdict
    return [verdict for verdict in verdicts if verdict is not None]


def _task(row: Any) -> Task:
    try:
        return Task.of(row)
    except Exception:  # noqa: BLE001 - a row that cannot be read at all asks for nothing that could be decided
        return Task("unreadable", {})


def _readable(completion: Any) -> bool:
    return isinstance(completion, str) or (
        isinstance(completion, (list, tuple)) and all(isinstance(message, Mapping) for message in completion)
    )


def _checked(kind: str, tasks: list[Task], completions: list[Any]) -> list[Verdict]:
    module = importlib.import_module(f"corpusforge.verify.{kind}")
    many = getattr(module, "check_many", None)
    if many is not None and len(tasks) > 1:
        started = time.perf_counter()
        verdicts = _guarded(kind, many, tasks, completions)
        if isinstance(verdicts, list) and len(verdicts) == len(tasks):
            share = (time.perf_counter() - started) / len(tasks)
            return [verdict if verdict.seconds else replace(verdict, seconds=share) for verdict in verdicts]
    return [_timed(kind, module.check, task, completion) for task, completion in zip(tasks, completions, strict=True)]


def _timed(kind: str, check: Any, task: Task, completion: Any) -> Verdict:
    started = time.perf_counter()
    verdict: Verdict = _guarded(kind, check, task, completion)
    return verdict if verdict.seconds else replace(verdict, seconds=time.perf_counter() - started)


def _guarded(kind: str, check: Any, *arguments: Any) -> Any:
    """What `check` says; undecided when it raises. Errors of the family (a package is missing) are for the caller."""
    try:
        return check(*arguments)
    except CorpusForgeError:
        raise
    except Exception:  # noqa: BLE001 - no fault of a library, a task or a completion may stop a run
        return undecided(f"{kind}.error")
