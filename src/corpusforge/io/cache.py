"""What dedupe knew in the last build, in one file: hashes of its rows, so that the next need not look at their texts.

    dedupe: {cache: .corpusforge/dedupe}
    .corpusforge/dedupe/rows.cache      shingle sets | prints, units, keys, bands | a page that says where | its length
    .corpusforge/dedupe/.gitignore      *

It is no input: a build with it is, byte for byte, the build without it. So a file of other options, other libraries or
other code, one that is broken, and one that is not there are all the same: nothing is known, which is said in a line.
So is a disk that takes no new one; the build goes on. Columns are held against checksums when the file is opened, each
set against a sum of its own when it is taken. The file is replaced in one step by whoever holds the lock beside it, and
never synced: what a power cut leaves of it is found broken.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import mmap
import os
import struct
import sys
import unicodedata
import zlib
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from filelock import FileLock, Timeout

from corpusforge import graph
from corpusforge.distributions import installed
from corpusforge.errors import ConfigError, StorageError
from corpusforge.io.scratch import read_mapped
from corpusforge.stages._cache import MADE, PRINTS
from corpusforge.stages._index import BAND, method_of
from corpusforge.text.pairs import Sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from corpusforge.stages.dedupe import DedupeConfig
    from corpusforge.text.prints import Prints

NAME: Final = "rows.cache"
_FORMAT: Final = 1
_MAGIC: Final = b"CFcache1"
_END: Final = struct.Struct("<QI8s")  # length and checksum of the page, magic
_ALIGN: Final = 64
_SETS: Final = "values"  # hashes of all sets, without a checksum: each set has a sum
_PAGES: Final = (_SETS, "starts", "sums", "set")
_CODE: Final = (
    *(f"text.{name}" for name in ("arrow", "fingerprints", "kernels", "minhash", "normalise", "pairs", "prints")),
    *(f"text.{name}" for name in ("registers", "shingles", "words")),
    *("text.views", "stages._cache", "stages._guard", "stages._pieces", "stages.dedupe"),
)
"""Modules on which what is kept depends."""

Positions = npt.NDArray[np.int64]
Values = npt.NDArray[Any]


class _UnfitError(Exception):
    """Why a file tells nothing."""


def of(config: DedupeConfig, root: Path) -> RowCache | None:
    """The cache that the options name, if any. Raises ConfigError for a place that is not the cache's own."""
    if config.cache is None:
        return None
    folder = (root / config.cache).resolve()
    others = [(root / name).resolve() for name in ("data", "metrics", "releases", *filter(None, [config.against]))]
    taken = next((other for other in others if folder == other or other in folder.parents), None)
    if taken or folder == root.resolve():
        place = f"in {taken.name}" if taken else "the project itself"
        raise ConfigError(
            f"dedupe.cache: {config.cache} is {place}, not a place of its own",
            hint="`cache: .corpusforge/dedupe` is one that neither git nor DVC looks at",
        )
    if folder.is_dir() and not (folder / NAME).exists() and any(p.name[0] != "." for p in folder.iterdir()):
        raise ConfigError(
            f"dedupe.cache: {config.cache} holds other files, which git would be told to ignore",
            hint="name a folder that is not there yet, such as .corpusforge/dedupe",
        )
    return RowCache(folder, json.dumps(_method(config), sort_keys=True))


def _method(config: DedupeConfig) -> dict[str, Any]:
    """All on which what is kept depends beside the rows."""
    return {
        **method_of(config, "rows"),
        "exact_only": config.exact_only,
        "stage": graph.node("dedupe").method,
        "libraries": {name: installed(name) for name in ("numba", "numpy", "polars", "pyarrow")},
        "unicode": unicodedata.unidata_version,
        "bytes": sys.byteorder,
        "code": _code(),
    }


@lru_cache(maxsize=1)
def _code() -> str:
    """A hash of the sources of all that makes what is kept: a change that nobody numbered is one all the same."""
    found = hashlib.sha256()
    for name in _CODE:
        file = importlib.import_module(f"corpusforge.{name}").__file__
        found.update(Path(file).read_bytes() if file else b"")
    return found.hexdigest()


