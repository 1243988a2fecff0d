"""What a record says of itself: its own id, its licence, and what it was made from.

{"uuid": "a7", "license": "MIT", "licence": "CC-BY-4.0", "parents": ["s#1", null]}
->  id a7      licences MIT and CC-BY-4.0      parents s#1, and one that cannot be read
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.text.jsontext import maybe_json

if TYPE_CHECKING:
    from collections.abc import Mapping

IDS: Final = ("id", "uuid", "_id", "task_id", "message_tree_id", "message_id", "question_id", "key")
"""Names under which records have their id, the first that holds a text or an integer counts."""
_EXACT: Final = 2**53  # below it a double holds every whole number


def own_id(value: Mapping[str, Any], stated: Mapping[str, Any]) -> str | None:
    """The user's own id, as text: what `fields` names, else the first usual id field that holds a text or a number."""
    named = stated.get("id")
    if named is None:
        for name in IDS:
            if isinstance(value.get(name), (str, int)):
                named = value[name]
                break
    return str(named) if is_id(named) else None


def is_id(value: Any) -> bool:
    """Whether a value can be an id: a text or an integer."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def licence(value: Mapping[str, Any], stated: Mapping[str, Any]) -> Any:
    """What `fields` says is the licence, else what the record says under either spelling; None where that is blank."""
    mapped = _unless_blank(stated.get("license"))
    if mapped is not None:
        return mapped
    said = [one for name in ("license", "licence") if (one := _unless_blank(value.get(name))) is not None]
    return said if len(said) > 1 else said[0] if said else None


def _unless_blank(said: Any) -> Any:
    return None if isinstance(said, str) and not said.strip() else said


def parents(value: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[list[str], int]:
    """Row ids, or own ids, of what a record says it was made from, and how many of them are not readable."""
    named = stated.get("parents")
    named = maybe_json(value.get("parents") if named is None else named)
    if named is None:
        return [], 0
    given = named if isinstance(named, list) else [named]
    read = [_parent(one) for one in given]
    return [one for one in read if one], read.count(None)


def _parent(one: Any) -> str | None:
    """One parent's id, empty where the cell is; None where it is neither a text nor a whole number."""
    if isinstance(one, str):
        return one.strip()
    if isinstance(one, float) and one.is_integer() and abs(one) < _EXACT:  # a column of integers that has nulls
        one = int(one)
    return str(one) if is_id(one) else None


def text(value: Any) -> str | None:
    """The value where it is a text that is not empty."""
    return value if isinstance(value, str) and value else None
