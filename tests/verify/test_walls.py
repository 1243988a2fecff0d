"""walls: what is outside of a confined program is out of its reach, however it is asked for (attacks/reach.toml)."""

from __future__ import annotations

import contextlib
import os
import platform
import select
import socket
import subprocess
import sys
import tempfile
import textwrap
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.verify import sandbox
from corpusforge.verify.sandbox import Confined, Limits, _forks
from corpusforge.verify.sandbox._forks import Forked

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))

HERE = Path(__file__).parent / "attacks"
ROWS = tomllib.loads((HERE / "reach.toml").read_text(encoding="utf-8"))["attack"]
NUMBERS = tomllib.loads((HERE / "numbers.toml").read_text(encoding="utf-8"))
LIMITS = Limits(seconds=2, patience=10)
PROGRAM = """
import ctypes, errno, fcntl, os, socket
libc, numbers = ctypes.CDLL(None, use_errno=True), {numbers!r}
parent, ours, secret, ears, listener = os.getppid(), {ours}, {secret!r}, {ears!r}, {listener!r}
buffer = lambda size: (ctypes.c_uint8 * size)()
class Shut(Exception):
    errno = 0
def raw(number, *given):
    found = libc.syscall(number, *(ctypes.c_long(one) if isinstance(one, int) else one for one in given))
    if found < 0:
        raise OSError(ctypes.get_errno(), "call")
    return found
def call(name, *given):
    if name not in numbers:
        raise OSError(errno.ENOSYS, name)  # there is none on this machine
    return raw(numbers[name], *given)
try:
{lines}
except (OSError, ValueError, Shut) as error:
    said = "shut " + str(errno.errorcode.get(getattr(error, "errno", 0), type(error).__name__))
except BaseException as error:
    said = "broken " + repr(error)
else:
    said = "open"
os.write(1, said.encode())
os._exit(0)
"""


@pytest.fixture(scope="module", autouse=True)
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Scratch folders of these tests are their own, and none is left."""
    with pytest.MonkeyPatch.context() as patch:
        _forks.close()
        folder = tmp_path_factory.mktemp("scratch")
        patch.setattr(tempfile, "tempdir", str(folder))
        yield folder
        _forks.close()
    assert list(folder.iterdir()) == []


class Outside:
    """What a confined program might reach: a process, a file, and sockets that listen."""

    def __init__(self, folder: Path, sleeper: subprocess.Popen[bytes]) -> None:
        self.sleeper, self.secret = sleeper, folder / "secret"
        self.secret.write_text("secret", encoding="utf-8")
        self.kept = self.state()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.ears = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2)]
        for ear, hidden in zip(self.ears, ("", "\0"), strict=True):
            ear.bind(f"{hidden}{folder / 'ears'}")
        self.path = str(folder / "ears")

    def state(self) -> tuple[int, ...]:
        """All of the file but when it was read."""
        found = self.secret.stat()
        return (*found[:7], found.st_mtime_ns, found.st_ctime_ns)

    def attempt(self, kind: Any, lines: str) -> tuple[str, str]:
        """How a program ended that runs a few lines, and what it said of them."""
        program = PROGRAM.format(
            numbers=NUMBERS.get(platform.machine(), {}),
            ours=self.sleeper.pid,
            secret=os.fsencode(self.secret),
            ears=self.path,
            listener=self.listener.getsockname(),
            lines=textwrap.indent(lines.strip(), "    "),
        )
        ran = sandbox.run_in(kind, program, limits=LIMITS)
        return ran.outcome, ran.stdout.decode()

    def touched(self) -> list[str]:
        """What of all this is not as it was."""
        heard = select.select([self.listener, *self.ears], [], [], 0)[0]
        changed = [] if (self.secret.read_text(), self.state()) == ("secret", self.kept) else ["file"]
        return [*("socket" for _ in heard), *changed, *(["process"] if self.sleeper.poll() is not None else [])]


@contextlib.contextmanager
def surroundings(folder: Path) -> Iterator[Outside]:
    """What is around a confined program, while it is there."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as sleeper:
        there = Outside(folder, sleeper)
        yield there
        sleeper.kill()
        for one in (there.listener, *there.ears):
            one.close()


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    with surroundings(tmp_path_factory.mktemp("outside")) as there:
        yield there


