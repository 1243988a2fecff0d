"""Whatever shape a record is taken for, every text that it holds is in one of its rows, or the record is quarantined.

The values are tokens that nothing else writes, so that a token which is in no row is a value that went unseen.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.test_round_trip import ingested

often = settings(max_examples=max(settings.default.max_examples, 150))
NAMES = (
    *("id", "uuid", "task_id", "text", "content", "prompt", "completion", "response", "messages", "conversations"),
    *("conversation", "dialogue", "chosen", "rejected", "question", "answer", "choices", "options", "instruction"),
    *("input", "output", "context", "instances", "problem", "solution", "rating", "score", "label", "tools"),
    *("functions", "function", "ground_truth", "system", "system_prompt", "verifier", "metadata", "images", "history"),
    *("license", "licence", "restrictions", "parents", "origin", "generator", "language", "domain", "created"),
    *("test_list", "entry_point", "test", "code", "replies", "role", "level", "type", "kwargs", "unknown"),
)
INNER = (
    *("role", "content", "from", "value", "name", "tool_calls", "tool_call_id", "function_call", "reasoning", "type"),
    *("text", "function", "arguments", "parameters", "description", "kind", "answer", "tests", "by", "scale", "input"),
    *("output", "weight", "id", "rank", "replies"),
)
TOKEN = st.integers(0, 10**8).map(lambda number: f"q{number}z")
ROLE = st.sampled_from(("user", "assistant", "system", "tool", "human", "gpt"))
VALUE = st.recursive(
    TOKEN | st.none() | st.booleans() | st.integers(0, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(INNER), inner, max_size=4)
        | st.builds(lambda role, inside: {"role": role, **inside}, ROLE, st.dictionaries(st.sampled_from(INNER), inner))
    ),
    max_leaves=8,
)
INSIDE = st.dictionaries(st.sampled_from(INNER), VALUE, max_size=2)
CALL = st.builds(lambda name, given, more: {**more, "name": name, "arguments": given}, TOKEN, INSIDE | TOKEN, INSIDE)
CALLS = st.lists(CALL | st.builds(lambda call, more: {**more, "function": call}, CALL, INSIDE), max_size=2)
PARTS = st.lists(
    TOKEN
    | st.builds(lambda kind, more: {**more, "type": kind}, st.sampled_from(("text", "image_url", "tool_use")), INSIDE),
    max_size=3,
)
HELD = st.fixed_dictionaries({}, optional={"tool_calls": CALLS, "function_call": CALL, "content": PARTS | TOKEN})
TEXTS = st.lists(TOKEN, min_size=1, max_size=3)


def turns(who: str, said: str, roles: tuple[str, ...]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Conversations whose turns may hold anything besides."""
    turn = st.builds(
        lambda role, text, held, more: {**more, who: role, said: text, **held},
        st.sampled_from(roles),
        TOKEN,
        HELD,
        INSIDE,
    )
    return st.lists(turn, min_size=1, max_size=3)


TURNS = turns("role", "content", ("user", "assistant", "system", "tool"))
TREE = st.recursive(
    st.fixed_dictionaries(
        {"text": TOKEN, "role": st.just("assistant"), "rank": st.integers(0, 3), "replies": st.just([])}
    ),
    lambda inner: st.fixed_dictionaries(
        {"text": TOKEN, "role": st.sampled_from(("assistant", "prompter")), "replies": st.lists(inner, max_size=2)}
    ),
    max_leaves=4,
)
SPEC = st.builds(lambda more, kind: {**more, "kind": kind}, INSIDE, TOKEN)
SHAPED = st.one_of(
    *map(
        st.fixed_dictionaries,
        (
            {"text": TOKEN},
            {"messages": TURNS, "tools": st.lists(st.builds(lambda call: {"function": call}, CALL), max_size=2)},
            {"conversations": turns("from", "value", ("human", "gpt", "system", "tool", "function_call"))},
            {"conversation": TEXTS, "language": TOKEN},
            {"prompt": TOKEN | TURNS, "completion": TOKEN | TURNS, "label": st.booleans() | TOKEN},
            {"prompt": TOKEN, "response": TOKEN, "rating": st.integers(0, 5) | INSIDE},
            {"instruction": TOKEN, "input": TOKEN, "output": TOKEN, "history": st.lists(st.tuples(TOKEN, TOKEN))},
            {"instruction": TOKEN, "context": TOKEN, "response": TOKEN, "system": TOKEN},
            {"instruction": TOKEN, "instances": st.lists(st.fixed_dictionaries(
                {"input": TOKEN, "output": TOKEN, "weight": TOKEN}), min_size=1, max_size=2)},
            {"prompt": TOKEN | TURNS, "chosen": TOKEN | TURNS, "rejected": TOKEN | TURNS},
            {"chosen": TURNS, "rejected": TURNS},
            {"prompt": st.fixed_dictionaries({"text": TOKEN, "replies": st.lists(TREE, min_size=1, max_size=2)})},
            {"prompt": TOKEN, "verifier": SPEC},
            {"question": TOKEN, "answer": TOKEN},
            {"problem": TOKEN, "solution": TOKEN, "answer": TOKEN, "level": TOKEN},
            {"question": TOKEN, "choices": TEXTS, "answer": st.integers(0, 2)},
            {"text": TOKEN, "code": TOKEN, "test_list": TEXTS, "test_setup_code": TOKEN},
            {"prompt": TOKEN, "test": TOKEN, "entry_point": TOKEN, "canonical_solution": TOKEN},
            {"prompt": TOKEN, "instruction_id_list": TEXTS, "kwargs": st.lists(INSIDE, max_size=3)},
            {"question": TOKEN, "answer": TOKEN, "metadata": st.builds(
                lambda more, source: {**more, "source_dataset": source}, INSIDE, TOKEN)},
            {"question": st.lists(TURNS, min_size=1, max_size=1), "function": st.lists(CALL, min_size=1, max_size=2),
             "ground_truth": st.lists(st.dictionaries(TOKEN, st.dictionaries(TOKEN, TEXTS), max_size=1), max_size=2)},
        ),
    )
)  # fmt: skip
ANY = st.dictionaries(st.sampled_from(NAMES), TOKEN | TURNS | TEXTS | VALUE, max_size=4)
RECORD = ANY | st.builds(lambda shaped, more: {**more, **shaped}, SHAPED, ANY)


