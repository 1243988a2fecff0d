"""Conversations read by kernels are the rows that the general way makes of them, to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.properties.records import JSON, TEXT

from corpusforge.shapes import PLAIN_CHAT, find
from corpusforge.shapes.finding import TELLING
from corpusforge.stages import _batch
from corpusforge.stages._record import json_record
from corpusforge.stages.ingest import Lines, SourceConfig, ingest, ingest_lines
from corpusforge.text import (
    jsonlines,
    jsonscan,  # noqa: F401 # what is loaded is used
)

often = settings(max_examples=max(settings.default.max_examples, 300))
KEYS = st.sampled_from(("weight", "xé", "name", "refusal", "tool_calls", "from", "value", "reasoning", "a b", ""))
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(-10, 10) | TEXT
CONTENT = TEXT | st.sampled_from(
    (
        "```py",
        "\\frac{1}{2}",
        "#### 4",
        "e\u0301",
        "\u1e9b\u0323",
        "Où est la bibliothèque de la ville ? " * 8,
        "SHOUT " * 9,
    )
)
MESSAGE = st.builds(
    lambda role, content, more: {"role": role, "content": content, **more},
    st.sampled_from(("user", "assistant", "system", "tool")) | st.sampled_from(("human", "critic", None)),
    CONTENT | CONTENT | CONTENT | st.none() | st.just([{"type": "text", "text": "part"}]),
    st.just({}) | st.dictionaries(KEYS, SCALAR, max_size=2),
)
TOP = st.sampled_from(
    ("meta", "x", "text", "prompt", "uuid", "license", "rating", "tools", "system", "images", "verifier", "score", "Ä")
)
RECORD = st.builds(
    lambda id, messages, more, first: ({**more} if first else {}) | id | {"messages": messages} | more,
    st.just({}) | st.builds(lambda id: {"id": id}, TEXT | st.integers() | st.none() | st.booleans() | st.just(1.5)),
    st.lists(MESSAGE, max_size=4) | st.just("none") | st.none(),
    st.dictionaries(TOP, JSON, max_size=2),
    st.booleans(),
)
LINE = st.one_of(
    st.builds(lambda record, ascii_only: json.dumps(record, ensure_ascii=ascii_only), RECORD, st.booleans()),
    st.builds(lambda record: json.dumps(record, separators=(" , ", "\t: ")), RECORD),
    st.builds(lambda record, at: json.dumps(record)[:at], RECORD, st.integers(0, 80)),
    st.builds(lambda record, at, put: (t := json.dumps(record))[:at] + put + t[at:], RECORD, st.integers(0, 80),
              st.sampled_from([*'{}[]",:\\ 1', "\\/", "\\u00e9", "\\ud83d", "é", "\x01", "1e3"])),
    st.sampled_from(["", "  ", "[]", "{}", '{"messages": []}', '{"messages": [{"role": "user", "content": "a"}]} x',
                     '{"messages": [{"role": "user", "content": "a"},]}', '{"id": 1.5, "id": 2, "messages": []}',
                     '{"messages": [{"role": "user", "content": "a", "role": "user"}]}']),
)  # fmt: skip


def both(data: bytes, source: SourceConfig, last: int = 10**6) -> tuple[Any, Any, int]:
    """The result of the kernels, of the general way, and how many conversations the kernels read."""
    options: dict[str, Any] = {"uri": "in.jsonl", "revision": "r", "detect_language": True}
    made = []
    real = _batch._plain.table

    def table(*given: Any, **named: Any) -> Any:
        made.append(real(*given, **named))
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_batch._plain, "table", table)
        found = ingest_lines(data, Lines("in.jsonl", "a/b", 5, 7, last), source, **options)
    lines = [line for line in data.split(b"\n") if line]
    assert len(lines) == data.count(b"\n")
    known = [number for number, line in enumerate(lines) if line.strip()]
    records = [
        json_record(lines[number] + b"\n", position, "in.jsonl", number + 6, "a/b")
        for position, number in enumerate(known, 8)
        if position <= last
    ]
    return found, ingest(records, source, **options), sum(len(one) for one in made)


def same(found: Any, wanted: Any) -> None:
    assert found.kept.equals(wanted.kept), (found.kept.to_pylist(), wanted.kept.to_pylist())
    assert found.dropped.to_pylist() == wanted.dropped.to_pylist()
    assert found.changes.to_pylist() == wanted.changes.to_pylist()
    assert json.dumps(found.metrics) == json.dumps(wanted.metrics)


@often
@given(st.lists(LINE.filter(bool), min_size=1, max_size=6), st.integers(7, 14))
@example(['{"messages": [{"role": "user", "content": "a", "w": -0}]}'], 20)
@example(['{"messages":[{"content":"\\u0000\\"\\n","role":"tool"}],"x":{"y":[1,{"z":null}]},"id":-12}'], 20)
def test_the_same_rows_ledgers_and_figures(lines: list[str], last: int) -> None:
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")
    same(*both(data, SourceConfig(name="s", path="in.jsonl", license="MIT"), last)[:2])


@pytest.mark.parametrize(
    ("more", "plain"),
    [
        ({}, 2),
        ({"domain": "law", "language": "fr", "origin": "synthetic", "generator": "m"}, 2),
        ({"shape": "chat"}, 2),
        ({"fields": {"id": "uuid"}}, 0),
        ({"where": {"meta.kept": {"equals": True}}}, 0),
        ({"shape": "rated"}, 0),
    ],
)
def test_a_source_that_is_plain_is_read_by_kernels(more: dict[str, Any], plain: int) -> None:
    lines = [
        {"id": "a", "messages": [{"role": "user", "content": "é"}], "meta": {"kept": True}},
        {"id": "b", "messages": [{"role": "user", "content": "x"}], "license": "no-train"},
        {
            "messages": [{"role": "system", "content": "x"}, {"role": "assistant", "content": "y", "weight": 1}],
            "n": 0.5,
        },
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    found, wanted, read = both(data, SourceConfig.model_validate({"name": "s", "path": "in.jsonl", **more}))
    same(found, wanted)
    assert read == plain


def test_bytes_that_are_no_text_are_left_to_the_parser() -> None:
    data = b'{"messages": [{"role": "user", "content": "a"}]}\n{"messages": [{"role": "user", "content": "\xff"}]}\n'
    found, wanted, read = both(data, SourceConfig(name="s", path="in.jsonl"))
    same(found, wanted)
    assert (read, found.kept.num_rows, found.reasons()) == (0, 1, {"invalid_unicode": 1})


def test_a_small_block_is_cut_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    line = b'{"messages": [{"role": "user", "content": "a"}]}\n'
    monkeypatch.setattr(_batch, "cut", jsonlines._cut_plainly)
    found, wanted, read = both(line * 3, SourceConfig(name="s", path="in.jsonl"))
    same(found, wanted)
    assert read == 0


@given(st.sets(st.sampled_from(("text", "prompt", "content", "question")), max_size=4), st.sets(TOP), st.data())
def test_what_is_plain_is_found_to_be_a_chat(weak: set[str], more: set[str], data: st.DataObject) -> None:
    """Of whatever else the record has: the fields that could make it another shape are all in PLAIN_CHAT."""
    values = st.none() | st.just("") | TEXT | st.just([{"role": "user"}])
    record = {name: data.draw(values) for name in (weak | more) - PLAIN_CHAT}
    assert find({**record, "messages": [{"role": "user", "content": "a"}]}) == "chat"
    assert not weak & TELLING or weak & {"completion"}
