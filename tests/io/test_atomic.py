"""Files and folders are whole or not there, also when the writer is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from corpusforge.io import atomic

# A writer that says where it stands and waits to be killed.
FOLDER_WRITER = """
import sys, time
from pathlib import Path
from corpusforge.io import atomic
with atomic.folder(Path(sys.argv[1])) as out:
    (out / "part").write_text("new")
    print("in the middle", flush=True)
    time.sleep(60)
"""
FILE_WRITER = """
import os, sys, time
from pathlib import Path
from corpusforge.io import atomic
sync = os.fsync
def slow(handle):
    sync(handle)
    print("in the middle", flush=True)
    time.sleep(60)
os.fsync = slow
atomic.write_text(Path(sys.argv[1]), "new")
"""


def kill_in_the_middle(code, target):
    """Run a writer and SIGKILL it between writing and renaming."""
    writer = subprocess.Popen([sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout.readline() == "in the middle\n"
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    writer.stdout.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_appears_with_all_its_files(tmp_path):
    with atomic.folder(tmp_path / "rows") as out:
        (out / "part").write_text("1")
        assert not (tmp_path / "rows").exists()
    assert names(tmp_path) == ["rows"]
    assert (tmp_path / "rows" / "part").read_text() == "1"


def test_a_folder_replaces_the_old_one_whole(tmp_path):
    for name in ("old", "new"):
        with atomic.folder(tmp_path / "rows") as out:
            (out / name).touch()
    assert names(tmp_path / "rows") == ["new"]
    assert names(tmp_path) == ["rows"]


def test_an_error_leaves_the_old_folder_and_no_rest(tmp_path):
    with atomic.folder(tmp_path / "rows") as out:
        (out / "old").touch()
    with pytest.raises(FileNotFoundError), atomic.folder(tmp_path / "rows") as out:
        (out / "new" / "part").touch()
    assert names(tmp_path / "rows") == ["old"]
    assert names(tmp_path) == ["rows"]


def test_a_killed_writer_leaves_the_old_folder_and_the_next_run_cleans_up(tmp_path):
    target = tmp_path / "rows"
    with atomic.folder(target) as out:
        (out / "old").touch()
    kill_in_the_middle(FOLDER_WRITER, target)
    assert names(target) == ["old"]
    assert all(name == "rows" or name.startswith(".") for name in names(tmp_path))
    assert len(names(tmp_path)) == 2
    with atomic.folder(target) as out:
        (out / "next").touch()
    assert names(target) == ["next"]
    assert names(tmp_path) == ["rows"]


def test_a_killed_first_writer_leaves_no_folder(tmp_path):
    kill_in_the_middle(FOLDER_WRITER, tmp_path / "rows")
    assert not (tmp_path / "rows").exists()


def test_a_killed_writer_leaves_the_old_file(tmp_path):
    target = tmp_path / "metrics.json"
    atomic.write_text(target, "old")
    kill_in_the_middle(FILE_WRITER, target)
    assert target.read_text() == "old"


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    target = tmp_path / "below" / "metrics.json"
    for value in ({"b": 1, "a": [2]}, {"ü": 1}):
        atomic.write_json(target, value)
    assert target.read_text(encoding="utf-8") == '{\n  "ü": 1\n}\n'
    assert names(target.parent) == ["metrics.json"]


def test_equal_values_are_equal_bytes(tmp_path):
    atomic.write_json(tmp_path / "a", {"x": 1.5, "y": None})
    atomic.write_json(tmp_path / "b", {"x": 1.5, "y": None})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_leftovers_of_other_targets_are_left(tmp_path):
    """A name is a name, whatever it means to a shell."""
    other = tmp_path / ".abc.unfinished-1"
    own = tmp_path / ".a[b]*.unfinished-1"
    for folder in (other, own):
        folder.mkdir()
    with atomic.folder(tmp_path / "a[b]*"):
        pass
    assert other.is_dir()
    assert not own.exists()
