"""Drafts of rows to a table in the row format: identity, provenance, content id, language and domain.

Rows are gathered column by column. What is the same in all rows of a batch (source, licence, origin) is held once, and
what few rows have (a verifier, a chosen answer) by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from corpusforge.sample import MESSAGE, MESSAGE_FIELDS, MESSAGES, SCHEMA, SOURCE, content_id, row_id
from corpusforge.shapes._draft import Draft, Message, Unrepresentable, json_text
from corpusforge.stages import _domain
from corpusforge.text import language

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TYPES: Final = {field.name: field.type for field in SCHEMA}
_TEXTS: Final = ("row_id", "content_id", "kind", "extra", "language")
_RARE: Final = ("chosen", "rejected", "rating", "tools", "verifier", "images")
_DEPTH: Final = {"human": 0, "synthetic": 1}
_plain_json: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Provenance:
    """Where rows come from, as the source and the record say. Rows of which the same is said share one."""

    license: str
    restrictions: list[str]
    origin: str
    generator: str | None
    parents: list[str] = field(default_factory=list)
    depth: int | None = None
    created: str | None = None
    domain: str | None = None
    language: str | None = None
    own_terms: bool = False  # whether the record states a licence or restrictions itself


Given = tuple["Mapping[str, Any]", bool]
"""A record's value, whose unused fields go to `extra`, and whether msgspec writes its numbers as `json` does."""


class RowBuffer:
    """Rows of one batch, column by column."""

    def __init__(self, source: str, uri: str, revision: str) -> None:
        self.constant = {"name": source, "uri": uri, "revision": revision}
        self.row_id: list[str] = []
        self.content_id: list[str] = []
        self.kind: list[str] = []
        self.extra: list[str | None] = []
        self.language: list[str | None] = []
        self.domain: list[str | None] = []  # None where the texts are to say
        self.messages: list[list[Message]] = []
        self.rare: dict[str, dict[int, Any]] = {name: {} for name in _RARE}
        self.record: list[int] = []
        self.record_id: list[str | None] = []
        self.came: list[Provenance] = []

    def __len__(self) -> int:
        return len(self.row_id)

    def cut(self, length: int) -> None:
        """Forget all rows behind the first `length`."""
        for name in (*_TEXTS, "domain", "messages", "record", "record_id", "came"):
            del getattr(self, name)[length:]
        for values in self.rare.values():
            for row in [row for row in values if row >= length]:
                del values[row]

    def add(self, where: tuple[str, int, str | None], fan: int, draft: Draft, came: Provenance, record: Given) -> None:
        """Take one draft as row number `fan` of a record. Raises Unrepresentable.

        `where` is the prefix of row ids, the record's number, and the user's own id.
        """
        prefix, position, record_id = where
        value, plain = record
        columns: dict[str, Any] = {"kind": draft.kind, "messages": draft.messages}
        for name in ("chosen", "rejected", "rating", "tools", "images"):
            if (given := getattr(draft, name)) is not None:
                columns[name] = given
        if draft.verifier:
            columns["verifier"] = {"kind": draft.verifier[0], "spec": draft.verifier[1]}
        used = draft.used
        left = {k: v for k, v in value.items() if k not in used}
        if draft.extra:
            left |= draft.extra
            plain = False
        extra = None if not left else _plain_json(left).decode() if plain else json_text(left)
        try:
            content = content_id(columns)
        except RecursionError:
            raise Unrepresentable("nested_too_deeply") from None
        row = len(self.row_id)
        if len(columns) > 2:
            for name, given in columns.items():
                if name in self.rare:
                    self.rare[name][row] = given
        self.row_id.append(row_id(prefix, position, fan))
        self.content_id.append(content)
        self.kind.append(draft.kind)
        self.messages.append(draft.messages)
        self.extra.append(extra)
        self.language.append(came.language or draft.language)
        self.domain.append(came.domain or draft.domain or _domain.of_draft(draft))
        self.record.append(position)
        self.record_id.append(record_id)
        self.came.append(came)

    def settle(self, *, detect_language: bool) -> pa.ListArray:
        """Fill in the domains and languages that only the texts tell; returns the messages as Arrow."""
        messages = messages_array(self.messages)
        if None in self.domain:
            self.domain = list(_domain.fill(self.domain, self.messages, messages, self.rare["chosen"]))
        if detect_language and None in self.language:
            unknown = [row for row, known in enumerate(self.language) if known is None]
            found = language.detect([said(self.messages[row]) for row in unknown])
            for row, code in zip(unknown, found, strict=True):
                self.language[row] = code
        return messages

    def table(self, *, detect_language: bool) -> pa.Table:
        """All rows as one table of the row format."""
        columns: dict[str, pa.Array] = {"messages": self.settle(detect_language=detect_language)}
        for name in (*_TEXTS, "domain"):
            columns[name] = pa.array(getattr(self, name), pa.string())
        for name, values in self.rare.items():
            columns[name] = self._rare(values, _TYPES[name])
        columns["source"] = self._sources()
        columns["cluster"] = pa.nulls(len(self), pa.string())
        return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)

    def _rare(self, values: Mapping[int, Any], kind: pa.DataType) -> pa.Array:
        if not values:
            return pa.nulls(len(self), kind)
        column = [values.get(row) for row in range(len(self))]
        return messages_array(column) if kind == MESSAGES else pa.array(column, kind)

    def _sources(self) -> pa.StructArray:
        shared = self.came[0] if len(set(map(id, self.came))) == 1 else None
        children = []
        for one in SOURCE:
            if one.name in ("record", "record_id"):
                children.append(pa.array(getattr(self, one.name), one.type))
            elif one.name in self.constant or shared is not None:
                value = self.constant[one.name] if one.name in self.constant else getattr(shared, one.name)
                children.append(pa.repeat(pa.scalar(value, one.type), len(self)))
            else:
                children.append(pa.array([getattr(came, one.name) for came in self.came], one.type))
        return pa.StructArray.from_arrays(children, fields=list(SOURCE))


def messages_array(column: Sequence[list[Message] | None]) -> pa.ListArray:
    """Message lists as Arrow, through flat columns: much faster than from nested dicts."""
    flat = [message for messages in column if messages for message in messages]
    present: set[str] = set().union(*flat)
    children = [
        pa.array([message.get(name) for message in flat], pa.string())
        if name in present
        else pa.nulls(len(flat), pa.string())
        for name in MESSAGE_FIELDS
    ]
    structs = pa.StructArray.from_arrays(children, fields=list(MESSAGE))
    ends = accumulate([len(messages or ()) for messages in column], initial=0)
    offsets = pa.array(ends, pa.int32())
    missing = pa.array([messages is None for messages in column]) if None in column else None
    return pa.ListArray.from_arrays(offsets, structs, mask=missing)


def said(messages: list[Message]) -> str:
    """The beginning of what is said, without the system prompt, for language detection."""
    text = ""
    for message in messages:
        content = message.get("content")
        if content and message.get("role") != "system":
            text = f"{text} {content}" if text else content
            if len(text) >= 2 * language.CHARACTERS:
                break
    return text


def depth_of(origin: str) -> int | None:
    """Generations away from a human text, where only the origin is known."""
    return _DEPTH.get(origin)
