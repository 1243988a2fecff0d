r"""Tool calls and tool schemas of any dialect to the one form that chat templates read.

    {"name": "f", "parameters": {"a": 1}}                                   a bare call; `input` and `args` say the same
    {"id": "c1", "function": {"name": "f", "arguments": "{\"a\": 1}"}}      OpenAI's, arguments as text
        -> {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": 1}}}

    {"name": "f", "description": "…", "input_schema": {…}}                  Anthropic's; MCP's `inputSchema` as well
        -> {"type": "function", "function": {"name": "f", "description": "…", "parameters": {…}}}

Arguments that are a JSON text become the object that they mean; where they are none, they stay text and the row gets
the note `tool_arguments_not_json` or `tool_arguments_not_an_object`. A call without a name is none.
"""

from __future__ import annotations

import marshal
from typing import Any, Final

from corpusforge.shapes._draft import Message, Note, Unrepresentable, json_text, maybe_json
from corpusforge.text.jsontext import JsonFault, parse_text

_ARGUMENTS: Final = ("arguments", "parameters", "input", "args")
_BARE_TYPES: Final = ("function", "function_call", "tool_call", "tool_use")  # what dialects call a bare call
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema")


def said_as_call(content: str, notes: list[Note]) -> Message:
    """A turn of the role `function_call`, whose text is the call (or a list of calls)."""
    try:
        calls = parse_text(content)
    except JsonFault:
        raise Unrepresentable("tool_call_not_json") from None
    calls = calls if isinstance(calls, list) else [calls]
    return {"role": "assistant", "tool_calls": json_text(tool_calls(calls, notes))}


def tool_calls(calls: Any, notes: list[Note]) -> list[dict[str, Any]]:
    """Calls as `{"id"?, "type": "function", "function": {"name", "arguments": {…}}}`. Raises Unrepresentable."""
    if not isinstance(calls, list):
        raise Unrepresentable("tool_calls_not_a_list")
    return [_call(maybe_json(call), notes) for call in calls]


def _call(call: Any, notes: list[Note]) -> dict[str, Any]:
    if not isinstance(call, dict):
        raise Unrepresentable("tool_call_not_an_object")
    wrapped = isinstance(call.get("function"), dict)
    if not wrapped and call.get("function") is not None:
        raise Unrepresentable("tool_call_without_name")
    function = call["function"] if wrapped else call
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise Unrepresentable("tool_call_without_name")
    key = next((key for key in _ARGUMENTS if function.get(key) is not None), _ARGUMENTS[0])
    made: dict[str, Any] = {"id": call["id"]} if call.get("id") is not None else {}
    kind = call.get("type")
    made["type"] = "function" if kind is None or (not wrapped and kind in _BARE_TYPES) else kind
    made["function"] = {"name": name, "arguments": _arguments(function.get(key), notes)}
    if wrapped:
        made["function"] |= {k: v for k, v in function.items() if v is not None and k not in ("name", key)}
    mine = ("id", "type", "function") if wrapped else ("id", "type", "function", "name", key)
    made |= {k: v for k, v in call.items() if v is not None and k not in mine}
    return made


def _arguments(given: Any, notes: list[Note]) -> Any:
    if given is None or isinstance(given, dict):
        return given or {}
    if not isinstance(given, str):
        notes.append(("tool_arguments_not_an_object", {}))
        return json_text(given)
    if not given.strip():
        return {}
    try:
        value = parse_text(given)
    except JsonFault:
        notes.append(("tool_arguments_not_json", {}))
        return given
    if not isinstance(value, dict):
        notes.append(("tool_arguments_not_an_object", {}))
        return given
    return value


_MOST: Final = 1000
_known: dict[bytes, str] = {}  # schemas that were seen: in most sources many records have the same

_TYPES: Final = {
    "dict": "object",
    "hashmap": "object",
    "map": "object",
    "float": "number",
    "double": "number",
    "int": "integer",
    "long": "integer",
    "short": "integer",
    "byte": "integer",
    "bool": "boolean",
    "str": "string",
    "char": "string",
    "list": "array",
    "tuple": "array",
    "arraylist": "array",
    "set": "array",
}
_JSON_TYPES: Final = {"object", "number", "integer", "boolean", "string", "array", "null"}


def tool_schemas(value: Any) -> str | None:
    """Tool schemas as JSON text of `[{"type": "function", "function": {…}}]`; None for none. Raises Unrepresentable."""
    value = maybe_json(value)
    if value is None or value in ([], "", {}):
        return None
    try:
        given = marshal.dumps(value, 2)
    except ValueError:  # what is no JSON value
        return _schemas(value)
    if given not in _known:
        if len(_known) >= _MOST:
            _known.clear()
        _known[given] = _schemas(value)
    return _known[given]


def _schemas(value: Any) -> str:
    tools = value if isinstance(value, list) else [value]
    return json_text([_tool(maybe_json(tool)) for tool in tools])


def _tool(tool: Any) -> dict[str, Any]:
    if not isinstance(tool, dict):
        raise Unrepresentable("tool_not_an_object")
    if isinstance(tool.get("function"), dict):
        return {"type": "function", **tool, "function": _function(tool["function"])}
    if tool.get("type", "function") != "function" and not any(name in tool for name in _SCHEMAS):
        return tool  # a provider's built-in tool, such as {"type": "web_search"}
    return {"type": "function", "function": _function({k: v for k, v in tool.items() if k != "type"})}


def _function(function: dict[str, Any]) -> dict[str, Any]:
    key = next((name for name in _SCHEMAS if isinstance(maybe_json(function.get(name)), dict)), None)
    if key is None:
        return function
    inner = maybe_json(function[key])
    return {("parameters" if k == key else k): (schema(inner) if k == key else v) for k, v in function.items()}


def schema(value: dict[str, Any]) -> dict[str, Any]:
    """A JSON Schema whose types are JSON Schema's own: Python's and Java's names mapped, `any` left out."""
    made: dict[str, Any] = {}
    for key, inner in value.items():
        if key == "type" and isinstance(inner, str):
            name = _TYPES.get(inner.lower(), inner.lower())
            if name in _JSON_TYPES:
                made[key] = name
            elif name != "any":
                made[key] = inner
        elif key in ("properties", "$defs", "definitions") and isinstance(inner, dict):
            made[key] = {name: schema(one) if isinstance(one, dict) else one for name, one in inner.items()}
        elif key in ("items", "additionalProperties") and isinstance(inner, dict):
            made[key] = schema(inner)
        elif key in ("anyOf", "oneOf", "allOf") and isinstance(inner, list):
            made[key] = [schema(one) if isinstance(one, dict) else one for one in inner]
        else:
            made[key] = inner
    return made
