"""tool_call: the completion makes the accepted calls. Spec: {"calls": [{"f": {"a": [1], "unit": ["m", ""]}}]}.

The meaning is that of the Berkeley Function Calling Leaderboard (Patil et al. 2025): each argument lists its accepted
values, "" among them says that it may be left out, calls may come in any order, and `calls: []` says that no tool
fits, so that a call is the error. Texts are compared without case, spaces and ",./-_*^"; 1 is 1.0, but True is not 1.
Before that, arguments are checked against the tool's JSON Schema (draft 2020-12) from the row's tools.

    f(a=1)  pass     f(a=1.0, unit="M")  pass     f(a="1")  fail (tool_call.schema)     f(a=2)  fail (tool_call.value)

Where names hold dots, which OpenAI's API forbids, underscores in their place are the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.verify._calls import begun, calls_of
from corpusforge.verify._tags import Call, Malformed, functions, same_name, schema
from corpusforge.verify._verdict import Task, Verdict, failed, passed, undecided

_IGNORED: Final = re.compile(r"[ ,./\-_*^]")
_MOST: Final = 64  # calls in one completion


def check(task: Task, completion: Any) -> Verdict:
    """Pass when the calls made and the accepted ones match one to one. Raises MissingExtra without jsonschema-rs."""
    accepted = _accepted(task.spec.get("calls"))
    if accepted is None:
        return undecided("tool_call.unreadable_gold")
    try:
        made = calls_of(completion, task.tools)
    except (Malformed, ValueError, TypeError, RecursionError):
        return failed("tool_call.malformed")
    if not accepted:
        called = made or begun(completion, _names(task.tools))
        return failed("tool_call.unwanted") if called else passed("tool_call.none_fits")
    if not made:
        return failed("tool_call.no_call")
    if len(made) != len(accepted) or len(made) > _MOST:
        return failed("tool_call.count")
    if any(not any(same_name(call.name, name) for name, _ in accepted) for call in made):
        return failed("tool_call.name")
    if not all(_fits_schema(call, task.tools) for call in made if _schema_applies(call.name, accepted, task.tools)):
        return failed("tool_call.schema")
    return passed("tool_call.calls") if _matched(made, accepted) else failed("tool_call.value")


def _accepted(calls: Any) -> list[tuple[str, Mapping[str, Any]]] | None:
    """Name and accepted values of every call; None for a specification that is none."""
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return None
    listed = [
        next(iter(call.items())) if isinstance(call, Mapping) and len(call) == 1 else (None, None) for call in calls
    ]
    good = [(name, values) for name, values in listed if isinstance(name, str) and isinstance(values, Mapping)]
    return good if len(good) == len(listed) else None


def _matched(made: list[Call], accepted: list[tuple[str, Mapping[str, Any]]]) -> bool:
    """Whether every call has an accepted one of its own (bipartite matching by augmenting paths, Kuhn 1955)."""
    fits = [[at for at, (name, values) in enumerate(accepted) if _accepts(name, values, call)] for call in made]
    taken: dict[int, int] = {}

    def place(call: int, seen: set[int]) -> bool:
        for at in fits[call]:
            if at not in seen:
                seen.add(at)
                if at not in taken or place(taken[at], seen):
                    taken[at] = call
                    return True
        return False

    return all(place(call, set()) for call in range(len(made)))


def _accepts(name: str, values: Mapping[str, Any], call: Call) -> bool:
    return same_name(call.name, name) and _fields(values, call.arguments)


def _fields(accepted: Mapping[str, Any], given: Mapping[Any, Any]) -> bool:
    """Whether every given field has an accepted value, and none is missing that may not be left out."""
    if not given.keys() <= accepted.keys():
        return False
    for name, values in accepted.items():
        listed = values if isinstance(values, list) else [values]
        if name not in given:
            if not any(isinstance(value, str) and value == "" for value in listed):
                return False
        elif not any(same(given[name], value) for value in listed):
            return False
    return True


def same(given: Any, accepted: Any) -> bool:
    """Whether a value is an accepted one; objects inside accepted values list the accepted values of their fields."""
    if isinstance(given, bool) or isinstance(accepted, bool):
        return given is accepted
    if isinstance(given, (int, float)) and isinstance(accepted, (int, float)):
        return given == accepted
    if isinstance(given, str) and isinstance(accepted, str):
        return _standard(given) == _standard(accepted)
    if isinstance(given, (list, tuple)) and isinstance(accepted, (list, tuple)):
        return len(given) == len(accepted) and all(map(same, given, accepted))
    if isinstance(given, Mapping) and isinstance(accepted, Mapping):
        if accepted and all(isinstance(values, list) for values in accepted.values()):
            return _fields(accepted, given)
        return given.keys() == accepted.keys() and all(same(given[name], accepted[name]) for name in given)
    return given is None and accepted is None


def _standard(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')


def _schema_applies(made: str, accepted: list[tuple[str, Mapping[str, Any]]], tools: Sequence[Any]) -> bool:
    """A schema that an accepted call itself breaks says nothing about the calls of a model (14 of BFCL's 1,100)."""
    return all(_fits_schema(Call(made, _example(values)), tools) for name, values in accepted if same_name(made, name))


def _example(accepted: Mapping[str, Any]) -> dict[str, Any]:
    """The first accepted value of each field that is not left out."""
    firsts = {name: values[0] if isinstance(values, list) and values else values for name, values in accepted.items()}
    return {name: _inner(value) for name, value in firsts.items() if not (isinstance(value, str) and value == "")}


def _inner(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _example(value) if all(isinstance(values, list) for values in value.values()) else value
    return [_inner(one) for one in value] if isinstance(value, list) else value


def _fits_schema(call: Call, tools: Sequence[Any]) -> bool:
    """Whether the arguments obey the tool's schema; so they do where the tool has none, or a broken one."""
    stated = schema(call.name, tools)
    if stated is None:
        return True
    validator = _validator(json.dumps(stated))
    if validator is None:
        return True
    properties = stated.get("properties")
    open_ended = stated.get("additionalProperties") or stated.get("patternProperties")
    if isinstance(properties, Mapping) and not open_ended and not call.arguments.keys() <= properties.keys():
        return False
    try:
        return bool(validator.is_valid(call.arguments))
    except ValueError:  # arguments in Python's syntax that JSON does not have: a number as a key, half a character
        return False


@lru_cache(maxsize=4096)
def _validator(stated: str) -> Any:
    """Compiled once: a task is tried many times. None for a schema that is none. A $ref is never fetched."""
    if find_spec("jsonschema_rs") is None:
        raise MissingExtra("jsonschema-rs is not installed", hint="pip install 'corpusforge[verify]'")
    from jsonschema_rs import Draft202012Validator

    try:
        return Draft202012Validator(json.loads(stated), offline=True)
    except ValueError:  # its own errors are
        return None


def _names(tools: Any) -> list[str]:
    names = [function.get("name") for function in functions(tools)]
    return [name for name in names if isinstance(name, str)]
