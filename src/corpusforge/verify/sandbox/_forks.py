"""Confined processes that are forked instead of started: a few milliseconds each, where a fresh one takes twenty.

    with Forked(code, {"plan": …}, limits) as child:   the same as `Confined`, from a zygote that waits

A zygote (see `_zygote`) is a confined interpreter that has started already. A check takes one, has it fork a child that
has run nothing before, with a folder of its own and the limits of the kernel, set from outside before it is sent
anything, and gives it back. After `_MOST` children a zygote is replaced, and at once when it says anything odd. Where
this does not work, `available` says why, and callers start a fresh process for every check, as they do for what a fork
cannot give: several processes, and random numbers that are the same in every run.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.sandbox import _filters, _kernel, _scratch
from corpusforge.verify.sandbox._child import Child, payload, run_in, source, told, wait
from corpusforge.verify.sandbox._limits import Limits
from corpusforge.verify.sandbox._pool import Pool
from corpusforge.verify.sandbox._proof import open_walls
from corpusforge.verify.sandbox._walls import bound, packages, policy, readable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, TracebackType
    from typing import Self

    from corpusforge.verify.sandbox._limits import Outcome

_MOST: Final = 1000  # children of one zygote
_TRIES: Final = 3  # zygotes, for one child
_GONE: Final = -1  # in place of the id of a process that was waited for: the number may be another's by now
_PATIENCE: Final = 60.0  # seconds for a zygote to start, or to answer
INSIDE: Final = ("sandbox._inside", "trial._pack", "trial._wire", "trial._solver", "trial._judge")
IMPORTS: Final = (
    *("typing", "types", "abc", "enum", "dataclasses", "contextlib", "functools", "itertools", "operator", "copy"),
    *("collections", "heapq", "bisect", "math", "cmath", "numbers", "fractions", "decimal", "re", "string", "struct"),
    *("datetime", "json", "io"),
)
"""Modules that are there already when a solution imports them; importing any of them draws no random number."""
START: Final = """
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


class Zygote:
    """A confined interpreter that forks on demand."""

    def __init__(self) -> None:
        import sandlock

        self._scratch = _scratch.Scratch()
        self.folder = self._scratch.path
        self.children = 0
        self._process: Any = None
        try:
            (self.folder / "scratch").mkdir()
            for pipe in ("in", "out"):
                os.mkfifo(self.folder / pipe, 0o600)
            rules = policy(self.folder, Limits(), random=False)
            # The kernel holds its children to their memory, to what they may read, and to making no process.
            self._box = sandlock.Sandbox(**{**rules, "max_memory": None, "fs_denied": [], "max_processes": None})
            piped, null = sandlock.StdioMode.PIPED, sandlock.StdioMode.NULL
            self._process = self._box.popen(_kernel.command(_filters.narrow(zygote=True)), piped, piped, null)
            self._send(payload(compiled("start"), {"modules": modules(*INSIDE, "sandbox._zygote"), "plan": _told()}))
            self._number()
        except BaseException:
            self.close()
            raise

    @property
    def process(self) -> int:
        """Its process id."""
        return int(self._process.pid)

    def waits(self) -> bool:
        """Whether it lives and has nothing to say."""
        return not wait([self._process.stdout], [], 0)[0]

    def fork(self) -> int:
        """Make a child, which takes the pipes and the scratch folder: its process id."""
        self.children += 1
        self._send(b"f")
        process = self._number()
        if process < 0:
            raise RuntimeError(f"a zygote cannot fork: {os.strerror(-process)}")
        return process

    def ask(self) -> None:
        """Ask for the wait status of the child; `answer` tells."""
        self._send(b"w")

    def answer(self, seconds: float) -> int | None:
        """The wait status that was asked for; None when there is none yet."""
        ready, _ = wait([self._process.stdout], [], seconds)
        return self._number() if ready else None

    def leave(self) -> None:
        """Nothing: it ends at once when it is closed."""

    def close(self) -> None:
        """End it with all its children, and remove its folder."""
        if self._process is not None:
            with contextlib.suppress(OSError, RuntimeError):
                self._process.__exit__(None, None, None)
        self._scratch.remove()

    def _send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._process.stdin.write(left) :]

    def _number(self) -> int:
        ready, _ = wait([self._process.stdout], [], _PATIENCE)
        line = self._process.stdout.read(32) if ready else b""  # a line as it was written: one at a time, and short
        if not line.endswith(b"\n"):
            raise RuntimeError("a zygote does not answer")
        return int(line)


