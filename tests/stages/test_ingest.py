"""Every record becomes rows or a ledger line, and says where it came from."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from corpusforge.errors import RecordError, SourceError
from corpusforge.sample import check_schema, content_id
from corpusforge.stages.ingest import Record, SourceConfig, check_allowed, ingest

CHAT = {"id": "a", "messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}


def source(**fields: Any) -> SourceConfig:
    """A source with a name and a path."""
    return SourceConfig.model_validate({"name": "s", "path": "x.jsonl", **fields})


def run(*values: Any, **fields: Any) -> Any:
    """The result of ingesting values as the records of one file."""
    records = [
        Record(n, value, "x.jsonl", n) if isinstance(value, dict) else Record(n, None, "x.jsonl", n, value)
        for n, value in enumerate(values, 1)
    ]
    return ingest(records, source(**fields), uri="x.jsonl", revision="r", detect_language=False)


def row(value: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The only row of a record."""
    (made,) = run(value, **fields).kept.to_pylist()
    return dict(made)


TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
ANYTHING = st.one_of(
    st.just("broken_json"),
    st.just(CHAT),
    st.dictionaries(st.sampled_from(["text", "prompt", "chosen", "rejected", "messages", "id", "note"]), st.one_of(
        TEXT, st.none(), st.integers(), st.lists(st.dictionaries(st.sampled_from(["role", "content"]), TEXT)))),
)  # fmt: skip


@given(st.lists(ANYTHING, max_size=6))
def test_every_record_is_accounted_for(values: list[Any]) -> None:
    """Records in = records with rows + quarantined, each once; rows have the format and their own content id."""
    result = run(*values)
    check_schema(result.kept, "kept")
    rows = result.kept.to_pylist()
    with_rows = {r["source"]["record"] for r in rows}
    dropped = {int(d["row_id"].partition("#")[2]) for d in result.dropped.to_pylist()}
    assert with_rows | dropped == set(range(1, len(values) + 1))
    assert not with_rows & dropped
    figures = result.metrics
    assert (figures["records"], figures["with_rows"], figures["quarantined"], figures["rows"]) == (
        len(values), len(with_rows), len(dropped), len(rows),
    )  # fmt: skip
    assert [r["content_id"] for r in rows] == [content_id(r) for r in rows]


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=5), st.one_of(st.integers(), TEXT, st.none())))
def test_unknown_fields_come_through_unchanged(fields: dict[str, Any]) -> None:
    """Everything that the shape does not use is in extra, as it was."""
    known = {"text", "id", "messages", "conversations", "rating", "replies", "prompt", "question", "verifier"}
    fields = {key: value for key, value in fields.items() if key not in known}
    assert json.loads(row({"text": "x", **fields})["extra"] or "{}") == fields


def test_a_quarantined_record_says_where_it_stands() -> None:
    """Id where it has one, file, line, reason; no text."""
    (line,) = run(CHAT, {"id": "b", "messages": [{"role": "user", "content": {"secret": 1}}]}).dropped.to_pylist()
    assert (line["row_id"], line["record_id"], line["reason"]) == ("s#2", "b", "content_not_text")
    assert json.loads(line["detail"]) == {"file": "x.jsonl", "line": 2, "type": "dict"}


def test_strict_stops_at_the_first_bad_record() -> None:
    """And names file and line."""
    records = [Record(1, CHAT, "x.jsonl", 1), Record(2, None, "x.jsonl", 3, "broken_json")]
    with pytest.raises(RecordError, match=r"x\.jsonl, line 3: broken_json"):
        ingest(records, source(), strict=True)


def test_strict_does_not_mind_what_was_left_out_on_purpose() -> None:
    """`where` is a choice, not a fault."""
    records = [Record(1, CHAT, "x.jsonl", 1)]
    assert ingest(records, source(where={"id": "z"}), strict=True).reasons() == {"excluded_by_where": 1}


@pytest.mark.parametrize(
    ("test", "kept"),
    [
        ({"not_between": [2, 3]}, [1, 4]),
        ({"between": [2, 3]}, [2, 3]),
        ([1, 4], [1, 4]),
        (2, [2]),
        ({"not_equals": 2, "not_between": [4, 9]}, [1, 3]),
        ({"one_of": [1]}, [1]),
        ({"none_of": [1]}, [2, 3, 4]),
        ({"equals": 3}, [3]),
    ],
)
def test_where(test: Any, kept: list[int]) -> None:
    """The records that meet the condition stay, the others are listed."""
    result = run(*({"text": "x", "meta": {"n": n}} for n in (1, 2, 3, 4)), where={"meta.n": test})
    assert [r["source"]["record"] for r in result.kept.to_pylist()] == kept
    assert result.reasons() == {"excluded_by_where": 4 - len(kept)}


def test_fields_may_stand_elsewhere() -> None:
    """A mapping finds the shape's fields, and provenance."""
    made = row(
        {"data": {"q": "1+1?", "a": "2"}, "uid": 7, "by": "m-1", "from": ["s#1"]},
        fields={"question": "data.q", "answer": "data.a", "id": "uid", "generator": "by", "parents": "from"},
    )
    assert (made["kind"], made["messages"][0]["content"]) == ("task", "1+1?")
    assert (made["source"]["record_id"], made["source"]["generator"], made["source"]["parents"]) == (
        "7",
        "m-1",
        ["s#1"],
    )


