"""A mapping puts a record's fields under the names of its shape, and loses nothing on the way."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from corpusforge.errors import SourceError
from corpusforge.shapes import Unrepresentable
from corpusforge.shapes.mapping import FieldRule, Fields
from corpusforge.shapes.paths import lookup, places, steps, without
from corpusforge.stages._trial import Trial, tried
from corpusforge.stages.ingest import Record, SourceConfig, ingest

DEEP = {"a": {"b": [{"c": "1", "d": [1, 2]}, {"c": "2", "d": [3]}]}, "x.y": 9, "cell": '{"k": ["v"]}'}


def source(**fields: Any) -> SourceConfig:
    return SourceConfig.model_validate({"name": "s", "path": "x.jsonl", **fields})


def rows(record: dict[str, Any], **fields: Any) -> list[dict[str, Any]]:
    made = ingest([Record(1, record, "x.jsonl", 1)], source(**fields), detect_language=False)
    assert made.dropped.num_rows == 0, made.reasons()
    return list(made.kept.to_pylist())


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("a.b[1].c", "2"),
        ("a.b.1.c", "2"),
        ("a.b[*].c", ["1", "2"]),
        ("a.b[*].d[*]", [1, 2, 3]),
        ("a.b[*].nope", [None, None]),
        ("a.b[7].c", None),
        ("x.y", 9),
        ("cell.k[0]", "v"),
        ("a.b.c", None),
    ],
)
def test_paths_go_into_objects_lists_and_cells(path: str, found: Any) -> None:
    assert lookup(DEEP, path) == found


@pytest.mark.parametrize("path", ["a[", "a[x]", "", "a..b", "a]b"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="is no path"):
        steps(path)


def test_what_is_taken_leaves_its_place_alone() -> None:
    """Objects on the way are copied, the record is not touched."""
    record = {"a": {"b": 1, "c": 2}, "d": {"e": 3}}
    assert without(record, "a.b") == {"a": {"c": 2}, "d": {"e": 3}}
    assert without(record, "d.e") == {"a": {"b": 1, "c": 2}}
    assert record == {"a": {"b": 1, "c": 2}, "d": {"e": 3}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet="abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(alphabet="abc", min_size=1), JSON, max_size=3))
def test_every_place_that_is_named_leads_somewhere(record: dict[str, Any]) -> None:
    for path in places(record):
        lookup(record, path)
        without(record, path)
        assert "[*]" in path or lookup(record, path) is not None or None in _leaves(record)


def _leaves(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if inner is None else [leaf for one in inner for leaf in _leaves(one)]


TURNS = {
    "turns": [{"speaker": "CLIENT", "said": "Hi", "at": 3}, {"speaker": "AGENT", "said": "Hello"}],
    "topic": "greeting",
}
MESSAGES = {"path": "turns[*]", "role": "speaker", "content": "said", "roles": {"CLIENT": "user", "AGENT": "assistant"}}


@pytest.mark.parametrize("path", ["turns", "turns[*]"])
def test_turns_of_any_names_become_messages(path: str) -> None:
    """What a turn says beside role and content stays with it."""
    (row,) = rows(TURNS, fields={"messages": {**MESSAGES, "path": path}})
    user, assistant = row["messages"]
    assert (user["role"], user["content"], json.loads(user["extra"])) == ("user", "Hi", {"at": 3})
    assert (assistant["role"], assistant["content"]) == ("assistant", "Hello")
    assert json.loads(row["extra"]) == {"topic": "greeting"}


def test_a_template_joins_fields() -> None:
    """What is missing leaves its place empty; what is no text is written as JSON."""
    fields = {"text": {"template": "{name}, {{aged}} {age}: {tags} {gone}"}}
    (row,) = rows({"name": "Ann", "age": 7, "tags": ["a"], "id": 1}, fields=fields)
    assert row["messages"][0]["content"] == 'Ann, {aged} 7: ["a"] '
    assert row["extra"] is None


def test_their_values_become_ours() -> None:
    """A value that nobody named quarantines its record: it is not guessed."""
    fields = {"text": "body", "rating": {"path": "verdict", "values": {"good": 1, "bad": 0}}}
    (row,) = rows({"body": "x", "verdict": "good"}, fields=fields)
    assert (row["kind"], row["rating"]["value"]) == ("rated", 1.0)
    with pytest.raises(Unrepresentable, match="value_not_mapped"):
        source(fields=fields).mapping.apply({"body": "x", "verdict": "so so"})


def test_a_constant_is_the_same_for_every_record() -> None:
    (row,) = rows({"q": "Q?", "a": "A."}, fields={"prompt": "q", "completion": "a", "system": {"value": "Be brief."}})
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]


def test_a_field_whose_name_was_needed_lives_on() -> None:
    """The record's own `prompt` was something else, and goes to extra as it was."""
    (row,) = rows({"prompt": 42, "q": "Q?", "completion": "A."}, fields={"prompt": "q"})
    assert row["messages"][0]["content"] == "Q?"
    assert json.loads(row["extra"]) == {"prompt": 42}


