"""Drafts of rows to a table in the row format: identity, provenance, content id, language and domain.

What is the same in all rows of a batch (source, licence, origin) is held once, and what few rows have (a verifier, a
chosen answer) by row.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from operator import itemgetter
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
_TEXTS: Final = ("row_id", "content_id", "kind", "extra", "language", "domain")
_RARE: Final = ("chosen", "rejected", "rating", "tools", "verifier", "images")
_USUAL: Final = frozenset({"role", "content"})
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
_COLUMNS: Final = (
    *("row_id", "content_id", "kind", "messages", "extra", "language", "domain", "record", "record_id", "came"),
)


class RowBuffer:
    """Rows of one batch: gathered row by row, turned into columns at once."""

    def __init__(self, source: str, uri: str, revision: str) -> None:
        self.constant = {"name": source, "uri": uri, "revision": revision}
        self.rows: list[tuple[Any, ...]] = []  # what every row has, in the order of _COLUMNS
        self.rare: dict[str, dict[int, Any]] = {name: {} for name in _RARE}  # what few rows have, by row

    def __len__(self) -> int:
        return len(self.rows)

    def cut(self, length: int) -> None:
        """Forget all rows behind the first `length`."""
        del self.rows[length:]
        for values in self.rare.values():
            for row in [row for row in values if row >= length]:
                del values[row]

    def row_id(self, row: int) -> str:
        """The id of a row."""
        return str(self.rows[row][0])

    def add(self, where: tuple[str, int, str | None], fan: int, draft: Draft, came: Provenance, record: Given) -> None:
        """Take one draft as row number `fan` of a record. Raises Unrepresentable.

        `where` is the prefix of row ids, the record's number, and the user's own id.
        """
        prefix, position, record_id = where
        messages = draft.messages
        columns: dict[str, Any] = {"kind": draft.kind, "messages": messages}
        rare = _rare(draft)
        if rare:
            columns |= rare
            for name, given in rare.items():
                self.rare[name][len(self.rows)] = given
        extra = _extra(draft, *record)
        try:
            content = content_id(columns)
        except RecursionError:
            raise Unrepresentable("nested_too_deeply") from None
        language = came.language or draft.language
        domain = came.domain or draft.domain or _domain.of_draft(draft)  # None where the texts are to say
        name = row_id(prefix, position, fan)
        self.rows.append((name, content, draft.kind, messages, extra, language, domain, position, record_id, came))

    def columns(self) -> dict[str, list[Any]]:
        """What every row has, by column."""
        values = zip(*self.rows, strict=True) if self.rows else [()] * len(_COLUMNS)
        return dict(zip(_COLUMNS, map(list, values), strict=True))

    def table(self, columns: dict[str, list[Any]], *, detect_language: bool) -> pa.Table:
        """All rows as one table of the row format; fills in the domains and languages that only the texts tell."""
        said_in = columns["messages"]
        messages = messages_array(said_in)
        if None in columns["domain"]:
            chosen = self.rare["chosen"]
            texts = [*said_in]
            for row, answer in chosen.items():
                texts[row] = [*texts[row], *answer]
            columns["domain"] = _domain.fill(
                columns["domain"], messages, lambda row: [one.get("content") or "" for one in texts[row]], chosen
            )
        if detect_language and None in columns["language"]:
            unknown = [row for row, known in enumerate(columns["language"]) if known is None]
            found = language.detect([said(said_in[row]) for row in unknown])
            for row, code in zip(unknown, found, strict=True):
                columns["language"][row] = code
        arrays: dict[str, pa.Array] = {name: pa.array(columns[name], pa.string()) for name in _TEXTS}
        arrays |= {name: self._rare_array(name) for name in _RARE}
        arrays |= {"messages": messages, "source": sources(self.constant, columns, columns["came"], len(self))}
        arrays["cluster"] = pa.nulls(len(self), pa.string())
        return pa.table([arrays[name] for name in SCHEMA.names], schema=SCHEMA)

    def _rare_array(self, name: str) -> pa.Array:
        values, kind = self.rare[name], _TYPES[name]
        if not values:
            return pa.nulls(len(self), kind)
        column = [values.get(row) for row in range(len(self))]
        return messages_array(column) if kind == MESSAGES else pa.array(column, kind)


def sources(
    constant: Mapping[str, str], columns: Mapping[str, Any], came: Sequence[Provenance], rows: int
) -> pa.StructArray:
    """The column `source`; `came` has the provenance of every row, or one for all of them."""
    shared = came[0] if len(set(map(id, came))) == 1 else None
    children = []
    for one in SOURCE:
        if one.name in columns:
            held = columns[one.name]
            children.append(held if isinstance(held, pa.Array) else pa.array(held, one.type))
        elif one.name in constant or shared is not None:
            value = constant[one.name] if one.name in constant else getattr(shared, one.name)
            children.append(pa.repeat(pa.scalar(value, one.type), rows))
        else:
            children.append(pa.array([getattr(each, one.name) for each in came], one.type))
    return pa.StructArray.from_arrays(children, fields=list(SOURCE))


def _rare(draft: Draft) -> dict[str, Any]:
    """The columns that few drafts fill."""
    verifier = {"kind": draft.verifier[0], "spec": draft.verifier[1]} if draft.verifier else None
    given = (draft.chosen, draft.rejected, draft.rating, draft.tools, verifier, draft.images)
    return {name: value for name, value in zip(_RARE, given, strict=True) if value is not None}


def beside(own: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """A record's own fields and what was made for `extra`: of one name, the record's is called `source_…`."""
    found = {**own, **made}
    for name in made:
        if name in own and own[name] != made[name]:
            other = f"source_{name}"
            while other in found:
                other = f"source_{other}"
            found[other] = own[name]
    return found


def _extra(draft: Draft, value: Mapping[str, Any], plain: bool) -> str | None:
    """The record's fields that no column took, as JSON text. Raises Unrepresentable."""
    used = draft.used
    left = {name: inner for name, inner in value.items() if name not in used}
    if draft.extra:
        return json_text(beside(left, draft.extra))
    if not left:
        return None
    return _plain_json(left).decode() if plain else json_text(left)


def messages_array(column: Sequence[list[Message] | None]) -> pa.ListArray:
    """Message lists as Arrow, through flat columns: much faster than from nested dicts."""
    flat = [message for messages in column if messages for message in messages]
    odd = [row for row, message in enumerate(flat) if len(message) != 2 or "content" not in message]
    more = set[str]().union(*(flat[row] for row in odd)) - _USUAL
    children = [
        _texts(flat, name) if name in _USUAL else _texts_of(flat, odd, name) if name in more else None
        for name in MESSAGE_FIELDS
    ]
    arrays = [pa.nulls(len(flat), pa.string()) if one is None else pa.array(one, pa.string()) for one in children]
    ends = accumulate([len(messages or ()) for messages in column], initial=0)
    missing = pa.array([messages is None for messages in column]) if None in column else None
    structs = pa.StructArray.from_arrays(arrays, fields=list(MESSAGE))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), structs, mask=missing)


def _texts(flat: Sequence[Message], name: str) -> list[str | None]:
    """A field that most messages have."""
    try:
        return list(map(itemgetter(name), flat))
    except KeyError:
        return [message.get(name) for message in flat]


def _texts_of(flat: Sequence[Message], rows: Sequence[int], name: str) -> list[str | None]:
    """A field that no other message than those at `rows` has."""
    texts: list[str | None] = [None] * len(flat)
    for row in rows:
        texts[row] = flat[row].get(name)
    return texts


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
