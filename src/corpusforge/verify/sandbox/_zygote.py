"""The confined process from which others are forked, one per check: an interpreter that has started already.

    stdin   f   ->  stdout  4711       a child of this process, which reads from the pipe `in` and writes to `out`
    stdin   w   ->  stdout  9          its wait status, when it has ended

It runs behind the walls of `_walls` and never runs a line of a solution itself; it has one child at a time. A child
gives up more before it reads anything: it has no descriptor but its two pipes, may write in the folder `scratch` and
nowhere else, may send no signal to what is outside of it, and may not make a process. Landlock keeps that for the child
alone (landlock(7): a domain within a domain, which can neither trace nor signal the one around it), and a seccomp
filter of its own.

This file runs inside confinement and imports the standard library only.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import select
import signal
import sys
from typing import Final

from corpusforge.verify.sandbox._inside import LIBC, bare, bell, check, obey, shut, spawned

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _BENEATH = 444, 445, 446, 1  # the same on every architecture
_EXECUTE, _ALL, _READ, _LIST, _WRITE, _OF_FILES = 1, 0xFFFE, 0b1100, 0b1000, 0b10, 0b110  # Landlock's version 6
_NO_NETWORK, _NO_IPC = 0b11, 0b11  # TCP bind and connect; abstract sockets and signals
_DEATH_SIGNAL: Final = 1  # prctl(2)


def _fence(readable: list[str], listed: list[str], scratch: str) -> int:
    """A ruleset of Landlock: read `readable`, read names in the folders `listed`, write in `scratch`, nothing else."""
    attributes = (ctypes.c_uint64 * 3)(_ALL | _EXECUTE, _NO_NETWORK, _NO_IPC)
    ruleset = check(LIBC.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0))
    rules = [(path, _READ if os.path.isdir(path) else _READ & _OF_FILES) for path in readable]  # noqa: PTH112
    rules += [(path, _LIST) for path in listed]
    for path, rights in (*rules, (os.devnull, (_READ | _WRITE) & _OF_FILES), (scratch, _ALL)):
        at = os.open(path, os.O_PATH)
        rule = rights.to_bytes(8, sys.byteorder) + at.to_bytes(4, sys.byteorder)
        check(LIBC.syscall(_ADD_RULE, ruleset, _BENEATH, rule, 0))
        os.close(at)
    return int(ruleset)


def _fork(fence: int, steps: bytes) -> int:
    """A child, by its process id; less than 0 where there can be none.

    What it holds is opened for it alone: forks share the flags of an open file.
    """
    opened = [os.open("in", os.O_RDONLY), os.open("out", os.O_WRONLY), os.open(os.devnull, os.O_WRONLY)]

    def run() -> None:
        """What a fork does with itself: gives up all but its two pipes, and runs what it is sent."""
        check(LIBC.prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0))
        os.chdir("scratch")
        check(LIBC.syscall(_RESTRICT_SELF, fence, 0))
        bare(opened)
        shut(steps)
        obey()

    process = spawned(run)
    for descriptor in opened:
        os.close(descriptor)
    return process


def _waited(process: int, bell: int) -> int:
    """The wait status of a child that ended; ends with everything when whoever asked is gone."""
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return status
        ready, _, _ = select.select([0, bell], [], [])
        if 0 in ready:
            os._exit(0)
        os.read(bell, 4096)


def main(plan: tuple[list[str], list[str], list[str], bytes]) -> None:
    """Fork and wait as asked, one letter each, until standard input ends.

    `plan`: what children may read, folders of which they may read the names, modules to import before,
    and the filter of a child.
    """
    readable, listed, imports, steps = plan
    for name in imports:
        importlib.import_module(name)
    fence = _fence(readable, listed, "scratch")
    os.environ["HOME"] = os.environ["TMPDIR"] = f"{os.getcwd()}/scratch"  # noqa: PTH109
    ending = bell()
    gc.freeze()
    process, answer = 0, 0
    while True:
        os.write(1, b"%d\n" % answer)
        letter = os.read(0, 1) or os._exit(0)
        if letter == b"w":
            answer = _waited(process, ending)
        else:
            answer = process = _fork(fence, steps)
