"""A process that dies with its parent, so that a killed `dvc repro` leaves nothing behind that goes on writing.

On Linux the kernel delivers SIGKILL when the parent thread dies (prctl PR_SET_PDEATHSIG). DVC starts a stage through
a shell, which may stay between DVC and the stage: so a thread also watches the shell's own parent, on every system.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_SHELLS = {"sh", "bash", "dash", "zsh", "ksh", "fish"}


def die_with_parent(parent: int | None = None) -> None:
    """Arrange for SIGKILL when the parent (or, behind a shell, its parent) is gone. `parent` is checked if given."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if parent is not None and os.getppid() != parent:
        os._exit(137)
    watched = _ancestors()
    if watched:
        threading.Thread(target=_watch, args=(os.getppid(), watched), daemon=True, name="lifeline").start()


def _ancestors() -> list[tuple[int, str]]:
    """The parent, and its parent where the parent is a shell, each with its start time."""
    chain: list[tuple[int, str]] = []
    pid = os.getppid()
    while pid > 1:
        status = _stat(pid)
        if status is None:
            break
        name, up, started = status
        chain.append((pid, started))
        if name not in _SHELLS:
            break
        pid = up
    return chain


def _stat(pid: int) -> tuple[str, int, str] | None:
    """Name, parent and start time of a process, from /proc; None where there is no such process or no /proc."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] == "Z" else (name, int(fields[1]), fields[19])


def _watch(parent: int, watched: list[tuple[int, str]]) -> None:
    while True:
        time.sleep(0.2)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        for pid, started in watched:
            status = _stat(pid)
            if status is None or status[2] != started:
                os.kill(os.getpid(), signal.SIGKILL)
