"""The trainer's form holds what the trainer reads, and nothing of it is lost or invented."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.sample import dumps
from corpusforge.stages.shard import (
    ShardConfig,
    folders,
    form_schema,
    noted_form,
    order,
    row_bytes,
    row_groups,
    shard_count,
    trainer_form,
)

CALL = {"type": "function", "function": {"name": "set_lamp", "arguments": {"room": "attic", "percent": None}}}
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


def loaded(form: pa.Table, column: str) -> list[list[dict]]:
    """A JSON column, parsed."""
    return [[json.loads(text) for text in texts] for texts in form[column].to_pylist()]


@given(TEXT, TEXT, st.none() | TEXT)
def test_texts_survive_whatever_they_hold(question, answer, reasoning):
    turns = [message("user", question), message("assistant", answer, reasoning=reasoning)]
    (messages,) = loaded(trainer_form(table([row(1, messages=turns)]), "sft"), "messages")
    thought = {} if reasoning is None else {"reasoning_content": reasoning}
    assert messages == [{"role": "user", "content": question}, {"role": "assistant", "content": answer, **thought}]


def test_tool_calls_are_objects_and_nulls_are_only_the_users_own():
    turns = [
        message("user", "Reset the lamp."),
        message("assistant", None, tool_calls=dumps([CALL])),
        message("tool", "done", tool_call_id="c1", name="set_lamp", extra='{"weight":0}'),
    ]
    (messages,) = loaded(trainer_form(table([row(1, messages=turns)]), "sft"), "messages")
    assert messages[1] == {"role": "assistant", "content": "", "tool_calls": [CALL]}
    assert messages[2] == {"role": "tool", "content": "done", "tool_call_id": "c1", "name": "set_lamp", "weight": 0}


def test_content_parts_stand_where_the_content_is():
    parts = [{"type": "image"}, {"type": "text", "text": "What is this?"}]
    rows = table([row(1, messages=[message("user", "What is this?", parts=dumps(parts), extra="{}")])])
    assert loaded(trainer_form(rows, "sft"), "messages") == [[{"role": "user", "content": parts}]]


def test_a_kind_has_only_its_trainers_columns():
    assert form_schema("sft").names[:2] == ["messages", "tools"]
    assert form_schema("preference").names[:4] == ["prompt", "chosen", "rejected", "tools"]
    assert form_schema("task").names[:5] == ["prompt", "verifier_kind", "verifier_spec", "answer", "tools"]
    reserved = {"prompts", "completions", "completion_ids", "trainer_state", "log_extra", "log_metric", "environments"}
    for folder in ("sft", "preference", "task", "rated", "sft_images"):
        assert not reserved & set(form_schema(folder).names)
        assert ("images" in form_schema(folder).names) == folder.endswith("_images")


def test_tasks_carry_their_verifier_and_gold_answer():
    spec = '{"answer":"72","tolerance":0.0}'
    form = trainer_form(table([row(1, "2 + 70?", kind="task", verifier={"kind": "numeric", "spec": spec})]), "task")
    assert form.select(["verifier_kind", "verifier_spec", "answer"]).to_pylist() == [
        {"verifier_kind": "numeric", "verifier_spec": spec, "answer": "72"}
    ]


def test_rated_rows_part_into_prompt_and_completion():
    rows = [
        row(1, "q", "said", kind="rated", rating={"value": 0.0, "scale": "yes/no", "by": "me"}),
        row(
            2, "q", kind="rated", chosen=[message("assistant", "c")], rating={"value": 4.0, "scale": "1-5", "by": None}
        ),
        row(3, "q", "a", "again", "last", kind="rated", rating=None),
        row(4, "open", kind="rated", rating=None),
    ]
    form = trainer_form(table(rows), "rated")
    prompts = [[turn["content"] for turn in turns] for turns in loaded(form, "prompt")]
    completions = [[turn["content"] for turn in turns] for turns in loaded(form, "completion")]
    assert prompts == [["q"], ["q"], ["q", "a", "again"], ["open"]]
    assert completions == [["said"], ["c"], ["last"], []]
    assert form["label"].to_pylist() == [False, None, None, None]
    assert form["rating"].to_pylist() == [0.0, 4.0, None, None]


def test_rows_with_images_are_a_kind_of_their_own():
    rows = table([row(1, "a"), row(2, "b", images=[{"bytes": b"x", "path": None}]), row(3, "c", images=[])])
    assert folders(rows).to_pylist() == ["sft", "sft_images", "sft"]


def test_an_empty_list_of_tools_is_no_tools():
    rows = table([row(1, "a", tools="[]"), row(2, "b", tools='[{"name":"f"}]'), row(3, "c")])
    assert trainer_form(rows, "sft")["tools"].to_pylist() == [None, '[{"name":"f"}]', None]


@pytest.mark.parametrize(
    ("number", "held"),
    [
        ("18446744073709551617", "text"),
        ("-9223372036854775809", "text"),
        ("100000000000000000000.5", "text"),
        ("5e-324", "number"),
        ("0.000001234567890123", "number"),
        ("18446744073709551615", None),
        ("0.30000000000000004", None),
        ("3.14", None),
    ],
)
def test_numbers_that_datasets_cannot_read_are_listed(number, held):
    calls = f'[{{"type":"function","function":{{"name":"f","arguments":{{"order":[{number}]}}}}}}]'
    turns = [message("user", "12345678901234567890"), message("assistant", "", tool_calls=calls)]
    form, found = noted_form(table([row(8, "x", "y"), row(9, messages=turns)]), "sft")
    text = form["messages"][1][1].as_py()
    assert json.loads(text)["tool_calls"][0]["function"]["name"] == "f"
    assert (f'["{number}"]' if held == "text" else f"[{number}]") in text
    where = {"row_id": "test#9", "column": "messages", "path": "[1].tool_calls[0].function.arguments.order[0]"}
    assert found == ([where | {"held_as": held}] if held else [])


def test_metadata_says_where_a_row_comes_from():
    rows = table(
        [row(1, "q", "a", license="CC-BY-4.0", restrictions=["provider-terms"], extra='{"doc_no":9007199254740995}')]
    )
    (line,) = trainer_form(rows, "sft").to_pylist()
    want = {"row_id": "test#1", "record_id": "own-1", "source": "test", "license": "CC-BY-4.0", "copy": 0}
    assert want.items() <= line.items()
    assert line["restrictions"] == ["provider-terms"]
    assert line["extra"] == '{"doc_no":9007199254740995}'


@given(st.integers(0, 9))
def test_sizes_do_not_depend_on_where_a_table_is_cut(cut):
    rows = table([row(i, f"q {i}" * i, "é" * i, tools="[1]" if i % 2 else None) for i in range(10)])
    form = trainer_form(rows, "sft")
    parts = [trainer_form(piece, "sft") for piece in (rows.slice(0, cut), rows.slice(cut))]
    assert np.concatenate([row_bytes(part) for part in parts]).tolist() == row_bytes(form).tolist()
    assert pa.concat_tables(parts).equals(form)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 120))
def test_row_groups_cover_all_rows_and_respect_the_limit(sizes, limit):
    groups = row_groups(np.array(sizes, np.int64), limit)
    assert [place for start, stop in groups for place in range(start, stop)] == list(range(len(sizes)))
    assert all(sum(sizes[start:stop]) <= limit or stop - start == 1 for start, stop in groups)


@given(st.integers(0, 10**7), st.integers(1, 10**6))
def test_the_number_of_shards_is_a_power_of_two_that_fits(rows, per_shard):
    count = shard_count(rows, 0, ShardConfig(rows_per_shard=per_shard))
    assert count == 0 if not rows else rows <= count * per_shard
    assert count & (count - 1) == 0
    assert count < 2 or rows > count // 2 * per_shard


def test_copies_of_a_row_are_spread():
    rows = table([row(1, "q", "a")] * 50).append_column("copy", pa.array(range(50), pa.int32()))
    assert len(set(order(rows, 0).tolist())) == 50
