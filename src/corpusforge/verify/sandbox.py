"""Confined Python: a program runs with nothing but the standard library, a scratch folder and a few seconds.

    run("import socket; socket.create_connection(('10.0.0.1', 80))")   ->  Ran("error", …): permission denied
    run("while True: pass", limits=Limits(seconds=1))                  ->  Ran("timeout", …)

The walls are the kernel's (see `_walls`); no root and no container is needed. The program's folder is watched while it
runs, its output is cut, and at the end it is dead with everything that it started, and its folder is gone.

Where confinement does not work, `available()` says why and nothing is run. Other walls, or none, are asked for by name:
see `_place`.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import select
import signal
import socket
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from corpusforge.errors import MissingExtra, ProjectError
from corpusforge.verify import _filters, _scratch
from corpusforge.verify._walls import bound, interpreter, policy

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import CodeType, TracebackType
    from typing import Self

Outcome = Literal["ok", "error", "crashed", "killed", "timeout", "output", "disk"]

_TICK: Final = 0.02  # seconds between two looks at the scratch folder
_CHUNK: Final = 65536
_RANDOM: Final = (b"random", b"secrets", b"uuid")  # a program with such a word gets the same numbers in every run


@dataclass(frozen=True)
class Limits:
    """What one confined program may use."""

    seconds: float = 5.0
    """Of processor time for each process, in whole seconds (rounded up)."""
    patience: float = 3.0
    """Times `seconds`, of wall time for the whole run: more than 1, so that a busy machine changes no verdict."""
    memory_mib: int = 512
    """Of all its processes together; also the address space of each."""
    processes: int = 1
    """At a time; threads do not count, their stacks count as memory. With more than one a program can fork.
    Its children die with the run, but may live on, confined, if whoever called `run` is killed first."""
    files: int = 64
    """Open at a time, per process."""
    output_kib: int = 64
    """On standard output; of one answer where a program is asked several times."""
    scratch_mib: int = 16
    """In its folder, of which one file may hold a sixteenth; a file counts at least 4 KiB, and folders in folders in
    folders, thirty deep, are too much. The folder is looked at every 20 ms."""


@dataclass(frozen=True)
class Ran:
    """What became of a program."""

    outcome: Outcome
    """`ok`: it ended with code 0; `error`: with another; `crashed`: by a signal; `killed`: by SIGKILL, which is how
    processes end that together ask for too much memory (one alone gets a MemoryError); else the limit that it hit."""
    stdout: bytes = b""
    """What it wrote, cut at the limit."""
    exit_code: int | None = None
    """None when it did not end by itself."""
    seconds: float = 0.0


def run(program: str, *, stdin: bytes = b"", limits: Limits | None = None) -> Ran:
    """Run a Python program confined, and wait for its end. Standard error is thrown away.

    Raises ProjectError where confinement does not work (see `available`), MissingExtra without the package.
    """
    require()
    return run_in(Confined, program, stdin, limits)


def require() -> None:
    """Nothing if programs can be confined here; else raises MissingExtra or ProjectError."""
    if reason := available():
        if "corpusforge[verify]" in reason:
            raise MissingExtra("confining code needs sandlock", hint="pip install 'corpusforge[verify]'")
        raise ProjectError(f"code cannot be confined here: {reason}", hint="run code tasks on Linux 6.12 or later")


@functools.cache
def available() -> str | None:
    """None if programs are really confined here, found out once by trying; else the reason."""
    if sys.platform != "linux":
        return f"confinement needs Linux, this is {sys.platform}"
    try:
        import sandlock
    except ImportError:
        return "sandlock is not installed: pip install 'corpusforge[verify]'"
    if (found := sandlock.landlock_abi_version()) < (needed := sandlock.min_landlock_abi()):
        return f"the kernel's Landlock is version {found}, {needed} is needed"
    try:
        return open_walls(functools.partial(run_in, Confined))
    except (OSError, RuntimeError) as error:
        return f"a confined program does not start: {type(error).__name__}"


def open_walls(run_confined: Callable[[str], Ran], more: str = "", refusal: str = "PermissionError") -> str | None:
    """None if a program that tries them finds all walls shut, run by `run_confined`; else what it said.

    `refusal`: the exception that says so; in a container, what is outside is not even there.
    """
    with tempfile.TemporaryDirectory(prefix="corpusforge-") as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder, "secret")
        secret.write_text("secret", encoding="utf-8")
        told = _PROBE.format(path=str(secret), port=server.getsockname()[1], refusal=refusal)
        ran = run_confined(told + more + _TOLD)
        kept = secret.read_text(encoding="utf-8") == "secret"
    if ran.stdout != b"confined" or not kept:
        return f"a confined program was not confined, or did not run: {ran.outcome}, {ran.stdout[:40].decode()!r}"
    return None


_PROBE: Final = """
import os, socket
def refused(name, act):
    try:
        act()
    except {refusal}:
        return
    os.write(1, name.encode() + b" is open ")
    os._exit(1)