class _Opened:
    """A file that fits, read by the page."""

    def __init__(self, path: Path, method: str) -> None:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < _END.size:
                raise _UnfitError("broken: too short")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        whole = memoryview(self._map)
        length, sum_, magic = _END.unpack(whole[-_END.size :])
        if magic != _MAGIC or length > size - _END.size:
            raise _UnfitError("broken: it does not end as it should")
        page = bytes(whole[size - _END.size - length : size - _END.size])
        if zlib.crc32(page) != sum_:
            raise _UnfitError("broken: its page is not what was written")
        said = json.loads(page)
        wanted = json.loads(method)
        other = [key for key in wanted if said["method"].get(key) != wanted[key]]
        if said["format"] != _FORMAT or other:
            raise _UnfitError(f"of a build with other {', '.join(other) or 'format'}")
        self._columns: dict[str, Values] = {}
        for name, told in said["columns"].items():
            part = whole[told["at"] : told["at"] + told["bytes"]]
            if name != _SETS and zlib.crc32(part) != told["crc32"]:
                raise _UnfitError(f"broken: {name} is not what was written")
            self._columns[name] = np.frombuffer(part, told["type"])
        self.rows = len(self._columns[PRINTS[0]])

    def find(self, own: Prints) -> Positions:
        first, second = (self._columns[name] for name in PRINTS)
        if not self.rows:
            return np.full(len(own), -1, np.int64)
        at = np.minimum(np.searchsorted(first, own[:, 0]), self.rows - 1)
        return np.where((first[at] == own[:, 0]) & (second[at] == own[:, 1]), at, -1).astype(np.int64)

    def columns(self, places: Positions) -> dict[str, Values]:
        return {name: one[places] for name, one in self._columns.items() if name not in (*PRINTS, *_PAGES)}

    def numbers(self, places: Positions) -> Positions:
        """The number of the set of each row; -1 for rows that are not there, and for those that met none."""
        numbers = self._columns["set"]
        return np.where(places >= 0, numbers[places], -1) if self.rows else np.full(len(places), -1, np.int64)

    def sets(self, numbers: Positions) -> Sets | None:
        taken = Sets(self._columns[_SETS], self._columns["starts"]).take(numbers)
        return taken if np.array_equal(_sums(taken), self._columns["sums"][numbers]) else None


@lru_cache(maxsize=1)
def _seen(path: Path, method: str, _version: tuple[int, int]) -> _Opened | str:
    """The file of this version, opened once per process; or why it tells nothing."""
    try:
        return _Opened(path, method)
    except _UnfitError as error:
        return str(error)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"broken: it cannot be read ({type(error).__name__})"


