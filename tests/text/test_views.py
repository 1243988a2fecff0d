"""Texts of rows: one property per test, over every kind."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from tests.rows import message, row, table

from corpusforge.sample import MESSAGE_FIELDS, SCHEMA
from corpusforge.text.views import answer_text, compare_text, prompt_text, row_text


def turn(role: str, content: str | None, **fields: str) -> dict[str, Any]:
    """One message with every field of the row format."""
    return dict.fromkeys(MESSAGE_FIELDS) | {"role": role, "content": content} | fields


CHAT = {
    "kind": "sft",
    "messages": [
        turn("system", "Be kind."),
        turn("user", "hi"),
        turn("assistant", None, tool_calls='[{"a":1}]'),
        turn("tool", "42"),
        turn("assistant", "bye", reasoning="think"),
    ],
}
PAIR = {
    "kind": "preference",
    "messages": [turn("user", "q"), turn("assistant", "a"), turn("user", "r")],
    "chosen": [turn("assistant", "good")],
    "rejected": [turn("assistant", "bad")],
}
TASK = {"kind": "task", "messages": [turn("user", "2+2")], "verifier": {"kind": "math", "spec": '{"answer":"4"}'}}
CODE = {"kind": "task", "messages": [turn("user", "f")], "verifier": {"kind": "code", "spec": '{"tests":["f()"]}'}}
BARE: dict[str, Any] = {"kind": "sft", "messages": None}
ROWS = pa.Table.from_pylist([CHAT, PAIR, TASK, CODE, BARE], schema=SCHEMA)


def test_row_text_holds_turns_calls_and_both_answers() -> None:
    """Reasoning, contents, tool calls, chosen and rejected are joined by line breaks; nothing gives ""."""
    assert row_text(ROWS).to_pylist() == ['hi\n[{"a":1}]\n42\nthink\nbye', "q\na\nr\ngood\nbad", "2+2", "f", ""]


def test_system_prompt_only_on_request() -> None:
    """The system turn is there when asked for."""
    assert row_text(ROWS, system=True)[0].as_py().startswith("Be kind.\nhi")


def test_prompt_is_what_is_asked() -> None:
    """Assistant turns count as prompt only where all messages are the prompt."""
    assert prompt_text(ROWS).to_pylist() == ["hi\n42", "q\na\nr", "2+2", "f", ""]
    assert row_text(ROWS, answers=False).equals(prompt_text(ROWS))


def test_answer_is_assistant_chosen_or_gold() -> None:
    """A task answers with its gold, or with its whole spec where there is no answer field."""
    assert answer_text(ROWS).to_pylist() == ['[{"a":1}]\nthink\nbye', "good", "4", '{"tests":["f()"]}', ""]


def test_what_is_compared_has_sections_and_no_ids_of_calls() -> None:
    """A trace's steps stand apart from what tools gave, a pair's answers from their prompt; an argument `id` stays."""
    sections = [text.split("\x1e") for text in compare_text(ROWS).to_pylist()]
    assert sections == [["hi\n42", '[{"a":1}]\nthink\nbye'], ["q\na\nr", "good", "bad"], ["2+2"], ["f"], [""]]
    calls = '[{"id":"call_7","type":"function","function":{"name":"f","arguments":{"id":"x"}}},{"id":8,"a":1}]'
    row = {"kind": "sft", "messages": [turn("assistant", None, tool_calls=calls)]}
    text = compare_text(pa.Table.from_pylist([row], schema=SCHEMA))[0].as_py()
    assert text == '[{"type":"function","function":{"name":"f","arguments":{"id":"x"}}},{"id":8,"a":1}]'


def test_empty_table_and_chunks_give_one_string_array() -> None:
    """The result is one contiguous `string` array, whatever the chunks of the table."""
    chunked = pa.concat_tables([ROWS, ROWS.slice(1, 2)])
    assert row_text(chunked).to_pylist() == row_text(ROWS).to_pylist() + row_text(ROWS).to_pylist()[1:3]
    assert row_text(ROWS.slice(0, 0)).type == pa.string()


def test_a_text_makes_no_sections_of_its_own() -> None:
    """U+001E in what people wrote is a blank: it does not move the border between prompt and answers."""
    mark, said = "\x1e", [[message("assistant", text)] for text in ("a\x1eb", "c")]
    pair = row(1, "one\x1etwo", kind="preference", chosen=said[0], rejected=said[1])
    assert compare_text(table([pair]))[0].as_py().count(mark) == 2
    assert mark not in compare_text(table([row(1, "one\x1etwo", "a\x1eb")]))[0].as_py()
