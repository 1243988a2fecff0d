"""The tool calls that a completion makes, in whatever common form it makes them.

    {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]}    OpenAI's messages
    <tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>                                  Hermes, Qwen
    <|python_tag|>{"name": "f", "parameters": {"a": 1}}    <|python_start|>[f(a=1)]<|python_end|>       Llama
    [TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]    <|tool_call|>…    <function_call>…          Mistral, Granite
    a json block between three backticks, or nothing but JSON: an object or a list of them       Llama, Mistral
    [f(a=1), g(b="x")]                                                                           BFCL's prompt form
    the tags of Qwen3-Coder, GLM, MiniMax, DeepSeek, Kimi, Mistral and gpt-oss                   see `_tags`

each give Call("f", {"a": 1}); arguments may be JSON text. Python syntax is parsed, never evaluated. Reasoning before
`</think>` makes no calls.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from corpusforge.verify._final import spoken
from corpusforge.verify._tags import Call, Malformed, bare, by_schema, read_json, tagged
from corpusforge.verify._verdict import text_of

_TAGGED: Final = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)
_FENCED: Final = re.compile(r"```(?:json|python|tool_call|tool_code)?[ \t]*\n(.*?)```", re.DOTALL)
_PYTHON: Final = re.compile(r"\[?\s*[A-Za-z_][\w.]*\(")
_STRAY: Final = re.compile(r"\\(?![\\'\"abfnrtvxNuU0-7\n])")  # what Python would warn about, and keep
_NAMES: Final = {"true": True, "false": False, "null": None}
_MARKED: Final = re.compile(r"<\|python_(?:tag|start)\|>|\[TOOL_CALLS\]|<\|tool_call\|>|<function_call>")
_ENDED: Final = re.compile(r"\s*(?:</function_call>|<\|(?:python_end|eom_id|eot_id|im_end|end_of_text)\|>|</s>)\s*\Z")
_BEGUN: Final = re.compile(
    r"<\|?/?tool_call|</?function_call|<function=|\[TOOL_CALLS\]|\[ARGS\]|<\|python_(?:tag|start)\|>|<｜tool"
    r"|<arg_key>|<invoke |<(?:minimax|antml):|<\|channel\|>[^<\n]{0,80} to=| to=functions\."
    r"|\"name\"\s{0,9}:\s{0,9}\"[^\"\n]{1,200}\"\s{0,9},\s{0,9}\"(?:arguments|parameters)\"\s{0,9}:"
)
_LONGEST: Final = 200_000  # characters of text in which calls are looked for


def calls_of(completion: Any, tools: Any = ()) -> list[Call]:
    """The calls in order; none where the completion only talks. Raises Malformed for a call that cannot be read.

    `tools` tell the types of arguments in the forms that have none.
    """
    if not isinstance(completion, str):
        made = [call for message in completion for call in _said(message)]
        if made:
            return [_call(call) for call in made]
    text = spoken(text_of(completion))[0].strip()
    if len(text) > _LONGEST:
        raise Malformed("too long")
    in_tags = tagged(text, by_schema(tools), _BEGUN)
    if in_tags is not None:
        return in_tags
    marked = _MARKED.search(text)
    if marked:
        return _demanded(_ENDED.sub("", text[marked.end() :]))
    if "<tool_call>" in text:
        return [call for block in _TAGGED.findall(text) for call in _demanded(block)]
    blocks = [found for block in _FENCED.findall(text) if (found := _written(block)) is not None]
    if blocks:
        return [call for found in blocks for call in found]
    return _written(text) or []


def _said(message: Mapping[str, Any]) -> Sequence[Any]:
    if message.get("role") != "assistant":
        return []
    calls = message.get("tool_calls") or []
    calls = read_json(calls) if isinstance(calls, str) else calls
    return calls if isinstance(calls, Sequence) else [calls]


def begun(completion: Any, names: Sequence[str]) -> bool:
    """Whether a completion holds what looks like a call, wherever it stands: `names` are those of the tools.

    "Sure! f(a=1)"  ->  True      '{"name": "f"}'  ->  True      "f() does not fit"  ->  False
    """
    text = spoken(text_of(completion))[0]
    if _BEGUN.search(text):
        return True
    known = "|".join(re.escape(name) for name in sorted({*names, *(name.replace(".", "_") for name in names)}) if name)
    # A call of nothing is no sign: prose names a function so.
    call = rf"(?<![\w.])(?:{known})\(\s{{0,9}}(?:[A-Za-z_]\w{{0,200}}\s{{0,9}}=|[\"'\d\[{{])"
    return bool(known) and re.search(rf"{call}|\"name\"\s{{0,9}}:\s{{0,9}}\"(?:{known})\"", text) is not None


def _demanded(block: str) -> list[Call]:
    alone = bare(block.strip())
    found = [alone] if alone else _written(block.strip())
    if not found:
        raise Malformed("no call between the tags")
    return found


def _written(text: str) -> list[Call] | None:
    """The calls that a text consists of; None when it consists of something else."""
    text = text.strip()
    if text[:1] in ("{", "["):
        try:
            value = read_json(text)
        except Malformed:
            raise
        except (ValueError, RecursionError):
            return _python(text)
        listed = value if isinstance(value, list) else [value]
        return [_call(one) for one in listed] if all(map(_is_call, listed)) else None
    return _python(text)


def _is_call(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    inner = value.get("function", value)
    return isinstance(inner, Mapping) and "name" in inner and ("arguments" in inner or "parameters" in inner)


def _call(value: Any) -> Call:
    """A call in OpenAI's form or as a bare name with arguments."""
    if not isinstance(value, Mapping):
        raise Malformed("not an object")
    inner = value.get("function", value)
    if not isinstance(inner, Mapping) or not isinstance(inner.get("name"), str):
        raise Malformed("no name")
    arguments = inner.get("arguments", inner.get("parameters"))
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            raise Malformed("arguments are no JSON") from None
    if not isinstance(arguments, (Mapping, type(None))):
        raise Malformed("arguments are no object")
    return Call(inner["name"], dict(arguments or {}))


