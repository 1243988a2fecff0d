r"""CSV and TSV: tables of text, in which every cell stays the text that it is.

    id;text\n7;"a ""b"";\rc"\n    -> {"id": "7", "text": 'a "b";\rc'}, of line 2

`007`, `1e5`, `NA`, `null` and an empty cell are texts. A line ends at `\n`: a lone CR is part of its cell, quoted or
not, unless the file has no `\n` at all (then CR ends its lines). The separator is the one of `,`, `;`, tab and `|`
that the header has most of, outside of quotes; a name in the header that is there twice is refused.
"""

from __future__ import annotations

import csv
import itertools
import re
from typing import IO, TYPE_CHECKING, Final

from corpusforge.errors import SourceError
from corpusforge.io.readers.cutter import BOM, LARGEST
from corpusforge.stages.ingest import Record
from corpusforge.text.jsontext import has_surrogate

if TYPE_CHECKING:
    from _csv import Reader as _CsvReader
    from collections.abc import Iterator

_CR: Final = "\udc0d"  # stands for a CR within a line while csv looks at it: no byte is decoded to this
_QUOTED: Final = re.compile(r'"[^"]*+"')
_START: Final = 1 << 16


def csv_records(file: IO[bytes], label: str, part: str, kind: str) -> Iterator[Record]:
    """Rows of a table; the first line that is not empty names the columns. Raises SourceError for two of one name."""
    csv.field_size_limit(LARGEST)
    lines = _lines(file)
    empty, header = 0, next(lines, "")
    while header and not header.strip("\r\n"):
        empty, header = empty + 1, next(lines, "")
    separator = separator_of(header, "\t" if kind == "tsv" else ",")
    spaced = separator in header and all(name.startswith(" ") for name in header.split(separator)[1:])
    rows = csv.reader(itertools.chain([header], lines), delimiter=separator, skipinitialspace=spaced, strict=True)
    try:
        names = [name.replace(_CR, "\r") for name in next(rows, [])]
    except csv.Error:
        raise SourceError(f"{label}: its header is no CSV", hint="is a quote missing in the first line?") from None
    if any(map(has_surrogate, names)):
        raise SourceError(f"{label}: its header is not UTF-8", hint="convert it: iconv -f LATIN1 -t UTF-8")
    if len(set(names)) < len(names):
        raise SourceError(f"{label}: two columns have one name", hint="give each column its own name")
    yield from _rows(rows, names, empty, (label, part))


def separator_of(header: str, usual: str = ",") -> str:
    """What keeps the header's names apart: the usual sign where it has one outside of quotes."""
    bare = _QUOTED.sub("", header)
    return usual if usual in bare else max(",;\t|", key=bare.count)


def _lines(file: IO[bytes]) -> Iterator[str]:
    """Lines that end at LF (or at CR, in a file without LF), with a stand-in for a CR within a line."""
    start = file.readline(_START).removeprefix(BOM)
    if b"\r" in start and b"\n" not in start:
        yield from (line.decode("utf-8", "surrogateescape") + "\r" for line in _old_lines(start, file))
        return
    first = start if start.endswith(b"\n") else start + file.readline()
    for line in itertools.chain([first], file):
        text = line.decode("utf-8", "surrogateescape")
        ending = "\r\n" if text.endswith("\r\n") else "\n" if text.endswith("\n") else ""
        yield text[: len(text) - len(ending)].replace("\r", _CR) + ending if "\r" in text else text


def _old_lines(start: bytes, file: IO[bytes]) -> Iterator[bytes]:
    """Lines that end at CR, as old Macs wrote them."""
    rest = start
    while rest:
        *lines, last = rest.split(b"\r")
        yield from lines
        more = file.read(_START)
        if not more and last:
            yield last
        rest = last + more if more else b""


def _rows(rows: _CsvReader, names: list[str], before: int, place: tuple[str, str]) -> Iterator[Record]:
    label, part = place
    position = 0
    while True:
        begins = before + rows.line_num + 1
        try:
            row = next(rows, None)
        except csv.Error:
            position += 1
            swallowed = before + rows.line_num + 1 - begins
            yield Record(position, None, label, begins, "broken_csv", part, {"lines": swallowed})
            continue
        if row is None:
            return
        if row:
            position += 1
            yield _record(row, names, (position, label, begins, part))


def _record(row: list[str], names: list[str], place: tuple[int, str, int, str]) -> Record:
    position, label, line, part = place
    if len(row) != len(names):
        detail = {"found": len(row), "expected": len(names)}
        return Record(position, None, label, line, "wrong_number_of_fields", part, detail)
    row = [cell.replace(_CR, "\r") if not cell.isascii() and _CR in cell else cell for cell in row]
    if any(has_surrogate(cell) for cell in row if not cell.isascii()):
        left = dict(zip(names, row, strict=True))
        return Record(position, None, label, line, "invalid_unicode", part, remnant=left)
    return Record(position, dict(zip(names, row, strict=True)), label, line, None, part, size=sum(map(len, row)))
