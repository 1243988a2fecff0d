"""One solution before one judge: two confined processes, and between them nothing but this file, which passes bytes.

    settle(solver and judge plan, place, limits)  ->  "passed", "failed", "raised", "timeout", …

Neither process can reach the other, and only the judge is asked for the verdict. Its word is a frame that begins with
`!`; what the solver sends is handed to the judge unread, so no word of the solver's can be taken for a verdict.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify._python import said
from corpusforge.verify._verdict import Verdict, failed, passed, undecided
from corpusforge.verify.sandbox import Limits
from corpusforge.verify.sandbox._child import Gone, pump
from corpusforge.verify.sandbox._place import place, warned
from corpusforge.verify.trial._pack import pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from corpusforge.verify._verdict import Task
    from corpusforge.verify.sandbox import Child
    from corpusforge.verify.sandbox._place import Place

_QUESTION: Final = 4 * 2**20  # bytes; the longest that a test may hand to a solution at once
_TRIES: Final = 3  # somebody else can end the containers of a trial, one after the other
_WORDS: Final = {
    pack(word, lambda _: b""): word for word in ("passed", "failed", "raised", "missing", "unreached", "nothing_called")
}
_LOADED: Final = pack("", lambda _: b"")  # no exception
_RULES: Final = {"failed": "tests", "ok": "exited", "error": "exited"}


@dataclass(frozen=True)
class Trial:
    """What the two processes are told."""

    solver: dict[str, Any]
    judge: dict[str, Any]
    shared: bool = False
    """Whether tests take more than one name from the solution: `decode(encode(x)) == x` says little then."""


_FORCED: Final = frozenset(f"code.{how}" for how in ("crashed", "killed", "timeout", "exited", "raised", "unconfined"))


def verdicts(
    trial_of: Callable[[Mapping[str, Any], str], Trial | Verdict],
    tasks: Sequence[Task],
    completions: Sequence[Any],
    limits: Limits | None = None,
) -> list[Verdict]:
    """Make trials of specifications and texts, and hold them, as many at a time as there are processors.

    What is a verdict already stands. Each thread keeps to one processor: it takes turns with the two processes of its
    trial, which follow it there and need not wake another processor at every turn.
    """
    made = [functools.partial(trial_of, task.spec, said(text)) for task, text in zip(tasks, completions, strict=True)]
    where = place()
    if (fault := where.fault()) is not None:
        warned(f"code is not run: {fault}")
        trials = [make() for make in made]
        return [trial if isinstance(trial, Verdict) else undecided("code.unconfined") for trial in trials]
    stopped = threading.Event()
    hold = functools.partial(_hold, where=where, limits=limits or Limits(), stopped=stopped)
    if len(made) == 1:
        return [hold(made[0])]
    processors = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [*range(os.cpu_count() or 1)]
    turns = itertools.cycle(processors)
    with ThreadPoolExecutor(len(processors), initializer=lambda: _keep_to(next(turns))) as pool:
        try:
            found = list(pool.map(hold, made))
        except BaseException:  # Ctrl-C: what runs is ended, what waits is not begun
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [hold(make) if _forced(one) else one for make, one in zip(made, found, strict=True)]


def _keep_to(processor: int) -> None:
    with contextlib.suppress(OSError, AttributeError):  # not every system knows it
        os.sched_setaffinity(threading.get_native_id(), {processor})


def _forced(verdict: Verdict) -> bool:
    """Whether it was not values that decided: a busy machine can end a right solution, so it is held again, alone."""
    return verdict.rule in _FORCED


def _hold(make: Callable[[], Trial | Verdict], where: Place, limits: Limits, stopped: threading.Event) -> Verdict:
    start = time.monotonic()
    trial = make()
    if isinstance(trial, Verdict):
        return trial
    try:
        word = _settled(trial, where, limits, stopped)
    except (OSError, RuntimeError) as error:  # no process or descriptor is left on this machine: nothing is known
        warned(f"code is not run: {type(error).__name__}: {error}", about=where.name)
        return undecided("code.unconfined")
    return replace(_verdict(word, trial.shared), seconds=time.monotonic() - start)


def _settled(trial: Trial, where: Place, limits: Limits, stopped: threading.Event) -> str:
    """What became of a trial; of one that loses its walls again and again, that it ends them."""
    for _ in range(_TRIES):
        with contextlib.suppress(Gone):
            return settle(trial, where, limits, stopped)
    return "killed"


def _verdict(said: str, shared: bool = False) -> Verdict:
    if said == "passed":
        return passed("code.tests_shared" if shared else "code.tests")
    if said == "nothing_called":  # tests that would pass whatever the solution is
        return undecided("code.no_tests")
    return failed(f"code.{_RULES.get(said, said)}")


def settle(trial: Trial, where: Place, limits: Limits, stopped: threading.Event | None = None) -> str:
    """Hold one trial: what the judge said, `raised` where the solution did not load, or how the solver ended.

    When `stopped` is set by another thread the trial ends at once, as if its time were up.
    """
    answer = limits.output_kib * 1024
    with where.child("_solver", trial.solver, limits) as solver, where.child("_judge", trial.judge, limits) as judge:
        deadline = time.monotonic() + limits.seconds * limits.patience  # not of the walls, which may take their time
        asked = answered = 0  # bytes since the other side said something: they take turns
        while not (solver.ended or judge.ended):
            pump(solver, judge, deadline=0.0 if stopped and stopped.is_set() else deadline)
            for frame in _frames(judge, _QUESTION):
                if frame[4:5] == b"!":
                    return _WORDS.get(frame[5:], "raised")
                solver.outbox += frame
                asked, answered = asked + len(frame), 0
            for frame in _frames(solver, answer):
                if frame[4:5] != b"!":
                    judge.outbox += frame
                    asked, answered = 0, answered + len(frame)
                elif frame[5:] != _LOADED:
                    return "raised"
            if max(answered, len(judge.outbox)) > 2 * answer:  # to nothing
                solver.trouble = solver.trouble or "output"
            if asked > 2 * _QUESTION:
                judge.trouble = judge.trouble or "output"
        if solver.ended:
            return solver.finish(deadline)[0]
        return _without_verdict(judge, deadline)


def _without_verdict(judge: Child, deadline: float) -> str:
    """A judge that ended: the tests hit a limit or ended the process, most often with what a solution gave them."""
    outcome = judge.finish(deadline)[0]
    return "raised" if outcome in ("ok", "error", "crashed") else outcome


def _frames(child: Child, longest: int) -> Iterator[bytes]:
    """Whole frames that came, with their lengths; one that is too long is a limit hit."""
    while len(child.inbox) >= 4:
        size = int.from_bytes(child.inbox[:4], "big")
        if size > longest:
            child.trouble = "output"
            return
        if len(child.inbox) < 4 + size:
            return
        yield bytes(child.inbox[: 4 + size])
        del child.inbox[: 4 + size]
