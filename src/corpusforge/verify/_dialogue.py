"""One solution before one judge: two confined processes, and between them nothing but this file, which passes bytes.

    settle(solver plan, judge plan, limits)  ->  "passed", "failed", "raised", "timeout", …

Neither process can reach the other, and only the judge is asked for the verdict. Its word is a frame that begins with
`!`; what the solver sends is handed to the judge unread, so no word of the solver's can be taken for a verdict.
"""

from __future__ import annotations

import functools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import sandbox
from corpusforge.verify._pack import pack
from corpusforge.verify._verdict import Verdict, failed, passed, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import CodeType

    from corpusforge.verify.sandbox import Confined, Limits

_QUESTION: Final = 4 * 2**20  # bytes; the longest that a test may hand to a solution at once
_WORDS: Final = {
    pack(word, lambda _: b""): word for word in ("passed", "failed", "raised", "missing", "unreached", "nothing_called")
}
_LOADED: Final = pack("", lambda _: b"")  # no exception
_RULES: Final = {"failed": "tests", "ok": "exited", "error": "exited"}
_START: Final = """
import sys
light = sys.modules["typing"] = type(sys)("typing")
light.TYPE_CHECKING = light.Any = light.Final = False
for name, code in modules:
    module = type(sys)(name)
    sys.modules[name] = module
    exec(code, vars(module))
del sys.modules["typing"]
module.main(plan)
"""  # the real typing takes longer to import than all the rest together


@dataclass(frozen=True)
class Trial:
    """What the two processes are told."""

    solver: dict[str, Any]
    judge: dict[str, Any]


_FORCED: Final = frozenset(f"code.{how}" for how in ("crashed", "killed", "timeout", "exited", "raised"))


def verdicts(trials: Sequence[Trial | Verdict], limits: Limits | None = None) -> list[Verdict]:
    """Hold trials, as many at a time as there are processors; what is a verdict already is passed through."""
    if sandbox.available() is not None:
        return [trial if isinstance(trial, Verdict) else undecided("code.unconfined") for trial in trials]
    hold = functools.partial(_hold, limits=limits or sandbox.Limits())
    if len(trials) == 1:
        return [hold(trials[0])]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(hold, trials))
    return [hold(trial) if _forced(one) else one for trial, one in zip(trials, found, strict=True)]


def _forced(verdict: Verdict) -> bool:
    """Whether it was not values that decided: a busy machine can end a right solution, so it is held again, alone."""
    return verdict.outcome == "fail" and verdict.rule in _FORCED


def _hold(trial: Trial | Verdict, limits: Limits) -> Verdict:
    if isinstance(trial, Verdict):
        return trial
    start = time.monotonic()
    try:
        said = settle(trial, limits)
    except (OSError, RuntimeError):  # no process or descriptor is left on this machine: nothing is known
        return undecided("code.unconfined")
    return replace(_verdict(said), seconds=time.monotonic() - start)


def _verdict(said: str) -> Verdict:
    if said == "passed":
        return passed("code.tests")
    if said == "nothing_called":  # tests that would pass whatever the solution is
        return undecided("code.no_tests")
    return failed(f"code.{_RULES.get(said, said)}")


def settle(trial: Trial, limits: Limits) -> str:
    """Hold one trial: what the judge said, `raised` where the solution did not load, or how the solver ended."""
    deadline, answer = time.monotonic() + limits.seconds * limits.patience, limits.output_kib * 1024
    with _child("_solver", trial.solver, limits) as solver, _child("_judge", trial.judge, limits) as judge:
        while not (solver.ended or judge.ended):
            sandbox.pump(solver, judge, deadline=deadline)
            for frame in _frames(judge, _QUESTION):
                if frame[4:5] == b"!":
                    return _WORDS.get(frame[5:], "raised")
                solver.outbox += frame
            for frame in _frames(solver, answer):
                if frame[4:5] != b"!":
                    judge.outbox += frame
                elif frame[5:] != _LOADED:
                    return "raised"
            if len(judge.outbox) > 2 * answer:  # answers to nothing
                solver.trouble = solver.trouble or "output"
        if solver.ended:
            return solver.finish(deadline)[0]
        return _without_verdict(judge, deadline)


def _without_verdict(judge: Confined, deadline: float) -> str:
    """A judge that ended: the tests hit a limit or ended the process, most often with what a solution gave them."""
    outcome = judge.finish(deadline)[0]
    return "raised" if outcome in ("ok", "error", "crashed") else outcome


def _frames(child: Confined, longest: int) -> Iterator[bytes]:
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


def _child(role: str, plan: dict[str, Any], limits: Limits) -> Confined:
    """A process with the modules of one side, which starts with a plan."""
    modules = [(f"corpusforge.verify.{name}", _compiled(name)) for name in ("_pack", "_wire", role)]
    return sandbox.Confined(_compiled("start"), {"modules": modules, "plan": plan}, limits)


@functools.cache
def _compiled(name: str) -> CodeType:
    source = _START if name == "start" else Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
    return compile(source, f"{name}.py", "exec", dont_inherit=True)
