"""Every dialect of a conversation becomes the one message form."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpusforge.shapes import Unrepresentable
from corpusforge.shapes.calls import schema, tool_schemas
from corpusforge.shapes.messages import conversation


def one(turn: Any) -> dict[str, Any]:
    """The only message of a conversation of one turn."""
    (message,) = conversation([turn], [])
    return message


@pytest.mark.parametrize(
    ("turn", "role"),
    [({"from": "human", "value": "x"}, "user"), ({"role": "model", "content": "x"}, "assistant")],
)
def test_roles_have_one_name(turn: dict[str, str], role: str) -> None:
    """Known other names are mapped."""
    assert one(turn) == {"role": role, "content": "x"}


def test_an_unknown_role_stays() -> None:
    """Judging it is the filter's work."""
    assert one({"role": "critic", "content": "x"})["role"] == "critic"


def test_arguments_as_text_and_as_object_are_the_same() -> None:
    """A call's arguments are the object that they mean."""
    calls = [
        {"type": "function", "function": {"name": "f", "arguments": given}}
        for given in ('{"a": 1, "b": 123456789012345678901}', {"a": 1, "b": 123456789012345678901})
    ]
    texts = {one({"role": "assistant", "tool_calls": [call]})["tool_calls"] for call in calls}
    legacy = one({"role": "assistant", "function_call": calls[0]["function"]})["tool_calls"]
    assert texts == {legacy}


def test_arguments_that_are_no_json_stay_and_are_noted() -> None:
    """Nothing is guessed into them."""
    notes: list[Any] = []
    call = {"function": {"name": "f", "arguments": "{city: Bergen}"}}
    (message,) = conversation([{"role": "assistant", "tool_calls": [call]}], notes)
    assert json.loads(message["tool_calls"])[0]["function"]["arguments"] == "{city: Bergen}"
    assert notes == [("tool_arguments_not_json", {})]


def test_text_parts_are_joined_without_a_gap() -> None:
    """Parts of text are one text; parts of other kinds are kept as parts too."""
    assert one({"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]}) == {
        "role": "user",
        "content": "a b",
    }
    seen = one({"role": "user", "content": ["look: ", {"type": "image"}]})
    assert (seen["content"], json.loads(seen["parts"])[1]) == ("look: ", {"type": "image"})


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_has_one_place(field: str) -> None:
    """All three names of it are known."""
    assert one({"role": "assistant", "content": "4", field: "2 and 2"})["reasoning"] == "2 and 2"


def test_unknown_fields_of_a_message_are_kept() -> None:
    """They go to the message's own extra; nulls mean absent."""
    message = one({"role": "user", "content": "x", "weight": 0, "audio": None})
    assert json.loads(message["extra"]) == {"weight": 0}


@pytest.mark.parametrize(
    ("turn", "reason"),
    [
        ({"role": "user", "content": {"a": 1}}, "content_not_text"),
        ({"role": 7, "content": "x"}, "role_not_text"),
        ("just text", "message_not_an_object"),
        ({"role": "assistant", "tool_calls": {"name": "f"}}, "tool_calls_not_a_list"),
    ],
)
def test_what_cannot_be_held_is_refused(turn: Any, reason: str) -> None:
    """A content that is no text is never turned into one."""
    with pytest.raises(Unrepresentable, match=reason):
        one(turn)


def test_schemas_speak_json_schema() -> None:
    """Types of other languages are mapped; a property called `type` is a property."""
    given = {
        "type": "dict",
        "properties": {
            "type": {"type": "float"},
            "x": {"type": "any"},
            "l": {"type": "ArrayList", "items": {"type": "String"}},
        },
    }
    assert schema(given) == {
        "type": "object",
        "properties": {"type": {"type": "number"}, "x": {}, "l": {"type": "array", "items": {"type": "string"}}},
    }


def test_bare_functions_are_wrapped() -> None:
    """Both forms of a tool schema become one."""
    bare = {"name": "f", "parameters": {"type": "object"}}
    assert tool_schemas([bare]) == tool_schemas(json.dumps([{"type": "function", "function": bare}]))


@pytest.mark.parametrize("nothing", [None, [], ""])
def test_no_tools_are_null(nothing: Any) -> None:
    """Absent, null and empty are the same."""
    assert tool_schemas(nothing) is None
