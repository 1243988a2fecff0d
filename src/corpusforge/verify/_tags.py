"""Tool calls between the tags of a model family, one `Form` each.

    <tool_call><function=f><parameter=a>1</parameter></function></tool_call>                        Qwen3-Coder
    <tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value></tool_call>                            GLM-4.5, 4.6
    <minimax:tool_call><invoke name="f"><parameter name="a">1</parameter></invoke>…                 MiniMax-M2
    <｜tool▁call▁begin｜>function<｜tool▁sep｜>f and {"a": 1} in a fenced block<｜tool▁call▁end｜>      DeepSeek-V3, R1
    <｜tool▁call▁begin｜>f<｜tool▁sep｜>{"a": 1}<｜tool▁call▁end｜>                                    DeepSeek-V3.1
    <|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>           Kimi-K2
    [TOOL_CALLS]f[ARGS]{"a": 1}                                                                     Mistral, since v11
    <|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>               gpt-oss

The first three have no types: a value is a text, and what it stands for is told by the tool's JSON Schema, as in those
models' own parsers. Without one it is JSON where it can be, else a Python literal, else the text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    Typed = Callable[[str, str, str], Any]
    """Of a tool, an argument and a text: the value."""


class Call(NamedTuple):
    """A call: the tool's name and its arguments by name."""

    name: str
    arguments: dict[str, Any]


class Malformed(ValueError):
    """A call was begun, but cannot be read."""


class Form(NamedTuple):
    """How a model family writes its calls."""

    sign: re.Pattern[str]
    call: re.Pattern[str]
    around: re.Pattern[str]
    read: Callable[[re.Match[str], Typed], Call]


def tagged(text: str, typed: Typed, begun: re.Pattern[str]) -> list[Call] | None:
    """The calls of a text in one of the forms; None where it has none. Raises Malformed for half a call."""
    form = next((form for form in _FORMS if form.sign.search(text)), None)
    if form is None:
        return None
    made, rest = list(form.call.finditer(text)), form.call.sub("", text)
    if not made or form.sign.search(rest) or begun.search(form.around.sub("", rest)):
        raise Malformed("half a call, or calls in two forms")
    return [form.read(match, typed) for match in made]


def bare(block: str) -> Call | None:
    """A call without arguments as GLM writes it: the name alone."""
    return Call(block, {}) if re.fullmatch(_NAME, block) else None


def functions(tools: Any) -> list[Mapping[str, Any]]:
    """What the tools say of their functions; what is no list of tools says nothing."""
    listed = tools if isinstance(tools, (list, tuple)) else []
    found = [tool.get("function", tool) for tool in listed if isinstance(tool, Mapping)]
    return [function for function in found if isinstance(function, Mapping)]


def schema(name: str, tools: Any) -> Mapping[str, Any] | None:
    """The JSON Schema of a tool's arguments; None where there is no such tool, or no schema."""
    for function in functions(tools):
        if same_name(name, str(function.get("name"))):
            found = function.get("parameters")
            return found if isinstance(found, Mapping) else None
    return None


def same_name(made: str, accepted: str) -> bool:
    """Whether two names are one: with `_` in place of `.`, which OpenAI's API forbids."""
    return made == accepted or made == accepted.replace(".", "_")


def by_schema(tools: Any) -> Typed:
    """Reads the text of an argument by its type in the tools."""

    def typed(name: str, argument: str, text: str) -> Any:
        properties = (schema(name, tools) or {}).get("properties")
        types = _types(properties.get(argument) if isinstance(properties, Mapping) else None)
        if types == {"string"}:
            return text
        value = _value(text.strip())
        if isinstance(value, _OTHERS) or value is None:
            fits = types - {"string"}
            return value if "string" not in types or any(_is(value, one) for one in fits) else text
        return value if not types else text

    return typed


def read_json(text: str) -> Any:
    """A JSON text as a value. Raises Malformed where a name is given twice."""
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Malformed("a name is given twice")
    return fields


def _types(stated: Any) -> set[str]:
    """The types that a schema allows; none where it does not say."""
    if not isinstance(stated, Mapping):
        return set()
    named = stated.get("type")
    if isinstance(named, str):
        return {named.lower()}
    if isinstance(named, Sequence):
        return {one.lower() for one in named if isinstance(one, str)}
    choices = stated.get("anyOf") or stated.get("oneOf")
    if isinstance(choices, Sequence):
        return set().union(*map(_types, choices))
    listed = stated.get("enum")
    texts = isinstance(listed, Sequence) and listed and all(isinstance(one, str) for one in listed)
    return {"string"} if texts else set()


def _value(text: str) -> Any:
    """What a text stands for: JSON, else a Python literal that JSON has as well, else the text."""
    try:
        return read_json(text)
    except Malformed:
        raise
    except (ValueError, RecursionError):
        pass
    try:
        value = ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, (*_OTHERS, str, type(None))) else text


def _is(value: Any, named: str) -> bool:
    """Whether a value is of a type of JSON Schema, or of BFCL's."""
    if isinstance(value, bool) or named == "boolean":
        return isinstance(value, bool) and named == "boolean"
    return isinstance(value, _PYTHON.get(named, ()))


_OTHERS: Final = (bool, int, float, list, dict)  # what a value can be but a text
_PYTHON: Final[dict[str, Any]] = {
    "integer": int,
    "number": (int, float),
    "float": (int, float),
    "array": list,
    "tuple": list,
    "object": dict,
    "dict": dict,
    "null": type(None),
}
_NAME: Final = r"[\w.-]{1,200}"
_PARAMETER: Final = re.compile(
    r"\s*<parameter(?:=(?P<key>[^<>\n]{1,200})| name=\"(?P<named>[^<>\"\n]{1,200})\")>"
    r"(?P<value>(?:(?!<parameter[= ]).)*?)</parameter>\s*",
    re.DOTALL,
)
_PAIR: Final = re.compile(
    r"\s*<arg_key>(?P<key>[^<>]{1,200})</arg_key>(?:\\n|\s)*<arg_value>(?P<value>(?:(?!<arg_key>).)*?)</arg_value>\s*",
    re.DOTALL,
)


