"""An index of what is already there, as a folder: arrays that are read by the page, and what they were made by.

    corpusforge index data/dedupe/rows indexes/2026-11
    indexes/2026-11/index.json      the method, the number of rows, length and checksum of each file
                    facts.ipc     per row: ids, cluster, gold, terms; no text
                    values.u64 …    shingle sets, bands, lookups

It holds hashes, yet hashes of what people wrote: keep it where the rows are kept. Every file is checked for length when
it is opened, what is read whole against its checksum, and each set that is compared against a sum of its own.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import xxhash

from corpusforge.engine.local import in_threads, workers_from_environment
from corpusforge.errors import SourceError
from corpusforge.io import atomic
from corpusforge.io.scratch import read_mapped, write_array, write_mapped
from corpusforge.stages._index import Lookup, SignatureIndex
from corpusforge.text.pairs import Sets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

NAME: Final = "index.json"
_FORMAT: Final = 2
_BLOCK: Final = 1 << 20
_TYPES: Final = {".u64": "uint64", ".u32": "uint32", ".i64": "int64", ".ipc": "uint8"}


class CheckedSets(Sets):
    """Sets on disk: what is taken is held against the sum that was written with it."""

    def __init__(self, values: npt.NDArray[np.uint64], starts: npt.NDArray[np.int64], sums: Any, name: str) -> None:
        super().__init__(values, starts)
        object.__setattr__(self, "_sums", sums)
        object.__setattr__(self, "_name", name)

    def take(self, places: npt.NDArray[np.int64]) -> Sets:
        """The sets at `places`, in that order. Raises SourceError where one is not what was written."""
        taken = super().take(places)
        if not np.array_equal(_sums(taken), self._sums[places]):  # type: ignore[attr-defined]
            raise _broken(self._name, "a shingle set is not what was written")  # type: ignore[attr-defined]
        return taken


def write(
    folder: Path,
    method: Mapping[str, Any],
    facts: pa.Table,
    bands: npt.NDArray[np.uint64],
    lookups: Mapping[str, npt.NDArray[np.uint64]],
    sets: Iterable[Sets],
) -> None:
    """Write an index: `bands` is (bands, rows), `lookups` a value per row (0: none), `sets` those of all rows.

    The folder appears when it is whole. Raises what the disk raises.
    """
    with atomic.folder(folder) as out:
        write_mapped(facts.combine_chunks(), out / "facts.ipc")
        with (out / "bands.u64").open("wb") as file:
            for at in range(0, bands.shape[1], 1 << 16):
                file.write(np.ascontiguousarray(bands[:, at : at + (1 << 16)].T).data)
        for name, values in [*((f"band_{i:03d}", band) for i, band in enumerate(bands)), *lookups.items()]:
            lookup = Lookup.of(np.asarray(values))
            write_array(lookup.values, out / f"{name}.u64")
            write_array(lookup.rows, out / f"{name}.u32")
        starts, sums = [np.zeros(1, np.int64)], [np.zeros(0, np.uint64)]
        with (out / "values.u64").open("wb") as file:
            for part in sets:
                file.write(np.ascontiguousarray(part.values).data)
                starts.append(part.starts[1:] + starts[-1][-1])
                sums.append(_sums(part))
        write_array(np.concatenate(starts), out / "starts.i64")
        write_array(np.concatenate(sums), out / "sums.u64")
        files = {file.name: {"bytes": file.stat().st_size, "xxh3": _checksum(file)} for file in sorted(out.iterdir())}
        names = [f"band_{i:03d}" for i in range(len(bands))] + list(lookups)
        said = {"format": _FORMAT, "rows": facts.num_rows, "method": method, "lookups": names, "files": files}
        atomic.write_json(out / NAME, said)


def read(folder: Path) -> SignatureIndex:
    """Open an index. Raises SourceError where it is not whole, or not one."""
    said = _said(folder)
    try:
        return _opened(folder, said)
    except (KeyError, TypeError, ValueError) as error:
        raise _broken(folder.name, f"{NAME} does not fit its files ({type(error).__name__})") from None


def _opened(folder: Path, said: dict[str, Any]) -> SignatureIndex:
    name, rows, told = folder.name, int(said["rows"]), said["files"]
    for file in told:
        path = folder / file
        if not path.is_file() or path.stat().st_size != told[file]["bytes"]:
            raise _broken(name, f"{file} is missing or has another length than was written")
    arrays = {file: _array(folder / file, getattr(np, _TYPES[Path(file).suffix])) for file in told}
    whole = [file for file in told if file != "values.u64"]

    def checked(file: str) -> tuple[str, bool]:  # read, not by the page: most pages are not looked at again
        return file, _checksum(folder / file) == told[file]["xxh3"]

    for file, right in in_threads(checked, whole, workers_from_environment()):
        if not right:
            raise _broken(name, f"{file} is not what was written")
    lookups = {one: Lookup(arrays[f"{one}.u64"], arrays[f"{one}.u32"]) for one in said["lookups"]}
    facts = read_mapped(folder / "facts.ipc").combine_chunks()
    bands = arrays["bands.u64"].reshape(rows, int(said["method"]["bands"]))
    sets = CheckedSets(arrays["values.u64"], arrays["starts.i64"], arrays["sums.u64"], name)
    return SignatureIndex(name, said["method"], facts, bands, lookups, sets)


@dataclass(frozen=True)
class IndexFolder:
    """An index that is opened where it is looked into."""

    path: Path

    def open(self) -> SignatureIndex:
        """Read it. Raises SourceError."""
        return read(self.path)


def fingerprint(folder: Path) -> str:
    """What tells one index from another: a hash of its page, which has the checksums of its files."""
    _said(folder)
    return hashlib.sha256((folder / NAME).read_bytes()).hexdigest()[:16]


def files(folder: Path) -> set[str]:
    """The names of what an index may have written there."""
    return {NAME, *(file.name for file in folder.iterdir() if file.suffix in _TYPES)}


def is_index(path: Path) -> bool:
    """Whether a folder holds an index."""
    return (path / NAME).is_file()


def _said(folder: Path) -> dict[str, Any]:
    try:
        said = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SourceError(
            f"{folder.name} is no index: it has no {NAME}", hint="corpusforge index ROWS FOLDER makes one"
        ) from None
    except (OSError, ValueError) as error:
        raise _broken(folder.name, f"{NAME} cannot be read ({type(error).__name__})") from None
    if not isinstance(said, dict) or said.get("format") != _FORMAT:
        raise _broken(folder.name, f"{NAME} is not of format {_FORMAT}")
    return said


def _broken(name: str, why: str) -> SourceError:
    return SourceError(f"index {name} is broken: {why}", hint="make it anew: corpusforge index")


def _array(path: Path, kind: Any) -> npt.NDArray[Any]:
    """An array that is read by the page."""
    return np.memmap(path, kind, "r") if path.stat().st_size else np.zeros(0, kind)


def _sums(sets: Sets) -> npt.NDArray[np.uint64]:
    """The sum of each set's hashes."""
    filled = np.flatnonzero(np.diff(sets.starts))
    sums = np.zeros(len(sets), np.uint64)
    if len(filled):
        sums[filled] = np.add.reduceat(sets.values, sets.starts[filled])
    return sums


def _checksum(path: Path) -> str:
    """XXH3 of a file, in hexadecimal."""
    found, block = xxhash.xxh3_64(), bytearray(_BLOCK)
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(block):
            found.update(memoryview(block)[:size])
    return found.hexdigest()
