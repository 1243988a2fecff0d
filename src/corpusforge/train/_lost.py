"""Find what a chat template leaves out: tools, tool calls, reasoning, tool results, or all that a message says.

A copy of the conversation carries a mark of its own in every field, and the marks that are missing from its rendering
name the fields that the template does not write. Marks decide rather than the values, because a value such as a city's
name also stands elsewhere in the text. What a template shortens (Qwen 3 cuts what stands before `</think>`) is found by
looking for the whole text of the field, bare or escaped as in JSON.

    Llama 3, which has no notion of tools  ->  Loss("tool_calls", 1)
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corpusforge.train._render import Talk, parsed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpusforge.train._render import Renderer

ORDER: Final = ("tools", "tool_calls", "reasoning_content", "tool_result", "content")
_REMEMBERED: Final = 4096  # shapes of plain conversations whose answer is kept


class Loss(NamedTuple):
    """A field that the text does not show, and the message it is of (None for the row's tools)."""

    field: str
    message: int | None = None

    def detail(self) -> dict[str, Any]:
        """The facts for the ledger."""
        return {"field": self.field, **({} if self.message is None else {"message": self.message})}


@dataclass
class Marks:
    """Hands out marks, and remembers what each one stands for."""

    owners: list[Loss] = field(default_factory=list)

    def on(self, text: str, name: str, message: int | None = None) -> str:
        """`text` with a new mark at its end."""
        self.owners.append(Loss(name, message))
        return text + _mark(len(self.owners) - 1)

    def missing(self, text: str) -> list[Loss]:
        """Fields with a mark that is not in `text`."""
        return [owner for number, owner in enumerate(self.owners) if _mark(number) not in text]


def _mark(number: int) -> str:
    return f"zqx{number}xqz"  # letters and digits only: no template trims, splits or escapes them


@dataclass
class Finder:
    """Looks for lost fields in conversations that one renderer renders."""

    renderer: Renderer
    _shapes: dict[tuple[Any, ...], tuple[Loss, ...]] = field(default_factory=dict)

    def lost(self, talk: Talk, text: str) -> Loss | None:
        """The first lost field of a conversation whose rendering is `text`, in the order of ORDER; None when whole."""
        found = [*self._plain(talk)] if _is_plain(talk) else self._unwritten(*_marked(talk))
        found += [loss for loss, value in _values(talk.messages) if value and not _occurs(value, text)]
        return min(found, key=lambda loss: (ORDER.index(loss.field), loss.message or 0), default=None)

    def _plain(self, talk: Talk) -> tuple[Loss, ...]:
        """Without tools and reasoning it depends on the roles alone whether a message is written: ask once for each."""
        shape = (talk.opened, *((m.get("role"), bool(_bare(m))) for m in talk.messages))
        if shape not in self._shapes:
            if len(self._shapes) >= _REMEMBERED:
                self._shapes.clear()
            marks = Marks()
            said = [
                {"role": m.get("role"), "content": marks.on("", "content", n) if _bare(m) else ""}
                for n, m in enumerate(talk.messages)
            ]
            self._shapes[shape] = tuple(self._unwritten(Talk(said, None, talk.opened), None, marks))
        return self._shapes[shape]

    def _unwritten(self, copy: Talk, tools: list[Any] | None, marks: Marks) -> list[Loss]:
        text = self.renderer.text(copy, tools)
        # A template that renders the row, but refuses its marked copy, proves nothing.
        return marks.missing(text) if isinstance(text, str) else []


def _is_plain(talk: Talk) -> bool:
    return not talk.tools and all(
        message.get("role") != "tool"
        and not message.get("tool_calls")
        and not message.get("reasoning_content")
        and isinstance(message.get("content") or "", str)
        for message in talk.messages
    )


def _bare(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    return content.strip() if isinstance(content, str) else ""


def _values(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Loss, str]]:
    """The texts that must be in a rendering whole."""
    for number, message in enumerate(messages):
        for text in _texts(message.get("content")):
            yield Loss(_content_field(message), number), text.strip()
        reasoning = message.get("reasoning_content")
        if isinstance(reasoning, str):
            yield Loss("reasoning_content", number), reasoning.strip()


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]


def _content_field(message: Mapping[str, Any]) -> str:
    return "tool_result" if message.get("role") == "tool" else "content"


def _occurs(value: str, text: str) -> bool:
    return value in text or any(json.dumps(value, ensure_ascii=ascii_)[1:-1] in text for ascii_ in (False, True))


def _marked(talk: Talk) -> tuple[Talk, list[Any] | None, Marks]:
    """A copy of a conversation with a mark in every field that has something in it."""
    marks = Marks()
    tools = parsed(talk.tools)
    marked = [_marked_tool(tool, marks) for tool in tools] if isinstance(tools, list) else None
    messages = [_marked_message(message, number, marks) for number, message in enumerate(talk.messages)]
    return Talk(messages, talk.tools, talk.opened), marked, marks


def _marked_message(message: Mapping[str, Any], number: int, marks: Marks) -> dict[str, Any]:
    copy, content = dict(message), message.get("content")
    if isinstance(content, str) and content.strip():
        copy["content"] = marks.on(content, _content_field(message), number)
    elif isinstance(content, list):
        copy["content"] = [
            {**part, "text": marks.on(part["text"], _content_field(message), number)} if _texts([part]) else part
            for part in content
        ]
    if message.get("reasoning_content"):
        copy["reasoning_content"] = marks.on(message["reasoning_content"], "reasoning_content", number)
    if message.get("tool_calls"):
        copy["tool_calls"] = [_marked_call(call, number, marks) for call in message["tool_calls"]]
    return copy


def _marked_tool(tool: Any, marks: Marks) -> Any:
    """Marks a tool's name and the names of its parameters."""
    if not isinstance(tool, dict):
        return tool
    if isinstance(tool.get("function"), dict):
        return {**tool, "function": _marked_tool(tool["function"], marks)}
    copy, schema = dict(tool), tool.get("parameters")
    if isinstance(tool.get("name"), str):
        copy["name"] = marks.on(tool["name"], "tools")
    if isinstance(schema, dict) and isinstance(schema.get("properties"), dict):
        named = {marks.on(name, "tools"): value for name, value in schema["properties"].items()}
        copy["parameters"] = {**schema, "properties": named}
    return copy


def _marked_call(call: Any, number: int, marks: Marks) -> Any:
    """Marks a call's name and the names of its arguments; a template that writes a name writes its value."""
    if not isinstance(call, dict):
        return call
    if isinstance(call.get("function"), dict):
        return {**call, "function": _marked_call(call["function"], number, marks)}
    copy, arguments = dict(call), call.get("arguments")
    if isinstance(call.get("name"), str):
        copy["name"] = marks.on(call["name"], "tool_calls", number)
    if isinstance(arguments, dict):
        copy["arguments"] = {marks.on(name, "tool_calls", number): value for name, value in arguments.items()}
    elif isinstance(arguments, str):
        copy["arguments"] = marks.on(arguments, "tool_calls", number)
    return copy
