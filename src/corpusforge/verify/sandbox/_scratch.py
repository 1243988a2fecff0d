"""Folders for confined programs: locked while they are in use, weighed, emptied, and swept up when nobody is left.

    folder = Scratch()   ->  /tmp/corpusforge-box-k3x9, gone after folder.remove(), or in the next process's sweep

A program fills its folder with whatever it can: folders in folders by the thousand, paths longer than the kernel reads,
folders that their owner may not list. So nothing here recurses, builds a long path, or trusts a mode. A folder is
locked (flock(2)) by the process that made it: the kernel lets go of it when that process is killed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

_PREFIX: Final = "corpusforge-box-"
_LEAST: Final = 4096  # bytes that an entry counts, however small it is
_DEEPEST: Final = 30  # levels; a program that makes more is not at work
_TOO_MUCH: Final = 2**62


class Scratch:
    """A new folder in the folder of temporary files, this process's own."""

    def __init__(self, prefix: str = _PREFIX) -> None:
        swept(tempfile.gettempdir(), prefix)
        while True:
            self.path = Path(tempfile.mkdtemp(prefix=prefix))
            try:
                self._lock = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue  # another process swept it up before it was locked
            if _locked(self._lock, alone=False) is not False and self.path.exists():
                return
            os.close(self._lock)

    def remove(self) -> None:
        """Remove it with all that is in it. What cannot be removed stays, for the sweep of another process."""
        removed(self.path)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@functools.cache
def swept(folder: str, prefix: str = _PREFIX) -> int:
    """Remove the scratch folders of processes that were killed, once for each folder: how many."""
    count = 0
    for path in Path(folder).glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                if os.fstat(lock).st_uid == os.geteuid() and _locked(lock, alone=True):
                    removed(path)
                    count += 1
            finally:
                os.close(lock)
    return count


def _locked(descriptor: int, *, alone: bool) -> bool | None:
    """Whether a lock was taken; None where the file system knows none."""
    import fcntl

    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def weight(folder: str, most: int) -> int:
    """Bytes of all that is in a folder, as stored: a hole costs nothing, an entry at least 4 KiB.

    Counting ends above `most`. A folder that is too deep, or cannot be listed, is too heavy.
    """
    total, waiting = 0, [(folder, 0)]
    while waiting and total <= most:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    total += _LEAST
                    with contextlib.suppress(FileNotFoundError):
                        found = entry.stat(follow_symlinks=False)
                        total += max(0, found.st_blocks * 512 - _LEAST)
                        if stat.S_ISDIR(found.st_mode):
                            waiting.append((entry.path, depth + 1))
                    if total > most:
                        break
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return _TOO_MUCH
        if depth > _DEEPEST:
            return _TOO_MUCH
    return total


def removed(folder: Path) -> bool:
    """Remove a folder and all that is in it; whether it is gone. Nobody may work in it any more."""
    with contextlib.suppress(OSError):
        if emptied(folder):
            folder.rmdir()
    return not folder.exists()


def emptied(folder: Path) -> bool:
    """Remove all that is in a folder; whether nothing is left.

    What lies deeper is moved up before its folder is removed, so no path is longer than two names.
    """
    with contextlib.suppress(OSError):
        while entries := [*os.scandir(folder)]:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    _flattened(entry.path, folder)
                else:
                    os.unlink(entry.path)  # noqa: PTH108 - a name may be no text
        return True
    return False


def _flattened(path: str, into: Path) -> None:
    """Remove a folder, its files, and move the folders in it elsewhere."""
    os.chmod(path, stat.S_IRWXU)  # noqa: PTH101 - as above; it may have been made with no right at all
    for entry in [*os.scandir(path)]:
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.path, stat.S_IRWXU)  # noqa: PTH101
            os.rename(entry.path, into / os.urandom(8).hex())  # noqa: PTH104
        else:
            os.unlink(entry.path)  # noqa: PTH108
    os.rmdir(path)  # noqa: PTH106
