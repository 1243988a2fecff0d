"""A row as a list of texts, and back: plain fields, and the strings inside JSON.

Recognisers must not see JSON syntax, and a replacement must not break it. So a JSON text is cut into its string
literals (keys too), each decoded; a changed one is encoded again and put back between the bytes that surrounded it,
which stay as they were: numbers, key order, spacing. JSON inside a string inside JSON is cut in the same way.

    {"to":"zoe@corp.com","n":1.0}   ->   leaves "to", "zoe@corp.com"   ->   {"to":"…@example.org","n":1.0}
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge.pii.triage import JSON_COLUMNS, MESSAGE_COLUMNS, MESSAGE_TEXTS, STRUCT_TEXTS
from corpusforge.text.jsontext import has_surrogate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LITERAL: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?', re.DOTALL)
_DEEPEST: Final = 4

Steps = tuple[int, ...]


@dataclass(frozen=True)
class Leaf:
    """One text of a row. `steps` are literal numbers inside JSON, `lead` the key that a JSON value belongs to.

    `key` tells that the text is such a key itself.
    """

    path: str
    column: str
    message: int
    field: str
    steps: Steps
    text: str
    lead: str = ""
    key: bool = False

    @property
    def address(self) -> tuple[str, int, str]:
        """Where the text of the whole field stands in the row."""
        return self.column, self.message, self.field


def leaves(row: Mapping[str, Any]) -> list[Leaf]:
    """Every text of a row (a dict of the schema), in a fixed order."""
    found: list[Leaf] = []
    for column in MESSAGE_COLUMNS:
        for number, message in enumerate(row.get(column) or ()):
            for field in MESSAGE_TEXTS:
                if message.get(field):
                    found += _of(f"{column}[{number}].{field}", column, number, field, message[field])
    for column in JSON_COLUMNS:
        if row.get(column):
            found += _of(column, column, -1, "", row[column])
    for column, field in STRUCT_TEXTS:
        if text := (row.get(column) or {}).get(field):
            found += _of(f"{column}.{field}", column, -1, field, text)
    return found


def replace(row: dict[str, Any], changed: Mapping[tuple[str, int, str], Mapping[Steps, str]]) -> None:
    """Put new texts into a row: per address, the new text of each leaf by its steps."""
    for (column, message, field), texts in changed.items():
        holder = row[column][message] if message >= 0 else row[column] if field else row
        name = field or column
        holder[name] = rebuild(holder[name], texts)


def rebuild(text: str, texts: Mapping[Steps, str]) -> str:
    """The field's text with the leaves at `texts` replaced."""
    if () in texts:
        return texts[()]
    pieces, last = [], 0
    inner: dict[int, dict[Steps, str]] = {}
    for steps, new in texts.items():
        inner.setdefault(steps[0], {})[steps[1:]] = new
    for number, match in enumerate(_LITERAL.finditer(text)):
        if number in inner:
            start, end = match.start(), match.start() + _literal_length(match)
            new = rebuild(json.loads(text[start:end], strict=False), inner[number])
            pieces += [text[last:start], json.dumps(new, ensure_ascii=has_surrogate(new))]
            last = end
    return "".join([*pieces, text[last:]])


def _literal_length(match: re.Match[str]) -> int:
    return len(match.group()) - len(match.group(1) or "")


def _of(path: str, column: str, message: int, field: str, text: str) -> Iterator[Leaf]:
    if not is_json(text):
        yield Leaf(path, column, message, field, (), text)
        return
    for steps, part, lead, key in _parts(text, (), "", key=False):
        where = path + "".join(f"#{step}" for step in steps)
        yield Leaf(where, column, message, field, steps, part, lead, key)


def _parts(text: str, steps: Steps, lead: str, *, key: bool) -> Iterator[tuple[Steps, str, str, bool]]:
    if len(steps) >= _DEEPEST or not is_json(text):
        yield steps, text, lead, key
        return
    name = lead
    for number, match in enumerate(_LITERAL.finditer(text)):
        length = _literal_length(match)
        decoded = json.loads(match.group()[:length], strict=False)
        if match.group(1):
            yield from _parts(decoded, (*steps, number), "", key=True)
            name = f"{decoded}: "
        else:
            yield from _parts(decoded, (*steps, number), name, key=False)


def is_json(text: str) -> bool:
    """Whether `text` is a JSON object or array. Its numbers may have any number of digits."""
    stripped = text.strip()
    if len(stripped) < 2 or stripped[0] + stripped[-1] not in ("{}", "[]"):
        return False
    try:
        json.loads(stripped, strict=False, parse_int=len)
    except (ValueError, RecursionError):
        return False
    return True
