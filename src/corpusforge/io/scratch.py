"""What a stage lays down beside its work where memory would not do: tables read by the page, arrays by batch.

A folder holds a file per batch and array, to which parts are appended, or a file for some rows. The folder is the
caller's to remove.
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
_MEMORY: Final = 64 << 20  # bytes that are held before anything goes to disk


def write_mapped(table: pa.Table, path: Path) -> None:
    """Write a table so that it can be read by the page (Arrow IPC, not compressed)."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_array(values: npt.NDArray[Any], path: Path) -> None:
    """Write the bytes of an array; unlike NumPy's `tofile`, it says what is wrong with the disk. Raises OSError."""
    with path.open("wb") as file:
        file.write(np.ascontiguousarray(values).data)


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
    """A `Store` on disk; the first arrays stay in memory, so that little never gets there."""

    def __init__(self, folder: Path, memory: int = _MEMORY) -> None:
        self._folder = folder
        self._room = memory
        self._held: dict[int, list[tuple[npt.NDArray[Any], ...]]] = {}
        self._types: tuple[Any, ...] = ()
        self._lock = Lock()

    def put(self, batch: int, *arrays: npt.NDArray[Any]) -> None:
        """Append arrays to those of a batch."""
        with self._lock:
            self._types = tuple(array.dtype for array in arrays)
            self._room -= sum(array.nbytes for array in arrays)
            if self._room >= 0:
                self._held.setdefault(batch, []).append(arrays)
                return
            for number, array in enumerate(arrays):
                with self._file(batch, number).open("ab") as file:
                    file.write(np.ascontiguousarray(array).data)

    def take(self, batch: int) -> tuple[npt.NDArray[Any], ...]:
        """Read what was put for a batch, in that order, and remove it."""
        with self._lock:
            held = self._held.pop(batch, [])
        taken = []
        for number, kind in enumerate(self._types):
            parts, file = [arrays[number] for arrays in held], self._file(batch, number)
            if file.exists():
                parts.append(np.fromfile(file, kind))
                file.unlink()
            taken.append(parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, kind), *parts]))
        return tuple(taken)

    def _file(self, batch: int, number: int) -> Path:
        return self._folder / f"{batch}-{number}"


class Laid:
    """Values of rows, some rows at a time; the first stay in memory, the others go to a file each."""

    def __init__(self, folder: Path, memory: int = _MEMORY) -> None:
        folder.mkdir()
        self._folder = folder
        self._room = memory
        self._held: dict[int, npt.NDArray[np.uint64]] = {}
        self._starts: dict[int, npt.NDArray[np.int64]] = {}
        self._lock = Lock()

    def put(self, first: int, starts: npt.NDArray[np.int64], values: npt.NDArray[np.uint64]) -> None:
        """Lay down the values of rows from position `first` on; those of row i begin at `starts[i]`."""
        with self._lock:
            self._starts[first] = starts
            self._room -= values.nbytes
            fits = self._room >= 0
            if fits:
                self._held[first] = values
        if not fits:
            write_array(values, self._folder / str(first))

    def firsts(self) -> list[int]:
        """The first positions of what was laid down, in their order."""
        return sorted(self._starts)

    def rows(self, first: int) -> int:
        """How many rows were laid down together from `first` on."""
        return len(self._starts[first]) - 1

    def take(self, first: int, chosen: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Values of some of the rows from `first` on (counted from it), and where each begins; all are gone then."""
        from corpusforge.text.pairs import gather

        with self._lock:
            starts, whole = self._starts[first], self._held.pop(first, None)
        path = self._folder / str(first)
        if whole is None:
            whole = np.memmap(path, np.uint64, "r") if starts[-1] else np.zeros(0, np.uint64)
        taken = gather(whole, starts, chosen)
        path.unlink(missing_ok=True)
        return taken
