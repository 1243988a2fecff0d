r"""Files to records: JSON Lines, JSON, CSV, TSV, Parquet, Arrow and saved `datasets` folders, plain or compressed.

What a file is, its first bytes say. A record that cannot be read gives a Record with a reason code and costs only
itself. Line numbers are physical lines (ends of line are `\n` bytes alone: U+2028 or a CR inside a text is no end of
line). A file that cannot be read to its end (a truncated archive, a missing permission) raises SourceError: a part of
a source is not the source. Everything is streamed; a record is at most `LARGEST` bytes.

    read_file(Path("a.jsonl.zst"), "a.jsonl.zst")  -> Record(position=1, value={…}, file="a.jsonl.zst", line=1), …
    sniff(path, label)                             -> "jsonl": JSON Lines, whatever it is called or packed in
    open_bytes(path)                               -> its bytes, unpacked
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from corpusforge.errors import SourceError
from corpusforge.io.readers.arrays import json_records
from corpusforge.io.readers.blocks import Block, line_blocks
from corpusforge.io.readers.cells import csv_records
from corpusforge.io.readers.columnar import arrow_records, columnar_record, parquet_records, table_records
from corpusforge.io.readers.cutter import LARGEST
from corpusforge.io.readers.saved import dataset_records, saved_records, streamed_records
from corpusforge.io.readers.sniffing import COMPRESSED, EXTENSIONS, sniff
from corpusforge.io.readers.unpack import named, open_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpusforge.io.readers.unpack import Place
    from corpusforge.stages.ingest import Record

__all__ = [
    "COMPRESSED",
    "EXTENSIONS",
    "LARGEST",
    "Block",
    "columnar_record",
    "dataset_records",
    "open_bytes",
    "read_blocks",
    "read_file",
    "sniff",
    "streamed_records",
    "table_records",
]


def read_file(
    path: Place,
    label: str,
    reader: str = "auto",
    part: str = "",
    *,
    split: str | None = None,
    records: str | None = None,
) -> Iterator[Record]:
    """Records of one file or saved data set; `label` stands in messages, `part` goes into row ids.

    `split` is one of a saved data set's; `records` names the field of a JSON file's one object that holds the records.
    Raises SourceError, naming the file, when it is missing, not readable to its end, or not what `reader` says.
    """
    for item in read_blocks(path, label, reader, part, split=split, records=records):
        if isinstance(item, Block):
            yield from item
        else:
            yield item


def read_blocks(
    path: Place,
    label: str,
    reader: str = "auto",
    part: str = "",
    *,
    split: str | None = None,
    records: str | None = None,
) -> Iterator[Record | Block]:
    """What `read_file` reads, JSON Lines in blocks that were not parsed yet."""
    with named(label):
        kind = reader if reader != "auto" else sniff(path, label)
        if kind == "datasets":
            yield from saved_records(cast("Path", path), label, part, split)
        elif kind == "parquet":
            yield from parquet_records(path, label, part)
        elif kind == "arrow":
            yield from arrow_records(path, label, part)
        elif kind == "jsonl" and records is None:
            with open_bytes(path) as file:
                yield from line_blocks(file, label, part)
        elif kind in ("json", "jsonl"):
            with open_bytes(path) as file:
                yield from json_records(file, label, part, records)
        elif kind in ("csv", "tsv"):
            with open_bytes(path) as file:
                yield from csv_records(file, label, part, kind)
        else:
            raise SourceError(
                f"{label}: no reader is called {kind!r}", hint="known here: jsonl, json, csv, tsv, parquet, arrow"
            )
