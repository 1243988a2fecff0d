"""One writer per stage and project, and a lock that its holder's death sets free."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge.errors import BusyError
from corpusforge.io import lock

HOLDER = """
import sys, time
from pathlib import Path
from corpusforge.io import lock
with lock.hold(Path(sys.argv[1]), "dedupe"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of `dedupe`."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_the_second_writer_is_told_who_is_first(tmp_path, holder):
    told = pytest.raises(BusyError, match=f"dedupe is already running here .process {holder.pid}")
    with told, lock.hold(tmp_path, "dedupe", wait=0.1):
        pass


def test_another_stage_is_another_lock(tmp_path, holder):
    with lock.hold(tmp_path, "filter", wait=0.1):
        assert lock.held(tmp_path, "dedupe")


def test_a_killed_holder_lets_go(tmp_path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    with lock.hold(tmp_path, "dedupe", wait=5):
        assert (tmp_path / ".corpusforge" / "dedupe.pid").read_text().split()[0] == str(os.getpid())


def test_the_lock_is_free_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), lock.hold(tmp_path, "dedupe"):
        raise ZeroDivisionError
    with lock.hold(tmp_path, "dedupe", wait=0.1):
        pass


FOLDER_HOLDER = HOLDER.replace('hold(Path(sys.argv[1]), "dedupe")', "hold_folder(Path(sys.argv[1]))")


@pytest.mark.parametrize("call", [cf.dedupe_files, cf.index_files])
def test_a_folder_that_is_being_written_is_not_written_twice(tmp_path, monkeypatch, call):
    """The second run is refused; once the first is dead it is not, and nothing is left beside the folder."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"text": ["one", "two"]}), "new.parquet")
    command = [sys.executable, "-c", FOLDER_HOLDER, str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match="out is being written by another process"):
            call("new.parquet", "out")
        call("new.parquet", "other")
        process.kill()
        process.wait()
    call("new.parquet", "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet", "other", "out"]


def test_git_never_sees_the_lock_folder(tmp_path):
    with lock.hold(tmp_path, "dedupe"):
        assert (tmp_path / ".corpusforge" / ".gitignore").read_text() == "*\n"
