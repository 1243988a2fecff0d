"""What a stage lays down beside its work where memory would not do: tables read by the page, arrays by batch.

A folder holds a file per batch and array, to which parts are appended. The folder is the caller's to remove.
"""

from __future__ import annotations

import math
import os
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt


_BLOCK: Final = 1 << 20


def write_mapped(table: pa.Table, path: Path) -> None:
    """Write a table so that it can be read by the page (Arrow IPC, not compressed)."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def read_mapped(path: Path) -> pa.Table:
    """The table, its pages read when they are looked at; they are no more in memory than the machine likes."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def room(path: Path, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
    """An array of zeros on disk, read and written by the page.

    Its place is taken at once: a page that finds the disk full when it is written would kill the process. Raises
    OSError.
    """
    size = math.prod(shape) * 8
    with path.open("wb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            for at in range(0, size, _BLOCK):
                file.write(bytes(min(_BLOCK, size - at)))
    return np.memmap(path, np.uint64, "r+", shape=shape)


class Scratch:
    """A `Store` on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._types: tuple[Any, ...] = ()
        self._lock = Lock()

    def put(self, batch: int, *arrays: npt.NDArray[Any]) -> None:
        """Append arrays to the files of a batch."""
        with self._lock:
            self._types = tuple(array.dtype for array in arrays)
            for number, array in enumerate(arrays):
                with self._file(batch, number).open("ab") as file:
                    file.write(np.ascontiguousarray(array).data)

    def take(self, batch: int) -> tuple[npt.NDArray[Any], ...]:
        """Read what was put for a batch, and remove its files."""
        taken = []
        for number, kind in enumerate(self._types):
            file = self._file(batch, number)
            taken.append(np.fromfile(file, kind))
            file.unlink()
        return tuple(taken)

    def _file(self, batch: int, number: int) -> Path:
        return self._folder / f"{batch}-{number}"
