"""The view of a text, and prose, code or maths around a span."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.pii.context import View


@given(st.text(alphabet="ab@.é谢\u200b\u00ad\uff11٣ ", max_size=40))
def test_spans_of_the_view_point_at_what_the_original_shows(text):
    view = View(text)
    for index, character in enumerate(view.text):
        start, end = view.back(index, index + 1)
        assert end == start + 1
        if character.isascii() and character not in " 13":
            assert text[start] == character


def test_invisible_characters_are_gone_and_other_scripts_are_spaces():
    assert View("谢a@\u200bb.de谢１").text == " a@b.de 1"


@pytest.mark.parametrize(
    ("text", "needle", "place"),
    [
        ("call 555 now", "555", "prose"),
        ("```\ncall 555\n```", "555", "code"),
        ("see `x 555 y` there", "555", "code"),
        ("so $x_1 = 555$ holds", "555", "maths"),
        ("<<500+55=555>>", "555", "maths"),
        ("it costs $5 and 555 more, $9 in all", "555", "prose"),
        ("def f(): return 555", "555", "code"),
        ("x = 555\nthat was code", "555", "code"),
        ("then a = f(555);", "555", "code"),
        ("when (it is 555) {", "555", "prose"),
        ("so when(it is 555) {", "555", "code"),
        ("one; two 555", "555", "prose"),
    ],
)
def test_place(text, needle, place):
    start = text.index(needle)
    assert View(text).place(start, start + len(needle)) == place