refused("reading", lambda: open({path!r}))
refused("writing", lambda: open({path!r}, "w"))
refused("mode", lambda: os.chmod({path!r}, 0o777))
refused("network", lambda: socket.create_connection(("127.0.0.1", {port}), 1))
refused("signals", lambda: os.kill(os.getppid(), 0))
refused("the folder around", lambda: open("../left", "w"))
"""
_TOLD: Final = 'os.write(1, b"confined")'


def run_in(kind: Callable[..., Child], program: str, stdin: bytes = b"", limits: Limits | None = None) -> Ran:
    """Run a program in a confined process of a kind, and wait for its end."""
    start, limits = time.monotonic(), limits or Limits()
    deadline = start + limits.seconds * limits.patience
    with kind(_MAIN, {"program": program, "__name__": "__main__"}, limits) as child:
        child.outbox += stdin
        child.close_when_sent = True
        while not child.ended:
            pump(child, deadline=deadline)
            if len(child.inbox) > limits.output_kib * 1024:
                child.trouble = "output"
        outcome, code = child.finish(deadline)
        stdout = bytes(child.inbox[: limits.output_kib * 1024])
    return Ran(outcome, stdout, code, time.monotonic() - start)


_MAIN: Final = "exec(compile(program, 'program.py', 'exec'), {'__name__': '__main__'})"


class Child(ABC):
    """A confined program while it runs: bytes for its standard input wait in `outbox`, its output comes to `inbox`.

    A context manager: when it is left, the program and everything it started is dead and its folder is gone.
    """

    def __init__(self, sent: bytes, limits: Limits) -> None:
        self.limits = limits
        self.inbox, self.outbox = bytearray(), bytearray(sent)
        self.close_when_sent = False
        self.trouble: Outcome | None = None
        """The limit that it hit, as far as it is known before its end."""
        self.silent = False
        """Whether its output is closed."""
        self.folder = Path()
        self.input: Any = None
        """The file to write to, unbuffered; not blocking."""
        self.output: Any = None
        """The file to read from, unbuffered; not blocking."""
        self._looked = time.monotonic()

    @abstractmethod
    def __enter__(self) -> Self: ...

    @abstractmethod
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None: ...

    @abstractmethod
    def finish(self, deadline: float) -> tuple[Outcome, int | None]:
        """Wait for its end, killing it at `deadline` or if it hit a limit: the outcome and its exit code."""

    @property
    def ended(self) -> bool:
        """Whether there is nothing more to wait for: it closed its output, or hit a limit."""
        return self.silent or self.trouble is not None

    @property
    def unsent(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.outbox)

    def receive(self) -> None:
        """Read what is there. Called when its output is readable."""
        part = self.output.read(_CHUNK)
        if part:
            self.inbox += part
        elif part is not None:
            self.silent = True

    def send(self) -> None:
        """Write what fits. Called when its input is writable."""
        try:
            written = self.input.write(self.outbox)
        except OSError:  # it closed its input, or is dead
            self.outbox.clear()
        else:
            del self.outbox[: written or 0]
        if not self.outbox and self.close_when_sent:
            with contextlib.suppress(OSError):
                self.input.close()

    def look(self, now: float) -> None:
        """Notice when its folder grew too large."""
        if now - self._looked >= _TICK:
            self._looked = now
            most = self.limits.scratch_mib * 2**20
            if _scratch.weight(str(self.folder), most) > most:
                self.trouble = self.trouble or "disk"


class Confined(Child):
    """A fresh confined process.

    `given` are the names that its code finds: plain data and code objects, whatever marshal can write.
    """

    def __init__(self, code: CodeType | str, given: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(payload(code, given), limits)
        self._random = wants_random(self.outbox)

    def __enter__(self) -> Self:
        import sandlock

        self._scratch = _scratch.Scratch()
        self.folder = self._scratch.path
        self._process: Any = None
        try:
            self._box = sandlock.Sandbox(**policy(self.folder, self.limits, self._random))
            piped, null = sandlock.StdioMode.PIPED, sandlock.StdioMode.NULL
            self._process = self._box.popen(command(_filters.narrow()), piped, piped, null)
            bound(self._process.pid, self.limits)  # before it is sent anything to run
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.input, self.output = self._process.stdin, self._process.stdout
        for stream in (self.input, self.output):
            os.set_blocking(stream.fileno(), False)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.__exit__(kind, error, at)
        self._scratch.remove()

    def finish(self, deadline: float) -> tuple[Outcome, int | None]:
        """Wait for its end, killing it at `deadline` or if it hit a limit: the outcome and its exit code."""
        from sandlock import ExitReason

        left = 0.001 if self.trouble else max(0.001, deadline - time.monotonic())
        result = self._process.wait(left)
        if self.trouble or result.reason is ExitReason.TIMEOUT:
            return self.trouble or "timeout", None
        if result.reason is ExitReason.EXITED:
            return told(result.exit_code)
        killed = result.reason is ExitReason.KILLED
        return told(-(signal.SIGKILL if killed else max(result.signal, 1)))


def told(code: int) -> tuple[Outcome, int | None]:
    """How a process ended, by its exit code, or less than 0 for the signal that ended it: the outcome and the code."""
    if code >= 0:
        return ("error" if code else "ok"), code
    ended: dict[int, Outcome] = {int(signal.SIGKILL): "killed", int(signal.SIGXCPU): "timeout"}
    return ended.get(-code, "crashed"), None


def pump(*children: Child, deadline: float) -> None:
    """Move bytes to and from confined programs once: at most 64 KiB each, waiting at most 20 ms.

    A child still running at `deadline` (time.monotonic seconds) hit its time limit.
    """
    now = time.monotonic()
    readable = {child.output: child for child in children if not child.silent}
    writable = {child.input: child for child in children if child.unsent}
    ready, free, _ = select.select([*readable], [*writable], [], max(0.0, min(_TICK, deadline - now)))
    for stream in ready:
        readable[stream].receive()
    for stream in free:
        writable[stream].send()
    now = time.monotonic()
    for child in children:
        child.look(now)
        if now >= deadline and not child.ended:
            child.trouble = "timeout"


def command(steps: bytes) -> list[str]:
    """What starts a confined interpreter that puts a filter over itself and then reads what it is to run."""
    return [interpreter(), *boot(f"disown(); shut(bytes.fromhex('{steps.hex()}')); obey()")]


def boot(acts: str) -> list[str]:
    """Arguments of an interpreter that does something of what `_inside` offers, with no module but the standard ones.

    Not `-I`, with which Python would take no notice of the seed of its hashes.
    """
    return ["-P", "-s", "-S", "-B", "-c", f"{source('_inside')}\n{acts}"]


@functools.cache
def source(name: str) -> str:
    """The text of a module of this package that runs in confinement."""
    return Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")


def wants_random(sent: bytes | bytearray) -> bool:
    """Whether a program may ask for random numbers: it then gets the same in every run."""
    return any(word in sent for word in _RANDOM)


def payload(code: CodeType | str, given: Mapping[str, Any]) -> bytes:
    """What `_inside` obeys: a program, or its text, and the names that it finds. Texts suit every version of Python."""
    packed = marshal.dumps((code, dict(given)), 4)
    return len(packed).to_bytes(8, "big") + packed
