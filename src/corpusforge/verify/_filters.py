"""System calls that are refused by what they are asked for, as programs for the kernel: see seccomp(2).

    narrow()   in a confined interpreter, before it is sent anything: no other program, no socket, few requests of ioctl
               and fcntl, no living on when whoever started it is gone
    alone()    in a fork besides: no process but threads

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
_NUMBERS: Final = {
    "x86_64": {"fork": 57, "vfork": 58, "clone": 56, "clone3": 435, "prctl": 157, "ioctl": 16, "fcntl": 72}
    | {"execve": 59, "execveat": 322, "socket": 41, "connect": 42, "bind": 49},
    "aarch64": {"clone": 220, "clone3": 435, "prctl": 167, "ioctl": 29, "fcntl": 25, "execve": 221, "execveat": 281}
    | {"socket": 198, "connect": 203, "bind": 200},
}
_X32: Final = 0x40000000  # the second set of numbers of x86
_THREAD: Final = 0x10000  # CLONE_THREAD
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
_ALONE: Final = (
    Rule("fork"),
    Rule("vfork"),
    Rule("clone3", error=_ENOSYS),  # its flags lie in memory; the C library then takes clone
    Rule("clone", place=0, bits=_THREAD),
    _DEATH,
)


def narrow(*, zygote: bool = False) -> bytes:
    """The filter of a confined interpreter. A zygote's children set the signal of its death themselves."""
    return program(_NARROW if zygote else (*_NARROW, _DEATH))


def alone() -> bytes:
    """The filter of a fork."""
    return program(_ALONE)


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
    if rule.bits:
        return [argument, (_ANY_BIT, 0, 1, rule.bits), allow, refuse]
    values = rule.only or rule.never
    tests = [(_EQUAL, len(values) - at, 0, value) for at, value in enumerate(values)]
    return [argument, *tests, *((refuse, allow) if rule.only else (allow, refuse))]
