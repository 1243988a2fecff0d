"""Places inside a record: what stands there, the record without it, and all the places that a record has.

    data.q             the field `q` of the object `data`
    turns[0].text      the text of the first turn (`turns.0.text` says the same)
    turns[*].text      the texts of all turns, as a list

A list or object that is stored as JSON text (a CSV cell, a Parquet column of another tool) is looked into as well. A
field whose own name holds dots is found under that name first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from corpusforge.shapes._draft import maybe_json

EVERY: Final = "*"
Step = str | int
_BRACKET: Final = re.compile(r"\[(\d+|\*)\]")
_DEEPEST: Final = 5  # levels of a record whose places are told in a message
_MOST: Final = 300  # places told of one record


@lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    """A path as its steps: names, numbers in brackets as ints, `[*]` as EVERY. Raises ValueError for stray brackets."""
    found: list[Step] = []
    for part in path.split("."):
        name, *inner = _BRACKET.split(part)
        brackets = [(EVERY if one == EVERY else int(one)) for one in inner[::2]]
        if any(inner[1::2]) or "[" in name or "]" in name or not (name or brackets):
            raise ValueError(f"{path!r} is no path; write data.q, turns[0].text or turns[*].text")
        found += [name, *brackets] if name else brackets
    return tuple(found)


def lookup(value: Any, path: str) -> Any:
    """What stands at a path; None where nothing does. `[*]` gives a list, in which a missing piece is None."""
    if isinstance(value, Mapping) and path in value:
        return value[path]
    return _walk(value, steps(path))


def _walk(value: Any, left: tuple[Step, ...]) -> Any:
    for number, step in enumerate(left):
        value = maybe_json(value)
        if step == EVERY:
            if not isinstance(value, list):
                return None
            inner = [_walk(one, left[number + 1 :]) for one in value]
            if EVERY not in left[number + 1 :]:
                return inner
            return [piece for one in inner if isinstance(one, list) for piece in one]
        value = _step(value, step)
        if value is None:
            return None
    return value


def _step(value: Any, step: Step) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    if isinstance(value, list) and (isinstance(step, int) or (step.isascii() and step.isdigit())):
        return value[int(step)] if int(step) < len(value) else None
    return None


def without(record: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The record without what stands at a path of names, or at `name[*]`; other paths leave it as it is.

    The objects on the way are copied, and go as well where nothing is left in them.
    """
    made = dict(record)
    if path in made:
        del made[path]
        return made
    left = steps(path)
    left = left[:-1] if left[-1] == EVERY else left
    if all(isinstance(step, str) and step != EVERY for step in left):
        _remove(made, [str(step) for step in left])
    return made


def _remove(made: dict[str, Any], names: list[str]) -> None:
    first, *rest = names
    if not rest:
        made.pop(first, None)
        return
    inner = maybe_json(made.get(first))
    if isinstance(inner, Mapping):
        inner = dict(inner)
        _remove(inner, rest)
        made[first] = inner
        if not inner:
            del made[first]


def places(value: Any, before: str = "", depth: int = _DEEPEST) -> Iterator[str]:
    """Every path that leads to something in a record, down to five levels."""
    value = maybe_json(value)
    if isinstance(value, Mapping) and depth:
        for name, inner in list(value.items())[:_MOST]:
            here = f"{before}.{name}" if before else str(name)
            yield here
            yield from places(inner, here, depth - 1)
    elif isinstance(value, list) and value and depth:
        for one in value[:3]:
            yield from places(one, f"{before}[*]", depth - 1)
