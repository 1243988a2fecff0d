"""Programs in containers, for machines where the kernel's own walls are not to be had. Engines are in `_engines`.

    walls = Containers(("podman",), "python:3.11-slim")
    with walls.child(code, {"plan": …}, limits) as child:    the same as `Confined`

Starting a container takes a fifth of a second or more, so it is kept: its first process (`_warden`) forks a child for
each program, another user without capabilities and with a seccomp filter, and is asked for the next when that has ended
and left nothing. After `_MOST` children, or at anything odd, the container is thrown away. It ends by itself when
whoever started it is gone, because its standard input then ends; so a fork of ours lets go of it at once.

Inside runs the Python of the image. What the image holds, programs can read: take a plain one.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.sandbox import _engines, _filters, _forks
from corpusforge.verify.sandbox._child import Child, Gone, payload, run_in, source, told, wait
from corpusforge.verify.sandbox._limits import Limits
from corpusforge.verify.sandbox._pool import Pool
from corpusforge.verify.sandbox._proof import open_walls
from corpusforge.verify.sandbox._walls import environment, limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import CodeType, TracebackType
    from typing import Self

    from corpusforge.verify.sandbox._limits import Outcome

_MOST: Final = 1000  # children of one container
_PATIENCE: Final = 60.0  # seconds for a container to start
_DYING: Final = 20.0  # seconds for it to end a child
_LEAVING: Final = 10.0  # seconds for it to end by itself; as many for the engine to end it
_SIZES: Final = 4  # of containers that are kept at rest
_FAILURES: Final = 3  # starts in a row, after which the engine is given a rest
_REST: Final = 30.0  # seconds; an engine that hangs would cost a minute for every check
_CHUNK: Final = 65536
_ENDS: Final = 4096  # bytes of what an engine says that are read: the last
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


class Container:
    """One that runs, and what it says."""

    def __init__(self, engine: Sequence[str], image: str, limits: Limits) -> None:
        self.engine, self.children = engine, 0
        self.name = f"corpusforge-{os.getpid()}-{os.urandom(6).hex()}"
        self.heard, self.unsent = bytearray(), bytearray()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the rest
        try:
            self._process = subprocess.Popen(  # noqa: S603 - an engine that the environment or we name
                _engines.start(engine, image, self.name, limits, "obey()"),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                cwd=tempfile.gettempdir(),  # where memory runs out, Podman leaves a file where it was started
                start_new_session=True,
            )
        except BaseException:
            self._errors.close()
            raise
        _there.add(self)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.input, self.output = self._process.stdin, self._process.stdout
        try:
            for stream in (self.input, self.output):
                os.set_blocking(stream.fileno(), False)
            modules = [(f"corpusforge.verify.{name}", source(name)) for name in (*_forks.INSIDE, "sandbox._warden")]
            plan = [*_forks.IMPORTS], [*environment("")], _filters.boxed(), _filters.boxed(alone=False)
            self.unsent += payload(_forks.START, {"modules": modules, "plan": plan})
            self._greeted()
        except BaseException:
            self.close()
            raise

    def _greeted(self) -> None:
        """Wait for its first word. Raises RuntimeError, with what the engine says, where it is another or none."""
        with contextlib.suppress(OSError):
            if self.frame(_PATIENCE) == (b"r", b""):
                return
        raise RuntimeError(self._said())

    def waits(self) -> bool:
        """Whether it lives and has nothing to say."""
        return self._process.poll() is None and not (self.heard or wait([self.output], [], 0)[0])

    def tell(self, letter: bytes, data: bytes | bytearray = b"") -> None:
        """Have a frame sent, as soon as it fits."""
        self.unsent += letter + len(data).to_bytes(4, "big") + data

    def send(self) -> None:
        """Write what fits. Raises OSError when nobody is there."""
        written = self.input.write(self.unsent[:_CHUNK])
        del self.unsent[: written or 0]

    def receive(self) -> bool:
        """Read what is there; whether it may say more."""
        part = self.output.read(_CHUNK)
        self.heard += part or b""
        return part != b""

    def next(self) -> tuple[bytes, bytes] | None:
        """A whole frame that came. Raises Gone for what no container of ours says."""
        size = int.from_bytes(self.heard[1:5], "big")
        if self.heard and (self.heard[0] not in b"rox" or size > _CHUNK):
            raise Gone("it says what it was not asked")
        if len(self.heard) < 5 or len(self.heard) < 5 + size:
            return None
        letter, data = bytes(self.heard[:1]), bytes(self.heard[5 : 5 + size])
        del self.heard[: 5 + size]
        return letter, data

    def frame(self, seconds: float) -> tuple[bytes, bytes] | None:
        """The next frame, waiting for it; None where none comes."""
        deadline = time.monotonic() + seconds
        while (one := self.next()) is None:
            left = max(0.0, deadline - time.monotonic())
            ready, free = wait([self.output], [self.input] if self.unsent else [], left)
            if free:
                self.send()
            if not (ready or free) or (ready and not self.receive()):
                return None
        return one

    def leave(self) -> None:
        """Have it end: it does so by itself when nobody writes to it any more."""
        with contextlib.suppress(OSError):
            self.input.close()

    def close(self) -> None:
        """End it, by the engine if it does not end by itself."""
        self.leave()
        if not _ended(self._process):
            with contextlib.suppress(OSError):
                command, null = _engines.remove(self.engine, self.name), subprocess.DEVNULL
                removing = subprocess.Popen(  # noqa: S603 - as above
                    command, stdin=null, stdout=null, stderr=null, start_new_session=True
                )
                if not _ended(removing):
                    _killed(removing)
            _killed(self._process)
        self.output.close()
        self._errors.close()

    def let_go(self) -> None:
        """In a fork: what is the parent's to end must not be kept open here."""
        for stream in (self.input, self.output):
            with contextlib.suppress(OSError):
                stream.close()

    def _said(self) -> str:
        """Why it did not start, in the engine's words: the last line that does not tell how to get help."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _ENDS))
        told = self._errors.read().decode("utf-8", "replace")
        lines = [line for one in told.split("\n") if (line := "".join(filter(str.isprintable, one)).strip())]
        telling = [line for line in lines if not line.startswith(_engines.HELP)] or lines
        return telling[-1][:300] if telling else "it says nothing"


_there: Final[weakref.WeakSet[Container]] = weakref.WeakSet()


def _let_go() -> None:
    for container in [*_there]:
        container.let_go()
    _there.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it ends by itself, given time."""
    try:
        process.wait(_LEAVING)
    except subprocess.TimeoutExpired:
        return False
    return True


def _killed(process: subprocess.Popen[bytes]) -> None:
    """End it with its group, of which it is the leader."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


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
