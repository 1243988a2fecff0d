"""The first process of a container: it forks a child for each program, feeds it, and tells what became of it.

    f   limits       ->        a child: user nobody, no capability, limits and a filter of its own; may it fork
    i   bytes        ->        its standard input         e   ->   the end of that
    k                ->        kill it
                     <-   o    bytes of its standard output
                     <-   x    it ended: the wait status, and whether it left nothing behind

A frame is a letter, four bytes of length, and what is inside. The child holds two pipes of this process and none of the
container's, so it cannot say anything in its place; being another user, it can neither signal nor trace it. After
each child whatever else runs is killed. A container in which anything was left is not used again.

This file runs inside a container and imports the standard library only.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
from typing import Final

from corpusforge.verify.sandbox._inside import bare, bell, hold, obey, shut, spawned, take

_NOBODY: Final = 65534
_SCRATCH: Final = "/scratch"
_LEFT: Final = (_SCRATCH, "/dev/mqueue", "/dev/shm")  # noqa: S108 - what a child could leave something in
_IDLE: Final = 3600.0  # seconds without a word after which nobody is there any more
_CHUNK: Final = 65536


class _Child:
    """A fork, and what is on its way to it."""

    def __init__(self, limits: list[tuple[str, int, int]], steps: bytes) -> None:
        theirs, self.input = os.pipe()
        self.output, out = os.pipe()
        nothing = os.open(os.devnull, os.O_WRONLY)

        def run() -> None:
            """What a fork does with itself: becomes nobody, within limits, and runs what it is sent."""
            os.chdir(_SCRATCH)
            hold(limits)
            _first_to_die()
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
            bare([theirs, out, nothing])
            shut(steps)
            obey()

        self.process = spawned(run)
        for descriptor in (theirs, out, nothing):
            os.close(descriptor)
        os.set_blocking(self.input, False)
        self.waiting = bytearray()
        self.last, self.closed, self.silent = False, False, False

    def feed(self) -> None:
        """Write what fits; close the pipe behind the last of it."""
        try:
            while self.waiting and not self.closed:
                del self.waiting[: os.write(self.input, self.waiting[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:  # it closed its input, or is dead
            self.waiting.clear()
        if self.last and not self.closed:
            self.closed = True
            os.close(self.input)

    def hear(self) -> None:
        """Pass on what it wrote."""
        if part := os.read(self.output, _CHUNK):
            _say(b"o", part)
        else:
            self.silent = True

    def end(self, status: int) -> None:
        """Kill what is left of it, pass on the last of what it wrote, and say how it ended."""
        _kill_all()
        while not self.silent:
            self.hear()
        os.close(self.output)
        if not self.closed:
            os.close(self.input)
        os.utime(_SCRATCH, (0, 0))  # when it wrote something last is nobody's business
        _say(b"x", b"%d %d" % (status, not any(map(_holds, _LEFT))))


def _holds(path: str) -> bool:
    """Whether there is anything in a folder, of which there may be millions."""
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except FileNotFoundError:
        return False


def _first_to_die() -> None:
    """Where memory runs out in the container, it is this process that is ended, not the first one."""
    try:
        with open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        return


def _kill_all() -> None:
    """End and await every process of the container but this one, which is its first: kill(2) spares that."""
    try:
        while True:
            os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)
    except (ProcessLookupError, ChildProcessError):
        return


def _say(letter: bytes, data: bytes) -> None:
    left = memoryview(letter + len(data).to_bytes(4, "big") + data)
    while left:
        left = left[os.write(1, left) :]


def main(plan: tuple[list[str], list[str], dict[str, bytes], dict[str, bytes]]) -> None:
    """Do what the frames say until standard input ends.

    `plan`: modules to import before; what children find in their environment, whatever else the image or the engine
    has put there; and by machine the filter of a child that may not fork, and of one that may.
    """
    imports, known, *filters = plan
    for name in imports:
        importlib.import_module(name)
    for name in {*os.environ} - {*known}:
        del os.environ[name]
    os.chmod(_SCRATCH, 0o1777)  # noqa: PTH101, S103 - an engine gives it the mode of a folder that the image has there
    ending = bell()
    gc.freeze()
    _say(b"r", b"")
    child: _Child | None = None
    while True:
        reading = [0, ending, *([child.output] if child and not child.silent else [])]
        ready, free, _ = select.select(reading, [child.input] if child and child.waiting else [], [], _IDLE)
        if not ready and not free:
            os._exit(0)
        if 0 in ready:
            child = _told(child, filters)
        if child and free:
            child.feed()
        if child and child.output in ready and not child.silent:
            child.hear()
        if ending in ready:
            os.read(ending, 4096)
            child = _ended(child)


def _told(child: _Child | None, filters: list[dict[str, bytes]]) -> _Child | None:
    """Do what one frame says: the child from then on."""
    import marshal

    letter = os.read(0, 1) or os._exit(0)
    data = take(int.from_bytes(take(4), "big"))
    if letter == b"f":
        limits, alone = marshal.loads(data)  # noqa: S302 - ours
        return _ended(_Child(limits, filters[0 if alone else 1].get(os.uname().machine, b"")))
    if child and letter == b"k":
        os.kill(child.process, signal.SIGKILL)
    elif child:
        child.waiting += data
        child.last = child.last or letter == b"e"
        child.feed()
    return child


def _ended(child: _Child | None) -> _Child | None:
    """The child, while it lives."""
    if child is None:
        return None
    found, status = os.waitpid(child.process, os.WNOHANG) if child.process > 0 else (1, 1 << 8)
    if not found:
        return child
    child.end(status)
    return None
