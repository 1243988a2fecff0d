"""Blocks of JSON Lines: the fast way gives what the slow way gives, wherever the blocks are cut."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.errors import RecordError
from corpusforge.stages._record import json_record
from corpusforge.stages._stage import concat
from corpusforge.stages.ingest import Lines, SourceConfig, ingest, ingest_lines
from corpusforge.text import jsonlines
from corpusforge.text.jsonlines import BLANK, LOOK, ODD, count

HERE = Lines("a.jsonl", "a.jsonl", line=10, position=7)
SOURCE = SourceConfig(name="s", path="a.jsonl", license="MIT")


def source(**fields):
    return SourceConfig.model_validate({"name": "s", "path": "a.jsonl", "license": "MIT", **fields})


def slow(block, config=SOURCE, where=HERE):
    """Line by line, as any reader gives records to the stage."""
    records, position = [], where.position
    for line, text in enumerate(block.split(b"\n"), where.line + 1):
        if text and not text.isspace():
            position += 1
            records.append(json_record(text, position, where.file, line, where.part))
    return ingest(records, config, detect_language=False)


def fast(block, config=SOURCE, where=HERE):
    return ingest_lines(block, where, config, detect_language=False)


def same(one, other):
    assert one.kept.to_pylist() == other.kept.to_pylist()
    assert one.kept.equals(other.kept)
    assert one.dropped.equals(other.dropped)
    assert one.changes.equals(other.changes)
    assert one.metrics == other.metrics


@pytest.fixture(autouse=True, scope="module")
def compiled():
    """The pass over the bytes, which small blocks would not load."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jsonlines, "SMALL", 0)
        yield


# ------------------------------------------------------------- lines of all kinds, spelled in all ways

TEXT = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    (
        *('":', "\\boxed{1}", "```", "def f():", "class A:", "e\u0301", "\n\u0303", "\ufeff", ""),
        *('{"a":1,"a":2}', '[{"role":"user"}]'),
    )
)
NUMBER = st.sampled_from(
    (
        *("0", "-0", "-0.0", "1e16", "1E400", "1e-7", "0.0001", "0.00012", "-0.00001", "123456789.1234567", "1.50"),
        *("12345678901234567890123", "0.30000000000000004", "1e22", "5e-324", "100000000000000000.0"),
    )
)
NAMES = st.sampled_from(
    (
        *("messages", "text", "prompt", "completion", "id", "uuid", "license", "licence", "restrictions", "parents"),
        *("tools", "system", "rating", "label", "verifier", "images", "chosen", "rejected", "question", "answer"),
        *("meta", "é", "e\u0301"),
    )
)
BYTES = st.sampled_from([b"", b'"', b"\\", b"\\u00e9", b"\\ud83d", b"}", b"\xff", b"\0"])


class Number(str):
    """A number as it stands in the file."""


SCALAR = st.none() | st.booleans() | TEXT | NUMBER.map(Number)
VALUE = st.recursive(
    SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)
ROLE = st.sampled_from(["user", "assistant", "human", "tool", "function_call"])
CALL = st.fixed_dictionaries({"name": TEXT, "arguments": VALUE})
TURN = st.fixed_dictionaries(
    {"role": ROLE, "content": TEXT | VALUE},
    optional={"tool_calls": st.lists(CALL, max_size=1), "weight": VALUE, "name": TEXT},
)
CHAT = st.fixed_dictionaries(
    {"messages": st.lists(TURN, max_size=3)}, optional={"id": TEXT | NUMBER.map(Number), "meta": VALUE, "tools": VALUE}
)
PAIR = st.fixed_dictionaries({"prompt": TEXT, "completion": TEXT}, optional={"label": st.booleans(), "meta": VALUE})
RECORD = CHAT | PAIR | st.dictionaries(NAMES, VALUE, max_size=4)


@st.composite
def lines(draw):
    """One line: a record in some spelling, perhaps with a key twice, or broken at some byte."""
    blank = draw(st.sampled_from(["", "", " ", "\t", " \r"]))
    ascii_only = draw(st.booleans())

    def write(value):
        if isinstance(value, Number):
            return str(value)
        if isinstance(value, dict):
            pairs = [f"{json.dumps(k, ensure_ascii=ascii_only)}{blank}:{blank}{write(v)}" for k, v in value.items()]
            if pairs and draw(st.integers(0, 9)) == 0:
                pairs.append(draw(st.sampled_from(pairs)))
            return "{" + f",{blank}".join(pairs) + "}"
        if isinstance(value, list):
            return "[" + f"{blank},".join(map(write, value)) + "]"
        return json.dumps(value, ensure_ascii=ascii_only)

    text = write(draw(RECORD | VALUE)).encode()
    if draw(st.integers(0, 4)) == 0:
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(BYTES) + text[at + draw(st.integers(0, 2)) :]
    return text.replace(b"\n", b"")


BLOCK = st.lists(lines() | st.sampled_from([b"", b" \r", b"\x0b\x0c", b"{}"]), max_size=6).map(b"\n".join)


