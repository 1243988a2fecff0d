"""How results are shown: cells, and that all three forms hold the same."""

from __future__ import annotations

import pytest

from corpusforge.present import Block, Shown, cell


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (True, "yes"), (1234567, "1,234,567"), (0.5, "0.5"), (2.0, "2"), (0.12345, "0.123"), ("a\tb", "a b")],
)
def test_cells_are_grouped_rounded_and_free_of_control_characters(value: object, shown: str) -> None:
    assert cell(value) == shown


def test_every_form_holds_headline_cells_note_and_verdict() -> None:
    shown = Shown("head", [Block("title", ("a", "b"), [("x", 12345)], "note"), Block("bare", note="words")], "verdict")
    for form in (str(shown), shown._repr_html_()):
        for part in ("head", "title", "x", "12,345", "note", "bare", "words", "verdict"):
            assert part in form


def test_the_notebook_form_escapes_markup_and_the_text_form_shows_brackets() -> None:
    shown = Shown("head", [Block("t", ("a",), [("<b>[red]x[/red]",)])])
    assert "<b>" not in shown._repr_html_().split("t</b>")[1]
    assert "<b>[red]x[/red]" in str(shown)


def test_no_line_ends_in_blanks() -> None:
    shown = Shown("head", [Block("title", ("a", "b"), [("x", "y"), ("longer", "z")])])
    assert all(line == line.rstrip() for line in str(shown).splitlines())
