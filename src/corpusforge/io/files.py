"""The files of a source: found, named for row ids and ledgers, and fingerprinted.

    path: raw/chats/*.jsonl.zst   -> Found(…/a.jsonl.zst, label "raw/chats/a.jsonl.zst", part "a.jsonl.zst"), …

A folder is searched for data files, a glob is taken as it stands. Nothing is passed over unseen. A file must be the
same when it has been read as when it was fingerprinted: `Snapshot` remembers size, time and inode, or what a server
says of a file's version.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import SourceError
from corpusforge.io import remote
from corpusforge.io.readers import COMPRESSED, EXTENSIONS
from corpusforge.io.readers.unpack import named
from corpusforge.stages._source import local
from corpusforge.text.jsontext import has_surrogate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpusforge.stages.ingest import SourceConfig

_MAGIC: Final = ("*", "?", "[")


@dataclass(frozen=True)
class Found:
    """One file of a source: where it is, how ledgers call it, and its part of row ids."""

    path: Path | remote.RemoteFile
    label: str
    part: str


def find_files(source: SourceConfig, root: Path) -> list[Found]:
    """The files that the source's paths mean, in the order of paths, sorted within a folder or glob."""
    return files_of(source, source.path, root)


def files_of(source: SourceConfig, declared: str | list[str], root: Path) -> list[Found]:
    """The files that `declared` means, for instance the answers of a source. Raises SourceError."""
    paths = [declared] if isinstance(declared, str) else declared
    found: dict[Path | remote.RemoteFile, str] = {}
    for path in map(local, paths):
        if remote.is_remote(path):
            found |= dict.fromkeys(remote.find(source.name, path, is_data), path)
            continue
        for file in _expand(source, path, root):
            _check_file(source, file)
            found.setdefault(file, path)
    if len(paths) == 1 and len(found) == 1:
        (only,) = found
        if only == root / local(paths[0]) or (isinstance(only, remote.RemoteFile) and only.url == paths[0]):
            return [Found(only, shown(paths[0], root), "")]
    parts = [_part(file, path, root, whole=len(paths) > 1) for file, path in found.items()]
    twins = {part for part in parts if parts.count(part) > 1} if len(set(parts)) < len(parts) else set()
    return [
        Found(file, shown(_address(file), root), f"{number}-{part}" if part in twins else part)
        for number, (file, part) in enumerate(zip(found, parts, strict=True), 1)
    ]


def _address(file: Path | remote.RemoteFile) -> str:
    return file.url if isinstance(file, remote.RemoteFile) else str(file)


def _expand(source: SourceConfig, path: str, root: Path) -> list[Path]:
    try:
        return _expanded(source, path, root)
    except SourceError:
        raise
    except OSError as error:
        raise SourceError(f"source {source.name!r}: its path cannot be looked up ({error.strerror})") from None


def _expanded(source: SourceConfig, path: str, root: Path) -> list[Path]:
    place = root / path
    if any(sign in path for sign in _MAGIC) and not place.exists():
        anchor = Path(place.anchor)
        files = [file for file in sorted(anchor.glob(place.relative_to(anchor).as_posix())) if not file.is_dir()]
        if not files:
            raise SourceError(f"source {source.name!r}: {path!r} matches no file", hint=_beside(place, root))
        return files
    if not place.exists():
        raise SourceError(f"source {source.name!r}: {path!r} does not exist", hint=_beside(place, root))
    if not place.is_dir() or (place / "state.json").exists() or (place / "dataset_dict.json").exists():
        return [place]
    files = _data_files(source, place)
    if not files:
        raise SourceError(
            f"source {source.name!r}: the folder {path!r} holds no data file",
            hint=f"read from a folder: {', '.join(EXTENSIONS)}",
        )
    return files


def _data_files(source: SourceConfig, folder: Path) -> list[Path]:
    """Data files in a folder and below. Nothing is passed over unseen: a part of a source is not the source.

    Links to folders are not followed, because DVC does not watch what is behind them.
    """

    def refuse(error: OSError) -> None:
        raise SourceError(
            f"source {source.name!r}: a folder in it cannot be read ({type(error).__name__})",
            hint=f"check the permissions of {shown(str(error.filename), folder)}",
        )

    files: list[Path] = []
    for at, below, names in os.walk(folder, onerror=refuse):
        for link in (Path(at, name) for name in below if Path(at, name).is_symlink()):
            if not link.resolve().is_relative_to(folder.resolve()):
                raise SourceError(
                    f"source {source.name!r}: {shown(str(link), folder)!r} is a link to a folder elsewhere",
                    hint="name that folder in `path` too, or remove the link",
                )
        files += [Path(at, name) for name in names if is_data(name)]
    return sorted(files)


