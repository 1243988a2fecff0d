"""System calls that are refused by what they are asked for, as programs for the kernel: see seccomp(2).

    narrow()   in a confined interpreter, before it is sent anything: no other program, no socket, few requests of ioctl
               and fcntl, no living on when whoever started it is gone
    alone()    in a fork besides: no process but threads
    boxed()    in a container, all of that, and nothing that outlives a process or counts for no limit

Whole calls are denied by name in `_walls`; those that sandlock looks at itself it will not deny: with `socket`, TCP by
MSG_FASTOPEN and MPTCP reached a listener. The rest depends on an argument, which Landlock does not see: an `ioctl` on a
file of the standard library, which may be read, changed its flags on disk. A filter cannot follow pointers, so calls
whose flags lie in memory are refused whole.
"""

from __future__ import annotations

import platform
import struct
from typing import Final, NamedTuple

_EPERM, _ENOSYS, _ALLOW, _KILL = 0x00050001, 0x00050026, 0x7FFF0000, 0x80000000  # seccomp(2)
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # operations of classic BPF
_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEWER: Final = {"clone3": 435, "io_uring_setup": 425, "pidfd_open": 434, "memfd_secret": 447}  # the same on all
_NUMBERS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {"fork": 57, "vfork": 58, "clone": 56, "prctl": 157, "ioctl": 16, "fcntl": 72}
    | {"execve": 59, "execveat": 322, "socket": 41, "connect": 42, "bind": 49}
    | {"shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240, "memfd_create": 319, "add_key": 248, "keyctl": 250}
    | {"request_key": 249, "ptrace": 101, "unshare": 272, "setns": 308, "bpf": 321, "perf_event_open": 298}
    | {"userfaultfd": 323, "prlimit64": 302, "sched_setaffinity": 203, "setpriority": 141, "sched_setattr": 314}
    | {"sync": 162, "syncfs": 306, "io_setup": 206, "inotify_init": 253, "inotify_init1": 294, "modify_ldt": 154}
    | {"seccomp": 317, "fanotify_init": 300, "utimensat": 280, "utime": 132, "utimes": 235, "futimesat": 261}
    | _NEWER,
    "aarch64": {"clone": 220, "prctl": 167, "ioctl": 29, "fcntl": 25, "execve": 221, "execveat": 281}
    | {"socket": 198, "connect": 203, "bind": 200}
    | {"shmget": 194, "semget": 190, "msgget": 186, "mq_open": 180, "memfd_create": 279, "add_key": 217, "keyctl": 219}
    | {"request_key": 218, "ptrace": 117, "unshare": 97, "setns": 268, "bpf": 280, "perf_event_open": 241}
    | {"userfaultfd": 282, "prlimit64": 261, "sched_setaffinity": 122, "setpriority": 140, "sched_setattr": 274}
    | {"sync": 81, "syncfs": 267, "io_setup": 0, "inotify_init1": 26, "seccomp": 277, "fanotify_init": 262}
    | {"utimensat": 88}
    | _NEWER,
}
_X32: Final = 0x40000000  # the second set of numbers of x86
_THREAD: Final = 0x10000  # CLONE_THREAD
_NAMESPACES: Final = 0x7E020000  # CLONE_NEW…: rights of its own, as far as a namespace reaches
_SAFE: Final = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # is it a terminal, how wide, bytes to read, flags
_ROBBING: Final = (8, 10, 15, 1024, 1026, 1031)  # whom to signal and how, leases, notices, longer pipes

_Step = tuple[int, int, int, int]


class Rule(NamedTuple):
    """What becomes of a call: refused whole, or by its argument number `place`."""

    call: str
    error: int = _EPERM
    place: int = -1
    only: tuple[int, ...] = ()
    """Values with which it is let through."""
    never: tuple[int, ...] = ()
    """Values with which it is refused."""
    bits: int = 0
    """It is let through if one of these is set."""
    barred: int = 0
    """It is refused if one of these is set."""


_NARROW: Final = (
    Rule("execve"),
    Rule("execveat"),
    Rule("socket"),  # pairs, which asyncio needs, are made by another call
    Rule("connect"),
    Rule("bind"),
    Rule("ioctl", place=1, only=_SAFE),
    Rule("fcntl", place=1, never=_ROBBING),
)
_DEATH: Final = Rule("prctl", place=0, never=(1,))  # PR_SET_PDEATHSIG
_UNREAD: Final = Rule("clone3", error=_ENOSYS)  # its flags lie in memory; the C library then takes clone
_ALONE: Final = (Rule("fork"), Rule("vfork"), _UNREAD, Rule("clone", place=0, bits=_THREAD), _DEATH)
_FORKING: Final = (_UNREAD, Rule("clone", place=0, barred=_NAMESPACES))
_LASTING: Final = (
    *("shmget", "semget", "msgget", "mq_open", "memfd_create", "add_key", "keyctl", "request_key"),
    *("ptrace", "unshare", "setns", "bpf", "perf_event_open", "userfaultfd", "io_uring_setup"),
    *("prlimit64", "sched_setaffinity", "setpriority", "sched_setattr", "pidfd_open", "memfd_secret", "io_setup"),
    *("sync", "syncfs", "inotify_init", "inotify_init1", "fanotify_init", "modify_ldt", "seccomp"),
    *("utimensat", "utime", "utimes", "futimesat"),  # of devices, too
)


def narrow(*, zygote: bool = False) -> bytes:
    """The filter of a confined interpreter. A zygote's children set the signal of its death themselves."""
    return program(_NARROW if zygote else (*_NARROW, _DEATH))


def alone() -> bytes:
    """The filter of a fork."""
    return program(_ALONE)


def boxed(*, alone: bool = True) -> dict[str, bytes]:
    """The filter of a program in a container, for each machine: what is inside may be another than what is outside."""
    rules = (*_NARROW, *(_ALONE if alone else _FORKING), *(Rule(call) for call in _LASTING))
    return {machine: program(rules, machine) for machine in _NUMBERS}


def program(rules: tuple[Rule, ...], machine: str = "") -> bytes:
    """Rules as instructions, eight bytes each: struct sock_filter. Empty where the machine is not known."""
    machine = machine or platform.machine()
    if machine not in _NUMBERS:
        return b""
    steps: list[_Step] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, 0, 1, _X32),
        (_RETURN, 0, 0, _EPERM),
    ]
    for rule in rules:
        number = _NUMBERS[machine].get(rule.call)
        if number is not None:
            body = _body(rule)
            steps += [(_EQUAL, 0, len(body), number), *body]
    return b"".join(struct.pack("<HBBI", *step) for step in (*steps, (_RETURN, 0, 0, _ALLOW)))


def _body(rule: Rule) -> list[_Step]:
    """What follows when the number is that of the rule; it always returns."""
    refuse, allow = (_RETURN, 0, 0, rule.error), (_RETURN, 0, 0, _ALLOW)
    if rule.place < 0:
        return [refuse]
    argument = (_LOAD, 0, 0, 16 + 8 * rule.place)  # its lower half: all that these calls look at
    if rule.barred:
        return [argument, (_ANY_BIT, 0, 1, rule.barred), refuse, allow]
    if rule.bits:
        return [argument, (_ANY_BIT, 0, 1, rule.bits), allow, refuse]
    values = rule.only or rule.never
    tests = [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [argument, *tests, *((refuse, allow) if rule.only else (allow, refuse))]
