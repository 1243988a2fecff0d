"""filters: the programs for the kernel say what their rules say, on both architectures. A small machine runs them."""

from __future__ import annotations

import struct

import pytest

from corpusforge.verify.sandbox import _filters
from corpusforge.verify.sandbox._filters import _ALONE, _ARCHITECTURES, _DEATH, _NARROW, _NUMBERS, program

REFUSED, NONE, ALLOWED, KILLED = 0x00050001, 0x00050026, 0x7FFF0000, 0x80000000


def run(steps: bytes, architecture: int, number: int, *given: int) -> int:
    """What the kernel would answer to a call."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, *(*given, 0, 0, 0, 0, 0, 0)[:6])
    at, held = 0, 0
    while True:
        code, yes, no, value = struct.unpack_from("<HBBI", steps, 8 * at)
        if code == 0x06:
            return value
        if code == 0x20:
            held = struct.unpack_from("<I", data, value)[0]
            at += 1
            continue
        holds = {0x15: held == value, 0x35: held >= value, 0x45: bool(held & value)}[code]
        at += 1 + (yes if holds else no)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize(
    ("call", "given", "answer"),
    [
        ("socket", (2, 1, 0), REFUSED),
        ("connect", (3,), REFUSED),
        ("execve", (0,), REFUSED),
        ("ioctl", (0, 0x5401), ALLOWED),
        ("ioctl", (0, 0x5451), ALLOWED),
        ("ioctl", (0, 0x40086602), REFUSED),
        ("ioctl", (0, 0x540100005401), ALLOWED),
        ("ioctl", (0, 0x5401_00005412), REFUSED),
        ("fcntl", (0, 2), ALLOWED),
        ("fcntl", (0, 8), REFUSED),
        ("fcntl", (0, 1031), REFUSED),
        ("prctl", (1, 0), REFUSED),
        ("prctl", (15,), ALLOWED),
        ("clone", (17,), REFUSED),
        ("clone", (0x10000 | 17,), ALLOWED),
        ("clone", (0x10000 << 32,), REFUSED),
        ("clone3", (), NONE),
    ],
)
def test_calls_are_answered_by_rule(machine: str, call: str, given: tuple[int, ...], answer: int) -> None:
    steps = program((*_NARROW, *_ALONE), machine)
    assert run(steps, _ARCHITECTURES[machine], _NUMBERS[machine][call], *given) == answer


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_in_a_container_nothing_stays_and_only_some_may_fork(machine: str) -> None:
    for alone in (True, False):
        steps = _filters.boxed(alone=alone)[machine]
        answers = {call: run(steps, _ARCHITECTURES[machine], number, 17) for call, number in _NUMBERS[machine].items()}
        refused = {call for call, answer in answers.items() if answer != ALLOWED}
        assert {"shmget", "mq_open", "io_uring_setup", "ptrace", "socket", "execve", "memfd_create"} < refused
        assert ("clone" in refused) is alone
        assert set(_NUMBERS[machine]) - refused <= {"fcntl", "prctl", "clone", "clone3", "fork", "vfork"}


def test_other_numbers_pass_and_other_architectures_end() -> None:
    steps = program((*_NARROW, _DEATH), "x86_64")
    assert run(steps, _ARCHITECTURES["x86_64"], 0) == ALLOWED
    assert run(steps, _ARCHITECTURES["x86_64"], 0x40000000 | 41) == REFUSED
    assert run(steps, 0x40000003, 41) == KILLED


def test_a_machine_that_is_not_known_gets_no_program_and_so_no_confinement() -> None:
    assert program(_NARROW, "riscv64") == b""
    assert b"" not in (_filters.narrow(), _filters.alone())
