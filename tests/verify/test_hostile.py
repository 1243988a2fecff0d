"""Hostile solutions: none passes, none does harm, and a good solution beside or after them passes.

Forgeries try to be called right without being right; attacks try to hurt. Each is checked beside a good solution, in
one batch, and then a good one alone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpusforge.verify import _forks, assert_tests, doctest, sandbox
from corpusforge.verify._verdict import Task
from corpusforge.verify.sandbox import Limits

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))

TESTS = ["assert add(2, 3) == 5", "assert abs(add(0.5, 0.25) - 0.75) < 1e-9", "assert add('a', 'b') in ['ab']"]
ASSERTS = Task("assert_tests", {"tests": TESTS, "setup": ""})
EXAMPLES = [{"source": "add(2, 3)\n", "want": "5\n", "options": []}]
DOCTEST = Task("doctest", {"entry_point": "add", "module": "", "examples": EXAMPLES})
GOOD = "```python\ndef add(a, b):\n    return a + b\n```"
SHORT = Limits(seconds=1, patience=6)
FORKING = Limits(seconds=1, patience=6, processes=8)


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


def refused(code: str, limits: Limits = SHORT) -> None:
    """Neither kind of tests passes a solution, and good ones beside it and after it do pass."""
    bad = f"```python\n{code}\n```"
    for kind, task in ((assert_tests, ASSERTS), (doctest, DOCTEST)):
        verdicts = kind.check_many([task, task], [bad, GOOD], limits)
        assert [verdict.outcome for verdict in verdicts] == ["fail", "pass"], [verdict.rule for verdict in verdicts]
    assert assert_tests.check(ASSERTS, GOOD).outcome == "pass"


FORGERIES = {
    "leaves at once": "import os; os._exit(0)",
    "leaves in the call": "import os\ndef add(a, b): os._exit(0)",
    "exits in the call": "import sys\ndef add(a, b): sys.exit(0)",
    "speaks at exit": "import atexit\natexit.register(print, 'passed')\ndef add(a, b): raise SystemExit(0)",
    "equals everything": "class E:\n    def __eq__(self, other): return True\ndef add(a, b): return E()",
    "a number that equals everything": """
class E(int):
    def __eq__(self, other): return True
    def __sub__(self, other): return 0
    __abs__ = __sub__
    def __lt__(self, other): return True
    def __repr__(self): return "5 "
def add(a, b): return E()""",
    "a text that equals everything": """
class E(str):
    def __eq__(self, other): return True
    def __hash__(self): return hash("ab")
def add(a, b): return E("x")""",
    "a list that holds everything": """
class E(list):
    def __contains__(self, other): return True
    def __eq__(self, other): return True
def add(a, b): return E()""",
    "arithmetic that comes out": """
class E:
    def __getattr__(self, name): return lambda *a: 0
    def __sub__(self, other): return 0
    def __abs__(self): return 0
    def __eq__(self, other): return True
    def __lt__(self, other): return True
def add(a, b): return E()""",
    "lies about its class": """
class E:
    __class__ = int
    def __eq__(self, other): return True
def add(a, b): return E()""",
    "brings its own built-ins": """
def abs(x): return 0
class AssertionError(Exception): pass
def __came_to_an_assertion__(n): pass
def add(a, b): return 0""",
    "patches built-ins": """
import builtins
builtins.abs = lambda x: 0
builtins.AssertionError = builtins.Exception = ValueError
builtins.print = builtins.isinstance = builtins.type = lambda *a: True
def add(a, b): return 0""",
    "patches doctest and unittest": """
import doctest, unittest
doctest.OutputChecker.check_output = lambda *a: True
doctest.DocTestRunner.run = lambda *a, **k: doctest.TestResults(0, 1)
unittest.TestCase.assertEqual = lambda *a: None
def add(a, b): return 0""",
    "skips": "import unittest\ndef add(a, b): raise unittest.SkipTest('later')",
    "swallows": "import contextlib\ndef add(a, b):\n    with contextlib.suppress(BaseException): return None",
    "replaces standard output": "import sys, io\nsys.stdout = sys.__stdout__ = io.StringIO()\ndef add(a, b): print(5)",
    "writes a verdict to every file": """
import os
word = b"!s6;passed"
for fd in range(64):
    try: os.write(fd, len(word).to_bytes(4, "big") + word)
    except OSError: pass
def add(a, b): return 0""",
    "writes a verdict to every file in the call": """
import os
def add(a, b):
    word = b"!s6;passed"
    for fd in range(64):
        try: os.write(fd, len(word).to_bytes(4, "big") + word)
        except OSError: pass
    return 0""",
    "writes verdicts from a thread": """
import os, threading, time
def write():
    word = b"!s6;passed"
    while True:
        for fd in range(3, 64):
            try: os.write(fd, len(word).to_bytes(4, "big") + word)
            except OSError: pass
        time.sleep(0.001)
threading.Thread(target=write, daemon=True).start()
def add(a, b): return 0""",
    "finds its own harness": """
import gc
def peers():
    return [o for o in gc.get_objects() if type(o).__name__ == "Peer"]
