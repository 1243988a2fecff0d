"""A child dies with its parent, so that a killed build leaves nothing behind that goes on writing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

# The child writes its pid when it is tied to its parent, then would sleep for a minute.
CHILD = """
import os, sys, time
from pathlib import Path
from corpusforge.engine.lifeline import die_with_parent
die_with_parent()
Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(60)
"""
# The parent starts the child as DVC does: through a shell, or directly, and waits for it.
PARENT = """
import subprocess, sys
subprocess.run(sys.argv[2:] if sys.argv[1] == "direct" else sys.argv[2], shell=sys.argv[1] == "shell")
"""


def running(pid):
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds):
    """Whether the condition came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def start(folder, how):
    """A parent with a child below it; returns the parent and the child's pid."""
    script, pid_file = folder / "child.py", folder / "pid"
    script.write_text(CHILD)
    command = [sys.executable, str(script), str(pid_file)]
    if how == "shell":  # the second command keeps the shell from replacing itself by the first
        command = [f"{sys.executable} {script} {pid_file}; true"]
    parent = subprocess.Popen([sys.executable, "-c", PARENT, how, *command])
    assert wait_for(lambda: pid_file.exists() and pid_file.read_text(), 30)
    return parent, int(pid_file.read_text())


@pytest.mark.parametrize("how", ["direct", "shell"])
def test_child_is_gone_soon_after_its_parent_is_killed(tmp_path, how):
    """Within two seconds, directly below the parent and behind `sh -c`."""
    parent, child = start(tmp_path, how)
    assert running(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    try:
        assert wait_for(lambda: not running(child), 2)
    finally:
        if running(child):
            os.kill(child, signal.SIGKILL)


def test_child_lives_while_its_parent_does(tmp_path):
    parent, child = start(tmp_path, "shell")
    time.sleep(0.5)
    assert running(child)
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    assert wait_for(lambda: not running(child), 10)


def test_a_child_whose_parent_is_already_gone_leaves_at_once():
    code = "from corpusforge.engine.lifeline import die_with_parent; die_with_parent(parent=1); print('stayed')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (137, "")
