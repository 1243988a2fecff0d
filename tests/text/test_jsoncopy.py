"""JSON copied by kernels is what a parser and an encoder make of it, or it is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.sample import dumps
from corpusforge.text.jsoncopy import copy_text, copy_value, skip
from corpusforge.text.jsontext import JsonFault, parse

TEXT = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(
    ['"', "\\", "\n\t\b\f\r", "\0\x1f", "😀", "/"]
)
NUMBER = st.sampled_from(
    (
        *(
            "0",
            "-0",
            "-0.0",
            "0.0",
            "1.50",
            "1.5",
            "-12",
            "01",
            "1.",
            "-",
            "1e5",
            "1E-5",
            "0.0001",
            "0.00012",
            "-0.0005",
        ),
        *("123456789012345678", "1234567890123456789", "12345678.1234567", "0.1234567890123", "0.12345678901234"),
    )
)
PUT = st.sampled_from(["", *',{}[]"\\1:', "\\u12", "\\ud83d", "tru", "nul", "\x01"])


class Literal(str):
    """A number as it stands."""


JSON = st.recursive(
    st.none() | st.booleans() | TEXT | NUMBER.map(Literal) | st.integers() | st.floats(-1e9, 1e9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def spelled(draw):
    """A JSON text with blanks and escapes, perhaps broken."""
    blank = draw(st.sampled_from(["", " ", " \t", "\n"]))

    def text(value):
        return json.dumps(value, ensure_ascii=draw(st.booleans())).replace("/", draw(st.sampled_from(["/", "\\/"])))

    def write(value):
        if isinstance(value, Literal):
            return str(value)
        if isinstance(value, dict):
            return "{" + f"{blank},".join(f"{blank}{text(k)}{blank}:{write(v)}" for k, v in value.items()) + blank + "}"
        if isinstance(value, list):
            return "[" + blank + f",{blank}".join(map(write, value)) + "]"
        return text(value) if isinstance(value, str) else json.dumps(value)

    made = blank + write(draw(JSON))
    if draw(st.integers(0, 2)) == 0:
        at = draw(st.integers(0, len(made)))
        made = made[:at] + draw(PUT) + made[at + draw(st.integers(0, 2)) :]
    return made


def copied(text):
    """The copy, and what is behind the value; None where it is refused."""
    data = text.encode()
    source = np.frombuffer(data, np.uint8)
    out = np.empty(len(data) + 64, np.uint8)
    at, to = copy_value(source, skip(source, 0, len(data)), len(data), out, 0)
    return None if at < 0 else (out[:to].tobytes().decode(), data[at:])


@given(spelled())
@example("[,]")
@example("[1,]")
@example("{,}")
@example('{"a":1,}')
@example('{"a"}')
@example("[1 2]")
@example("[}")
@example('"\\ud83d\\ude00\\u00e9\\u0000\\u001F\\u0022"')
@example("[" * 200 + "]" * 200)
@example("[" * 201 + "]" * 201)
@example("nulL")
@example("falsy")
@example("")
def test_a_copy_is_what_parser_and_encoder_make(text):
    found = copied(text)
    if found is None:
        return
    copy, rest = found
    value = text.encode()[: len(text.encode()) - len(rest)]
    assert dumps(parse(value)) == copy


@given(JSON.filter(lambda value: not isinstance(value, float)))
def test_what_is_plain_is_copied(value):
    """Not everything may be refused."""
    plain = json.loads(json.dumps(value), parse_float=lambda _: 1.5, parse_int=lambda _: 7)
    for text in (json.dumps(plain), json.dumps(plain, ensure_ascii=False, indent=1)):
        assert copied(text) == (dumps(plain), b"")


@pytest.mark.parametrize(
    "text", ["1e5", "-0", "01", "1.50", "1.0000000000000001", "0.0001", '"\\ud83d"', '"\\x"', "tru"]
)
def test_what_encoders_write_otherwise_is_refused(text):
    assert copied(text) is None


@given(TEXT)
def test_a_string_means_its_text(text):
    for ascii_only in (True, False):
        data = np.frombuffer(json.dumps(text, ensure_ascii=ascii_only).encode(), np.uint8)
        out = np.empty(len(data), np.uint8)
        at, to, usual = copy_text(data, 0, len(data), out, 0)
        assert (at, out[:to].tobytes().decode()) == (len(data), text)
        if usual:
            assert data.tobytes().decode() == dumps(text)


def test_what_is_refused_may_still_be_json():
    with pytest.raises(JsonFault):
        parse(b"01")
    assert parse(b"-0") == 0
