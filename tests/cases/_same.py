"""What a row must still hold of its record, and what changes of form are no changes.

The documented ones: an id is text; ShareGPT's turns become messages with the usual role names; a list of plain text
parts is their text; tool arguments that are a JSON text become the object that they mean; a message's null fields are
absent; content that is null is "" in a shard; a number that `datasets` cannot hold is a text of the same digits there,
which the manifest lists.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.cases._view import ABSENT, same

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.cases._view import View

_ROLES = {"human": "user", "gpt": "assistant", "bot": "assistant", "function": "tool", "observation": "tool"}


def differences(view: View, record: Mapping[str, Any], inexact: frozenset[str] = frozenset()) -> Iterator[str]:
    """How a row differs from the record that it was made of. `inexact`: digits that may be text."""
    for name, wanted in record.items():
        found = view.get(name, wanted)
        if name == "id":
            found, wanted = str(found), str(wanted)
        if name in ("messages", "conversations", "chosen", "rejected") and isinstance(wanted, list):
            wanted = [_message(one) for one in wanted]
        if found is ABSENT and wanted is None:
            continue
        if not same(_plain(found, inexact), _plain(wanted, frozenset())):
            yield f"{view.id!r}: {name} is {'absent' if found is ABSENT else 'another'}"
    for name in sorted(set(view.fields) - set(record) - {"answer", "rating"}):
        yield f"{view.id!r}: has {name}, which the record has not"


def canonical(record: Mapping[str, Any]) -> list[Any] | None:
    """The messages of a record in the canonical form; None for one that is no conversation."""
    turns = record.get("messages", record.get("conversations"))
    return [_message(turn) for turn in turns] if isinstance(turns, list) else None


def _message(turn: Any) -> Any:
    """A turn in the canonical form."""
    if not isinstance(turn, dict):
        return turn
    made = {key: value for key, value in turn.items() if value is not None}
    if "from" in made and "role" not in made:
        made["role"] = made.pop("from")
        made["content"] = made.pop("value", "")
    made["role"] = _ROLES.get(made.get("role", ""), made.get("role"))
    parts = made.get("content")
    if isinstance(parts, list) and all(isinstance(p, dict) and p.keys() == {"type", "text"} for p in parts):
        made["content"] = "".join(part["text"] for part in parts)
    if "tool_calls" in made:
        made["tool_calls"] = [_call(call) for call in made["tool_calls"]]
    return made


def _call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        return call
    return call if not isinstance(arguments, dict) else {**call, "function": {**function, "arguments": arguments}}


def _plain(value: Any, inexact: frozenset[str]) -> Any:
    """The value with digits that are held as text as numbers again."""
    if isinstance(value, str) and value in inexact:
        return json.loads(value)
    if isinstance(value, dict):
        return {key: _plain(inner, inexact) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, inexact) for inner in value]
    return value
