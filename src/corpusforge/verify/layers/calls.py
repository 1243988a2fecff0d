"""calls: the share of valid tool calls in a completion, a single answer or a whole trajectory.

    call f(a=1)  ->  answer 7  ->  call g(b="x")  ->  answer "Error: no such x"  ->  call g(b="x")     2 of 3

A call is valid when it can be read, its tool is among the task's, its arguments obey the tool's JSON Schema, and,
where the conversation goes on after it, a tool answers it. The same call again, after an answer that is an error, is
not; after any other answer it counts no second time. Without tools in the task nothing can be said.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import CorpusForgeError
from corpusforge.verify._calls import calls_of
from corpusforge.verify._tags import Call, Malformed, same_name
from corpusforge.verify._verdict import text_of
from corpusforge.verify.layers._steps import Tally, messages_of
from corpusforge.verify.tool_call import _fits_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.verify._verdict import Task

_MOST: Final = 256  # calls of a completion that are looked at
_OPENED: Final = "<tool_call>"
_CLOSED: Final = "</tool_call>"
_ERRORS: Final = ("error", "traceback", "exception")


def calls(task: Task, completion: Any) -> Tally:
    """Valid and other calls. Raises MissingExtra without jsonschema."""
    if not task.tools:
        return Tally(0, 0)
    messages = messages_of(completion)
    right = wrong = 0
    failing: set[str] = set()
    made: set[str] = set()
    for number, (call, answered, failed) in enumerate(_made(messages, task.tools)):
        if number == _MOST:
            break
        key = json.dumps(call, sort_keys=True, default=str) if call else ""
        if call is None or not answered or key in failing or not _fits(call, task.tools):
            wrong += 1
        elif key not in made:
            right += 1
        made.add(key)
        (failing.add if failed else failing.discard)(key)
    return Tally(right, wrong)


def _made(messages: Sequence[Mapping[str, Any]], tools: Any) -> Iterator[tuple[Call | None, bool, bool]]:
    """Each call in order, None for one that cannot be read; whether it was answered; whether by an error."""
    for number, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        made = _calls(message, tools)
        follows = messages[number + 1 :]
        end = next((n for n, later in enumerate(follows) if later.get("role") == "assistant"), len(follows))
        answers = [later for later in follows[:end] if later.get("role") in ("tool", "function", "ipython")]
        for place, (call, name) in enumerate(made):
            answer = _answer(answers, place, name)
            yield call, answer is not None or not follows, answer is not None and _is_error(answer)


def _answer(answers: Sequence[Mapping[str, Any]], place: int, name: Any) -> Mapping[str, Any] | None:
    """The answer to the call at a place of a message: by its id where answers have any, else by order."""
    if name is not None and any(answer.get("tool_call_id") for answer in answers):
        return next((answer for answer in answers if answer.get("tool_call_id") == name), None)
    return answers[place] if place < len(answers) else None


def _calls(message: Mapping[str, Any], tools: Any) -> list[tuple[Call | None, Any]]:
    """The calls of a message with their ids, one by one, so that a broken one does not hide the others."""
    listed = message.get("tool_calls") or []
    try:
        listed = json.loads(listed) if isinstance(listed, str) else listed
    except (ValueError, RecursionError):
        return [(None, None)]
    if listed:
        listed = list(listed) if isinstance(listed, Sequence) else [listed]
        names = [one.get("id") if isinstance(one, Mapping) else None for one in listed]
        alone = [_read([{"role": "assistant", "tool_calls": [one]}], tools) for one in listed]
        return [(found[0] if found else None, name) for found, name in zip(alone, names, strict=True)]
    text = text_of([message])
    if text.count(_OPENED) < 2:
        return [(call, None) for call in _read(text, tools)]
    blocks = text[text.rfind("</think>") + 8 if "</think>" in text else 0 :].split(_OPENED)[1 : _MOST + 1]
    closed = [f"{_OPENED}{block.partition(_CLOSED)[0]}{_CLOSED}" for block in blocks]
    return [(call, None) for block in closed for call in _read(block, tools)]


def _read(said: Any, tools: Any) -> list[Call] | list[None]:
    """The calls of a text or of messages; one None where a call was begun and cannot be read."""
    try:
        return calls_of(said, tools)
    except (Malformed, ValueError, TypeError, AttributeError, RecursionError):
        return [None]


def _fits(call: Call, tools: Sequence[Any]) -> bool:
    functions = [tool.get("function", tool) for tool in tools if isinstance(tool, Mapping)]
    names = [str(function.get("name")) for function in functions if isinstance(function, Mapping)]
    if not any(same_name(call.name, name) for name in names):
        return False
    try:
        return _fits_schema(call, tools)
    except CorpusForgeError:
        raise
    except Exception:  # noqa: BLE001 - a reference that leads nowhere, a nesting that never ends: the schema's fault
        return True


def _is_error(answer: Mapping[str, Any]) -> bool:
    """Whether an answer is an error: an object with a field `error`, or a text that begins like one."""
    content = answer.get("content")
    if isinstance(content, str) and content.lstrip()[:1] == "{":
        try:
            content = json.loads(content)
        except (ValueError, RecursionError):
            return False
    if isinstance(content, Mapping):
        return bool(content.get("error"))
    return isinstance(content, str) and content.lstrip().lower().startswith(_ERRORS)
