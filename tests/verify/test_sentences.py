"""Sentences are counted as a reader would, and never but once."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify._sentences import count


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("", 0),
        ("*** . . . !!!", 0),
        ("Hello", 1),
        ("Title\n\nText.", 1),
        ("Dr. Smith paid $3.50. Was it 5 p.m.? Yes!", 3),
        ("1. First.\n2. Second.", 2),
        ("- **One.** Two.\n- Three?!", 3),
        ("I met J. R. Smith. It was I. So what...", 3),
        ("Wait... what? Oh... No!", 3),
        ("U.S. troops left. They are in the U.S. They stay.", 3),
        ("this is one. this is two. this is three", 3),
        ("Use e.g. apples, i.e. fruit, etc. They are good.", 2),
        ("He said no. Then he left.", 2),
        ("猫です。犬です！", 2),
        ("नमस्ते। कैसे हैं?", 2),
    ],
)
def test_a_sentence_ends_where_a_reader_ends_it(text: str, sentences: int) -> None:
    assert count(text) == sentences


@given(st.lists(st.sampled_from(["The cat sat down.", "Did it?", "It did!"]), max_size=8), st.sampled_from([" ", "\n"]))
def test_plain_sentences_are_counted_one_by_one(sentences: list[str], between: str) -> None:
    assert count(between.join(sentences)) == len(sentences)


@pytest.mark.parametrize("text", ["." * 500_000 + "x", "!?" * 250_000 + "x", '."' * 250_000 + "x"])
def test_half_a_million_marks_are_read_in_no_time(text: str) -> None:
    began = time.perf_counter()
    assert count(text) == 1
    assert time.perf_counter() - began < 5  # every place looked at anew would take hours
