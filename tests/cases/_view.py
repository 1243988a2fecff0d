r"""Rows as the user had them: what a case's `path` means, whichever way a row is stored.

    row     messages [{role: assistant, content: "fourth"}], extra {"batch":"0045"}, source {record_id: "004"}
    view    id "004", text "fourth", batch "0045", messages [{"role": "assistant", "content": "fourth"}]

A view is made of a row of the pipeline, or of a line of a shard as `datasets` (or any JSON reader) gives it back.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from corpusforge.sample import KINDS, MESSAGE_FIELDS
from corpusforge.stages.shard import form_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

ABSENT: Final = object()
"""What a path gives where there is nothing, not even null."""
_SIDES: Final = ("chosen", "rejected", "completion")
# Columns of shards: all but `extra` say what the pipeline, not the record, says of a row.
_SHARD: Final = frozenset(name for kind in KINDS for name in form_schema(f"{kind}_images").names)
_STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


@dataclass
class View:
    """One row as its user would write it down."""

    id: str
    row_id: str
    content_id: str
    messages: list[dict[str, Any]]
    fields: dict[str, Any] = field(default_factory=dict)  # what only some rows have, and all of `extra`
    facts: dict[str, Any] = field(default_factory=dict)  # what the pipeline says of the row: license, origin, …

    def get(self, path: str, like: Any = None) -> Any:
        """What stands at a path such as `messages[1].tool_calls[0]`; ABSENT for nothing.

        `like` is a value of the type that is asked for: a conversation of one turn can be a text or a list.
        """
        if path in self.fields:
            return _as(self.fields[path], like)
        steps = [int(number) if number else name for number, name in _STEP.findall(path)]
        if "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".") != path:
            raise ValueError(f"the path {path!r} is not understood")
        value = self._top(str(steps[0]), like if len(steps) == 1 else None)
        for step in steps[1:]:
            if isinstance(step, int):
                value = value[step] if isinstance(value, list) and step < len(value) else ABSENT
            else:
                value = value.get(step, ABSENT) if isinstance(value, dict) else ABSENT
        return value

    def _top(self, name: str, like: Any) -> Any:
        if name == "id":
            return self.id
        if name in self.fields:
            return _as(self.fields[name], like)
        if name in ("messages", "conversations"):
            return self.messages
        if name in ("text", "content") and len(self.messages) == 1:
            return self.messages[0].get("content")
        if name in ("prompt", "question"):
            return _as([m for m in self.messages if m["role"] != "assistant"], like)
        if name in ("completion", "answer", "response") and self.messages and self.messages[-1]["role"] == "assistant":
            return _as(self.messages[-1:], like)
        return ABSENT

    def whole(self) -> dict[str, Any]:
        """Everything that the row holds of its record, for comparing rows with each other."""
        return {"id": self.id, "messages": self.messages, **self.fields}

    def says(self) -> str:
        """All of it as one text."""
        return json.dumps(self.whole(), ensure_ascii=False)


def _as(value: Any, like: Any) -> Any:
    """A conversation of one plain turn as its text, where a text is asked for."""
    if isinstance(like, str) and isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        return value[0].get("content")
    return value


def of_rows(table: pa.Table) -> list[View]:
    """Views of rows in the row format."""
    return [_of_row(row) for row in table.to_pylist()]


def _of_row(row: dict[str, Any]) -> View:
    fields: dict[str, Any] = json.loads(row["extra"]) if row["extra"] else {}
    for side in ("chosen", "rejected"):
        if row[side] is not None:
            fields[side] = [_message(message) for message in row[side]]
    if row["verifier"]:
        spec = json.loads(row["verifier"]["spec"])
        fields["verifier"] = {"kind": row["verifier"]["kind"], **spec}
        if "answer" in spec:
            fields.setdefault("answer", spec["answer"])
    if row["tools"]:
        fields["tools"] = json.loads(row["tools"])
    if row["rating"]:
        fields.setdefault("rating", row["rating"]["value"])
    if row["images"]:
        fields["images"] = row["images"]
    facts = {**row["source"], **{k: row[k] for k in ("kind", "domain", "language", "cluster")}}
    facts |= {k: row[k] for k in ("pii", "difficulty", "tokens", "contamination", "split", "copies") if k in row}
    own = row["source"]["record_id"]
    messages = [_message(message) for message in row["messages"] or ()]
    return View(own if own is not None else row["row_id"], row["row_id"], row["content_id"], messages, fields, facts)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as chat data has it: nulls away, JSON opened, unknown fields in their place."""
    made = {name: message[name] for name in MESSAGE_FIELDS if message.get(name) is not None}
    extra = json.loads(made.pop("extra", "null")) or {}
    if "reasoning" in made:
        made["reasoning_content"] = made.pop("reasoning")
    if "tool_calls" in made:
        made["tool_calls"] = json.loads(made["tool_calls"])
    if "parts" in made:
        made["content"] = json.loads(made.pop("parts"))
    return made | extra


def of_lines(lines: Iterable[Mapping[str, Any]]) -> list[View]:
    """Views of the lines of shards, as a JSON reader or `datasets` gives them."""
    return [_of_line(line) for line in lines]


def _of_line(line: Mapping[str, Any]) -> View:
    inner = line.get("extra")
    fields: dict[str, Any] = json.loads(inner) if isinstance(inner, str) else dict(inner or {})
    for side in _SIDES:
        if line.get(side) is not None:
            fields[side] = line[side]
    if line.get("verifier_spec"):
        spec = json.loads(line["verifier_spec"])
        fields["verifier"] = {"kind": line["verifier_kind"], **spec}
        if "answer" in spec:
            fields.setdefault("answer", spec["answer"])
    if line.get("tools"):
        fields["tools"] = json.loads(line["tools"]) if isinstance(line["tools"], str) else line["tools"]
    if line.get("rating") is not None:
        fields.setdefault("rating", line["rating"])
    messages = line["messages"] if line.get("messages") is not None else line.get("prompt") or []
    facts = {name: line[name] for name in _SHARD - {"messages", "extra"} if name in line}
    fields |= {name: value for name, value in line.items() if name not in _SHARD}
    own = line["record_id"] if line["record_id"] is not None else line["row_id"]
    return View(own, line["row_id"], line["content_id"], messages, fields, facts)


def same(found: Any, wanted: Any) -> bool:
    """Whether two JSON values are equal: true is not 1, "1" is not 1, 2^64+1 is not 2^64, order of keys is free."""
    if isinstance(found, bool) or isinstance(wanted, bool) or found is None or wanted is None:
        return found is wanted
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    numbers = isinstance(found, (int, float)), isinstance(wanted, (int, float))
    return numbers[0] == numbers[1] and type(found) in (int, float, str) and found == wanted


def has_digits(found: Any, digits: str) -> bool:
    """Whether a number (or the text that holds it) is exactly these digits."""
    if isinstance(found, bool) or not isinstance(found, (int, float, str)):
        return False
    try:
        return Decimal(found if isinstance(found, str) else repr(found)) == Decimal(digits)
    except InvalidOperation:
        return False
