"""Anthropic's content blocks to messages: thinking, text and tool calls of a turn, and results as turns of their own.

    {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "I'll look."},
                                      {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}}]}
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a cat"}]}
        -> assistant, with reasoning, content and tool_calls; then tool, with tool_call_id and content

What a thinking block holds beside its text (a signature) stays in the message's `extra`. Where a turn speaks on after
its calls, that order is not kept, and the row gets the note `blocks_reordered`.
"""

from __future__ import annotations

from typing import Any, Final

from corpusforge.shapes._draft import Message, Note, json_text
from corpusforge.shapes.calls import tool_calls
from corpusforge.shapes.content import put_content

_THOUGHT: Final = ("thinking", "redacted_thinking")
_KINDS: Final = frozenset({"tool_use", "tool_result", *_THOUGHT})


def is_blocks(content: list[Any]) -> bool:
    """Whether a list of parts holds what only content blocks can say."""
    return any(isinstance(part, dict) and part.get("type") in _KINDS for part in content)


def unfolded(role: str | None, content: list[Any], notes: list[Note]) -> list[Message]:
    """The messages that the blocks of one turn are: at least one. Raises Unrepresentable."""
    made: list[Message] = []
    said: list[Any] = []
    for block in content:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            if said:
                made.append(_said(role, said, notes))
                said = []
            made.append(_result(block, notes))
        else:
            said.append(block)
    if said:
        made.append(_said(role, said, notes))
    return made


def _said(role: str | None, blocks: list[Any], notes: list[Note]) -> Message:
    message: Message = {"role": role} if role is not None else {}
    kinds = [block.get("type") if isinstance(block, dict) else "text" for block in blocks]
    thoughts = [block for block, kind in zip(blocks, kinds, strict=True) if kind in _THOUGHT]
    calls = [block for block, kind in zip(blocks, kinds, strict=True) if kind == "tool_use"]
    spoken = [block for block, kind in zip(blocks, kinds, strict=True) if kind not in _KINDS]
    order = [0 if kind in _THOUGHT else 2 if kind == "tool_use" else 1 for kind in kinds]
    if order != sorted(order):
        notes.append(("blocks_reordered", {}))
    if spoken:
        put_content(message, spoken, notes)
    texts = [block["thinking"] for block in thoughts if isinstance(block.get("thinking"), str)]
    if texts:
        message["reasoning"] = "\n\n".join(texts)
    if calls:
        message["tool_calls"] = json_text(tool_calls(calls, notes))
    left = [{k: v for k, v in block.items() if k != "thinking" and v is not None} for block in thoughts]
    if any(block != {"type": "thinking"} for block in left):
        message["extra"] = json_text({"thinking_blocks": left})
    return message


def _result(block: dict[str, Any], notes: list[Note]) -> Message:
    message: Message = {"role": "tool"}
    put_content(message, block.get("content"), notes)
    left = {k: v for k, v in block.items() if k not in ("type", "content", "tool_use_id") and v is not None}
    named = block.get("tool_use_id")
    if isinstance(named, str):
        message["tool_call_id"] = named
    elif named is not None:
        left["tool_use_id"] = named
    if left:
        message["extra"] = json_text(left)
    return message