def test_what_was_mapped_decides_the_shape() -> None:
    """Where the record fits several, or one that reads nothing of what was mapped."""
    record = {"q": "Q?", "a": "A.", "messages": TURNS["turns"]}
    (row,) = rows(record, fields={"prompt": "q", "completion": "a"})
    assert [message["content"] for message in row["messages"]] == ["Q?", "A."]
    (row,) = rows({"body": "T", "messages": TURNS["turns"]}, fields={"text": "body"})
    assert row["messages"][0]["content"] == "T"


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ({}, "one of path, value and template"),
        ({"path": "a", "value": 1}, "one of path, value and template"),
        ({"value": 1, "roles": {"a": "user"}}, "roles goes with path"),
        ({"template": "none"}, "names no field"),
        ({"template": "{}"}, "between braces"),
        ({"template": "{a!r}"}, "between braces"),
        ({"path": "a", "role": "r", "values": {"x": 1}}, "values are not for messages"),
        ({"path": "a[["}, "is no path"),
    ],
    ids=["nothing", "two", "roles of a constant", "no field", "empty braces", "conversion", "both", "path"],
)
def test_a_rule_that_means_nothing_is_refused(rule: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        FieldRule.model_validate(rule)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"fields": {"promt": "q"}}, "no shape reads a field 'promt'; did you mean 'prompt'"),
        ({"fields": {"prompt": "q"}, "shape": "alpaca"}, "nothing in the shape alpaca reads a field 'prompt'"),
        ({"shape": "curation:"}, "module:function"),
    ],
    ids=["misspelt", "of another shape", "half a function"],
)
def test_a_name_that_no_shape_reads_is_answered_with_the_nearest(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        source(**fields)


def watch(values: list[Any], **fields: Any) -> int:
    records = [Record(n, v, "x.jsonl", n) for n, v in enumerate(values, 1)]
    return len(list(tried(records, source(**fields))))


GOOD = {"data": {"question": "Q?"}, "reply": "A."}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"prompt": "data.qestion", "completion": "reply"}, r"fields.prompt: none of the first 2 records has "
         r"'data.qestion'\s+did you mean 'data.question'"),
        ({"prompt": "data.question", "completion": "reply", "id": "uid"}, "they have: data, data.question, reply"),
        ({"prompt": "data", "completion": "reply"}, r"gives a row with the mapping: \w+"),
    ],
    ids=["misspelt", "absent", "not what it needs"],
)  # fmt: skip
def test_a_mapping_that_fits_no_record_stops_the_build(fields: dict[str, Any], says: str) -> None:
    """At once, and not with a ledger of a million lines."""
    if "gives a row" in says:
        with pytest.raises(SourceError, match=says):
            watch([GOOD] * 1000, fields=fields)
        return
    with pytest.raises(SourceError, match=says):
        watch([GOOD, GOOD], fields=fields)


def test_one_record_that_fits_is_enough() -> None:
    """The others are quarantined one by one; an optional field may be absent from all."""
    fields = {"prompt": "data.question", "completion": "reply", "id": {"path": "uid", "optional": True}}
    assert watch([{"other": 1}] * 400 + [GOOD] + [{"other": 1}] * 2000, fields=fields) == 2401
    with pytest.raises(SourceError, match="none of the first 1,000 records"):
        watch([{"other": 1}] * 1000 + [GOOD], fields=fields)


@pytest.mark.parametrize(
    ("path", "more", "there"),
    [
        ("terms", {"terms": []}, True),
        ("terms[*]", {"terms": []}, True),
        ("docs[*].terms", {"docs": [{}, {"terms": []}]}, True),
        ("terms", {"terms": None}, False),
        ("docs[*].terms", {"docs": [{}]}, False),
        ("docs[*].terms", {"docs": []}, False),
    ],
)
@pytest.mark.parametrize("name", ["restrictions", "parents"])
def test_an_empty_list_is_there(name: str, path: str, more: dict[str, Any], there: bool) -> None:
    fields = {"prompt": "data.question", "completion": "reply", name: path}
    if there:
        assert watch([{**GOOD, **more}] * 1001, fields=fields) == 1001
        return
    with pytest.raises(SourceError, match=f"fields.{name}: none of the first 1,000 records has"):
        watch([{**GOOD, **more}] * 1001, fields=fields)


def test_a_shape_by_name_is_tried_too() -> None:
    """A thousand records without its fields are not of that shape; a thousand unlucky ones may be."""
    with pytest.raises(SourceError, match=r"gives a row with shape alpaca: field_missing 1,000"):
        watch([{"other": 1}] * 1001, shape="alpaca")
    assert watch([{"other": 1}] * 999, shape="alpaca") == 999
    pair = {"chosen": "\n\nHuman: a\n\nAssistant: b", "rejected": "\n\nHuman: z\n\nAssistant: b"}
    assert watch([pair] * 1001, shape="hh_rlhf") == 1001


def test_what_is_left_out_on_purpose_is_no_trial() -> None:
    trial = Trial(source(fields={"text": "body"}, where={"n": 1}))
    trial.see(Record(1, {"n": 2}, "x", 1))
    trial.see(Record(2, None, "x", 2, "broken_json"))
    assert trial.seen == 0
    trial.judge()


def test_provenance_and_single_elements_stay_where_they_are() -> None:
    record = {"uid": "u", "q": "Q?", "replies": [{"text": "A."}]}
    mapped = Fields({"prompt": "q", "completion": "replies[0].text", "id": "uid"}).apply(record)
    assert mapped.record == {"uid": "u", "replies": [{"text": "A."}], "prompt": "Q?", "completion": "A."}


@given(st.dictionaries(st.sampled_from(["q", "a", "x", "prompt"]), st.text(max_size=3), min_size=1))
def test_no_field_is_lost(record: dict[str, str]) -> None:
    """Every value is under its new name, under its own, or displaced."""
    mapped = Fields({"prompt": "q", "completion": "a", "id": "x"}).apply(record)
    values = [*mapped.record.values(), *mapped.displaced.values()]
    assert sorted(values) == sorted(record.values())
