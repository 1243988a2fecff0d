"""A file's bytes, whatever it is packed in, and what went wrong while they were read, in words."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import tempfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, Protocol, cast

import pyarrow as pa

from corpusforge.errors import SourceError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_CHUNK: Final = 1 << 20
_MAGIC = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zXZ\x00", "xz"))


class Place(Protocol):
    """A file to read: a path, or a file elsewhere (`corpusforge.io.remote`)."""

    @property
    def name(self) -> str:
        """Without its folders."""

    @property
    def suffixes(self) -> list[str]:
        """Its extensions, with their dots."""

    def open(self, mode: str) -> IO[bytes]:
        """Its bytes as they lie there; the mode is `rb`."""

    def is_dir(self) -> bool:
        """Whether it is a folder."""


@contextmanager
def open_bytes(path: Place) -> Iterator[IO[bytes]]:
    """A file's bytes, unpacked as its first bytes say (gzip, zstd, bzip2, xz)."""
    with path.open("rb") as raw:
        packing = packing_of(raw)
        if packing == "gzip":
            with gzip.GzipFile(fileobj=raw) as unpacked:
                yield cast("IO[bytes]", unpacked)
        elif packing == "zstd":
            stream = pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd")
            yield io.BufferedReader(cast("io.RawIOBase", stream))
        elif packing == "bzip2":
            yield io.BufferedReader(_Parts(raw, bz2.BZ2Decompressor), _CHUNK)
        elif packing == "xz":
            yield io.BufferedReader(_Parts(raw, lzma.LZMADecompressor, padding=b"\0"), _CHUNK)
        else:
            yield raw


class _Parts(io.RawIOBase):
    """Packed parts one after another, each to its end; what stands behind the last and is none is an error.

    The readers of the standard library take a damaged second part for the end of the file.
    """

    def __init__(self, raw: IO[bytes], new: Callable[[], Any], padding: bytes = b"") -> None:
        super().__init__()
        self.raw, self.new, self.padding = raw, new, padding
        self.part = new()

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer; 0 at the end. Raises EOFError, OSError and LZMAError."""
        data = b""
        while not data:
            given = b""
            if self.part.eof:
                given = self._behind(self.part.unused_data)
                if not given:
                    return 0
                self.part = self.new()
            elif self.part.needs_input:
                given = self.raw.read(_CHUNK)
                if not given:
                    raise EOFError
            data = self.part.decompress(given, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _behind(self, rest: bytes) -> bytes:
        """What comes behind a part and is no padding."""
        while not (rest := rest.lstrip(self.padding) if self.padding else rest):
            rest = self.raw.read(_CHUNK)
            if not rest:
                break
        return rest


def packing_of(raw: IO[bytes]) -> str:
    """`gzip`, `zstd`, `bzip2`, `xz`, or "" for a file that is not packed; the file stays at its beginning."""
    start = cast("io.BufferedReader", raw).peek(6)[:6]
    if start[:3] == b"BZh" and start[4:6] == b"1A":
        return "bzip2"
    return next((name for magic, name in _MAGIC if start.startswith(magic)), "")


@contextmanager
def open_seekable(path: Place) -> Iterator[IO[bytes]]:
    """The same for formats that are not read from front to back: what is packed is unpacked to a temporary file."""
    with path.open("rb") as raw:
        if not packing_of(raw):
            yield raw
            return
    with tempfile.TemporaryFile(prefix="corpusforge-") as whole:
        with open_bytes(path) as unpacked:
            shutil.copyfileobj(unpacked, whole, 1 << 20)
        whole.seek(0)
        yield cast("IO[bytes]", whole)


@contextmanager
def named(label: str) -> Iterator[None]:
    """Say which file it was, whatever went wrong while it was read."""
    try:
        yield
    except (SourceError, StorageError):
        raise
    except FileNotFoundError:
        raise SourceError(f"{label} does not exist") from None
    except PermissionError:
        raise SourceError(f"{label} may not be read", hint="check its permissions") from None
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise SourceError(f"{label} is cut off or damaged ({type(error).__name__})", hint="fetch it again") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        full = StorageError.of(error, label)
        if full is not None and "full" in full.message:
            raise full from None
        raise SourceError(
            f"{label} cannot be read ({type(error).__name__})", hint="is it whole? fetch it again"
        ) from None
