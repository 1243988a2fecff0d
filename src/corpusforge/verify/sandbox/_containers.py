"""Programs in containers, for machines where the kernel's own walls are not to be had.

    walls = Containers(("podman",), "python:3.11-slim")
    with walls.child(code, {"plan": …}, limits) as child:    the same as `Confined`

Starting a container takes a fifth of a second or more, so it is kept: its first process (`_warden`) forks a child for
each program, another user without capabilities and with a seccomp filter, and is asked for the next when that has ended
and left nothing. After `_MOST` children, or at anything odd, the container is thrown away. It ends by itself when
whoever started it is gone (`_container`). The command line of an engine is in `_engines`.

Inside runs the Python of the image. What the image holds, programs can read: take a plain one.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.sandbox._child import Child, Gone, payload, run_in, told
from corpusforge.verify.sandbox._container import Container
from corpusforge.verify.sandbox._limits import Limits
from corpusforge.verify.sandbox._pool import Pool
from corpusforge.verify.sandbox._proof import open_walls
from corpusforge.verify.sandbox._walls import limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, TracebackType
    from typing import Self

    from corpusforge.verify.sandbox._limits import Outcome

_MOST: Final = 1000  # children of one container
_DYING: Final = 20.0  # seconds for it to end a child
_SIZES: Final = 4  # of containers that are kept at rest
_FAILURES: Final = 3  # starts in a row, after which the engine is given a rest
_REST: Final = 30.0  # seconds; an engine that hangs would cost a minute for every check
_QUEUES: Final = ("RLIMIT_MSGQUEUE", 0, 0)  # of POSIX: they would stay in the container


class Containers:
    """Containers of one engine and one image."""

    def __init__(self, engine: Sequence[str], image: str) -> None:
        self.engine, self.image = tuple(engine), image
        self._pools: dict[tuple[int, int], Pool[Container]] = {}
        self._lock = threading.Lock()
        self._failures, self._failed = 0, 0.0

    def child(self, code: str, given: Mapping[str, Any], limits: Limits) -> Contained:
        """A program, to be entered; it comes as a text, because the Python inside may be of another version."""
        return Contained(self.pool(limits), code, given, limits)

    def pool(self, limits: Limits) -> Pool[Container]:
        """Containers large enough for a program with these limits."""
        size = limits.memory_mib, limits.scratch_mib
        with self._lock:
            pool = self._pools.pop(size, None) or Pool(functools.partial(self._started, limits))
            self._pools[size] = pool  # the last that was used
            old = [self._pools.pop(next(iter(self._pools))) for _ in range(len(self._pools) - _SIZES)]
        for one in old:
            one.retire()
        return pool

    def close(self) -> None:
        """End those that rest."""
        with self._lock:
            pools = [*self._pools.values()]
        for pool in pools:
            pool.close()

    def _started(self, limits: Limits) -> Container:
        """A new one. Raises OSError or RuntimeError; at once, where the engine has failed again and again just now."""
        if self._failures >= _FAILURES and time.monotonic() - self._failed < _REST:
            raise RuntimeError(f"{self.engine[0]} started no container {self._failures} times in a row")
        try:
            container = Container(self.engine, self.image, limits)
        except (OSError, RuntimeError) as error:
            self._failures, self._failed = self._failures + 1, time.monotonic()
            raise RuntimeError(str(error)) from error  # not Gone: it was never there
        self._failures = 0
        return container

    @functools.cached_property
    def fault(self) -> str | None:
        """None if programs are really shut in, found out once by trying; else the reason."""
        try:
            run = functools.partial(run_in, self.child, limits=Limits(seconds=2))
            return open_walls(run, _MORE, "OSError")
        except (OSError, RuntimeError) as error:
            return f"a container of {self.image} does not start: {error}"


_MORE: Final = """
refused("processes", os.fork)
for place in ("/", "/tmp", "/run", "/var/tmp", "/dev", "/dev/shm", "/dev/mqueue", "/etc"):
    refused(place, lambda: open(place + "/left", "w"))
refused("becoming root", lambda: os.setuid(0))
refused("the first process", lambda: open("/proc/1/environ").read())
open("note", "w").close()
"""


class Contained(Child):
    """A child of a container's first process."""

    def __init__(self, pool: Pool[Container], code: CodeType | str, given: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(payload(code, given), limits)
        self._pool = pool
        self._container: Container | None = None
        self._status: int | None = None
        self._clean, self._mute = False, False

    def __enter__(self) -> Self:
        container = self._pool.take()
        self._container, self.input, self.output = container, container.input, container.output
        container.children += 1
        told = [*limits_of(self.limits), _QUEUES], self.limits.processes == 1
        container.tell(b"f", marshal.dumps(told, 4))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        container, self._container = self._container, None
        if container is None:
            return
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self._reap(container)
        if self._clean and not container.unsent and container.children < _MOST:
            self._pool.give(container)
        else:
            container.close()

    @property
    def unsent(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.outbox or (self._container and self._container.unsent))

    def send(self) -> None:
        """Write what fits. Called when the container's input is writable."""
        assert self._container is not None
        if self.outbox:
            self._container.tell(b"i", self.outbox)
            self.outbox.clear()
            if self.close_when_sent:
                self._container.tell(b"e")
        try:
            self._container.send()
        except OSError:
            self._container.unsent.clear()
            self.silent = True

    def receive(self) -> None:
        """Read what is there. Called when the container has something to say."""
        assert self._container is not None
        more = self._container.receive()
        while self._status is None and (one := self._container.next()) is not None:
            self._hear(*one)
        self.silent = self.silent or not more

    def _hear(self, letter: bytes, data: bytes) -> None:
        if letter == b"o":
            self.inbox += data
        else:
            status, clean = map(int, data.split())
            self._status, self._clean, self.silent = os.waitstatus_to_exitcode(status), bool(clean), True

    def look(self, now: float) -> None:
        """Nothing: its folder is no larger than it may be."""

    def finish(self, deadline: float) -> tuple[Outcome, int | None]:
        """Wait for its end, killing it at `deadline` or if it hit a limit: the outcome and its exit code."""
        assert self._container is not None
        try:
            if not self.trouble:
                self._wait(self._container, max(0.001, deadline - time.monotonic()))
            if self._status is not None and not self.trouble:
                return told(self._status)
            self._reap(self._container)
        except OSError as error:
            raise Gone("a container is gone") from error
        return self.trouble or "timeout", None

    def _reap(self, container: Container) -> None:
        """Kill it, if it has not ended yet, and wait for its end."""
        if self._status is None and not self._mute:
            container.tell(b"k")
            self._wait(container, _DYING)
            self._mute = self._status is None
        if self._mute:
            raise Gone("a container is gone, or does not answer")

    def _wait(self, container: Container, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._status is None and (one := container.frame(max(0.0, deadline - time.monotonic()))) is not None:
            self._hear(*one)
            del self.inbox[2 * self.limits.output_kib * 1024 :]
