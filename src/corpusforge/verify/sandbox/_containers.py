"""Programs in containers, for machines where the kernel's own walls are not to be had. Engines are in `_engines`.

    walls = Containers(("podman",), "python:3.11-slim")
    with walls.child(code, {"plan": …}, limits) as child:    the same as `Confined`

Starting a container takes a fifth of a second or more, so it is kept: its first process (`_warden`) forks a child for
each program, another user without capabilities and with a seccomp filter, and is asked for the next when that has ended
and left nothing. After `_MOST` children, or at anything odd, the container is thrown away. It ends by itself when
whoever started it is gone, because its standard input then ends.

Inside runs the Python of the image. What the image holds, programs can read: take a plain one.
"""

from __future__ import annotations

import contextlib
import functools
import marshal
import os
import select
import subprocess
import tempfile
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.sandbox import _engines, _filters, _forks
from corpusforge.verify.sandbox._child import Child, payload, run_in, source, told
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
_PATIENCE: Final = 60.0  # seconds for a container to start, or to end a child
_LEAVING: Final = 10.0  # seconds for it to end by itself
_CHUNK: Final = 65536
_QUEUES: Final = ("RLIMIT_MSGQUEUE", 0, 0)  # of POSIX: they would stay in the container


class Containers:
    """Containers of one engine and one image."""

    def __init__(self, engine: Sequence[str], image: str) -> None:
        self.engine, self.image = tuple(engine), image
        self._pools: dict[tuple[int, int], Pool[Container]] = {}
        self._lock = threading.Lock()

    def child(self, code: str, given: Mapping[str, Any], limits: Limits) -> Contained:
        """A program, to be entered; it comes as a text, because the Python inside may be of another version."""
        return Contained(self.pool(limits), code, given, limits)

    def pool(self, limits: Limits) -> Pool[Container]:
        """Containers large enough for a program with these limits."""
        size = limits.memory_mib, limits.scratch_mib
        with self._lock:
            if size not in self._pools:
                self._pools[size] = Pool(functools.partial(Container, self.engine, self.image, limits))
            return self._pools[size]

    def close(self) -> None:
        """End those that rest."""
        for pool in self._pools.values():
            pool.close()

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
        self._process = subprocess.Popen(  # noqa: S603 - an engine that the environment or we name
            _engines.start(engine, image, self.name, limits, "obey()"),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self.input, self.output = self._process.stdin, self._process.stdout
        try:
            for stream in (self.input, self.output):
                os.set_blocking(stream.fileno(), False)
            modules = [(f"corpusforge.verify.{name}", source(name)) for name in (*_forks.INSIDE, "sandbox._warden")]
            plan = [*_forks.IMPORTS], _filters.boxed(), _filters.boxed(alone=False)
            self.unsent += payload(_forks.START, {"modules": modules, "plan": plan})
            if self._greeting() != (b"r", b""):
                raise RuntimeError(self._said())
        except BaseException:
            self.close()
            raise

    def _greeting(self) -> tuple[bytes, bytes] | None:
        """Its first word; None from an engine that ends before it read what it is sent."""
        with contextlib.suppress(OSError):
            return self.frame(_PATIENCE)
        return None

    def waits(self) -> bool:
        """Whether it lives and has nothing to say."""
        return self._process.poll() is None and not (self.heard or select.select([self.output], [], [], 0)[0])

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
        """A whole frame that came."""
        size = int.from_bytes(self.heard[1:5], "big")
        if len(self.heard) < 5 or len(self.heard) < 5 + size:
            return None
        letter, data = bytes(self.heard[:1]), bytes(self.heard[5 : 5 + size])
        del self.heard[: 5 + size]
        return letter, data

    def frame(self, seconds: float) -> tuple[bytes, bytes] | None:
        """The next frame, waiting for it; None where none comes."""
        deadline = time.monotonic() + seconds
        while (one := self.next()) is None:
            wait = max(0.0, deadline - time.monotonic())
            ready, free, _ = select.select([self.output], [self.input] if self.unsent else [], [], wait)
            if free:
                self.send()
            if not (ready or free) or (ready and not self.receive()):
                return None
        return one

    def close(self) -> None:
        """End it: it does so by itself when nobody writes to it any more."""
        with contextlib.suppress(OSError):
            self.input.close()
        try:
            self._process.wait(_LEAVING)
        except subprocess.TimeoutExpired:
            command = _engines.remove(self.engine, self.name)
            subprocess.run(command, capture_output=True, check=False)  # noqa: S603 - as above
            self._process.kill()
            self._process.wait()
        self.output.close()
        self._errors.close()

    def _said(self) -> str:
        """Why it did not start, in the engine's words: the line that names an error, or the first."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1)
        self._errors.seek(0)
        lines = [line.strip() for line in self._errors.read().decode("utf-8", "replace").split("\n") if line.strip()]
        said = next((line for line in lines if "rror" in line), next(iter(lines), "it says nothing"))
        return said[:300]


class Contained(Child):
    """A child of a container's first process."""

    def __init__(self, pool: Pool[Container], code: CodeType | str, given: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(payload(code, given), limits)
        self._pool = pool
        self._container: Container | None = None
        self._status: int | None = None
        self._clean = False

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
        except OSError:  # the container is gone, say for want of memory
            return self.trouble or "killed", None
        return self.trouble or "timeout", None

    def _reap(self, container: Container) -> None:
        """Kill it, if it has not ended yet, and wait for its end."""
        if self._status is None:
            container.tell(b"k")
            self._wait(container, _PATIENCE)

    def _wait(self, container: Container, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while self._status is None and (one := container.frame(max(0.0, deadline - time.monotonic()))) is not None:
            self._hear(*one)
            del self.inbox[2 * self.limits.output_kib * 1024 :]