def _fields(pairs: re.Pattern[str], body: str, name: str, typed: Typed) -> dict[str, Any]:
    """The arguments between the tags of a body that holds nothing else."""
    fields: dict[str, Any] = {}
    at = 0
    while at < len(body) and (match := pairs.match(body, at)):
        key = next(one for one in match.groups() if one).strip()
        if key in fields:
            raise Malformed("an argument is given twice")
        text = match["value"]
        text = text.strip() if pairs is _PAIR else text.removeprefix("\n").removesuffix("\n")
        fields[key] = typed(name, key, text)
        at = match.end()
    if body[at:].strip():
        raise Malformed("something else between the tags")
    return fields


def _function(match: re.Match[str], typed: Typed) -> Call:
    """Parameters in tags, or one object (`<function=f>{"a": 1}</function>`, as Llama writes it)."""
    name, body = match["name"], match["body"]
    if body.lstrip().startswith(("{", "[")):
        return Call(name, _object(body))
    return Call(name, _fields(_PARAMETER, body, name, typed))


def _glm(match: re.Match[str], typed: Typed) -> Call:
    return Call(match["name"], _fields(_PAIR, match["body"], match["name"], typed))


def _deepseek(match: re.Match[str], _typed: Typed) -> Call:
    fenced = _FENCED.fullmatch(match["body"]) if match["name"] == "function" else None
    return Call(fenced["name"], _object(fenced["body"])) if fenced else _plain(match, _typed)


def _plain(match: re.Match[str], _typed: Typed) -> Call:
    return Call(match["name"], _object(match["body"]))


def _object(text: str) -> dict[str, Any]:
    try:
        value = read_json(text) if text.strip() else {}
    except (ValueError, RecursionError):
        raise Malformed("arguments are no JSON") from None
    if not isinstance(value, dict):
        raise Malformed("arguments are no object")
    return value


_FENCED: Final = re.compile(rf"\s*(?P<name>{_NAME})\s*```(?:json)?[ \t]*\n(?P<body>.*?)\n?[ \t]*```\s*", re.DOTALL)
_FORMS: Final = (
    Form(
        re.compile(r"<｜tool▁call▁begin｜>"),
        re.compile(
            rf"<｜tool▁call▁begin｜>\s*(?P<name>{_NAME})\s*<｜tool▁sep｜>(?P<body>(?:(?!<｜tool▁).)*?)<｜tool▁call▁end｜>",
            re.DOTALL,
        ),
        re.compile(r"<｜tool▁calls▁(?:begin|end)｜>"),
        _deepseek,
    ),
    Form(
        re.compile(r"<\|tool_call_begin\|>"),
        re.compile(
            rf"<\|tool_call_begin\|>\s*(?:functions\.)?(?P<name>{_NAME}?)(?::\d{{1,6}})?\s*<\|tool_call_argument_begin\|>"
            r"(?P<body>(?:(?!<\|tool_call).)*?)<\|tool_call_end\|>",
            re.DOTALL,
        ),
        re.compile(r"<\|tool_calls_section_(?:begin|end)\|>"),
        _plain,
    ),
    Form(
        re.compile(r" to=functions\."),
        re.compile(
            rf"(?:<\|start\|>assistant)?(?:<\|channel\|>commentary)? to=functions\.(?P<name>{_NAME})"
            r"(?:<\|channel\|>commentary)?(?:\s*(?:<\|constrain\|>)?\s*json)?\s*<\|message\|>"
            r"(?P<body>(?:(?!<\|(?:start|channel|message|end)\|>).)*?)(?:<\|call\|>|\Z)",
            re.DOTALL,
        ),
        re.compile(r"(?!)"),
        _plain,
    ),
    Form(
        re.compile(rf"\[ARGS\]|\[TOOL_CALLS\]\s*{_NAME}\s*(?:\[|\{{)"),
        re.compile(
            rf"\[TOOL_CALLS\]\s*(?P<name>{_NAME})\s*(?:\[CALL_ID\]\w{{1,64}})?(?:\[ARGS\]|(?=\{{))"
            r"(?P<body>(?:(?!\[TOOL_CALLS\]).)*?)(?:</s>\s*\Z|(?=\[TOOL_CALLS\])|\Z)",
            re.DOTALL,
        ),
        re.compile(r"(?!)"),
        _plain,
    ),
    Form(
        re.compile(r"<function="),
        re.compile(rf"<function=(?P<name>{_NAME})>(?P<body>(?:(?!<function=).)*?)</function>", re.DOTALL),
        re.compile(r"</?tool_call>"),
        _function,
    ),
    Form(
        re.compile(r"<invoke name="),
        re.compile(rf"<invoke name=\"(?P<name>{_NAME})\">(?P<body>(?:(?!<invoke ).)*?)</invoke>", re.DOTALL),
        re.compile(r"</?minimax:tool_call>|</?function_calls>"),
        _function,
    ),
    Form(
        re.compile(r"<arg_key>"),
        re.compile(rf"<tool_call>\s*(?P<name>{_NAME})\s*(?P<body>(?:(?!<tool_call>).)*?)</tool_call>", re.DOTALL),
        re.compile(r"(?!)"),
        _glm,
    ),
)
