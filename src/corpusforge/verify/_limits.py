"""Work that may not end, with hard limits of processor time, wall time and memory.

    call("corpusforge.verify.math:decide", "4", "7^{7^{7}}", True)  ->  Exceeded("timeout"), and a new worker next time

Sympy on a hostile expression computes inside C for hours, where neither a signal handler nor a thread gets its turn;
and `signal.alarm` works in no thread but the main one. So the work goes to a few worker processes (`_workers`).

`hold` tells whose fault it is: an answer that goes over where the gold does not is a wrong one.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import CorpusForgeError
from corpusforge.verify import _workers
from corpusforge.verify._verdict import Task, Verdict, undecided
from corpusforge.verify._workers import Exceeded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["ALONE_SECONDS", "WALL_SECONDS", "Exceeded", "call", "hold", "spread"]

WALL_SECONDS: Final = 9.0  # by the clock for one call
ALONE_SECONDS: Final = 60.0  # by the clock for a call that is held alone: processor time decides


def call(function: str, *arguments: Any) -> Any:
    """What `module:function` returns for JSON values, run in a worker. Safe in threads, under asyncio, after a fork.

    Raises Exceeded at a limit, RuntimeError when the function raises, WorkerError when no worker can be started.
    """
    return _ask(function, arguments, WALL_SECONDS)


def hold(function: str, arguments: Sequence[Any], gold: Sequence[Any]) -> Any:
    """As `call`; what goes over a limit is held once more, with no other call beside it.

    Then raises Exceeded, which is the completion's `own` where the function stays within the limits on other arguments,
    `gold`. So an answer that cannot be checked is a wrong one, and a task that cannot be is nobody's fault. By
    the clock alone no answer is found wrong: that would depend on the machine.
    """
    stops = _workers.pool.stops
    try:
        return _said(function, arguments, alone=False)
    except Exceeded:
        if (
            stops != _workers.pool.stops
            or list(arguments) == list(gold)
            or not _stays_within(function, json.dumps(gold))
        ):
            raise
    try:
        return _said(function, arguments, alone=True)
    except Exceeded as over:
        own = not over.by_clock and stops == _workers.pool.stops
        raise Exceeded(over.reason, by_clock=over.by_clock, own=own) from None


@lru_cache(maxsize=4096)
def _stays_within(function: str, arguments: str) -> bool:
    """Whether a call comes to its end within the limits, held alone if need be."""
    stops = _workers.pool.stops
    for alone in (False, True):
        try:
            _said(function, json.loads(arguments), alone=alone)
        except Exceeded:
            if stops != _workers.pool.stops:
                raise  # interrupted: nothing was found out
        else:
            return True
    return False


def _said(function: str, arguments: Sequence[Any], *, alone: bool) -> Any:
    """As `call`, alone if asked to; a fault inside of the function is Exceeded as well, with the reason `error`."""
    try:
        if not alone:
            return call(function, *arguments)
        with _workers.pool.alone():
            return _ask(function, arguments, ALONE_SECONDS)
    except CorpusForgeError:
        raise
    except RuntimeError:
        raise Exceeded("error") from None


def _ask(function: str, arguments: Sequence[Any], seconds: float) -> Any:
    worker = _workers.pool.take()
    try:
        worker.prepare(function.partition(":")[0])
        reply = worker.ask(function, arguments, seconds)
    except BaseException:
        _workers.pool.drop(worker)
        raise
    _workers.pool.give(worker)
    if "error" in reply:
        if reply["error"] == "MemoryError":
            raise Exceeded("memory")
        raise RuntimeError(f"{function} raised {reply['error']}")
    return reply["value"]


def spread(check: Callable[[Task, Any], Verdict], tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """The verdicts of `check`, one thread per worker; what it raises costs only its own pair the verdict."""

    def one(task: Task, completion: Any) -> Verdict:
        started = time.perf_counter()
        try:
            verdict = check(task, completion)
        except CorpusForgeError:
            raise
        except Exception:  # noqa: BLE001 - whatever a library raises, the other pairs get their verdicts
            verdict = undecided(f"{task.kind}.error")
        return replace(verdict, seconds=time.perf_counter() - started)

    threads = ThreadPoolExecutor(_workers.pool.most)
    try:
        return list(threads.map(one, tasks, completions))
    except BaseException as error:
        threads.shutdown(wait=False, cancel_futures=True)
        if not isinstance(error, Exception):
            _workers.pool.stop()  # Ctrl-C does not wait for calls that may take their nine seconds
        raise
    finally:
        threads.shutdown()
