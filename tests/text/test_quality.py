"""Repetition measures agree with a slow count."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import quality

WORDS = st.lists(st.sampled_from(["a", "b", "c\n", "d e f\n", "g"]), min_size=0, max_size=120).map(" ".join)


def slow_ngrams(text: str) -> float:
    """Share of words inside a 10-gram that stood before, by comparing lists."""
    words = text.split()
    if len(words) < quality.MIN_WORDS:
        return 0.0
    grams = [tuple(words[i : i + quality.N]) for i in range(len(words) - quality.N + 1)]
    covered = {w for i, gram in enumerate(grams) if gram in grams[:i] for w in range(i, i + quality.N)}
    return len(covered) / len(words)


def slow_lines(text: str) -> float:
    """Share of words in lines of three words or more that stood before."""
    lines = [line.split() for line in text.split("\n")]
    total = sum(map(len, lines))
    repeated = [line for i, line in enumerate(lines) if len(line) >= 3 and line in lines[:i]]
    return sum(map(len, repeated)) / total if total >= quality.MIN_WORDS else 0.0


@given(st.lists(WORDS, max_size=3))
def test_duplicate_ngrams_are_counted_right(texts: list[str]) -> None:
    """The kernel's share of repeated n-grams is the slow count's."""
    assert quality.duplicate_ngrams(pa.array(texts, pa.string())) == pytest.approx([slow_ngrams(t) for t in texts])


@given(st.lists(WORDS, max_size=3))
def test_duplicate_lines_are_counted_right(texts: list[str]) -> None:
    """The kernel's share of repeated lines is the slow count's."""
    assert quality.duplicate_lines(pa.array(texts, pa.string())) == pytest.approx([slow_lines(t) for t in texts])


def test_a_loop_is_repetition() -> None:
    """A model stuck in a loop scores close to 1, prose scores 0."""
    stuck = "I think that we should go. " * 30
    prose = " ".join(f"word{i}" for i in range(200))
    shares = quality.duplicate_ngrams(pa.array([stuck, prose]))
    assert shares[0] > 0.9
    assert shares[1] == 0
