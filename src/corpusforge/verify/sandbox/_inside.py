"""What an interpreter in confinement does before it runs anything: read what it is sent, shut what is to be shut.

    take(8)            eight bytes of standard input
    shut(steps)        no new privileges, and a filter of `_filters`; it cannot be taken off
    obey()             read a program with the names that it finds, and run it
    spawned(obey)      a child that does nothing else; its process id

This text also stands at the head of the command line of a fresh interpreter (`boot`), so it imports little.
"""

from __future__ import annotations

import ctypes
import marshal
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

NO_NEW_PRIVILEGES, SECCOMP = 38, 22  # prctl(2)
_FILTER = 2  # SECCOMP_MODE_FILTER
_CAPABILITIES = 0x20080522  # the version of capset(2)
LIBC = ctypes.CDLL(None, use_errno=True)


def take(count: int) -> bytes:
    """So many bytes of standard input; ends the process where they do not come."""
    data = b""
    while len(data) < count:
        part = os.read(0, count - len(data))
        if not part:
            os._exit(3)
        data += part
    return data


def check(result: int) -> int:
    """What a call of the C library returned. Raises OSError for less than 0."""
    if result < 0:
        raise OSError(ctypes.get_errno(), "confinement")
    return result


def disown() -> None:
    """Root without its capabilities: see capset(2). Of others, nothing."""
    if os.geteuid() == 0:
        header, none = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
        check(LIBC.capset(header, none))


def shut(steps: bytes) -> None:
    """No new privileges, and a filter, if there is one."""
    check(LIBC.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    if steps:
        kept = ctypes.create_string_buffer(steps, len(steps))
        check(LIBC.prctl(SECCOMP, _FILTER, (ctypes.c_uint64 * 2)(len(steps) // 8, ctypes.addressof(kept)), 0, 0))


def hold(pairs: list[tuple[str, int, int]]) -> None:
    """Limits of this process, by their names in `resource`, soft and hard; those that a system knows."""
    import resource

    for name, soft, hard in pairs:
        if (number := getattr(resource, name, None)) is not None:
            resource.setrlimit(number, (soft, hard))


def obey() -> None:
    """Run what is sent: its length, then a program, or its text, and the names that it finds."""
    code, names = marshal.loads(take(int.from_bytes(take(8), "big")))  # noqa: S302 - ours
    exec(code, names)  # noqa: S102 - confined


def bell() -> int:
    """A descriptor that can be read when a child has ended."""
    ending, ringer = os.pipe()
    for end in (ending, ringer):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ringer)
    return ending


def spawned(run: Callable[[], None]) -> int:
    """A child that does this and ends: its process id, or less than 0 and why where there can be none."""
    try:
        process = os.fork()
    except OSError as error:
        return -(error.errno or 1)
    if not process:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run()
            sys.stdout.flush()
        except SystemExit as end:
            os._exit(end.code if isinstance(end.code, int) else end.code is not None)
        except BaseException:  # noqa: BLE001 - what is not confined does not run, and nothing else runs here
            os._exit(1)
        os._exit(0)
    return process


def bare(opened: list[int], most: int = 4096) -> None:
    """Make descriptors the first ones, and close all others."""
    for place, descriptor in enumerate(opened):
        os.dup2(descriptor, place)
    os.closerange(len(opened), most)
