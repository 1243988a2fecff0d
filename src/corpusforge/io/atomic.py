"""Files and folders that are either whole or not there.

Everything is written beside its target under a hidden name, synced, and renamed. A run that was killed leaves only
hidden leftovers, which the next run removes.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_MARK = ".unfinished-"


def write_bytes(path: Path, data: bytes) -> None:
    """Replace `path` by `data` in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}{_MARK}{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_text(path: Path, text: str) -> None:
    """Replace `path` by UTF-8 `text` in one step."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Replace `path` by indented JSON, keys in the order given, so that equal values give equal bytes."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


@contextmanager
def folder(target: Path) -> Iterator[Path]:
    """A new folder to fill; it replaces `target` when the block ends without an error, else it is removed."""
    target.parent.mkdir(parents=True, exist_ok=True)
    clean_leftovers(target)
    temporary = target.with_name(f".{target.name}{_MARK}{os.getpid()}")
    temporary.mkdir()
    try:
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("rb") as handle:
                    os.fsync(handle.fileno())
        if target.exists():
            old = target.with_name(f".{target.name}{_MARK}old-{os.getpid()}")
            target.rename(old)
            temporary.rename(target)
            shutil.rmtree(old)
        else:
            temporary.rename(target)
        sync_folder(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def clean_leftovers(target: Path) -> None:
    """Remove what killed runs left beside `target`. The caller holds the target's lock."""
    for leftover in target.parent.glob(f".{glob.escape(target.name)}{_MARK}*"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Make a rename in `path` survive a power cut (where the system can sync folders)."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