@given(BLOCK)
@example(b'{"text": "a", "x": 1, "x": 2}')
@example(b'{"text": "a", "x": {"\\u0078": 1, "x": 2}}')
@example(b'{"text": "a", "b" : 1, "c": 1, "c": 2}')
@example(b'{"text": "x\\":y", "n": [1e16, 0.00001, 12345678901234567.5]}\r\n\r\n{"text": 1}')
@example(b'{"text": "a", "deep": ' + b"[" * 199 + b"]" * 199 + b"}")
@example(b'{"text": "a", "deep": ' + b"[" * 200 + b"]" * 200 + b"}")
@example(b'{"text": "a", "deep": ' + b'{"a":' * 2000 + b"1" + b"}" * 2001)
@example(b"{" + b",".join(b'"k%d":1' % n for n in range(200)) + b',"text":"a"}')
@example(b"{" + b",".join(b'"k%d":1' % n for n in range(200)) + b',"text":"a","k150":2}')
def test_the_fast_way_is_the_slow_way(block):
    same(fast(block), slow(block))


@given(BLOCK)
def test_also_where_params_say_more(block):
    config = source(fields={"prompt": "question", "id": "meta"}, where={"label": {"not_equals": True}})
    same(fast(block, config), slow(block, config))


@given(st.lists(lines(), min_size=1, max_size=6), st.integers(0, 6))
def test_a_cut_changes_nothing(texts, at):
    """Line numbers and ids go on behind it."""
    block, first = b"".join(t + b"\n" for t in texts), b"".join(t + b"\n" for t in texts[:at])
    records = [t for t in texts[:at] if t and not t.isspace()]
    behind = replace(HERE, line=HERE.line + len(texts[:at]), position=HERE.position + len(records))
    whole = fast(block)
    parts = concat("ingest", [fast(first), fast(block[len(first) :], where=behind)])
    assert (whole.kept.equals(parts.kept), whole.dropped.equals(parts.dropped)) == (True, True)
    assert whole.metrics == parts.metrics


def test_a_last_record():
    block = b'\n{"text": "a"}\n\n{"text": "b"}\n{"text": "c"}\n'
    assert fast(block, where=replace(HERE, last=HERE.position + 2)).kept["row_id"].to_pylist() == [
        "s/a.jsonl#8", "s/a.jsonl#9",
    ]  # fmt: skip


def test_strict_names_the_first():
    with pytest.raises(RecordError, match=r"a\.jsonl, line 12: broken_json"):
        ingest_lines(b'{"text": "a"}\n{"text": \n', HERE, SOURCE, strict=True)


MARKS = {
    "plain": (b'{"a": 1, "b": [{"a": 1}, {"a": 2}]}', 0),
    "values are no keys": (b'{"a": "b", "b": "a", "c": ["a", "a"]}', 0),
    "a key twice": (b'{"a": 1, "b": {"a": 1}, "a": 2}', LOOK),
    "a key with an escape": (b'{"\\u0061": 1}', LOOK),
    "texts like keys": (b'{"a": "x\\\\", "b": "\\"a\\":1,\\"a\\":2"}', 0),
    "plain numbers": (b'{"a": 123456789012345678901234567890, "b": -1.25, "c": 0.0012}', 0),
    "a small number": (b'{"a": 0.00012}', ODD),
    "a small number in a list": (b'{"a": [-0.0001]}', ODD),
    "an exponent": (b'{"a": 1E5}', ODD),
    "a long fraction": (b'{"a": 1234567890.123456}', ODD),
    "blanks": (b" \t\r\x0b\x0c", BLANK),
    "nothing": (b"", BLANK),
}


def cut(block):
    """Starts, ends and marks as lists."""
    return tuple(each.tolist() for each in jsonlines.cut(block))


@pytest.mark.parametrize("name", MARKS)
def test_marks(name):
    line, mark = MARKS[name]
    starts, ends, marks = cut(line + b"\n" + line + b"\n")
    assert marks == [mark, mark]
    assert (starts, ends) == ([0, len(line) + 1], [len(line) + 1, 2 * len(line) + 2])


def test_no_bytes_are_no_line():
    assert cut(b"") == ([], [], [])


def plainly(block):
    """Without the pass over the bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delitem(sys.modules, "corpusforge.text.jsonscan", raising=False)
        patch.setattr(jsonlines, "SMALL", sys.maxsize)
        return fast(block), cut(block)


@given(BLOCK)
@example(b"\n\n \n")
def test_a_few_bytes_are_cut_without_it(block):
    result, (starts, ends, marks) = plainly(block)
    same(result, fast(block))
    assert (starts, ends) == cut(block)[:2]
    assert [mark == BLANK for mark in marks] == [mark == BLANK for mark in cut(block)[2]]


@given(BLOCK)
@example(b"\n")
@example(b" \n\n a\n \x1c\n")
def test_lines_and_records_are_counted(block):
    marks = cut(block)[2]
    assert count(block)[:2] == (len(marks), sum(mark != BLANK for mark in marks))
    assert count(block + b"\n")[2] == max(map(len, block.split(b"\n"))) + 1
