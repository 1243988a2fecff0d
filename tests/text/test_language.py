"""Languages are told where they can be, and left open where not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import language
from corpusforge.text.language import detect


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Natalia sold clips to 48 of her friends in April.", "en"),
        ("La maison est grande et le jardin est petit.", "fr"),
        ("Der Zug nach München fährt heute später ab.", "de"),
        ("今天上午我们在图书馆整理报纸", "zh"),
        ("SHOUTING AT THE TOP OF MY LUNGS IS STILL ENGLISH", "en"),
        ("ok", "und"),
        ("", "und"),
        ("   \n\n ", "und"),
    ],
)
def test_detects(text: str, code: str) -> None:
    """Sentences get their language, scraps get `und`."""
    assert detect([text]) == [code]


def test_a_batch_is_its_texts_one_by_one() -> None:
    """Neighbours and repeats do not change a label."""
    texts = ["A line about nothing in particular.", "x", "Una frase en español sobre la casa.", "x"]
    assert detect([*texts, *texts]) == [detect([text])[0] for text in [*texts, *texts]]


def test_a_line_break_is_a_space() -> None:
    """The model reads one line at a time."""
    text = "The quick brown fox jumps over the dog."
    assert detect([text.replace(" ", "\n")]) == detect([text]) == ["en"]


@given(st.text(st.characters(codec="utf-8") | st.sampled_from(" \n\t\u00a0\u2028\u3000\x1c"), max_size=300))
def test_a_line_is_the_words_of_a_text(text: str) -> None:
    """Whatever parts them."""
    line = " ".join(text[: 2 * language.CHARACTERS].split())[: language.CHARACTERS]
    assert language._line(text) in (line, line.lower())
