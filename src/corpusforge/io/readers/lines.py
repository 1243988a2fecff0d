"""JSON Lines: one record per line, a bad line costs only itself."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from corpusforge.io.readers import cutter
from corpusforge.stages._record import Record, json_record

if TYPE_CHECKING:
    from collections.abc import Iterator


def line_records(file: IO[bytes], label: str, part: str) -> Iterator[Record]:
    """One record per line that is not blank."""
    position = 0
    for number, line in enumerate(iter(lambda: file.readline(cutter.LARGEST + 1), b""), 1):
        text = line.removeprefix(cutter.BOM) if number == 1 else line
        if text.isspace() or not text:
            continue
        position += 1
        if len(line) > cutter.LARGEST:
            while line and not line.endswith(b"\n"):
                line = file.readline(cutter.CHUNK)
            yield Record(position, None, label, number, "record_too_large", part)
        else:
            yield json_record(text, position, label, number, part)
