"""A value is found wherever it stands again, as a search for each value would, and in time."""

from __future__ import annotations

import re
import time

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import row, table

from corpusforge.pii.context import View
from corpusforge.pii.occupied import Occupied
from corpusforge.pii.recognisers import Span
from corpusforge.pii.rows import TAGGED, Found, _Back, splice
from corpusforge.pii.same import SameValues
from corpusforge.stages.scrub import scrub

LETTERS = st.text(alphabet="ab@", min_size=3, max_size=9)
DIGITS = st.text(alphabet="12", min_size=9, max_size=11)
TEXTS = st.lists(LETTERS | DIGITS | st.sampled_from([" ", "-", ". ", "+", "(", "1 2"]), max_size=12).map("".join)


def by_expression(values, text):
    """One alternative for each value, the longest first."""
    shapes = {v: r"\+?\(?" + r"[ .()/\-]{0,2}".join(v) if spaced else re.escape(v) for v, spaced in values.items()}
    pattern = re.compile("|".join(shapes[v] for v in sorted(shapes, key=lambda v: (-len(v), v))))
    return [match.span() for match in pattern.finditer(text)] if shapes else []


@settings(max_examples=500)
@given(st.dictionaries(LETTERS, st.just(False), max_size=30), st.dictionaries(DIGITS, st.just(True), max_size=3), TEXTS)
def test_what_a_search_for_each_value_finds(plain, spaced, text):
    text = "".join([*list(plain)[:2], text, *list(spaced)[:1], *list(plain)[2:4]])
    values = plain | spaced
    assert [(start, end) for start, end, _ in SameValues(values).find(text)] == by_expression(values, text)


@given(st.text(alphabet="abAB\ud800é", min_size=8, max_size=40), st.text(alphabet="abé", min_size=1, max_size=12))
def test_what_a_long_text_holds_is_known(piece, value):
    text = piece * (30_000 // len(piece))
    occupied = Occupied(text)
    for _ in range(102):
        assert ("zzzzzzzz" in occupied) is False
    assert occupied._table is not None
    assert (value in occupied) == (value in text.lower())
    assert text[7:19] in occupied


@given(st.lists(st.tuples(st.text("ab", max_size=3), st.text("ab", min_size=1, max_size=3)), max_size=4), st.data())
def test_a_span_of_an_edited_text_stands_for_what_it_replaced(pieces, data):
    """Outside of edits it is the same text; an edit that it touches belongs to it as a whole."""
    text, edits = "", []
    for between, value in pieces:
        edits.append((len(text) + len(between), len(text) + len(between) + len(value), "<TAG>"))
        text += between + value
    text += "end"
    after = splice(text, edits)
    start = data.draw(st.integers(0, len(after) - 1))
    end = data.draw(st.integers(start + 1, len(after)))
    span = _Back(edits).original(Found(0, Span(start, end, "X", 1.0, "x"), TAGGED)).span
    low = splice(text[: span.start], [edit for edit in edits if edit[1] <= span.start])
    inner = [(s - span.start, e - span.start, new) for s, e, new in edits if span.start <= s and e <= span.end]
    assert after[len(low) :].startswith(splice(text[span.start : span.end], inner))
    assert len(low) <= start


def test_thousands_of_values_in_one_row_take_seconds():
    """It once took time with the square of their number: an hour for a megabyte of them."""
    many = " ".join(f"`x` u{n:06x}.q@corp{n % 97}x.com" for n in range(6_000))
    started = time.process_time()
    result = scrub(table([row(1, many)]), key="public-demo")
    assert result.metrics["findings"] == {"EMAIL_ADDRESS": 6_000}
    assert time.process_time() - started < 15


def test_the_place_of_thousands_of_spans_takes_no_time():
    view = View("`x` $a=1$ y " * 20_000)
    started = time.process_time()
    places = [view.place(start + at, start + at + 1) for start in range(0, 240_000, 12) for at in (1, 5)]
    assert places == ["code", "maths"] * 20_000
    assert time.process_time() - started < 5
