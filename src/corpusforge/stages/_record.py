"""One record as a reader gives it: a value, or the reason code why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from corpusforge.text.jsontext import JsonFault, parse_record, remnant

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a reader gives it: a value, or the reason code why there is none."""

    position: int  # 1-based, in its file
    value: Mapping[str, Any] | None
    file: str  # as ledgers show it
    line: int  # 1-based physical line (row number, where the format has no lines)
    error: str | None = None
    part: str = ""  # the file's own part of row ids, where a source has several files
    detail: Mapping[str, Any] = field(default_factory=dict)
    members: tuple[Record, ...] = ()  # records of one group, that this one stands for; its own value is their key
    remnant: Mapping[str, Any] | None = None  # what can be read of a record that no row can hold: it may name it
    size: int = 0  # bytes that it takes, about; 0 where its reader does not know


def json_record(text: bytes, position: int, label: str, line: int, part: str) -> Record:
    """The record of one JSON text, or why it is none."""
    try:
        value = parse_record(text)
    except JsonFault as fault:
        left = remnant(text)
        left = left if isinstance(left, dict) else None
        return Record(position, None, label, line, fault.reason, part, remnant=left)
    if not isinstance(value, dict):
        return Record(position, None, label, line, "not_an_object", part)
    return Record(position, value, label, line, None, part, size=len(text))
