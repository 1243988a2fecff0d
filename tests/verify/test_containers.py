"""Containers: the same attacks as on the kernel's own walls, on a real engine, and what is left of it all: nothing."""

from __future__ import annotations

import os
import platform
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from tests.verify import engine
from tests.verify.test_hostile import ASSERTS, ATTACKS, GOOD, PRINTERS, PRINTING
from tests.verify.test_walls import ROWS, TRACES, Outside, surroundings

from corpusforge.verify import assert_tests, program, sandbox, verify
from corpusforge.verify._verdict import Task
from corpusforge.verify.sandbox import Limits, _container, _containers, _engines, _place

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpusforge.verify.sandbox._containers import Containers

SHORT = Limits(seconds=1, patience=1.5)
FORKING = Limits(seconds=1, patience=1.5, processes=8)


@pytest.fixture(scope="module")
def walls() -> Iterator[Containers]:
    """Containers of an image of this Python."""
    found = engine.working()
    if found is None:
        pytest.skip("no container engine works here")
    made = _containers.Containers(found, engine.IMAGE)
    yield made
    made.close()
    assert names(found, os.getpid()) == []


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with surroundings(tmp_path_factory.mktemp("outside")) as there:
        yield there


@pytest.fixture
def asked(walls: Containers, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Code runs in containers, because the environment says so."""
    monkeypatch.setenv(_place.SETTING, f"container:{engine.IMAGE}")
    monkeypatch.setenv(_engines.SETTING, shlex.join(walls.engine))
    where = _place.place()
    assert where.fault() is None
    yield
    assert isinstance(where, _place.Boxes)
    where.containers.close()


def names(command: tuple[str, ...], owner: int) -> list[str]:
    """Containers of a process that are there, running or not; one that ends is given a moment."""
    for _ in range(150):
        told = [*command, "ps", "--all", "--format", "{{.Names}}"]
        found = subprocess.run(told, capture_output=True, text=True, check=True).stdout.split()
        if not (ours := [name for name in found if name.startswith(f"corpusforge-{owner}-")]):
            return []
        time.sleep(0.2)
    return ours


def test_walls_are_found_shut_or_code_is_not_run(walls: Containers) -> None:
    assert walls.fault is None
    missing = _containers.Containers(walls.engine, "localhost/corpusforge-tests:none")
    assert "corpusforge-tests:none does not start: " in str(missing.fault)


@pytest.mark.parametrize("row", ROWS, ids=[row["name"].replace(" ", "_") for row in ROWS])
def test_out_of_reach(row: dict[str, Any], walls: Containers, outside: Outside) -> None:
    if row.get("only", platform.machine()) != platform.machine():
        pytest.skip(f"only on {row['only']}")
    outcome, said = outside.attempt(walls.child, row["lines"])
    assert said.startswith(("shut", row.get("boxed", "shut"))) or outcome in row.get("ends", ()), (outcome, said)
    assert outside.touched() == []


def test_hostile_solutions_fail_and_the_good_ones_beside_them_pass(asked: None) -> None:
    for limits, forks in ((SHORT, False), (FORKING, True)):
        some = [one for one in ATTACKS if bool(one.get("forks")) is forks]
        codes = [eval(one["text"]) if one.get("eval") else one["text"] for one in some]
        blocks = [block for code in codes for block in (f"```python\n{code}\n```", GOOD)]
        found = assert_tests.check_many([ASSERTS] * len(blocks), blocks, limits)
        assert [one["name"] for one, verdict in zip(some, found[::2], strict=True) if verdict.outcome != "fail"] == []
        assert {verdict.outcome for verdict in found[1::2]} == {"pass"}


def test_hostile_programs_fail(asked: None) -> None:
    blocks = [f"```python\n{one['text']}\n```" for one in PRINTERS]
    found = program.check_many([PRINTING] * len(blocks), blocks, SHORT)
    assert {verdict.outcome for verdict in found} == {"fail"}
    assert program.check(PRINTING, "```python\nprint(sum(map(int, input().split())))\n```").outcome == "pass"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("raise SystemExit(7)", "error"),
        ("import ctypes; ctypes.string_at(0)", "crashed"),
        ("while True: pass", "timeout"),
        ("import time; time.sleep(60)", "timeout"),
        ("import os, time; os.close(1); time.sleep(60)", "timeout"),
        ("while True: print('x' * 1000)", "output"),
        ("x = bytearray(2**30)", "error"),
        ("open('f', 'wb').write(b'x' * 2**25)", "error"),
        ("import signal, os; os.kill(os.getpid(), signal.SIGKILL)", "killed"),
        ("print(6 * 7)", "ok"),
    ],
)
def test_the_end_of_a_program_is_told_apart(walls: Containers, code: str, outcome: str) -> None:
    limits = Limits(seconds=1, patience=1.5 if outcome == "timeout" else 30)
    assert sandbox.run_in(walls.child, code, limits=limits).outcome == outcome
    assert sandbox.run_in(walls.child, "print(1)").stdout == b"1\n"


def test_input_and_output_come_whole(walls: Containers) -> None:
    ran = sandbox.run_in(walls.child, "import sys; sys.stdout.write(sys.stdin.read()[::-1])", b"ab" * 20_000)
    assert (ran.outcome, ran.stdout) == ("ok", b"ba" * 20_000)


def test_a_child_finds_no_trace_of_the_one_before(walls: Containers) -> None:
    ran = [sandbox.run_in(walls.child, TRACES, b"x" * 300) for _ in range(3)]
    assert len({one.stdout for one in ran}) == 1
    assert ran[0].stdout.startswith(b"[")


def test_what_was_left_is_not_found_by_the_next(walls: Containers) -> None:
    leaves = "open('left', 'w').write('answer'); print(__import__('os').listdir('.'))"
    assert {sandbox.run_in(walls.child, leaves).stdout for _ in range(3)} == {b"['left']\n"}
    counted = "print(sum(name.isdigit() for name in os.listdir('/proc')))"
    forks = f"import os, time\nif os.fork() == 0:\n    time.sleep(60)\n{counted}"
    limits = Limits(processes=8)
    assert {sandbox.run_in(walls.child, forks, limits=limits).stdout for _ in range(3)} == {b"3\n"}


def test_when_another_wrote_is_not_told(walls: Containers) -> None:
    told = "import os; print(os.stat('/scratch').st_mtime, os.stat('/dev/null').st_mtime)"
    writes = f"import os\nopen('left', 'w').close()\nos.remove('left')\n{told}"
    ran = [sandbox.run_in(walls.child, one).stdout for one in (told, writes, told)]
    assert ran[0] == ran[2] != ran[1]


def test_what_an_engine_puts_into_the_environment_is_not_there(walls: Containers) -> None:
    ran = sandbox.run_in(walls.child, "import os; print(sorted(os.environ))")
    assert ran.stdout == b"['HOME', 'LANG', 'PYTHONHASHSEED', 'TMPDIR']\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86_64")
def test_a_program_that_may_fork_gets_no_rights_in_namespaces_of_its_own(walls: Containers) -> None:
    program = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for number, flags in [(56, 1 << bit | 17) for bit in (17, 25, 26, 27, 28, 29, 30)] + [(56, 0x30000011), (435, 0)]:
    given = (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17)
    made = libc.syscall(number, *([ctypes.byref(given), 88] if number == 435 else [ctypes.c_long(flags), *[None] * 4]))
    if made == 0:
        os._exit(0)
    if made > 0:
        print("made", number, hex(flags))
print("done")"""
    assert sandbox.run_in(walls.child, program, limits=Limits(processes=8)).stdout == b"done\n"


def test_where_memory_runs_out_the_program_is_ended_and_the_container_stays(
    walls: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    walls.close()
    fills = """
import os, time
for _ in range(8):
    if os.fork() == 0:
        held = b"x" * (300 * 2**20)
        time.sleep(60)
time.sleep(60)"""
    limits = Limits(seconds=2, patience=1.5, processes=8)
    kept = walls.pool(limits).take()
    walls.pool(limits).give(kept)
    assert sandbox.run_in(walls.child, fills, limits=limits).outcome in ("timeout", "killed")
    again = walls.pool(limits).take()
    walls.pool(limits).give(again)
    assert kept is again
    assert list(tmp_path.iterdir()) == []


class Wrapped:
    """An engine whose command can be made to wait or to fail."""

    def __init__(self, folder: Path, command: tuple[str, ...]) -> None:
        self.acts, self.path = folder / "acts", folder / "an engine"
        self.acts.touch()
        text = f'#!/bin/sh\n. {shlex.quote(str(self.acts))}\nexec {shlex.join(command)} "$@"\n'
        self.path.write_text(text, encoding="utf-8")
        self.path.chmod(0o755)


@pytest.fixture
def wrapped(walls: Containers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Wrapped]:
    """Code runs in containers of an engine that can be told to wait or to fail."""
    made = Wrapped(tmp_path, walls.engine)
    monkeypatch.setenv(_place.SETTING, f"container:{engine.IMAGE}")
    monkeypatch.setenv(_engines.SETTING, shlex.quote(str(made.path)))
    where = _place.place()
    assert where.fault() is None
    yield made
    made.acts.write_text("", encoding="utf-8")
    assert isinstance(where, _place.Boxes)
    where.containers.close()


def test_a_container_that_starts_slowly_costs_a_program_no_time(wrapped: Wrapped) -> None:
    wrapped.acts.write_text("sleep 2\n", encoding="utf-8")
    assert assert_tests.check_many([ASSERTS], [GOOD], SHORT)[0].outcome == "pass"


def test_where_an_engine_stops_working_nothing_is_decided_and_a_warning_says_why(wrapped: Wrapped) -> None:
    where = _place.place()
    assert isinstance(where, _place.Boxes)
    where.containers.close()
    _place.SAID.clear()
    wrapped.acts.write_text("echo cannot connect to the daemon >&2\nexit 1\n", encoding="utf-8")
    with pytest.warns(RuntimeWarning, match="cannot connect to the daemon") as seen:
        found = assert_tests.check_many([ASSERTS] * 12, [GOOD] * 12)
    assert {one.rule for one in found} == {"code.unconfined"}
    assert len(seen) == 1


def test_a_container_that_somebody_ends_decides_nothing_about_a_solution(asked: None, walls: Containers) -> None:
    slow = GOOD.replace("    return", "    import time\n    time.sleep(0.3)\n    return")
    where = _place.place()
    assert isinstance(where, _place.Boxes)
    made: list[str] = []
    taken = where.containers.child

    def child(*given: Any) -> Any:
        one = taken(*given)
        enter = type(one).__enter__

        def entered() -> Any:
            enter(one)
            if not made:
                made.append(one._container.name)
                subprocess.run([*walls.engine, "kill", made[0]], capture_output=True, check=True)
            return one

        one.__class__ = type("Killed", (type(one),), {"__enter__": lambda _: entered()})
        return one

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(where.containers, "child", child)
        assert assert_tests.check(ASSERTS, slow).outcome == "pass"
    assert made


def test_containers_of_few_sizes_are_kept(walls: Containers) -> None:
    for more in range(_containers._SIZES + 2):
        assert sandbox.run_in(walls.child, "print(1)", limits=Limits(memory_mib=100 + more)).stdout == b"1\n"
    assert len(walls._pools) == _containers._SIZES


def test_a_fork_that_lives_on_does_not_keep_containers(walls: Containers) -> None:
    assert sandbox.run_in(walls.child, "print(1)").stdout == b"1\n"
    fork = os.fork()
    if fork == 0:
        time.sleep(60)
        os._exit(0)
    try:
        start = time.monotonic()
        walls.close()
        assert time.monotonic() - start < _container._LEAVING
        assert names(walls.engine, os.getpid()) == []
    finally:
        os.kill(fork, signal.SIGKILL)
        os.waitpid(fork, 0)


def test_random_numbers_begin_the_same(asked: None) -> None:
    tests = ["import random\nassert f() == random.random()"]
    code = "```python\nimport random\ndef f():\n    return random.random()\n```"
    assert assert_tests.check(Task("assert_tests", {"tests": tests}), code).outcome == "pass"


def test_a_container_ends_with_the_process_that_started_it(walls: Containers, tmp_path: Path) -> None:
    for act in (signal.SIGKILL, signal.SIGTERM):
        script = f"""
import sys, threading, time
from corpusforge.verify import sandbox
from corpusforge.verify.sandbox._containers import Containers
walls = Containers({walls.engine!r}, {engine.IMAGE!r})
for program in ("while True: pass", "import time; time.sleep(600)"):
    given = (walls.child, program, b"", sandbox.Limits(seconds=600))
    threading.Thread(target=sandbox.run_in, args=given, daemon=True).start()
sandbox.run_in(walls.child, "print(1)")
print("ready", flush=True)
time.sleep(600)
"""
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env={**os.environ}) as owner:
            assert owner.stdout is not None
            assert owner.stdout.readline() == b"ready\n"
            owner.send_signal(act)
            owner.wait()
        assert names(walls.engine, owner.pid) == []


def test_verdicts_are_the_same_as_behind_the_kernels_walls(asked: None, monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"verifier": {"kind": "assert_tests", "spec": {"tests": ["assert f(2) == 4", "assert f(3) == 9"]}}}
    answers = [
        "def f(x): return x * x",
        "def f(x): return x + x",
        "def g(x): return 1",
        "f = None",
        "no code",
        "def f(x):",
    ]
    boxed = [verify(row, answer).rule for answer in answers]
    if sandbox.available() is None:
        monkeypatch.delenv(_place.SETTING)
        assert boxed == [verify(row, answer).rule for answer in answers]
    assert boxed == ["code.tests", "code.tests", "code.missing", "code.raised", "code.none", "code.none"]
