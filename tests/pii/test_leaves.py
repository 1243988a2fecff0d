"""Rows as texts, and back."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import message, row

from corpusforge.pii.leaves import leaves, rebuild, replace

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), values, min_size=1, max_size=3))
def test_every_string_of_a_json_column_is_a_leaf_and_can_be_replaced(value):
    text = json.dumps(value, ensure_ascii=False)
    one = row(1, "hi", extra=text)
    found = [leaf for leaf in leaves(one) if leaf.column == "extra"]
    assert rebuild(text, {leaf.steps: leaf.text for leaf in found if leaf.steps}) is not None
    replace(one, {("extra", -1, ""): {leaf.steps: '"\\\n' for leaf in found if leaf.steps}})
    json.loads(one["extra"])


def test_what_is_not_replaced_keeps_its_bytes():
    text = '{"a": 1.0, "n": 18446744073709551617, "b" : "x", "c":"\\u00e9"}'
    assert rebuild(text, {(3,): "y"}) == '{"a": 1.0, "n": 18446744073709551617, "b" : "y", "c":"\\u00e9"}'


def test_json_inside_a_string_inside_json_is_cut_too():
    inner = json.dumps({"to": "zoe"})
    one = row(1, "hi")
    one["messages"].append(message("assistant", None, tool_calls=json.dumps([{"arguments": inner}])))
    leaf = next(leaf for leaf in leaves(one) if leaf.text == "zoe")
    assert leaf.lead == "to: "
    replace(one, {leaf.address: {leaf.steps: 'quo"te'}})
    assert json.loads(json.loads(one["messages"][1]["tool_calls"])[0]["arguments"]) == {"to": 'quo"te'}


def test_keys_are_told_from_values():
    one = row(1, "hi", extra='{"a": "b", "c": ["d", {"e": "f"}]}')
    found = [(leaf.text, leaf.lead, leaf.key) for leaf in leaves(one) if leaf.column == "extra"]
    assert found == [
        ("a", "", True),
        ("b", "a: ", False),
        ("c", "", True),
        ("d", "c: ", False),
        ("e", "", True),
        ("f", "e: ", False),
    ]


def test_who_rated_and_what_a_tool_answers_to_are_texts_too():
    one = row(1, "hi", rating={"value": 1.0, "scale": None, "by": "zoe"})
    one["messages"].append(message("tool", "done", tool_call_id="call_1"))
    found = {leaf.path: leaf for leaf in leaves(one)}
    assert {"rating.by", "messages[1].tool_call_id"} < set(found)
    replace(one, {found["rating.by"].address: {(): "ann"}})
    assert one["rating"]["by"] == "ann"
