r"""JSON files: an array of records, one object after another, or records in a field of one object. Read as a stream.

    [{"text": "a"},\n {"text": "b"}]          -> two records, of lines 1 and 2
    {\n  "text": "a"\n}\n{\n  "text": "b"\n}  -> two records, of lines 1 and 4
    {"data": {"rows": [{"text": "a"}]}}       -> one record, with `options: {records: data.rows}`

An element that cannot be read costs only itself, as long as it can be told where it ends. Where that cannot be told
(the file breaks off, a quote is missing), what stands before is read, and the rest is one quarantined record.
"""

from __future__ import annotations

import re
from typing import IO, TYPE_CHECKING, Final

from corpusforge.errors import SourceError
from corpusforge.io.readers.cutter import Broken, Cutter, TooLarge
from corpusforge.stages._record import Record, json_record
from corpusforge.text.jsontext import JsonFault, parse

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

_REST: Final[Mapping[str, bool]] = {"rest_unread": True}


def json_records(file: IO[bytes], label: str, part: str, field: str | None = None) -> Iterator[Record]:
    """Records of a JSON text; with `field`, those of the list that stands there. Raises SourceError."""
    cutter = Cutter(file)
    if field is not None:
        yield from _in_field(cutter, label, part, field.split("."))
    elif cutter.peek() != b"[":
        yield from _objects(cutter, label, part)
    else:
        position = yield from _elements(cutter, label, part)
        if position is not None and cutter.peek():
            yield Record(position + 1, None, label, cutter.here(), "text_after_array", part, _REST)


def _elements(cutter: Cutter, label: str, part: str) -> Generator[Record, None, int | None]:
    """Elements of the array that begins here, and how many; None where it broke. Commas too many are forgiven."""
    cutter.step()
    position = 0
    while (first := cutter.peek()) != b"]":
        if first == b",":
            cutter.step()
            continue
        position += 1
        try:
            cut = cutter.value()
        except TooLarge as fault:
            yield Record(position, None, label, fault.line, fault.reason, part)
        except Broken as fault:
            reason = fault.reason if first else "array_not_closed"
            yield Record(position, None, label, fault.line, reason, part, _REST)
            return None
        else:
            yield json_record(cut.text, position, label, cut.line, part)
    cutter.step()
    return position


def _objects(cutter: Cutter, label: str, part: str) -> Iterator[Record]:
    """Objects one after another, each begun on a line of its own; those that share a line are quarantined."""
    position, ended = 0, 0
    while first := cutter.peek():
        position += 1
        try:
            cut = cutter.value()
        except Broken as fault:
            whole = isinstance(fault, TooLarge)
            yield Record(position, None, label, fault.line, fault.reason, part, {} if whole else _REST)
            if not whole:
                return
            continue
        glued, ended = cut.line == ended, cutter.here()
        glued = glued or (bool(cutter.peek()) and cutter.here() == ended)
        record = json_record(cut.text, position, label, cut.line, part)
        if first != b"{":
            yield Record(position, None, label, cut.line, record.error, part, _REST if cutter.peek() else {})
            return
        yield Record(position, None, label, cut.line, "concatenated_objects", part) if glued else record


def _in_field(cutter: Cutter, label: str, part: str, path: list[str]) -> Iterator[Record]:
    """Elements of the list at `path` in the one object of the file, which must be whole."""
    position: int | None = 0
    try:
        for depth, name in enumerate(path):
            _enter(cutter, label, ".".join(path[:depth]), name)
        if cutter.peek() != b"[":
            raise SourceError(f"{label}: {'.'.join(path)!r} is no list", hint="options.records names a list of records")
        position = yield from _elements(cutter, label, part)
        if position is not None:
            for name in reversed(path):
                _leave(cutter, name)
            if cutter.peek():
                raise Broken("text_after_array", cutter.here())
    except Broken as fault:
        yield Record((position or 0) + 1, None, label, fault.line, fault.reason, part, _REST)


def _enter(cutter: Cutter, label: str, above: str, name: str) -> None:
    """Go to the value of a field of the object that begins here. Raises SourceError where there is none."""
    if cutter.peek() != b"{":
        what = f"{above!r} is no object" if above else "it is no object"
        raise SourceError(f"{label}: {what}, so nothing in it is called {name!r}", hint="leave options.records out")
    cutter.step()
    seen = []
    while (key := _key(cutter)) is not None:
        if key == name:
            return
        seen.append(key)
        cutter.value(keep=False)
    known = ", ".join(key for key in seen if re.fullmatch(r"[A-Za-z_][\w-]{0,30}", key)) or "none"
    raise SourceError(f"{label}: options.records: no field is called {name!r}", hint=f"fields: {known[:200]}")


def _leave(cutter: Cutter, name: str) -> None:
    """Pass over what is left of the object that is open, where no second field may be called `name`. Raises Broken."""
    while (key := _key(cutter)) is not None:
        if key == name:
            raise Broken("duplicate_key", cutter.here())
        cutter.value(keep=False)


def _key(cutter: Cutter) -> str | None:
    """The next key of the object that is open, whose value comes next; None at its end. Raises Broken."""
    if cutter.peek() == b",":
        cutter.step()
    if cutter.peek() == b"}":
        cutter.step()
        return None
    cut = cutter.value()
    try:
        key = parse(cut.text)
    except JsonFault as fault:
        raise Broken(fault.reason, cut.line) from None
    if not isinstance(key, str) or cutter.peek() != b":":
        raise Broken("broken_json", cut.line)
    cutter.step()
    return key
