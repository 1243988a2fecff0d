r"""Cuts a JSON text into its values without parsing it: a file of any size, one value in memory at a time.

    [ {"a": 1},\n  {"b": "]"} ]    -> Cut(b'{"a": 1}', line 1), Cut(b'{"b": "]"}', line 2)

What a value holds is not looked at, only where it ends: brackets are counted outside of strings. A bracket that closes
another kind, a line end inside a string, or a letter where none can be shows that a quote or a bracket is missing;
from there on nothing can be cut, and Broken is raised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BOM: Final = b"\xef\xbb\xbf"
CHUNK: Final = 1 << 20
LARGEST: Final = 512 << 20
"""Bytes that a record may have: what is larger is quarantined, because it must be in memory as a whole."""

_INSIDE: Final = rb"[^\"\\\x00-\x1f]*+(?:\\.[^\"\\\x00-\x1f]*+)*+"  # possessive: a long string leaves no trail
_STRING: Final = re.compile(_INSIDE + rb'"', re.DOTALL)
_UNENDED: Final = re.compile(_INSIDE + rb"(\\?)\Z", re.DOTALL)
_PLAIN: Final = rb" \t\r\n,:0-9+\-.eEtrufalsnNIiy"
"""What may stand outside of strings: the letters are those of true, false, null, NaN, Infinity and of exponents."""
# A whole string, a bracket, the quote of a string that is not whole here, or what stands in no JSON outside of strings.
_TOKEN: Final = re.compile(rb'"' + _INSIDE + rb'"|[{}\[\]"]|[^{}\[\]"' + _PLAIN + rb"]", re.DOTALL)


def _levels(depth: int) -> bytes:
    """A pattern for what stands between the brackets of a value of at most `depth` levels."""
    inner = rb"[" + _PLAIN + rb"]++|\"" + _INSIDE + rb"\""
    if depth:
        inner += rb"|\{" + _levels(depth - 1) + rb"\}|\[" + _levels(depth - 1) + rb"\]"
    return rb"(?:" + inner + rb")*+"


_SHALLOW: Final = re.compile(rb"\{" + _levels(4) + rb"\}|\[" + _levels(4) + rb"\]", re.DOTALL)
"""A whole value of few levels: what most records are, found in one go."""
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_SCALAR: Final = re.compile(rb"[^ \t\r\n,\[\]{}\"]*+")
_CLOSES: Final = {ord("{"): ord("}"), ord("["): ord("]")}
_QUOTE: Final = ord('"')


class Broken(ValueError):
    """From here on nothing can be cut; `reason` is the ledger's code, `line` where the value began."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


class TooLarge(Broken):
    """A value of more bytes than a record may have; what comes after it can be cut."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The bytes of one value, and the line that it begins on."""

    text: bytes
    line: int


class Cutter:
    """A place in a JSON text, moving forward only."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.data = (file.read(len(BOM)) or b"").removeprefix(BOM)
        self.at = 0
        self.line = 1
        self.counted = 0  # up to where line ends in `data` are in `line`

    def peek(self) -> bytes:
        """The next byte that is no space; b"" at the end."""
        while True:
            self.at = _SPACE.match(self.data, self.at).end()  # type: ignore[union-attr] # it always matches
            if self.at < len(self.data):
                return self.data[self.at : self.at + 1]
            if not self._more():
                return b""

    def step(self) -> None:
        """Pass over the byte that `peek` gave."""
        self.at += 1

    def here(self) -> int:
        """The line of the next byte."""
        self.line += self.data.count(b"\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def _more(self) -> bool:
        """Take the next chunk; what was in the last one is gone."""
        self.at = len(self.data)
        self.here()
        self.data = self.file.read(CHUNK)
        self.at = self.counted = 0
        return bool(self.data)

    def value(self, *, keep: bool = True) -> Cut:
        """The value that begins at the next byte; empty when it is not kept. Raises Broken."""
        first = self.peek()
        line = self.here()
        if shallow := _SHALLOW.match(self.data, self.at):
            self.at = shallow.end()
            return Cut(shallow[0] if keep else b"", line)
        pieces: list[bytes] = []
        size = 0
        for piece in self._pieces(first, line):
            size += len(piece)
            if size > LARGEST:
                pieces.clear()
                keep = False
            if keep:
                pieces.append(piece)
        if size > LARGEST:
            raise TooLarge("record_too_large", line)
        return Cut(b"".join(pieces), line)

    def _pieces(self, first: bytes, line: int) -> Iterator[bytes]:
        if first == b'"':
            return self._string(line)
        if first in (b"{", b"["):
            return self._nested(line)
        if first in (b"", b"}", b"]", b","):
            raise Broken("broken_json", line)
        return self._scalar()

    def _scalar(self) -> Iterator[bytes]:
        while True:
            start = self.at
            self.at = _SCALAR.match(self.data, start).end()  # type: ignore[union-attr] # it always matches
            yield self.data[start : self.at]
            if self.at < len(self.data) or not self._more():
                return

    def _string(self, line: int) -> Iterator[bytes]:
        """A string from its quote on; also one that goes on over many chunks."""
        start = self.at
        at = start + 1
        while (whole := _STRING.match(self.data, at)) is None:
            unended = _UNENDED.match(self.data, at)
            if unended is None:
                raise Broken("broken_json", line)
            yield self.data[start:]
            if not self._more():
                raise Broken("broken_json", line)
            start, at = 0, len(unended[1])  # what a last backslash escapes is the first byte of the next chunk
        self.at = whole.end()
        yield self.data[start : self.at]

    def _nested(self, line: int) -> Iterator[bytes]:
        """An object or array from its bracket on to the one that closes it."""
        closing = bytearray()
        while True:
            start = self.at
            ended = self._brackets(closing, line)
            yield self.data[start : self.at]
            if ended:
                return
            if self.at < len(self.data):  # a string that goes on in the next chunk
                yield from self._string(line)
            elif not self._more():
                raise Broken("broken_json", line)

    def _brackets(self, closing: bytearray, line: int) -> bool:
        """Go on to the end of the value (True), of the chunk, or to a string that is not whole in it (False)."""
        data = self.data
        for token in _TOKEN.finditer(data, self.at):
            first = data[token.start()]
            if first == _QUOTE:
                if token.end() - token.start() > 1:
                    continue
                self.at = token.start()
                return False
            if first in _CLOSES:
                closing.append(_CLOSES[first])
            elif not closing or first != closing.pop():
                raise Broken("broken_json", line)
            elif not closing:
                self.at = token.end()
                return True
        self.at = len(data)
        return False