def _python(text: str) -> list[Call] | None:
    """Calls in Python's syntax, alone or in a list; None when the text is no such thing."""
    if not _PYTHON.match(text):
        return None
    try:
        tree = ast.parse(_STRAY.sub(r"\\\\", text), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    nodes = tree.elts if isinstance(tree, (ast.List, ast.Tuple)) else [tree]
    return [_python_call(node) for node in nodes if isinstance(node, ast.Call)] if _all_calls(nodes) else None


def _all_calls(nodes: Sequence[ast.expr]) -> bool:
    return all(isinstance(node, ast.Call) for node in nodes)


def _python_call(node: ast.Call) -> Call:
    if node.args or any(keyword.arg is None for keyword in node.keywords):
        raise Malformed("arguments without names")
    if len({keyword.arg for keyword in node.keywords}) < len(node.keywords):
        raise Malformed("a name twice")
    return Call(_dotted(node.func), {str(keyword.arg): _value(keyword.value) for keyword in node.keywords})


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    raise Malformed("no name")


def _value(node: ast.expr) -> Any:
    """A literal; JSON's true, false and null; another bare name is the text of its name, as in BFCL."""
    if isinstance(node, ast.Name):
        return _NAMES.get(node.id, node.id)
    if isinstance(node, (ast.List, ast.Tuple)):
        return [_value(one) for one in node.elts]
    if isinstance(node, ast.Dict):
        pairs = [(_value(key), _value(value)) for key, value in zip(node.keys, node.values, strict=True) if key]
        if any(isinstance(key, (list, dict, set)) for key, _ in pairs):
            raise Malformed("no key")
        return dict(pairs)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise Malformed("not a literal") from None
