"""One canonical tool call, whichever way it was written, and one that chat templates render."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from corpusforge.sample import content_id
from corpusforge.shapes import Unrepresentable
from corpusforge.shapes.calls import tool_calls, tool_schemas
from corpusforge.stages.ingest import Record, SourceConfig, ingest
from corpusforge.stages.shard import trainer_form

ARGUMENTS = {"city": "Bergen", "days": 2}
TEXT = json.dumps(ARGUMENTS)
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
SCHEMA = {"name": "weather", "description": "Forecast", "parameters": PARAMETERS}
ASKED, SAID = {"role": "user", "content": "Weather in Bergen?"}, {"role": "assistant", "content": "Rain."}


def openai(call: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A conversation in OpenAI's form with one call."""
    called = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": "12 mm"}
    return {"messages": [ASKED, called, result, SAID], "tools": [{"type": "function", "function": SCHEMA}], **more}


FUNCTION = {"name": "weather", "arguments": ARGUMENTS}
BLOCKS = [
    ASKED,
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "weather", "input": ARGUMENTS}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "12 mm"}]},
    {"role": "assistant", "content": [{"type": "text", "text": "Rain."}]},
]
IDENTIFIED: dict[str, dict[str, Any]] = {
    "openai": openai({"id": "c1", "type": "function", "function": FUNCTION}),
    "openai text": openai({"id": "c1", "type": "function", "function": {"name": "weather", "arguments": TEXT}}),
    "bare": openai({"id": "c1", **FUNCTION}),
    "langchain": openai({"id": "c1", "type": "tool_call", "name": "weather", "args": ARGUMENTS}),
    "llama": openai({"id": "c1", "name": "weather", "parameters": ARGUMENTS}),
    "cells": {key: json.dumps(value) for key, value in openai({"id": "c1", "function": FUNCTION}).items()},
    "anthropic": {
        "messages": BLOCKS,
        "tools": [{"name": "weather", "description": "Forecast", "input_schema": PARAMETERS}],
    },
}
PLAIN: dict[str, dict[str, Any]] = {  # dialects in which a call has no id
    "legacy": {
        "messages": [
            ASKED,
            {"role": "assistant", "content": None, "function_call": {"name": "weather", "arguments": TEXT}},
            {"role": "function", "name": "weather", "content": "12 mm"},
            SAID,
        ],
        "functions": [SCHEMA],
    },
    "sharegpt": {
        "conversations": [
            {"from": "human", "value": ASKED["content"]},
            {"from": "function_call", "value": json.dumps(FUNCTION)},
            {"from": "observation", "value": "12 mm", "name": "weather"},
            {"from": "gpt", "value": "Rain."},
        ],
        "tools": json.dumps([SCHEMA]),
    },
}


def made(record: dict[str, Any]) -> Any:
    """The table of rows of one record."""
    source = SourceConfig(name="s", path="x.jsonl")
    result = ingest([Record(1, record, "x.jsonl", 1)], source, detect_language=False)
    assert result.dropped.num_rows == 0, result.reasons()
    return result.kept


@pytest.mark.parametrize("dialects", [IDENTIFIED, PLAIN], ids=["with ids", "without"])
def test_every_dialect_of_a_call_is_one_row(dialects: dict[str, dict[str, Any]]) -> None:
    """The same content, so the same content id."""
    rows = {name: made(record).to_pylist()[0] for name, record in dialects.items()}
    assert len({row["content_id"] for row in rows.values()}) == 1, {n: r["messages"] for n, r in rows.items()}
    for row in rows.values():
        assert row["content_id"] == content_id(row)
        (call,) = json.loads(row["messages"][1]["tool_calls"])
        assert call["function"] == FUNCTION
        assert call["type"] == "function"
        assert json.loads(row["tools"]) == [{"type": "function", "function": SCHEMA}]


def templates() -> list[Path]:
    """The chat templates that the installed TRL ships."""
    spec = importlib.util.find_spec("trl")
    folder = Path(str(spec.origin)).parent / "chat_templates" if spec else Path("absent")
    return [folder / f"{name}.jinja" for name in ("qwen2_5", "qwen3", "llama3_2", "gptoss")]


@pytest.mark.skipif(not templates()[0].exists(), reason="TRL is not installed: pip install 'corpusforge[train]'")
@pytest.mark.parametrize("template", templates(), ids=lambda path: path.stem)
def test_every_dialect_renders_alike(template: Path) -> None:
    """In the form of the shards, and without a trace of what was absent."""
    from transformers.utils.chat_template_utils import render_jinja_template

    said = set()
    for record in (*IDENTIFIED.values(), *PLAIN.values()):
        (line,) = trainer_form(made(record), "sft").to_pylist()
        messages = [json.loads(message) for message in line["messages"]]
        assert isinstance(messages[1]["tool_calls"][0]["function"]["arguments"], dict)
        rendered, _ = render_jinja_template(
            conversations=[messages],
            tools=json.loads(line["tools"]),
            chat_template=template.read_text(encoding="utf-8"),
        )
        said.add(rendered[0])
    (text,) = said
    assert "None" not in text
    assert "null" not in text
    assert text.count("12 mm") == 1
    assert '"city": "Bergen"' in text or '"city":"Bergen"' in text


@pytest.mark.parametrize(
    "call",
    [
        {"function": {"arguments": {}}},
        {"id": "c", "type": "custom", "custom": {"name": "f", "input": "x"}},
        {"function": "weather"},
    ],
    ids=["no name", "custom tool", "function is a text"],
)
def test_a_call_of_nothing_is_refused(call: dict[str, Any]) -> None:
    """A template would print None as the name of the function."""
    with pytest.raises(Unrepresentable, match="tool_call_without_name"):
        tool_calls([call], [])


@pytest.mark.parametrize("given", [[1, 2], 7, "[1, 2]", True])
def test_arguments_that_are_no_object_stay_text_and_are_noted(given: Any) -> None:
    notes: list[Any] = []
    (call,) = tool_calls([{"name": "f", "arguments": given}], notes)
    assert isinstance(call["function"]["arguments"], str)
    assert json.loads(call["function"]["arguments"]) == (json.loads(given) if isinstance(given, str) else given)
    assert notes == [("tool_arguments_not_an_object", {})]


def test_what_a_call_holds_beside_is_kept() -> None:
    """In its own place: of the call, or of the function."""
    call = {"id": "c", "index": 0, "function": {"name": "f", "arguments": {"a": None}, "thought": "t"}, "gone": None}
    assert tool_calls([call], []) == [
        {
            "id": "c",
            "type": "function",
            "function": {"name": "f", "arguments": {"a": None}, "thought": "t"},
            "index": 0,
        }
    ]


@pytest.mark.parametrize("key", ["parameters", "input_schema", "inputSchema"])
def test_every_name_of_a_schema_becomes_parameters(key: str) -> None:
    given = {"name": "f", key: {"type": "dict"}, "type": "custom"} if key != "parameters" else {"name": "f", key: {}}
    (tool,) = json.loads(tool_schemas([given]) or "")
    assert (tool["type"], set(tool["function"])) == ("function", {"name", "parameters"})


def test_a_providers_own_tool_stays_as_it_is() -> None:
    tool = {"type": "web_search", "name": "w"}
    assert json.loads(tool_schemas([tool]) or "") == [tool]
