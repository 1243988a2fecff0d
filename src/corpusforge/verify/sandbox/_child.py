"""A program while it runs, whatever is around it: bytes go in, bytes come out, limits are watched, its end is told.

    with Confined(code, {"plan": …}, limits) as child:      or Forked, Contained, Unconfined
        while not child.ended:
            pump(child, deadline=deadline)
        outcome, code = child.finish(deadline)

What it runs is sent to it: `payload` packs a program and the names that it finds, `boot` makes an interpreter read it.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import math
import os
import select
import signal
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.sandbox import _scratch
from corpusforge.verify.sandbox._limits import Limits, Ran

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, TracebackType
    from typing import Self

    from corpusforge.verify.sandbox._limits import Outcome

_TICK: Final = 0.02  # seconds between two looks at the scratch folder
_CHUNK: Final = 65536
_RANDOM: Final = (b"random", b"secrets", b"uuid")  # a program with such a word gets the same numbers in every run


class Gone(RuntimeError):
    """What a program ran in is not there any more, or does not answer: the program, or somebody else, ended it."""


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

    def speak_by(self, theirs: Any, ours: Any) -> None:
        """Take the files to write to and to read from."""
        self.input, self.output = theirs, ours
        for stream in (theirs, ours):
            os.set_blocking(stream.fileno(), False)

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
    ready, free = wait(readable, writable, max(0.0, min(_TICK, deadline - now)))
    for stream in ready:
        readable[stream].receive()
    for stream in free:
        writable[stream].send()
    now = time.monotonic()
    for child in children:
        child.look(now)
        if now >= deadline and not child.ended:
            child.trouble = "timeout"


def wait(reading: Iterable[Any], writing: Iterable[Any], seconds: float) -> tuple[list[Any], list[Any]]:
    """Wait for the first of some files: those that can be read, and those that can be written, by now.

    By poll(2): select(2) knows no descriptor above 1,023, and a trainer may have more files open than that.
    """
    poll, asked = select.poll(), [(one, select.POLLIN) for one in reading]
    asked += [(one, select.POLLOUT) for one in writing]
    for stream, event in asked:
        poll.register(stream, event)
    found = {descriptor for descriptor, _ in poll.poll(math.ceil(seconds * 1000))}
    there = [(stream, event) for stream, event in asked if stream.fileno() in found]
    return [s for s, event in there if event == select.POLLIN], [s for s, event in there if event == select.POLLOUT]


def run_in(kind: Callable[..., Child], program: str, stdin: bytes = b"", limits: Limits | None = None) -> Ran:
    """Run a program in a confined process of a kind, and wait for its end."""
    limits = limits or Limits()
    with kind(MAIN, {"program": program, "__name__": "__main__"}, limits) as child:
        start = time.monotonic()  # not of the walls, whose start may take longer than the program
        deadline = start + limits.seconds * limits.patience
        child.outbox += stdin
        child.close_when_sent = True
        while not child.ended:
            pump(child, deadline=deadline)
            if len(child.inbox) > limits.output_kib * 1024:
                child.trouble = "output"
        outcome, code = child.finish(deadline)
        stdout = bytes(child.inbox[: limits.output_kib * 1024])
    return Ran(outcome, stdout, code, time.monotonic() - start)


MAIN: Final = "exec(compile(program, 'program.py', 'exec'), {'__name__': '__main__'})"


def boot(acts: str) -> list[str]:
    """Arguments of an interpreter that does something of what `_inside` offers, with no module but the standard ones.

    Not `-I`, with which Python would take no notice of the seed of its hashes.
    """
    return ["-P", "-s", "-S", "-B", "-c", f"{source('sandbox._inside')}\n{acts}"]


@functools.cache
def source(name: str) -> str:
    """The text of a module that runs in confinement, by its name in the package of verifiers: `sandbox._inside`."""
    return Path(__file__).parent.parent.joinpath(*name.split(".")).with_suffix(".py").read_text(encoding="utf-8")


def wants_random(sent: bytes | bytearray) -> bool:
    """Whether a program may ask for random numbers: it then gets the same in every run."""
    return any(word in sent for word in _RANDOM)


def payload(code: CodeType | str, given: Mapping[str, Any]) -> bytes:
    """What `_inside` obeys: a program, or its text, and the names that it finds. Texts suit every version of Python."""
    packed = marshal.dumps((code, dict(given)), 4)
    return len(packed).to_bytes(8, "big") + packed
