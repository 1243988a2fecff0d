"""One writer per stage and project, or per folder: a lock that the operating system drops when its holder dies."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from corpusforge.errors import BusyError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def hold(project: Path, name: str, *, wait: float = 10.0) -> Iterator[None]:
    """Hold the lock `name` of a project; raise BusyError when another process still has it after `wait` seconds.

    The wait covers a killed run whose last process is about to notice.
    """
    folder = project / ".corpusforge"
    folder.mkdir(exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")
    holder = folder / f"{name}.pid"
    lock = FileLock(folder / f"{name}.lock")
    try:
        lock.acquire(timeout=wait)
    except Timeout:
        pid = (holder.read_text().split() or ["unknown"])[0] if holder.exists() else "unknown"
        raise BusyError(f"{name} is already running here (process {pid})", hint="wait for it, or stop it") from None
    try:
        holder.write_text(f"{os.getpid()} {time.time():.0f}\n")
        yield
    finally:
        lock.release()


@contextmanager
def hold_folder(target: Path) -> Iterator[None]:
    """Hold the lock of a folder that is to be written outside a project; raise BusyError when another process has it.

    The lock lies in the temporary folder, so that nothing of ours lies beside `target`: it holds for this machine.
    """
    who = os.getuid() if hasattr(os, "getuid") else ""
    name = hashlib.sha256(str(target.resolve()).encode()).hexdigest()[:24]
    lock = FileLock(Path(tempfile.gettempdir()) / f"corpusforge-{who}-{name}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BusyError(
            f"{target.name} is being written by another process", hint="wait for it, or name another folder"
        ) from None
    try:
        yield
    finally:
        lock.release()


def held(project: Path, name: str) -> bool:
    """Whether a process holds the lock `name` now. Leaves no trace."""
    path = project / ".corpusforge" / f"{name}.lock"
    if not path.exists():
        return False
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return True
    lock.release()
    return False
