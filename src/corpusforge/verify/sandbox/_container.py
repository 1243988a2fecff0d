"""One container that runs: frames to its first process (`_warden`), and frames from it.

    container = Container(("podman",), "python:3.11-slim", limits)      raises RuntimeError with what the engine says
    container.tell(b"f", …)
    container.frame(20.0)  ->  (b"o", b"bytes of its child's output")

It ends by itself when whoever started it is gone, because its standard input then ends; so a fork of ours lets go of it
at once. One that does not end is removed by the engine, and the engine, if it hangs, is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
import weakref
from typing import TYPE_CHECKING, Final

from corpusforge.verify.sandbox import _engines, _filters, _forks
from corpusforge.verify.sandbox._child import Gone, payload, source, wait
from corpusforge.verify.sandbox._walls import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpusforge.verify.sandbox._limits import Limits

_PATIENCE: Final = 60.0  # seconds for a container to start
_LEAVING: Final = 10.0  # seconds for it to end by itself; as many for the engine to end it
_CHUNK: Final = 65536
_ENDS: Final = 4096  # bytes of what an engine says that are read: the last


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
