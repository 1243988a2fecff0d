r"""Conversations in the form that LLaMA-Factory reads (`sharegpt` with OpenAI's roles), or why one has no such form.

LLaMA-Factory takes strictly alternating turns: user or tool, then assistant or function call. What does not alternate
it skips with a line in its log; here such rows are left out with a reason instead. A tool call is a turn of its own
whose content is JSON; reasoning stands in the text between <think> marks; answers of parallel calls become one turn.
Source: `llamafactory/data/converter.py` and `formatter.py` of LLaMA-Factory 0.9.5.

    {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]}
    {"role": "function_call", "content": "[{\"name\": \"add\", \"arguments\": {\"a\": 1}}]"}
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Turn = dict[str, str]
REASONS: Final = {
    "turns": "user and assistant do not take turns, or the last turn is not the assistant's",
    "parts": "a message holds content parts, not text",
    "role": "a message has another role than system, developer, user, assistant and tool",
    "calls": "a tool call is no function call with arguments as an object",
    "marks": "a call stands beside text that holds the marks by which LLaMA-Factory finds it",
    "schemas": "the tools are no list of functions with a name",
    "answers": "chosen or rejected is not one assistant message",
}
"""Why a row has no form that LLaMA-Factory reads."""
_ROLES: Final = ("user", "assistant", "tool")
_MARKS: Final = ("<tool_call>", "</tool_call>", "<think>", "</think>")
_BETWEEN_RESULTS: Final = "\n</tool_response>\n<tool_response>\n"  # as LLaMA-Factory's own reader joins them


class NoForm(ValueError):
    """The row cannot be said in this form; `reason` is a key of REASONS."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def conversation(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """A whole conversation, ending with an answer. Raises NoForm."""
    turns = _turns(messages)
    _check(turns, ends_with_answer=True)
    return turns


def pair(
    prompt: Sequence[Mapping[str, Any]], chosen: Sequence[Mapping[str, Any]], rejected: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """A preference pair: messages, chosen, rejected. Raises NoForm."""
    turns = _turns(prompt)
    _check(turns, ends_with_answer=False)
    answers = [_turns(answer) for answer in (chosen, rejected)]
    if any([turn["role"] for turn in answer] not in (["assistant"], ["function_call"]) for answer in answers):
        raise NoForm("answers")
    return {"messages": turns, "chosen": answers[0][0], "rejected": answers[1][0]}


def tools(text: str | None) -> str:
    """Tool schemas as LLaMA-Factory takes them: JSON of bare functions, each with properties; "" without tools.

    Raises NoForm.
    """
    given = json.loads(text) if text else []
    if not isinstance(given, list) or not all(isinstance(tool, dict) for tool in given):
        raise NoForm("schemas")
    functions = [tool["function"] if isinstance(tool.get("function"), dict) else tool for tool in given]
    if not all(isinstance(function.get("name"), str) for function in functions):
        raise NoForm("schemas")
    found = [
        {**one, "parameters": {"type": "object", "properties": {}, **(one.get("parameters") or {})}}
        for one in functions
    ]
    return json.dumps(found, ensure_ascii=False) if found else ""


def _turns(messages: Sequence[Mapping[str, Any]]) -> list[Turn]:
    """Messages as turns: leading system messages joined, answers of tools in a row joined."""
    turns: list[Turn] = []
    for message in messages:
        turn = _turn(message)
        before = turns[-1]["role"] if turns else ""
        if turn["role"] == before == "tool":
            turns[-1]["content"] += _BETWEEN_RESULTS + turn["content"]
        elif turn["role"] == before == "system":
            turns[-1]["content"] += "\n\n" + turn["content"]
        else:
            turns.append(turn)
    return turns


def _turn(message: Mapping[str, Any]) -> Turn:
    role, content = message.get("role"), message.get("content") or ""
    if not isinstance(content, str):
        raise NoForm("parts")
    if role in ("system", "developer"):
        return {"role": "system", "content": content}
    if role not in _ROLES:
        raise NoForm("role")
    reasoning = message.get("reasoning_content") or ""
    calls = message.get("tool_calls") if role == "assistant" else None
    thought = f"<think>\n{reasoning}\n</think>\n\n" if reasoning and role == "assistant" else ""
    if not calls:
        return {"role": role, "content": thought + content}
    called = json.dumps([_call(call) for call in calls], ensure_ascii=False)
    if any(mark in text for mark in _MARKS for text in (reasoning, content, called)):
        raise NoForm("marks")
    beside = f"{content}<tool_call>{called}</tool_call>" if content else called
    return {"role": "function_call", "content": thought + beside}


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            raise NoForm("calls") from None
    if not isinstance(function.get("name"), str) or not isinstance(arguments, dict):
        raise NoForm("calls")
    return {"name": function["name"], "arguments": arguments}


def _check(turns: list[Turn], *, ends_with_answer: bool) -> None:
    spoken = turns[1:] if turns and turns[0]["role"] == "system" else turns
    asks, answers = ("user", "tool"), ("assistant", "function_call")
    fits = all(turn["role"] in (answers if place % 2 else asks) for place, turn in enumerate(spoken))
    if not fits or len(spoken) % 2 == ends_with_answer or not spoken:
        raise NoForm("turns")
