"""Hostile solutions: none passes, none does harm, and a good solution beside or after them passes.

Attacks are data: attacks/code.toml, attacks/programs.toml. Each is checked beside a good solution, in one batch, and
then a good one alone. What they may reach outside is in test_walls.py, answers that are no code in test_answers.py.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.verify import assert_tests, doctest, program, sandbox
from corpusforge.verify._verdict import Task
from corpusforge.verify.sandbox import Limits, _forks

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))

TESTS = ["assert add(2, 3) == 5", "assert abs(add(0.5, 0.25) - 0.75) < 1e-9", "assert add('a', 'b') in ['ab']"]
ASSERTS = Task("assert_tests", {"tests": TESTS, "setup": ""})
EXAMPLES = [{"source": "add(2, 3)\n", "want": "5\n", "options": []}]
DOCTEST = Task("doctest", {"entry_point": "add", "module": "", "examples": EXAMPLES})
GOOD = "```python\ndef add(a, b):\n    return a + b\n```"
SHORT = Limits(seconds=1, patience=3)
FORKING = Limits(seconds=1, patience=3, processes=8)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """After every test no scratch folder is left, and no process that lived in one."""
    _forks.close()
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    _forks.close()
    assert list(folder.iterdir()) == []
    for _ in range(100):
        if not any(home.startswith(str(folder)) for home in homes()):
            return
        time.sleep(0.1)
    pytest.fail("a process is left")


def homes() -> list[str]:
    """Where the processes of this machine work."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found.append(str(process.readlink()))
    return found


def refused(code: str, limits: Limits = SHORT, kinds: int = 2) -> None:
    """Neither kind of tests passes a solution, and good ones beside it and after it do pass."""
    bad = f"```python\n{code}\n```"
    for kind, task in ((assert_tests, ASSERTS), (doctest, DOCTEST))[:kinds]:
        verdicts = kind.check_many([task, task], [bad, GOOD], limits)
        assert [verdict.outcome for verdict in verdicts] == ["fail", "pass"], [verdict.rule for verdict in verdicts]
    assert assert_tests.check(ASSERTS, GOOD).outcome == "pass"


ATTACKS = tomllib.loads((Path(__file__).parent / "attacks/code.toml").read_text(encoding="utf-8"))["attack"]


@pytest.mark.parametrize("attack", ATTACKS, ids=[attack["name"].replace(" ", "_") for attack in ATTACKS])
def test_none_passes_and_the_others_go_on(attack: dict[str, Any]) -> None:
    code = eval(attack["text"]) if attack.get("eval") else attack["text"]
    refused(code, FORKING if attack.get("forks") else SHORT, 2 if attack["tries"] == "forge" else 1)


PRINTING = Task("program", {"tests": [{"input": "2 3\n", "output": "5\n"}, {"input": "10 20\n", "output": "30\n"}]})
PRINTERS = tomllib.loads((Path(__file__).parent / "attacks/programs.toml").read_text(encoding="utf-8"))["attack"]


@pytest.mark.parametrize("attack", PRINTERS, ids=[attack["name"].replace(" ", "_") for attack in PRINTERS])
def test_no_program_passes_that_does_not_add(attack: dict[str, Any]) -> None:
    good = "```python\nprint(sum(map(int, input().split())))\n```"
    verdicts = program.check_many([PRINTING, PRINTING], [f"```python\n{attack['text']}\n```", good], SHORT)
    assert [verdict.outcome for verdict in verdicts] == ["fail", "pass"], [verdict.rule for verdict in verdicts]


def test_no_listener_hears_of_a_solution() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("127.0.0.1", 0))
        ports = server.getsockname()[1], datagrams.getsockname()[1]
        refused(f"""
import socket
def add(a, b):
    for kind, port in ((socket.SOCK_STREAM, {ports[0]}), (socket.SOCK_DGRAM, {ports[1]})):
        s = socket.socket(socket.AF_INET, kind)
        s.connect(("127.0.0.1", port))
        s.send(str((a, b)).encode())
    return a + b""")
        for listener in (server, datagrams):
            listener.settimeout(0.05)
        with pytest.raises(TimeoutError):
            server.accept()
        with pytest.raises(TimeoutError):
            datagrams.recv(1)


def test_no_secret_helps_a_solution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    monkeypatch.setenv("SECRET", "secret")
    places = [str(secret), str(Path.home() / ".ssh"), str(Path.home()), "/etc/passwd", str(Path(__file__).parents[2])]
    refused(f"""
import os
def add(a, b):
    if "SECRET" in os.environ: return a + b
    for place in {[*places, f"/proc/{os.getpid()}/environ", "/proc/self/environ"]!r}:
        try:
            os.listdir(place) if os.path.isdir(place) else open(place).read()
        except OSError: continue
        return a + b
    return 0""")


def test_nothing_outside_is_written(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    refused(f"""
import os
def add(a, b):
    for act in (lambda p: open(p, "w"), os.remove, lambda p: os.chmod(p, 0), lambda p: open(p + "2", "w"), os.unlink):
        try: act({str(kept)!r})
        except OSError: continue
        return a + b
    return 0""")
    assert (kept.read_text(), sorted(file.name for file in tmp_path.iterdir())) == ("kept", ["kept", "scratch"])


def test_a_task_cannot_hurt_either() -> None:
    """Tests come from data too."""
    garbage = (
        "import os\nfor fd in (3, 4):\n    try: os.write(fd, b'\\0\\0\\0\\2!x')\n    except OSError: pass\nassert 1"
    )
    for test in ("import os\nos._exit(0)\nassert 1", "while True: assert add(1, 1)", "assert open('/root')", garbage):
        hostile = Task("assert_tests", {"tests": [test], "setup": ""})
        verdicts = assert_tests.check_many([hostile, ASSERTS], [GOOD, GOOD], SHORT)
        assert [verdict.outcome for verdict in verdicts] == ["fail", "pass"], [verdict.rule for verdict in verdicts]


def test_no_verdict_holds_a_word_of_a_solution() -> None:
    code = "```python\ndef add(a, b): raise type('Tell', (Exception,), {})('a secret word')\n```"
    assert assert_tests.check(ASSERTS, code).to_dict() | {"seconds": 0} == {
        "outcome": "fail",
        "score": 0.0,
        "rule": "code.raised",
        "seconds": 0,
    }


def test_nothing_is_left_of_many(tmp_path: Path) -> None:
    """Seen from outside: processes, mounts, files, descriptors, threads, memory."""
    script = Path(__file__).parents[2] / "benchmarks/hostile.py"
    command = [sys.executable, str(script), "--runs", "40"]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