class RowCache:
    """The cache of one folder: what the last build knew, and the file of what this one knows."""

    def __init__(self, folder: Path, method: str) -> None:
        self.folder, self._method = folder, method
        self.notes: list[str] = []
        """What there is to say of it, a line each."""
        self._new: _New | None = None
        self._lock: FileLock | None = None
        self._old: _Opened | None = None
        self._known: _Opened | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return RowCache, (self.folder, self._method)  # workers look things up; the lock and the new file stay here

    def _read(self) -> _Opened | str:
        path = self.folder / NAME
        try:
            told = path.stat()
        except FileNotFoundError:
            return "not there yet"
        except OSError as error:
            return f"broken: it cannot be read ({type(error).__name__})"
        return _seen(path, self._method, (told.st_ino, told.st_mtime_ns))

    def find(self, own: Prints) -> Positions:
        """The place of each row in the file, by its print; -1 where it is not there."""
        old = self._read()
        self._known = None if isinstance(old, str) else old
        return np.full(len(own), -1, np.int64) if self._known is None else self._known.find(own)

    def columns(self, places: Positions) -> Mapping[str, Values]:
        """What is known of the rows that the last `find` found at `places`."""
        return {} if self._known is None else self._known.columns(places)

    def begin(self, own: Prints) -> Positions:
        """Take these prints for the rows of this build; give the number of each one's known set, -1 for none."""
        old = self._read()
        self._old = None if isinstance(old, str) else old
        places = np.full(len(own), -1, np.int64) if self._old is None else self._old.find(own)
        known = int((places >= 0).sum())
        self.notes.append(
            f"cache is {old}: all is made anew"
            if isinstance(old, str)
            else f"cache knows {known:,} of {len(own):,} rows; {len(own) - known:,} are made anew"
        )
        self._guarded(self._begin)
        return places if self._old is None else self._old.numbers(places)

    def _begin(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n")
        lock = FileLock(self.folder / ".lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            self.notes.append("cache stays as it is: another build is writing it")
            return
        self._lock = lock
        for left in self.folder.glob(".unfinished-*"):  # of a build that was killed
            left.unlink()
        self._new = _New(self.folder / f".unfinished-{os.getpid()}")

    def sets(self, numbers: Positions) -> Sets | None:
        """Known sets by their numbers; None where one of them is not what was written."""
        found = self._old.sets(numbers) if self._old else None
        if found is None:
            self.notes.append("cache is broken: a shingle set is not what was written; it is made anew")
        return found

    def keep(self, positions: Positions, sets: Sets) -> None:
        """Let the next build know the sets of rows of this one."""
        self._guarded(lambda: self._new.keep(positions, sets) if self._new else None)

    def finish(self, summaries: Iterable[Path]) -> None:
        """Replace the file by what is known of the rows of this build, whose summaries are in these files."""
        if self._new is not None:
            self._guarded(lambda: self._finish([read_mapped(path) for path in summaries]))

    def _finish(self, summaries: list[pa.Table]) -> None:
        assert self._new is not None
        self._new.close(pa.concat_tables(summaries), json.loads(self._method))
        self._old = self._known = None
        _seen.cache_clear()  # some systems replace no file that is being read
        self._new.path.replace(self.folder / NAME)
        self._new = None

    def _guarded(self, do: Any) -> None:
        """Do it; where the disk refuses, say so, and write no more: the build does not depend on it."""
        try:
            do()
        except (OSError, pa.ArrowException) as error:
            why = StorageError.of(error) or type(error).__name__
            self.notes.append(f"cache is not written: {getattr(why, 'message', why)}")
            self.close()

    def close(self) -> None:
        """Let go of the lock, and of a file that was not finished."""
        if self._new is not None:
            self._new.drop()
        if self._lock is not None:
            self._lock.release()
        self._new = self._lock = None


class _New:
    """A file that is being written: sets as they come, then all else."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] = path.open("wb")
        self._positions: list[Positions] = []
        self._sizes: list[Positions] = []
        self._sums: list[Values] = []
        self._told: dict[str, dict[str, Any]] = {}

    def keep(self, positions: Positions, sets: Sets) -> None:
        self._file.write(np.ascontiguousarray(sets.values).data)
        self._positions.append(positions)
        self._sizes.append(np.diff(sets.starts))
        self._sums.append(_sums(sets))

    def close(self, summary: pa.Table, method: dict[str, Any]) -> None:
        """Write the columns of the summary, each distinct row once, in the order of prints; and the page."""
        sizes = _joined(self._sizes, np.int64)
        self._told[_SETS] = {"at": 0, "bytes": int(sizes.sum()) * 8, "type": "uint64"}
        self._put("starts", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64))
        self._put("sums", _joined(self._sums, np.uint64))
        first = summary[PRINTS[0]].to_numpy()
        prints, rows = np.unique(first, return_index=True)
        numbers = np.full(len(prints), -1, np.int64)
        positions = _joined(self._positions, np.int64)
        second = summary[PRINTS[1]].to_numpy()
        at = np.searchsorted(prints, first[positions])
        same = second[rows[at]] == second[positions]
        numbers[at[same]] = np.flatnonzero(same)
        self._put("set", numbers)
        for name in (*PRINTS, *MADE, *(name for name in summary.column_names if name.startswith(BAND))):
            self._put(name, summary[name].to_numpy()[rows])
        page = json.dumps({"format": _FORMAT, "method": method, "columns": self._told}).encode()
        self._file.write(page + _END.pack(len(page), zlib.crc32(page), _MAGIC))
        self._file.close()

    def _put(self, name: str, values: Values) -> None:
        self._file.write(bytes(-self._file.tell() % _ALIGN))
        data = np.ascontiguousarray(values)
        told = {"at": self._file.tell(), "bytes": data.nbytes, "type": str(data.dtype)}
        self._told[name] = told | {"crc32": zlib.crc32(data.data)}
        self._file.write(data.data)

    def drop(self) -> None:
        """Leave nothing behind."""
        for do in (self._file.close, self.path.unlink):
            with suppress(OSError):  # the next build removes it
                do()


def _joined(parts: list[Values], kind: Any) -> Values:
    return np.concatenate([np.zeros(0, kind), *parts])


def _sums(sets: Sets) -> npt.NDArray[np.uint64]:
    """The sum of each set's hashes."""
    ends = np.concatenate([np.zeros(1, np.uint64), np.cumsum(sets.values, dtype=np.uint64)])
    return np.asarray(ends[sets.starts[1:]] - ends[sets.starts[:-1]])
