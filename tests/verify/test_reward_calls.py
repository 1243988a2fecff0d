"""Calls of a trajectory: which are valid, and which count."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import Task
from corpusforge.verify.layers import process
from corpusforge.verify.layers.calls import calls

pytest.importorskip("jsonschema", reason="schemas need the extra `verify`")

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
ADD = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "parameters": PLACE}},
    {"type": "function", "function": {"name": "add", "parameters": ADD}},
]
TASK = Task("tool_call", {"calls": []}, tools=TOOLS)


def call(name: str, number: int = 0, **arguments: Any) -> dict[str, Any]:
    return {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def asks(*made: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": list(made)}


def answers(text: str, number: int = 0) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": f"c{number}", "content": text}


DONE = {"role": "assistant", "content": "It is 7."}


@pytest.mark.parametrize(
    ("completion", "tally"),
    [
        ([asks(call("add", a=3, b=4)), answers("7"), DONE], (1, 0)),
        ([asks(call("add", a=3, b=4))], (1, 0)),
        ([asks(call("add", a="3"))], (0, 1)),
        ([asks(call("subtract", a=3))], (0, 1)),
        ([asks(call("weather"))], (0, 1)),
        ([asks(call("add", a=3, b=4)), DONE], (0, 1)),
        ([asks(call("add", 0, a=1), call("weather", 1, city="Rome")), answers("1"), answers("dry", 1), DONE], (2, 0)),
        ([asks(call("add", 0, a=1), call("weather", 1, city="Rome")), answers("1"), DONE], (1, 1)),
        ([asks({"function": {"name": "add", "arguments": "{"}}, call("add", 1, a=1))], (1, 1)),
        ([DONE], (0, 0)),
        ('<tool_call>{"name": "add", "arguments": {"a": 3}}</tool_call>', (1, 0)),
        ('<tool_call>{"name": "add", "arguments": {"a": 3}}</tool_call><tool_call>{"na</tool_call>', (1, 1)),
        ("[add(a=3), weather(city=7)]", (1, 1)),
        ("It is 7.", (0, 0)),
    ],
)
def test_a_call_is_valid_or_not(completion: Any, tally: tuple[int, int]) -> None:
    assert calls(TASK, completion) == tally


def test_a_valid_call_counts_once() -> None:
    again = [asks(call("add", a=1)), answers("1")] * 20
    assert calls(TASK, [*again, DONE]) == (1, 0)


@pytest.mark.parametrize(
    "error", ["Error: no such city", '{"error": "no such city"}', "Traceback (most recent call last)"]
)
def test_the_same_call_after_an_error_is_wrong(error: str) -> None:
    first = [asks(call("weather", city="Romw")), answers(error)]
    assert calls(TASK, [*first, asks(call("weather", city="Rome")), answers("dry"), DONE]) == (2, 0)
    assert calls(TASK, [*first, *first, *first, DONE]) == (1, 2)


def test_without_tools_nothing_can_be_said() -> None:
    assert process(Task("tool_call", {"calls": []}), [asks(call("add", a=1))]) is None


def test_a_schema_that_leads_nowhere_is_not_the_models_fault() -> None:
    tools = [{"function": {"name": "f", "parameters": {"$ref": "#/nowhere"}}}]
    assert calls(Task("tool_call", {}, tools=tools), "[f(a=1)]") == (1, 0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from(["role", "id", "function", "name", "arguments"]), inner)
    ),
    max_leaves=8,
)
SAID = {"role": st.sampled_from(["assistant", "tool"]), "content": st.text() | st.none()}
MESSAGES = st.lists(st.fixed_dictionaries(SAID, optional={"tool_calls": VALUES}))


@given(st.text() | MESSAGES)
def test_every_completion_has_a_share_from_0_to_1_or_none(completion: Any) -> None:
    share = process(TASK, completion)
    assert share is None or 0 <= share <= 1


def test_a_megabyte_of_calls() -> None:
    text = '<tool_call>{"name": "add", "arguments": {"a": 3}}</tool_call>' * 16_000
    assert calls(TASK, text) == (1, 0)