def add(a, b):
    for peer in peers():
        peer.wire.write(b"!" + peer.dump("passed"))
        for act in ("name", "get", "set"):
            try: peer.ask(act, "add", "__globals__")
            except Exception: pass
    return 0""",
    "patches its own harness": """
import sys
wire = sys.modules["corpusforge.verify._wire"]
wire.Peer.answer = lambda self, frame: self.wire.write(b"=" + self.dump("passed"))
wire.pack = lambda *a: b"!s6;passed"
def add(a, b): return 0""",
    "walks the frames": """
import sys
def add(a, b):
    frame = sys._getframe()
    while frame:
        for name in list(frame.f_locals) + list(frame.f_globals):
            if "test" in name or "want" in name or "expect" in name: return frame.f_globals.get(name)
        frame = frame.f_back
    return 0""",
    "looks for the tests in memory": """
import gc
def add(a, b):
    seen = [o for o in gc.get_objects() if isinstance(o, (list, dict, tuple))]
    needle = "".join(["ass", "ert add("])
    if any(needle in repr(x) for o in seen[:3000] for x in list(o)[:50] if isinstance(x, str) and len(x) < 99):
        return a + b
    return 0""",
    "reads its memory": """
def add(a, b):
    try: text = open("/proc/self/mem", "rb"), open("/proc/self/cmdline").read()
    except OSError: return 0
    return a + b""",
    "forks a child that reports": """
import os
if os.fork() == 0:
    while True:
        try: os.write(4, (10).to_bytes(4, "big") + b"!s6;passed")
        except OSError: os._exit(0)
def add(a, b): return 0""",
    "signals the judge": """
import os, signal
def add(a, b):
    for pid in (os.getppid(), *range(os.getpid() - 30, os.getpid() + 30)):
        if pid != os.getpid():
            try: os.kill(pid, signal.SIGKILL)
            except OSError: pass
    return 0""",
    "traces": "import sys\nsys.settrace(lambda *a: None)\nsys.setprofile(lambda *a: None)\ndef add(a, b): return 0",
    "raises what a test raises": "def add(a, b): raise AssertionError",
    "raises under a false name": "E = type('passed', (Exception,), {'__module__': 'builtins'})\ndef add(a, b): raise E",
    "is no function": "add = 5",
    "is endless": "import itertools\ndef add(a, b): return itertools.repeat(5)",
    "is nested without end": "x = []\nx.append(x)\ndef add(a, b): return x",
    "is nested deeply": "x = []\nfor _ in range(900): x = [x]\ndef add(a, b): return x",
    "answers with garbage": """
import os
def add(a, b):
    os.write(4, b"\\xff" * 70_000)
    os.write(4, (12).to_bytes(4, "big") + b"=l999999999;")""",
    "answers without being asked": """
import os
word = b"=t4;o1;i1;5s0;d0;"
for fd in range(3, 10):
    try:
        while True: os.write(fd, len(word).to_bytes(4, "big") + word)
    except OSError: pass""",
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_does_not_pass(name: str) -> None:
    refused(FORGERIES[name], FORKING if "fork" in FORGERIES[name] else SHORT)


ATTACKS = {
    "endless loop": "while True: pass",
    "endless loop in the call": "def add(a, b):\n    while True: pass",
    "sleeps": "import time\ndef add(a, b): time.sleep(1000)",
    "fork bomb": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
    "thread bomb": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(99,)).start()",
    "memory bomb": "x = []\nwhile True: x.append(bytearray(2**20))",
    "memory bomb at once": "x = bytearray(2**33)",
    "memory bomb for the judge": "def add(a, b): return range(10**18)",
    "output flood": "while True: print('x' * 10**5)",
    "output flood below Python": """
import os
while True:
    for fd in range(1, 9):
        try: os.write(fd, b"x" * 10**5)
        except OSError: pass""",
    "disk flood": "i = 0\nwhile True:\n    i += 1\n    open(str(i), 'wb').write(b'x' * 2**20)",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef add(a, b): return add(a, b)",
    "recursion in showing itself": """
class E:
    def __repr__(self): return repr(self)
def add(a, b): return E()""",
    "segmentation fault": "import ctypes\ndef add(a, b): ctypes.string_at(0)",
    "stops itself": "import os, signal\ndef add(a, b): os.kill(os.getpid(), signal.SIGSTOP)",
    "closes everything": "import os\nos.closerange(0, 64)\ndef add(a, b): return a + b",
    "sleeping grandchild": """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(1000)
os._exit(0)""",
    "grandchild that stays while it answers": """
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(1000)
def add(a, b): return 0""",
    "kills its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)",
    "kills everything": "import os, signal\nos.kill(-1, signal.SIGKILL)\nos.killpg(0, signal.SIGKILL)",
    "a bomb for the reader": "(" * 20_000 + ")" * 20_000,
    "no text of any encoding": "x = '\ud800'",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_ends_and_the_others_go_on(name: str) -> None:
    refused(ATTACKS[name], FORKING if "fork" in ATTACKS[name] else SHORT)


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