class Forked(Child):
    """A confined process that was forked from a zygote; `given` as for `Confined`, `code` finds the roles' modules."""

    def __init__(self, code: CodeType | str, given: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(payload(code, given), limits)
        self._zygote: Zygote | None = None
        self._process = 0
        self._asked = False

    def __enter__(self) -> Self:
        for tries in range(1, _TRIES + 1):
            try:
                self._start(_pool.take())
            except BaseException as error:
                self.__exit__(None, None, None)  # which ends the zygote
                if tries == _TRIES or not isinstance(error, OSError | RuntimeError):
                    raise
            else:
                break
        return self

    def _start(self, zygote: Zygote) -> None:
        self._zygote, self._process = zygote, 0
        self.folder = zygote.folder / "scratch"
        # To open for reading and writing never waits; so the child finds both ends of both pipes taken.
        self.input = open(zygote.folder / "in", "r+b", buffering=0, opener=_unblocked)  # noqa: SIM115
        self.output = open(zygote.folder / "out", "rb", buffering=0, opener=_unblocked)  # noqa: SIM115
        # What takes turns wakes up faster on one processor: the zygote goes where this thread may run.
        os.sched_setaffinity(zygote.process, os.sched_getaffinity(0))
        self._process = zygote.fork()
        bound(self._process, self.limits)  # before it is sent anything to run

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        zygote, self._zygote = self._zygote, None
        if zygote is None:
            return
        whole = False
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._reap(zygote)
            whole = self._process != 0
        for stream in (self.input, self.output):
            if stream is not None:
                stream.close()
        if whole and zygote.children < _MOST and _scratch.emptied(self.folder):
            _pool.give(zygote)
        else:
            zygote.close()

    def finish(self, deadline: float) -> tuple[Outcome, int | None]:
        """Wait for its end, killing it at `deadline` or if it hit a limit: the outcome and its exit code."""
        assert self._zygote is not None
        status = None if self.trouble else self._waited(self._zygote, max(0.001, deadline - time.monotonic()))
        if status is None:
            self._reap(self._zygote)
            return self.trouble or "timeout", None
        self._process = _GONE
        return told(os.waitstatus_to_exitcode(status))

    def _waited(self, zygote: Zygote, seconds: float) -> int | None:
        if not self._asked:
            zygote.ask()
            self._asked = True
        return zygote.answer(seconds)

    def _reap(self, zygote: Zygote) -> None:
        """Kill it, if it has not been waited for yet: until then its number is its own."""
        if self._process > 0:
            os.kill(self._process, signal.SIGKILL)
            if self._waited(zygote, _PATIENCE) is None:
                raise RuntimeError("a killed process does not end")
            self._process = _GONE


_pool: Final = Pool(Zygote)


def close() -> None:
    """End the zygotes that rest, and remove their folders. New ones are started when they are needed."""
    _pool.close()


@functools.cache
def available() -> str | None:
    """None if forked programs are really confined here, found out once by trying; else the reason."""
    if (reason := _kernel.available()) is not None:
        return reason
    try:
        return open_walls(functools.partial(run_in, Forked, limits=Limits(seconds=2)), _MORE)
    except (OSError, RuntimeError, KeyError) as error:
        return f"a forked program does not start: {type(error).__name__}"


_MORE: Final = """
refused("processes", os.fork)
refused("folders beside", lambda: os.listdir(".."))
refused("pipes beside", lambda: open("../in", "rb"))
"""


def modules(*names: str) -> list[tuple[str, CodeType]]:
    """Modules of this package, compiled, under their names."""
    return [(f"corpusforge.verify.{name}", compiled(name)) for name in names]


@functools.cache
def compiled(name: str) -> CodeType:
    """A module of this package that runs inside confinement, or `start`, which loads modules and begins."""
    return compile(START if name == "start" else source(name), f"{name}.py", "exec", dont_inherit=True)


@functools.cache
def _told() -> tuple[list[str], list[str], list[str], bytes]:
    """What children may read, folders of which they may read the names only, imports before, and their filter."""
    parts: list[str] = []
    listed: list[str] = []
    for path in readable():
        _without(os.path.realpath(path), [os.path.realpath(path) for path in packages()], parts, listed)
    return [*dict.fromkeys(parts)], [*dict.fromkeys(listed)], [*IMPORTS], _filters.alone()


def _without(path: str, left_out: list[str], parts: list[str], listed: list[str]) -> None:
    """Give a folder whole, or its entries where one of them is left out or holds what is."""
    if path in left_out:
        return
    if not any(one.startswith(f"{path}/") for one in left_out):
        parts.append(path)
        return
    listed.append(path)
    for entry in sorted(Path(path).iterdir()):
        _without(str(entry), left_out, parts, listed)


def _unblocked(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
