"""Files elsewhere, by URL: s3://, gs://, https://, and whatever fsspec has a file system for. Read as streams.

    path: s3://bucket/chats/*.jsonl.zst    -> RemoteFile(s3://bucket/chats/a.jsonl.zst), …

Credentials come from the environment, as each file system looks for them, and never from a URL: one that holds any is
refused when params are read. What ledgers, rows and messages show of a URL is `shown`: scheme, host and path.

The version of a file is what its server says of it: an ETag, checksum or generation, else its time and size, else a
hash of its bytes. It is asked for before and after reading: a file that changed meanwhile is no source.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Final, cast

from corpusforge.errors import MissingExtra, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable

_MAGIC: Final = ("*", "[")
_EXTRA: Final = ("s3", "s3a", "gs", "gcs")
_CHECKSUMS: Final = (
    *("ETag", "etag", "VersionId", "generation", "md5Hash", "crc32c", "Content-MD5", "content_md5", "Digest"),
    *("sha256", "blob_id", "CRC"),
)
_TIMES: Final = ("LastModified", "last_modified", "Last-Modified", "updated", "mtime", "modified")


def is_remote(path: str) -> bool:
    """Whether a declared path is a URL of a file system that is not this machine's."""
    return "://" in path and not path.startswith("file://")


def shown(url: str) -> str:
    """A URL as rows, ledgers and messages show it: without its query, which may hold anything."""
    return url.partition("?")[0] if url.startswith(("http://", "https://")) else url


@dataclass(frozen=True)
class RemoteFile:
    """One file of a remote file system; it opens as a path does."""

    url: str
    path: str  # as the file system calls it
    system: Any = field(compare=False)

    @property
    def name(self) -> str:
        """Without its folders."""
        return PurePosixPath(shown(self.url)).name

    @property
    def suffixes(self) -> list[str]:
        """Its extensions, with their dots."""
        return PurePosixPath(self.name).suffixes

    def is_dir(self) -> bool:
        """Never: a folder is taken as the files in it."""
        return False

    def open(self, mode: str = "rb") -> IO[bytes]:
        """Its bytes, as a stream that can go back where the server lets it."""
        raw = _asked(lambda: self.system.open(self.path, mode))
        return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", _Stream(raw)), 1 << 18))

    def state(self) -> str:
        """What tells one version of it from another. Raises OSError."""
        _asked(lambda: self.system.invalidate_cache())
        info = _asked(lambda: self.system.info(self.path))
        said = {key: str(info[key]) for key in _CHECKSUMS if info.get(key)}
        if not said:
            said = {key: str(info[key]) for key in _TIMES if info.get(key)}
        if not said:
            with self.open() as file:
                return f"sha256 {_digest(file)}"
        return " ".join(f"{key} {value}" for key, value in {**said, "size": str(info.get("size"))}.items())


def _digest(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while piece := file.read(1 << 20):
        digest.update(piece)
    return digest.hexdigest()


class _Stream(io.RawIOBase):
    """A file of fsspec, whose many kinds of errors become an OSError without the URL in it."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self.raw.seekable())

    def readinto(self, buffer: Any) -> int:
        data = _asked(lambda: self.raw.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(_asked(lambda: self.raw.seek(offset, whence)))

    def tell(self) -> int:
        return int(self.raw.tell())

    def close(self) -> None:
        if not self.closed:
            self.raw.close()
        super().close()


def _asked(question: Callable[[], Any]) -> Any:
    """What a file system answers; whatever it raises, as an OSError of the same name."""
    try:
        return question()
    except FileNotFoundError as error:
        raise _web_error(error.__cause__) from None
    except PermissionError:
        raise PermissionError from None
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own
        if "ncrypted" in str(error) or "password required" in str(error):
            raise SourceError("a file in the archive is locked with a password", hint="unpack it first") from None
        status = getattr(getattr(error, "response", None), "status_code", None)
        raise PermissionError(status) if status in (401, 403) else OSError(type(error).__name__) from None


def _web_error(cause: BaseException | None) -> OSError:
    """What it means when a web file is not found: fsspec says so of every answer that is none, and of no answer."""
    status = getattr(cause, "status", None)
    if status in (404, 410) or not type(cause).__module__.startswith("aiohttp"):
        return FileNotFoundError()
    return PermissionError(status) if status in (401, 403) else OSError(type(cause).__name__)


def find(source: str, url: str, is_data: Callable[[str], bool]) -> list[RemoteFile]:
    """The files that a URL means: itself, the data files below a folder, or the matches of a glob; sorted.

    Raises SourceError naming the source, and MissingExtra where a file system's package is not installed.
    """
    place = f"source {source!r}: {shown(url)}"
    web = url.startswith(("http://", "https://"))
    system, path = _system(url, place)
    try:
        if not web and any(sign in path for sign in _MAGIC):
            matches = _asked(lambda: system.glob(path, detail=True))
            found = [name for name, info in matches.items() if info.get("type") != "directory"]
            if not found:
                raise SourceError(f"{place} matches no file")
        elif web or _asked(lambda: system.isfile(path)):
            _asked(lambda: system.info(path))
            return [RemoteFile(url, path, system)]
        else:
            found = [name for name in _asked(lambda: system.find(path)) if is_data(PurePosixPath(name).name)]
            if not found:
                raise SourceError(f"{place} does not exist, or holds no data file")
    except FileNotFoundError:
        raise SourceError(f"{place} does not exist", hint="check the spelling") from None
    except PermissionError:
        raise SourceError(f"{place} may not be read", hint=_WHO) from None
    except SourceError:
        raise
    except OSError as error:
        raise SourceError(f"{place} cannot be reached ({error})", hint=_WHO) from None
    outer, chained, inner = url.partition("::")
    scheme = outer.partition("://")[0]
    return [RemoteFile(f"{scheme}://{name.lstrip('/')}{chained}{inner}", name, system) for name in sorted(found)]


_WHO: Final = "is there a network? credentials come from the environment (docs/sources.md)"


def _system(url: str, place: str) -> tuple[Any, str]:
    """The file system of a URL, and what it calls the file."""
    import fsspec

    scheme = url.partition("://")[0].rpartition("::")[2]
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError:
        hint = "pip install 'corpusforge[remote]'" if scheme in _EXTRA else "fsspec says which package it needs"
        raise MissingExtra(f"{place}: {scheme}:// needs a package that is not installed", hint=hint) from None
    except ValueError:
        raise SourceError(f"{place}: {scheme}:// is no file system that is known", hint="see docs/sources.md") from None
    except Exception as error:  # noqa: BLE001 - each file system has errors of its own
        raise SourceError(f"{place} cannot be reached ({type(error).__name__})", hint=_WHO) from None
    return system, str(path)
