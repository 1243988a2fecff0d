r"""What a file is, by its first bytes. The name is asked only where they leave a choice.

{"id": 1}\n{"id": 2}\n      jsonl, whatever the name      [{"id": 1}, …            json
{\n  "id": 1 …               json: one object over several lines
id,text\n1,hello\n          csv, also in a file called .jsonl, whose first line then is no JSON
PAR1…  ARROW1…  ÿÿÿÿ…        parquet, arrow (file and stream), also packed
"""

from __future__ import annotations

import csv
import re
import struct
from typing import IO, TYPE_CHECKING, Final

from corpusforge.errors import SourceError
from corpusforge.io.readers.cells import separator_of
from corpusforge.io.readers.cutter import BOM
from corpusforge.io.readers.unpack import open_bytes
from corpusforge.text.jsontext import JsonFault, parse

if TYPE_CHECKING:
    from corpusforge.io.readers.unpack import Place

EXTENSIONS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather")
"""What a folder is searched for."""
COMPRESSED: Final = ("", ".gz", ".zst", ".bz2", ".xz")
_JSON: Final = (".jsonl", ".ndjson", ".json")
_LOOK: Final = 1 << 16
_ROWS: Final = 20  # lines that tell a table
_WIDE: Final = re.compile(rb"(?:\0[^\0]){2}|(?:[^\0]\0){2}")  # two characters of UTF-16 without a byte order mark
_FOREIGN: Final = {
    b"FEA1": ("a Feather file of the first version", "read it with pyarrow, and write Parquet"),
    b"SQLite format 3\0": ("an SQLite database", "read it with `reader: sql` and a query"),
    b"\x89PNG": ("an image", "name the file that lists the images"),
    b"%PDF": ("a PDF document", "extract its text first"),
    b"\x80\x04\x95": ("a pickle", "pickles run code: write JSON Lines or Parquet"),
    b"\x80\x05\x95": ("a pickle", "pickles run code: write JSON Lines or Parquet"),
    b"Obj\x01": ("an Avro file", "convert it to Parquet"),
    b"ORC": ("an ORC file", "convert it to Parquet"),
}


def sniff(path: Place, label: str) -> str:
    """`jsonl`, `json`, `csv`, `tsv`, `parquet`, `arrow` or `datasets`. Raises SourceError when nothing fits.

    `jsonl` is what may be read line by line: every line of the unpacked bytes (`open_bytes`) is a record or blank.
    """
    if path.is_dir():
        return "datasets"
    with open_bytes(path) as file:
        start = file.read(_LOOK)
        if start[:4] == b"PAR1":
            return "parquet"
        if start[:6] == b"ARROW1" or is_arrow_stream(start):
            return "arrow"
        _refuse(start, label)
        text = start.removeprefix(BOM).lstrip()
        names = [suffix.lower() for suffix in path.suffixes]
        kind = _json_kind(text, names, file) if text[:1] in (b"{", b"[") else None
        return kind or _table_kind(text, names, label)


def is_arrow_stream(start: bytes) -> bool:
    """Whether bytes begin as an Arrow IPC stream: a mark, and the length of a schema of a believable size."""
    return len(start) > 8 and start[:4] == b"\xff\xff\xff\xff" and 0 < struct.unpack("<i", start[4:8])[0] < 1 << 26


def _refuse(start: bytes, label: str) -> None:
    """Raise SourceError for a file that is easily taken for a text."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff") or _WIDE.match(start):
        raise SourceError(f"{label} is UTF-16 or UTF-32", hint="convert it: iconv -f UTF-16 -t UTF-8")
    if start[:4] == b"PK\x03\x04":
        locked = len(start) > 7 and start[6] & 1  # bit 0 of the flags of the first file in it
        what = "a zip archive with a password" if locked else "a zip archive"
        raise SourceError(f"{label} is {what}", hint="unpack it, and name the files in it")
    for magic, (what, hint) in _FOREIGN.items():
        if start.startswith(magic):
            raise SourceError(f"{label} is {what}", hint=hint)


def _json_kind(text: bytes, names: list[str], file: IO[bytes]) -> str | None:
    """`json` or `jsonl` for a text that begins with a bracket; None where it is a table after all."""
    first, _, rest = text.partition(b"\n")
    if not rest and len(text) == _LOOK:  # a long first line: an object is one record either way
        return "json" if text[:1] == b"[" else "jsonl"
    whole = _is_json(first)
    if text[:1] == b"[":
        more = rest.lstrip()[:1] == b"["
        if not whole and _tabular(text, names):
            return None
        return "jsonl" if whole and more and ".json" not in names else "json"
    if whole:
        return "json" if ".json" in names and not rest.strip() and not file.read(1) else "jsonl"
    if _tabular(text, names):
        return None
    second = rest.lstrip().partition(b"\n")[0]
    return (
        "json"
        if rest and _goes_on(first) and not (second[:1] == b"{" and _is_json(second, "concatenated_objects"))
        else "jsonl"
    )


def _is_json(line: bytes, *faults: str) -> bool:
    """Whether a line is JSON, even JSON that no row can hold (half a surrogate pair, NaN), but without these faults."""
    try:
        parse(line)
    except JsonFault as fault:
        return fault.reason not in ("broken_json", *faults)
    return True


def _goes_on(line: bytes) -> bool:
    """Whether a line of JSON ends outside of a string and with brackets still open: its object is spread over lines."""
    bare = re.sub(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', b"", line)
    return b'"' not in bare and sum(map(bare.count, (b"{", b"["))) > sum(map(bare.count, (b"}", b"]")))


def _table_kind(text: bytes, names: list[str], label: str) -> str:
    if ".tsv" in names:
        return "tsv"
    if ".csv" in names or (any(name in _JSON for name in names) and _tabular(text, names)):
        return "csv"
    if any(name in _JSON for name in names) or not text:
        return "jsonl"
    raise SourceError(f"{label}: not JSON, CSV, Parquet or Arrow", hint="name a `reader` for the source")


def _tabular(text: bytes, names: list[str]) -> bool:
    """Whether a text looks like a table with a header: its first rows have equally many cells, more than one.

    A text with an object of JSON on a line of its own is none, however many commas its lines have.
    """
    if any(line[:1] == b"{" and _is_json(line) for line in text.split(b"\n", _ROWS)[:_ROWS]):
        return False
    lines = text.decode("utf-8", "replace").splitlines()[:_ROWS]
    separator = separator_of(lines[0]) if lines else ","
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=separator) if row]
    except csv.Error:
        return False
    enough = 2 if ".csv" in names or ".tsv" in names else 3
    return len(widths) >= enough and widths[0] > 1 and len(set(widths[:-1])) == 1