@pytest.mark.parametrize(
    ("said", "license", "restrictions"),
    [
        ("cc-by-nc-4.0", "CC-BY-NC-4.0", ["consent", "non-commercial"]),
        (None, "CC-BY-SA-4.0", ["consent", "share-alike"]),
        ("other", "unknown", ["consent", "share-alike"]),  # what is not understood lifts nothing
        (["mit", "cc-by-nc-4.0"], "MIT AND CC-BY-NC-4.0", ["consent", "non-commercial"]),
    ],
)
def test_a_record_speaks_for_itself(said: Any, license: str, restrictions: list[str]) -> None:
    """Its own licence goes before the source's; restrictions follow from it."""
    made = row({"text": "x", "license": said}, license="CC-BY-SA-4.0", restrictions=["consent"])["source"]
    assert (made["license"], made["restrictions"]) == (license, restrictions)


@pytest.mark.parametrize(
    ("value", "fields", "record_id", "extra"),
    [
        ({"id": 7}, {}, "7", {}),
        ({"id": ["7"], "uuid": "u"}, {}, "u", {"id": ["7"], "uuid": "u"}),
        ({"id": "7", "doc": "d"}, {"id": "doc"}, "d", {"id": "7", "doc": "d"}),
        ({"id": True}, {}, None, {"id": True}),
    ],
)
def test_an_id_that_is_not_the_record_id_is_a_field_like_others(
    value: dict[str, Any], fields: dict[str, str], record_id: str | None, extra: dict[str, Any]
) -> None:
    made = row({"text": "a", **value}, fields=fields)
    assert (made["source"]["record_id"], json.loads(made["extra"] or "{}")) == (record_id, extra)


def test_rows_of_one_record_point_to_its_first() -> None:
    """Siblings share lineage, so that one held out holds out the other."""
    record = {"instruction": "Q", "instances": [{"input": "", "output": "a"}, {"input": "", "output": "b"}]}
    first, second = run(record).kept.to_pylist()
    assert (first["row_id"], first["source"]["parents"]) == ("s#1", [])
    assert (second["row_id"], second["source"]["parents"]) == ("s#1.1", ["s#1"])


def test_a_half_made_record_leaves_no_row() -> None:
    """When its second row cannot be, the first one goes too."""
    record = {"instruction": "Q", "instances": [{"input": "", "output": "a"}, {"input": "", "output": 1}]}
    result = run(record)
    assert (result.kept.num_rows, result.reasons()) == (0, {"field_not_text": 1})


@pytest.mark.parametrize("restriction", ["no-train", "provider-terms"])
def test_a_prohibition_needs_allowing_by_name(restriction: str) -> None:
    """The refusal names the source and the line to add."""
    plain = source(restrictions=[restriction])
    with pytest.raises(SourceError, match=rf"'s' is restricted: {restriction}[\s\S]*allow: \[{restriction}\]"):
        check_allowed([plain])
    check_allowed([plain], [restriction])
    check_allowed([source(restrictions=[restriction], allow=[restriction])])


def test_names_are_unique() -> None:
    """Row ids begin with them."""
    with pytest.raises(SourceError, match="two sources are called 's'"):
        check_allowed([source(), source()])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "a b"}, "letters, digits"),
        ({"license": "mitt"}, "LicenseRef-"),
        ({"restrictions": ["no_train"]}, "did you mean 'no-train'"),
        ({"shape": "alpacca"}, "did you mean 'alpaca'"),
        ({"path": []}, "needs `path`"),
        ({"options": {"size": 3}}, "options.size means nothing"),
        ({"reader": "python"}, "module:function"),
        ({"reader": "reasoning_gym"}, "options.datasets"),
    ],
)
def test_a_wrong_source_says_what_would_be_right(fields: dict[str, Any], says: str) -> None:
    """Before anything is read."""
    with pytest.raises(ValidationError, match=says):
        source(**fields)


@pytest.mark.parametrize(
    ("record", "domain"),
    [
        ({"messages": CHAT["messages"], "tools": [{"name": "f", "parameters": {}}]}, "tools"),
        ({"prompt": "Write f.", "completion": "```python\nx = 1\n```"}, "code"),
        ({"prompt": "Half of 4?", "completion": "It is $$\\frac{4}{2}$$."}, "math"),
        ({"question": "Half of 4?", "answer": "2"}, "math"),
        (CHAT, "chat"),
    ],
)
def test_domain_by_rule(record: dict[str, Any], domain: str) -> None:
    """Where neither source nor shape say it."""
    assert row(record)["domain"] == domain


def test_the_source_knows_better() -> None:
    """What params say goes before every rule."""
    made = row(CHAT, domain="smalltalk", language="de", origin="synthetic", generator="m")
    assert (made["domain"], made["language"], made["source"]["depth"]) == ("smalltalk", "de", 1)
