"""Content in parts and blocks: what is text is text, images move to their column, nothing else is lost."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from corpusforge.shapes import Draft, drafts
from corpusforge.shapes._draft import Notes
from corpusforge.shapes.messages import conversation

PNG = b"\x89PNG made up"
DATA = base64.b64encode(PNG).decode()


def only(record: dict[str, Any]) -> Draft:
    (draft,) = drafts(record)[1]
    return draft


def test_thinking_text_and_calls_of_a_turn() -> None:
    """A signature is kept; what was thought is reasoning."""
    blocks = [
        {"type": "thinking", "thinking": "Look first.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
        {"type": "text", "text": "I'll look."},
        {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "x"}, "cache_control": {"type": "ephemeral"}},
    ]
    (message,) = conversation([{"role": "assistant", "content": blocks, "stop_reason": "tool_use"}], notes := Notes())
    assert (message["reasoning"], message["content"]) == ("Look first.", "I'll look.")
    (call,) = json.loads(message["tool_calls"])
    assert call["function"] == {"name": "look", "arguments": {"at": "x"}}
    assert (call["id"], call["cache_control"]) == ("t1", {"type": "ephemeral"})
    assert json.loads(message["extra"]) == {
        "thinking_blocks": [{"type": "thinking", "signature": "sig"}, {"type": "redacted_thinking", "data": "xyz"}],
        "stop_reason": "tool_use",
    }
    assert notes == []


def test_results_are_turns_of_their_own() -> None:
    """In the order in which they stand; what follows is the user's."""
    content = [
        {"type": "tool_result", "tool_use_id": "t1", "content": "a cat", "is_error": False},
        {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "a dog"}]},
        {"type": "tool_result", "tool_use_id": "t3"},
        {"type": "text", "text": "Which is larger?"},
    ]
    made = conversation([{"role": "user", "content": content, "n": 1}], [])
    assert [message["role"] for message in made] == ["tool", "tool", "tool", "user"]
    assert [message.get("content") for message in made] == ["a cat", "a dog", None, "Which is larger?"]
    assert [message.get("tool_call_id") for message in made] == ["t1", "t2", "t3", None]
    assert (json.loads(made[0]["extra"]), json.loads(made[3]["extra"])) == ({"is_error": False}, {"n": 1})


def test_an_order_that_is_not_kept_is_noted() -> None:
    """A message's text stands before its calls."""
    blocks = [{"type": "tool_use", "id": "t", "name": "f", "input": {}}, {"type": "text", "text": "Done."}]
    notes: list[Any] = []
    (message,) = conversation([{"role": "assistant", "content": blocks}], notes)
    assert (message["content"], notes) == ("Done.", [("blocks_reordered", {})])


SYSTEM = [{"type": "text", "text": "Be brief."}]


@pytest.mark.parametrize("system", ["Be brief.", SYSTEM, json.dumps(SYSTEM)], ids=["text", "blocks", "cell"])
def test_the_system_prompt_beside_the_messages(system: Any) -> None:
    """As a text, as blocks, or as the JSON text of blocks."""
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    draft = only({"system": system, "messages": talk})
    assert draft.messages[0] == {"role": "system", "content": "Be brief."}
    again = only({"system": system, "messages": [{"role": "system", "content": "Be brief."}, *talk]})
    assert again.messages == draft.messages


def test_a_system_prompt_that_happens_to_be_json_stays_what_it_says() -> None:
    assert only({"system": '[{"rule": 1}]', "messages": []}).messages[0]["content"] == '[{"rule": 1}]'


def test_a_refusal_is_what_was_said() -> None:
    """As a field beside an empty content, or as a part; the field stays too."""
    (field,) = conversation([{"role": "assistant", "content": None, "refusal": "I cannot."}], [])
    (part,) = conversation([{"role": "assistant", "content": [{"type": "refusal", "refusal": "I cannot."}]}], [])
    assert field["content"] == part["content"] == "I cannot."
    assert json.loads(field["extra"]) == {"refusal": "I cannot."}
    assert json.loads(part["parts"]) == [{"type": "refusal", "refusal": "I cannot."}]


def test_spoken_answers_are_kept_whole() -> None:
    audio = {"id": "a", "data": "…", "transcript": "Hello"}
    (message,) = conversation([{"role": "assistant", "content": None, "audio": audio}], [])
    assert "content" not in message
    assert json.loads(message["extra"]) == {"audio": audio}


IMAGES = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}", "detail": "low"}},
    {"type": "image_url", "image_url": f"data:image/png;base64,{DATA}"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DATA}},
    {"type": "image", "image": f"data:image/png;base64,{DATA}"},
    {"type": "image", "bytes": PNG},
]


@pytest.mark.parametrize("part", IMAGES, ids=["openai", "openai text", "anthropic", "qwen", "bytes"])
def test_an_image_inside_a_message_moves_to_the_column(part: dict[str, Any]) -> None:
    """Its place in the message is kept."""
    turn = {"role": "user", "content": [part, {"type": "text", "text": "What is it?"}]}
    draft = only({"messages": [turn, {"role": "assistant", "content": "A cat."}]})
    assert [image["bytes"] for image in draft.images or []] == [PNG]
    assert draft.messages[0]["content"] == "What is it?"
    first, second = json.loads(draft.messages[0]["parts"])
    assert (first["type"], second) == ("image", {"type": "text", "text": "What is it?"})
    assert set(first) <= {"type", "detail"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,###"}},
        {"type": "image"},
    ],
    ids=["address", "anthropic address", "broken", "placeholder"],
)
def test_an_image_that_is_elsewhere_stays_a_part(part: dict[str, Any]) -> None:
    draft = only({"messages": [{"role": "user", "content": [part]}, {"role": "assistant", "content": "A cat."}]})
    assert draft.images is None
    assert json.loads(draft.messages[0]["parts"]) == [part]


def test_a_column_of_images_is_what_the_parts_refer_to() -> None:
    """Then nothing moves."""
    turn = {"role": "user", "content": [IMAGES[0]]}
    draft = only({"messages": [turn], "images": [{"bytes": PNG, "path": None}]})
    assert draft.images == [{"bytes": PNG, "path": None}]
    assert json.loads(draft.messages[0]["parts"]) == [IMAGES[0]]


def test_of_two_fields_only_the_one_that_was_read_is_used_up() -> None:
    """`functions` beside `tools`, `system_prompt` beside `system`."""
    schema = [{"name": "f", "parameters": {}}]
    draft = only({"messages": [], "tools": schema, "functions": schema, "system": "A", "system_prompt": "B"})
    assert draft.used >= {"messages", "tools", "system"}
    assert draft.used.isdisjoint({"functions", "system_prompt"})