def tokens(value: Any) -> set[str]:
    """The tokens in a value, wherever they are."""
    return set(re.findall(r"q\d+z", json.dumps(value, default=str)))


FOUND = {
    "fields of a pair": {"instruction": "q1z", "instances": [{"input": "q2z", "output": "q3z", "weight": "q4z"}]},
    "two dialogues": {"conversation": ["q1z", "q2z"], "dialogue": {"kind": "q3z"}},
    "fields of a rating": {"prompt": "q1z", "response": "q2z", "rating": {"value": 1, "why": "q3z"}},
    "an id beside the id": {"uuid": "q1z", "id": ["q2z"], "text": "q3z"},
    "content beside value": {"conversations": [{"from": "human", "value": "q1z", "content": "q2z"}]},
    "a turn that is a call": {"conversations": [
        {"from": "function_call", "value": json.dumps({"name": "q1z"}), "weight": "q2z"}]},
    "the type of a bare call": {"messages": [
        {"role": "assistant", "tool_calls": [{"type": "q1z", "name": "q2z", "arguments": {}}]}]},
    "a second solution": {
        "prompt": "q1z", "test": "q2z", "entry_point": "q3z", "canonical_solution": "q4z", "solution": "q5z",
        "source_solution": "q6z"},
    "fields of a function": {"messages": [{"role": "assistant", "tool_calls": [
        {"function": {"name": "q1z", "arguments": {}, "strict": "q2z"}, "type": "q3z", "index": "q4z"}]}]},
}  # fmt: skip


@pytest.mark.parametrize("record", FOUND.values(), ids=FOUND)
def test_what_once_went_unseen(record: dict[str, Any]) -> None:
    with ingested([record]) as (read, _):
        assert read.kept.num_rows
        assert tokens(record) <= tokens(read.kept.to_pylist())


def test_calls_that_are_no_list_are_not_replaced_by_the_one_call() -> None:
    call = {"name": "f", "arguments": {}}
    with ingested([{"messages": [{"role": "assistant", "tool_calls": "q1z", "function_call": call}]}]) as (read, _):
        assert read.reasons() == {"tool_calls_not_a_list": 1}


def test_a_rating_keeps_its_digits() -> None:
    with ingested([{"prompt": "a", "response": "b", "rating": 2**53 + 1}]) as (read, _):
        (row,) = read.kept.to_pylist()
    assert row["rating"]["value"] == float(2**53)
    assert json.loads(row["extra"]) == {"rating": {"value": 2**53 + 1}}


@often
@given(st.lists(RECORD, min_size=1, max_size=6))
def test_no_text_of_a_record_that_gave_rows_is_in_none_of_them(records: list[dict[str, Any]]) -> None:
    with ingested(records) as (read, _):
        rows: dict[int, list[Any]] = {}
        for row in read.kept.to_pylist():
            rows.setdefault(row["source"]["record"], []).append(row)
        quarantined = {int(line["row_id"].partition("#")[2]) for line in read.dropped.to_pylist()}
    assert set(rows) | quarantined == set(range(1, len(records) + 1))
    assert not set(rows) & quarantined
    for number, made in rows.items():
        assert tokens(records[number - 1]) <= tokens(made), made[0]["kind"]
