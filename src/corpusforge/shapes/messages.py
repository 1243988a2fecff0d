r"""Conversations of any dialect to the one message form.

    {"from": "human", "value": "Hi"}                          -> {"role": "user", "content": "Hi"}
    {"role": "assistant", "function_call": {"name": "f", "arguments": "{\"a\":1}"}}
        -> {"role": "assistant", "tool_calls": [{"type":"function","function":{"name":"f","arguments":{"a":1}}}]}
    {"role": "assistant", "content": null, "refusal": "No."}  -> {"role": "assistant", "content": "No.", extra: refusal}

Content that is not text and not a list of parts cannot be represented; `content` reads the parts, `blocks` Anthropic's
content blocks, `calls` tool calls. An unknown role stays as it is: `filter` judges it. What a message holds beside the
known fields stays with it, in its own `extra`.
"""

from __future__ import annotations

from typing import Any, Final

from corpusforge.shapes._draft import Message, Note, Unrepresentable, json_text, maybe_json
from corpusforge.shapes.blocks import is_blocks, unfolded
from corpusforge.shapes.calls import said_as_call, tool_calls
from corpusforge.shapes.content import put_content
from corpusforge.text.jsontext import parse_text

ROLE_NAMES: Final = {
    "human": "user",
    "prompter": "user",
    "customer": "user",
    "gpt": "assistant",
    "bot": "assistant",
    "model": "assistant",
    "ai": "assistant",
    "chatgpt": "assistant",
    "function": "tool",
    "observation": "tool",
    "ipython": "tool",
    "tool_response": "tool",
    "developer": "system",
}
"""Names that other formats give to the four roles."""
_REASONING: Final = ("reasoning", "reasoning_content", "thinking")
_COLUMNS: Final = {"name": "name", "tool_call_id": "tool_call_id", **dict.fromkeys(_REASONING, "reasoning")}
_ELSEWHERE: Final = frozenset({*_COLUMNS, "tool_calls", "function_call"})

MEANT: Final = _ELSEWHERE | {"from", "value", "refusal"}
"""Fields of a message, beside role and content, that are looked at."""


def conversation(value: Any, notes: list[Note], field: str = "messages") -> list[Message]:
    """The messages of a list of turns (or of its JSON text). Raises Unrepresentable."""
    value = maybe_json(value)
    if not isinstance(value, list):
        raise Unrepresentable("messages_not_a_list", field=field)
    made: list[Message] = []
    for turn in value:
        if isinstance(turn, dict) and len(turn) == 2:
            role, content = turn.get("role"), turn.get("content")
            if isinstance(content, str) and isinstance(role, str):
                made.append({"role": ROLE_NAMES.get(role, role), "content": content})
                continue
        made += _messages(turn, notes)
    return made


def _messages(turn: Any, notes: list[Note]) -> list[Message]:
    """The message of one turn, or the messages of its content blocks."""
    turn = maybe_json(turn)
    if not isinstance(turn, dict):
        raise Unrepresentable("message_not_an_object")
    if "role" not in turn and "from" not in turn:
        raise Unrepresentable("message_without_role")
    foreign = "role" not in turn
    role = turn.get("from" if foreign else "role")
    if role is not None and not isinstance(role, str):
        raise Unrepresentable("role_not_text")
    content = turn.get("value") if foreign and "content" not in turn else turn.get("content")
    if role == "function_call" and isinstance(content, str):
        message = said_as_call(content, notes)
        _put_rest(message, turn, foreign, notes)
        return [message]
    role = ROLE_NAMES.get(role, role) if role is not None else None
    if isinstance(content, list) and is_blocks(content):
        made = unfolded(role, content, notes)
        _put_rest(next((one for one in made if one.get("role") != "tool"), made[0]), turn, foreign, notes)
        return made
    message = {"role": role} if role is not None else {}
    put_content(message, content, notes)
    _put_rest(message, turn, foreign, notes)
    return [message]


def system(value: Any, notes: list[Note]) -> Message:
    """A system prompt that stands beside the messages: a text, or a list of parts. Raises Unrepresentable."""
    blocks = maybe_json(value) if isinstance(value, str) and '"type"' in value else value
    text_blocks = isinstance(blocks, list) and all(isinstance(b, dict) and b.get("type") == "text" for b in blocks)
    message: Message = {"role": "system"}
    put_content(message, blocks if text_blocks else value, notes)
    return message


def _put_rest(message: Message, turn: dict[str, Any], foreign: bool, notes: list[Note]) -> None:
    said = ("from", "content" if "content" in turn else "value") if foreign else ("role", "content")
    left: dict[str, Any] = {}
    known: dict[str, Any] = {}
    for key, value in turn.items():
        if value is not None and key not in said:
            (known if key in _ELSEWHERE else left)[key] = value
    if message.get("content") is None and isinstance(left.get("refusal"), str):
        message["content"] = left["refusal"]
    if known:
        for key, column in _COLUMNS.items():
            value = known.get(key)
            if isinstance(value, str) and column not in message:
                message[column] = value
            elif value is not None:
                left[key] = value
        _put_calls(message, known, notes)
    if left:
        before = parse_text(message["extra"]) if "extra" in message else {}
        message["extra"] = json_text({**before, **left})


def _put_calls(message: Message, turn: dict[str, Any], notes: list[Note]) -> None:
    calls = maybe_json(turn.get("tool_calls")) or []
    if not isinstance(calls, list):
        raise Unrepresentable("tool_calls_not_a_list")
    single = turn.get("function_call")
    if single:
        calls = [*calls, single]
    if calls:
        before = parse_text(message["tool_calls"]) if "tool_calls" in message else []
        message["tool_calls"] = json_text([*before, *tool_calls(calls, notes)])
