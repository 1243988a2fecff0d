"""JSON Lines in blocks of whole lines, which are made into rows as they are: nothing is parsed here.

    line_blocks(file, "a.jsonl", "")  -> Block(Lines(line=0, position=0), 4 MB), Block(Lines(line=3720, …), 4 MB), …

A line that is longer than a record may be is a Record of its own between two blocks.
"""

from __future__ import annotations

import io
import itertools
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Final

from corpusforge.io.readers import cutter
from corpusforge.io.readers.lines import line_records
from corpusforge.stages.ingest import Lines, Record
from corpusforge.text.jsonlines import count

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE: Final = 4 << 20
"""Bytes that are read at a time: some thousand records."""


@dataclass(frozen=True)
class Block:
    """Whole lines of a file, where they stand, and how many records they hold."""

    lines: Lines
    data: bytes
    records: int

    def first(self, records: int | None) -> Block:
        """The same with only its first records; with all of them for None."""
        if records is None or records >= self.records:
            return self
        return replace(self, lines=replace(self.lines, last=self.lines.position + records), records=records)

    def __iter__(self) -> Iterator[Record]:
        """Its records, parsed one by one."""
        return itertools.islice(_one_by_one(self.data, self.lines), self.records)


def line_blocks(file: IO[bytes], label: str, part: str) -> Iterator[Block | Record]:
    """All lines of a file."""
    lines = Lines(label, part)
    for data in _whole_lines(file):
        if data is None:
            lines = replace(lines, line=lines.line + 1, position=lines.position + 1)
            yield Record(lines.position, None, label, lines.line, "record_too_large", part)
            continue
        text = data.removeprefix(cutter.BOM) if lines.line == 0 else data
        found, records, longest = count(text)
        if longest > cutter.LARGEST:
            yield from _one_by_one(text, lines)
        elif records:
            yield Block(lines, text, records)
        lines = replace(lines, line=lines.line + found, position=lines.position + records)


def _one_by_one(text: bytes, lines: Lines) -> Iterator[Record]:
    for record in line_records(io.BytesIO(cutter.BOM + text), lines.file, lines.part):
        yield replace(record, position=record.position + lines.position, line=record.line + lines.line)


def _whole_lines(file: IO[bytes]) -> Iterator[bytes | None]:
    """The bytes of a file, cut behind line ends; None for a line that no memory should hold."""
    rest: list[bytes] = []
    held = 0
    while piece := file.read(SIZE):
        ends = piece.rfind(b"\n") + 1
        if ends:
            yield b"".join([*rest, piece[:ends]])
            rest, held = [], 0
        rest.append(piece[ends:])
        held += len(piece) - ends
        if held > cutter.LARGEST:
            yield None
            _to_line_end(file)
            rest, held = [], 0
    if held:
        yield b"".join(rest)


def _to_line_end(file: IO[bytes]) -> None:
    """Pass over what is left of a line."""
    while (piece := file.readline(SIZE)) and not piece.endswith(b"\n"):
        pass