@pytest.mark.parametrize("kind", [Confined, Forked], ids=["fresh", "forked"])
@pytest.mark.parametrize("row", ROWS, ids=[row["name"].replace(" ", "_") for row in ROWS])
def test_out_of_reach(row: dict[str, Any], kind: Any, outside: Outside) -> None:
    if row.get("only", platform.machine()) != platform.machine():
        pytest.skip(f"only on {row['only']}")
    outcome, said = outside.attempt(kind, row["lines"])
    assert said.startswith("shut") or outcome in row.get("ends", ()), (outcome, said)
    assert outside.touched() == []


TRACES = """
import fcntl, os, select, signal, sys, time
said = [fcntl.fcntl(at, fcntl.F_GETFL) for at in (0, 1, 2)]
said += [os.umask(0o22), os.listdir("."), sorted(os.environ), signal.pthread_sigmask(signal.SIG_BLOCK, ()), sys.path]
said += [os.getpgid(0) == os.getpid(), time.tzname, os.getcwd()]
said += [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU, signal.SIGPIPE)]
said += [select.select([0], [], [], 0)[0], [len(module.__dict__) for _, module in sorted(sys.modules.items())]]
os.write(1, repr(said).encode())
os.umask(0o777)
os.mkdir("left")
os.setpgid(0, 0)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGUSR1})
for at in (0, 1, 2):
    fcntl.fcntl(at, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND)
os.environ["LEFT"] = os.environ["TZ"] = "1"
time.tzset()
for one in (signal.SIGINT, signal.SIGTERM, signal.SIGXCPU):
    signal.signal(one, signal.SIG_IGN)
sys.modules["json"].left = sys.path[:] = [1]
"""


def test_a_fork_finds_no_trace_of_the_one_before() -> None:
    """Nor of what was sent to it and not read."""
    ran = [sandbox.run_in(Forked, TRACES, b"x" * 300, limits=LIMITS) for _ in range(3)]
    assert [one.outcome for one in ran] == ["ok"] * 3
    assert ran[0].stdout == ran[1].stdout == ran[2].stdout != b""


def test_a_zygote_that_cannot_fork_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one solution did to it is not the next one's undecided verdict."""
    assert sandbox.run_in(Forked, "print(1)").stdout == b"1\n"
    fork, failing = _forks.Zygote.fork, [True, True]

    def sometimes(zygote: _forks.Zygote) -> int:
        if failing and failing.pop():
            raise RuntimeError("a zygote cannot fork")
        return fork(zygote)

    monkeypatch.setattr(_forks.Zygote, "fork", sometimes)
    assert sandbox.run_in(Forked, "print(2)").stdout == b"2\n"
    failing += [True] * 3
    with pytest.raises(RuntimeError, match="cannot fork"):
        sandbox.run_in(Forked, "print(3)")


GARBAGE = """
import ctypes, os, time
seed, libc, page = {seed}, ctypes.CDLL(None), ctypes.create_string_buffer(4096)
def draw(below):
    global seed
    seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
    return (seed >> 33) % below
odd = [0, 1, -1, 2, 3, 7, 64, 4096, -100, 2**31, 2**32, 2**63 - 1, ctypes.addressof(page), 8, 0x7fffffff0000]
end = time.monotonic() + 1
# What ends the program, or waits.
ending = {{9, 10, 11, 12, 25, 60, 231, 93, 94, 15, 139, 335, 336, 34, 35, 36, 61, 62, 129, 200, 234, 220, 101}}
while time.monotonic() < end:
    number = draw(470)
    if number not in ending:
        libc.syscall(number, *(ctypes.c_long(odd[draw(len(odd))]) for _ in range(6)))
"""


@pytest.mark.parametrize("kind", [Confined, Forked], ids=["fresh", "forked"])
@pytest.mark.parametrize("seed", range(3))
def test_calls_with_garbage_hurt_nobody(seed: int, kind: Any, outside: Outside) -> None:
    ran = sandbox.run_in(kind, GARBAGE.format(seed=seed), limits=Limits(seconds=2, patience=2))
    assert ran.outcome != "disk"
    assert sandbox.run_in(kind, "print(1)").stdout == b"1\n"
    assert outside.touched() == []


def test_the_rows_have_names_of_their_own() -> None:
    assert len({row["name"] for row in ROWS}) == len(ROWS) > 150
