"""scratch: whatever a program leaves in its folder is weighed and removed; a killed process leaves nothing for long."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.verify import sandbox
from corpusforge.verify.sandbox import Confined, Limits, _forks, _scratch
from corpusforge.verify.sandbox._forks import Forked

if TYPE_CHECKING:
    from collections.abc import Iterator

confined = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))
MOST = 2**24


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    _forks.close()
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    _forks.close()
    assert list(folder.iterdir()) == []


def dig(folder: Path, name: str, levels: int) -> None:
    """Folders in folders, by descriptors: a path to the last may be longer than the kernel reads."""
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


@pytest.mark.parametrize(("name", "levels"), [("d", 3_000), ("n" * 250, 60)])
def test_folders_in_folders_are_too_heavy_and_are_removed(name: str, levels: int, tmp_path: Path) -> None:
    scratch = _scratch.Scratch()
    dig(scratch.path, name, levels)
    assert _scratch.weight(str(scratch.path), MOST) > MOST
    scratch.remove()
    assert not scratch.path.exists()


def test_an_entry_weighs_something_and_a_hole_nothing(tmp_path: Path) -> None:
    for number in range(10):
        (tmp_path / f"empty{number}").touch()
    with (tmp_path / "hole").open("wb") as file:
        file.truncate(2**30)
    assert 10 * 4096 <= _scratch.weight(str(tmp_path), MOST) <= 20 * 4096


def test_counting_ends_where_it_is_too_much(tmp_path: Path) -> None:
    for number in range(100):
        (tmp_path / str(number)).touch()
    assert _scratch.weight(str(tmp_path), 4096) == 2 * 4096


def test_odd_names_and_links_are_removed_and_what_they_lead_to_is_not(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    scratch = _scratch.Scratch()
    at = os.fsencode(scratch.path)
    os.mkdir(at + b"/\xff\n")  # noqa: PTH102 - no text
    for name, to in ((b"/\xff\n/\xfe", os.fsencode(kept)), (b"/up", b".."), (b"/out", os.fsencode(kept))):
        os.symlink(to, at + name)  # noqa: PTH211
    os.mkfifo(at + b"/pipe")
    scratch.remove()
    assert (scratch.path.exists(), [file.name for file in kept.iterdir()]) == (False, ["file"])


def test_folders_that_their_owner_may_not_list_are_too_heavy_and_are_removed(tmp_path: Path) -> None:
    program = """
import os
from pathlib import Path
from corpusforge.verify.sandbox import _scratch
os.mkdir("here")
if os.geteuid() == 0:
    os.chmod(".", 0o711)
    os.chown("here", 65534, 65534)
    os.seteuid(65534)
os.mkdir("here/a", 0o700)
os.mkdir("here/a/b", 0o300)
open("here/a/b/c", "w", opener=lambda path, flags: os.open(path, flags, 0)).close()
os.chmod("here/a/b", 0)
print(_scratch.weight("here", 2**24) > 2**24, _scratch.emptied(Path("here")), os.listdir("here"))
"""
    said = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout == "True True []\n"


def test_the_folder_of_a_living_process_is_not_swept_and_that_of_a_killed_one_is(temporary: Path) -> None:
    scratch = _scratch.Scratch()
    left = Path(tempfile.mkdtemp(prefix="corpusforge-box-"))
    dig(left, "d", 50)
    (temporary / "other").mkdir()
    program = f"from corpusforge.verify.sandbox import _scratch; print(_scratch.swept({str(temporary)!r}))"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert (said, scratch.path.exists(), left.exists(), (temporary / "other").exists()) == ("1\n", True, False, True)
    (temporary / "other").rmdir()
    scratch.remove()


def homes(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            found.append(str(process.readlink()))
    return [home for home in found if home.startswith(str(folder))]


LASTING = {
    "sleeps": "time.sleep(99)",
    "has a session of its own": "with contextlib.suppress(OSError): os.setsid()\ntime.sleep(99)",
    "ignores signals": """
for number in range(1, 64):
    with contextlib.suppress(Exception):
        signal.signal(number, signal.SIG_IGN)
time.sleep(99)""",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "does not want to die with its parent": "ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); time.sleep(99)",
    "lives on in a thread": """
threading.Thread(target=time.sleep, args=(99,)).start()
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)""",
}
CHECKING = """
import tempfile, threading, time
from corpusforge.verify.sandbox import _forks
from corpusforge.verify import sandbox
tempfile.tempdir = {folder!r}
limits = sandbox.Limits(seconds=60)
sandbox.available(), _forks.available()
for kind in (sandbox.Confined, _forks.Forked):
    for number, program in enumerate({programs!r}):
        told = "import contextlib, ctypes, os, signal, threading, time; open('began', 'w')\\n" + program
        threading.Thread(target=sandbox.run_in, args=(kind, told), kwargs={{"limits": limits}}, daemon=True).start()
time.sleep(600)
"""


@confined
def test_nothing_runs_on_when_the_verifying_process_is_killed(temporary: Path) -> None:
    program = CHECKING.format(folder=str(temporary), programs=[*LASTING.values()])
    with subprocess.Popen([sys.executable, "-c", program]) as checking:
        for _ in range(600):
            if len([*temporary.glob("**/began")]) >= 2 * len(LASTING):
                break
            time.sleep(0.1)
        began = len(homes(temporary))
        checking.kill()
    for _ in range(100):
        if not homes(temporary):
            break
        time.sleep(0.1)
    assert (began > len(LASTING), homes(temporary)) == (True, [])
    assert _scratch.swept.__wrapped__(str(temporary)) >= 2 * len(LASTING)


@confined
@pytest.mark.parametrize("kind", [Confined, Forked], ids=["fresh", "forked"])
@pytest.mark.parametrize(
    ("program", "outcome"),
    [
        ("import os\nfor _ in range(5000): os.mkdir('d'); os.chdir('d')\nimport time; time.sleep(9)", "disk"),
        ("import os\nfor _ in range(60): os.mkdir('n' * 250); os.chdir('n' * 250)\nimport time; time.sleep(9)", "disk"),
        ("i = 0\nwhile True:\n    i += 1\n    open(str(i), 'w').close()", "disk"),
        ("import os\nos.umask(0o777); os.mkdir('a'); os.mkdir('b'); open('f', 'w')", "ok"),
        ("import os\nos.mkdir(b'\\xff\\n'); open(b'\\xff\\n/\\xfe', 'w'); os.symlink('..', 'a')", "ok"),
    ],
)
def test_games_in_the_folder(program: str, outcome: str, kind: Any) -> None:
    assert sandbox.run_in(kind, program, limits=Limits(seconds=5, patience=10)).outcome == outcome