def _check_file(source: SourceConfig, file: Path) -> None:
    """Raise SourceError for what is neither a file nor a folder, and for a name that no row can hold."""
    name = file.name.encode("utf-8", "backslashreplace").decode()
    if not file.is_file() and not file.is_dir():
        raise SourceError(
            f"source {source.name!r}: {name!r} is no file (a pipe, a device, or a link to nowhere)",
            hint="write what it gives to a file, and name that",
        )
    if has_surrogate(str(file)):
        raise SourceError(f"source {source.name!r}: the name of {name!r} is not UTF-8", hint="rename it")


def is_data(name: str) -> bool:
    """Whether a file's name is one of a data file, plain or packed."""
    name = name.lower()
    return not name.startswith(".") and any(name.endswith(end + packed) for end in EXTENSIONS for packed in COMPRESSED)


def _beside(place: Path, root: Path) -> str:
    """What is there instead: the names in the nearest folder that exists."""
    folder = place.parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    names = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))[:5]
    there = f"{shown(str(folder), root) or '.'} holds: {', '.join(names) or 'nothing'}"
    return f"paths are relative to the project, or to where you are without one; {there}"


def shown(path: str, root: Path) -> str:
    """A path as ledgers and rows show it: relative where it can be, never with the machine's folders."""
    if remote.is_remote(path):
        return remote.shown(path)
    place = Path(local(path))
    if not place.is_absolute():
        return place.as_posix()
    try:
        return place.relative_to(root).as_posix()
    except ValueError:
        return place.name


def _part(file: Path | remote.RemoteFile, declared: str, root: Path, *, whole: bool) -> str:
    """A file's own part of row ids: its path below the folder or the fixed part of the glob that named it.

    Where several paths were declared (`whole`), it is the file's path in the project, so that no two are alike.
    """
    if whole:
        pieces = Path(shown(_address(file), root).partition("::")[0]).parts
        return "/".join(piece.rstrip(":") for piece in pieces if piece != "..")
    if isinstance(file, remote.RemoteFile):
        above = itertools.takewhile(lambda piece: not any(sign in piece for sign in _MAGIC), declared.split("/"))
        return remote.shown(file.url).partition("::")[0].removeprefix("/".join(above).rstrip("/") + "/")
    fixed = root
    for piece in Path(declared).parts:
        if any(sign in piece for sign in _MAGIC) or not (fixed / piece).is_dir():
            break
        fixed = fixed / piece
    return file.relative_to(fixed).as_posix()


class Snapshot:
    """Files as they were when they were fingerprinted."""

    def __init__(self, files: Iterable[Found]) -> None:
        """Read every file once. Raises SourceError for one that cannot be read, or changes meanwhile."""
        whole = hashlib.sha256()
        self.states: dict[Path | remote.RemoteFile, Any] = {}
        for file in files:
            with named(file.label):
                self.states[file.path] = _state(file.path)
                for name, digest in _digests(file.path):
                    whole.update(f"{file.part or name}\0{digest}\n".encode())
            self.check(file)
        self.revision: str = whole.hexdigest()[:16]
        """16 hex digits over the names and bytes of files: the revision of a source that has none of its own."""

    def check(self, file: Found) -> None:
        """Raise SourceError if a file is no longer the one that was fingerprinted."""
        with named(file.label):
            now = _state(file.path)
        if now != self.states[file.path]:
            raise SourceError(
                f"{file.label} changed while it was read", hint="run it again when nothing writes to it any more"
            )


def _state(path: Path | remote.RemoteFile) -> Any:
    """What tells one version of a file (or of a folder's files) from another."""
    if isinstance(path, remote.RemoteFile):
        return path.state()
    stats = [(inner.name, inner.stat()) for inner in _inner(path)]
    return [(name, stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats]


def _inner(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def _digests(path: Path | remote.RemoteFile) -> Iterator[tuple[str, str]]:
    """Names and hashes of a file or of the files of a folder; of a remote file, what its server says of its version."""
    if isinstance(path, remote.RemoteFile):
        yield path.name, path.state()
        return
    for inner in _inner(path):
        with inner.open("rb") as handle:
            yield inner.name, hashlib.file_digest(handle, "sha256").hexdigest()
