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
import marshal
import os
import platform
import select
import signal
import sys
from typing import Any, Final

_EPERM, _ENOSYS, _ALLOW, _KILL = 0x00050001, 0x00050026, 0x7FFF0000, 0x80000000  # seccomp(2)
_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # operations of classic BPF
_NUMBERS: Final = {  # audit architecture; fork, vfork (x86 only), clone, clone3, prctl
    "x86_64": (0xC000003E, 57, 58, 56, 435, 157),
    "aarch64": (0xC00000B7, 0xFFFF, 0xFFFF, 220, 435, 167),
}
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF, _BENEATH = 444, 445, 446, 1  # the same on every architecture
_ALL, _READ, _LIST, _WRITE, _OF_FILES = 0xFFFF, 0b1101, 0b1000, 0b10, 0b111  # rights of Landlock's version 6
_NO_NETWORK, _NO_IPC = 0b11, 0b11  # TCP bind and connect; abstract sockets and signals
_DEATH_SIGNAL, _SECCOMP, _NO_NEW_PRIVILEGES = 1, 22, 38  # prctl(2)
_FILES: Final = 4096  # above every descriptor of a zygote
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class _Step(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("yes", ctypes.c_ubyte), ("no", ctypes.c_ubyte), ("k", ctypes.c_uint32))


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.POINTER(_Step)))


def _filter() -> tuple[Any, Any]:
    """No process but threads, and no living on when the zygote is gone (prctl(2), PR_SET_PDEATHSIG)."""
    arch, fork, vfork, clone, clone3, prctl = _NUMBERS[platform.machine()]
    listed = [
        (_LOAD, 0, 0, 4),  # 0: the architecture
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),  # 3: the number of the call
        (_AT_LEAST, 10, 0, 0x40000000),  # the second set of numbers of x86, "x32"
        (_EQUAL, 9, 0, fork),
        (_EQUAL, 8, 0, vfork),
        (_EQUAL, 8, 0, clone3),  # its flags lie in memory; the C library then takes clone
        (_EQUAL, 2, 0, clone),
        (_EQUAL, 3, 0, prctl),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # 11: flags of clone
        (_BITS, 4, 2, 0x10000),  # CLONE_THREAD
        (_LOAD, 0, 0, 16),  # 13: what prctl is asked for
        (_EQUAL, 0, 2, 1),
        (_RETURN, 0, 0, _EPERM),  # 15
        (_RETURN, 0, 0, _ENOSYS),  # 16
        (_RETURN, 0, 0, _ALLOW),  # 17
    ]
    steps = (_Step * len(listed))(*(_Step(*step) for step in listed))
    return _Filter(len(listed), steps), steps


def _check(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), "confinement")
    return result


def _fence(readable: list[str], listed: list[str], scratch: str) -> int:
    """A ruleset of Landlock: read `readable`, read names in the folders `listed`, write in `scratch`, nothing else."""
    attributes = (ctypes.c_uint64 * 3)(_ALL, _NO_NETWORK, _NO_IPC)
    ruleset = _check(_LIBC.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0))
    rules = [(path, _READ if os.path.isdir(path) else _READ & _OF_FILES) for path in readable]  # noqa: PTH112
    rules += [(path, _LIST) for path in listed]
    for path, rights in (*rules, (os.devnull, (_READ | _WRITE) & _OF_FILES), (scratch, _ALL)):
        at = os.open(path, os.O_PATH)
        rule = rights.to_bytes(8, sys.byteorder) + at.to_bytes(4, sys.byteorder)
        _check(_LIBC.syscall(_ADD_RULE, ruleset, _BENEATH, rule, 0))
        os.close(at)
    return int(ruleset)


def _fork(nothing: int, fence: int, barred: Any) -> int:
    """A child, by its process id. All that it needs is open before: it may open few files of its own."""
    given, said = os.open("in", os.O_RDONLY), os.open("out", os.O_WRONLY)
    process = os.fork()
    if not process:
        try:
            _child([given, said, nothing], fence, barred)
        except SystemExit as end:
            os._exit(end.code if isinstance(end.code, int) else end.code is not None)
        except BaseException:  # noqa: BLE001 - what is not confined does not run, and nothing else runs here
            os._exit(1)
        os._exit(0)
    os.close(given)
    os.close(said)
    return process


def _child(opened: list[int], fence: int, barred: Any) -> None:
    """What a fork does with itself: gives up all but its two pipes, and runs what it is sent."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _check(_LIBC.prctl(_DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0))
    os.chdir("scratch")
    _check(_LIBC.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(_LIBC.syscall(_RESTRICT_SELF, fence, 0))
    for place, descriptor in enumerate(opened):
        os.dup2(descriptor, place)
    os.closerange(3, _FILES)
    _check(_LIBC.prctl(_SECCOMP, 2, ctypes.byref(barred), 0, 0))
    code, names = marshal.loads(_take(int.from_bytes(_take(8), "big")))  # noqa: S302 - ours
    exec(code, names)  # noqa: S102 - confined
    sys.stdout.flush()


def _take(count: int) -> bytes:
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(3)
        data += part
    return data


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


def main(plan: tuple[list[str], list[str], list[str]]) -> None:
    """Fork and wait as asked, one letter each, until standard input ends.

    `plan`: what children may read, folders of which they may read the names, and modules to import before.
    """
    readable, listed, imports = plan
    for name in imports:
        importlib.import_module(name)
    fence, (barred, _steps) = _fence(readable, listed, "scratch"), _filter()
    os.environ["HOME"] = os.environ["TMPDIR"] = f"{os.getcwd()}/scratch"  # noqa: PTH109
    bell, ringer = os.pipe()
    for end in (bell, ringer):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ringer)
    nothing = os.open(os.devnull, os.O_WRONLY)
    gc.freeze()
    process, answer = 0, 0
    while True:
        os.write(1, b"%d\n" % answer)
        letter = os.read(0, 1) or os._exit(0)
        if letter == b"w":
            answer = _waited(process, bell)
        else:
            answer = process = _fork(nothing, fence, barred)
