"""Shingle kernels against a plain Python reading of their definition."""

from __future__ import annotations

import re

import numba
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text.kernels import jit
from corpusforge.text.shingles import ANSWER_BIT, byte_keys, shingle, short_keys, text_keys

ASCII_TEXTS = st.text("aAbB1 .,\n-", max_size=40)


def plain_shingles(text: str, k: int) -> list[object]:
    """The definition: runs of k words, or the whole text with its punctuation where there are fewer."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    if len(words) >= k:
        return [tuple(words[i : i + k]) for i in range(len(words) - k + 1)]
    return [" ".join(text.lower().split())] if words else []


def hashes(text: str | None, k: int = 5) -> list[int]:
    """Shingle hashes of one text."""
    return shingle(pa.array([text], pa.string()), k).hashes.tolist()


@given(st.lists(ASCII_TEXTS, max_size=6), st.integers(1, 4))
def test_shingles_are_equal_where_the_definition_says_so(texts: list[str], k: int) -> None:
    """Over all texts, equal plain shingles have equal hashes and different ones have different hashes."""
    found = shingle(pa.array(texts, pa.string()), k)
    plain = [piece for text in texts for piece in plain_shingles(text, k)]
    assert len(found.hashes) == len(plain)
    meaning: dict[int, object] = dict(zip(found.hashes.tolist(), plain, strict=True))
    assert [meaning[h] for h in found.hashes.tolist()] == plain
    assert len(meaning) == len(set(plain))


@given(st.lists(st.text(max_size=30) | st.none(), max_size=8), st.integers(0, 7))
def test_a_text_hashes_alike_wherever_it_stands(texts: list[str | None], cut: int) -> None:
    """Rows around, slices of an array and nulls make no difference."""
    column = pa.array(texts, pa.string())
    whole, part = shingle(column, 3), shingle(column.slice(cut), 3)
    tail = whole.hashes[whole.starts[min(cut, len(texts))] :]
    assert np.array_equal(tail, part.hashes)


@pytest.mark.parametrize("text", ["", None, "   ", "?!…", "\u200b\ufe0f", "🙂 🙃"])
def test_nothing_said_gives_no_shingle(text: str | None) -> None:
    """Blanks, punctuation, zero-width characters, emoji: no words, hence no shingle."""
    found = shingle(pa.array([text], pa.string()), 5)
    assert (len(found.hashes), found.units[0]) == (0, 0)


def test_scripts_without_spaces_are_shingled_by_character() -> None:
    """Six ideographs are two shingles of five, and punctuation between them does not matter."""
    assert len(hashes("今天上午我们")) == 2
    assert hashes("今天,上午我们。") == hashes("今天上午我们")


def test_short_texts_keep_their_punctuation() -> None:
    """Case and blanks are set aside, punctuation is not."""
    assert hashes("What is  C?") == hashes("what is c? ")
    assert hashes("What is C?") != hashes("What is C++?")
    assert hashes("now here") != hashes("nowhere")


def test_sections_do_not_mix_and_carry_the_answer_bit() -> None:
    """The second section has no shingle in common with the first, though the words are the same."""
    one, two, three = (np.uint64(h) for h in hashes("a b c\x1ea b c\x1ea b c", 3))
    assert not one & ANSWER_BIT
    assert two & ANSWER_BIT
    assert len({int(h & ~ANSWER_BIT) for h in (one, two, three)}) == 3


def test_numbers_are_hashed_in_their_order() -> None:
    """Other words do not touch the hash of the numbers; another number or another order does."""
    a, b, c, d, e = shingle(pa.array(["6 x 7", "six 6 and 7!", "7 x 6", "6 x 8", "none"]), 5).numbers
    assert a == b
    assert len({a, c, d, e}) == 4
    assert e == 0


def test_keys_of_texts_and_bytes() -> None:
    """text_keys sets case and blanks aside, byte_keys nothing; both give 0 for nothing, short_keys for the long too."""
    texts = pa.array(["Two  words", "two words", "", None])
    assert len(set(text_keys(texts)[:2].tolist())) == 1
    assert len(set(byte_keys(texts)[:2].tolist())) == 2
    assert text_keys(texts)[2:].tolist() == byte_keys(texts)[2:].tolist() == [0, 0]
    assert (short_keys(texts, 3) == text_keys(texts)).all()
    assert not short_keys(texts, 2).any()


@given(st.binary(max_size=12))
def test_broken_utf8_is_survived(data: bytes) -> None:
    """A buffer that is not UTF-8 is read within its bounds."""
    offsets = pa.array([0, len(data)], pa.int32())
    column = pa.Array.from_buffers(pa.string(), 1, [None, offsets.buffers()[1], pa.py_buffer(data)])
    assert len(byte_keys(column)) == 1


def test_kernels_compile_where_nothing_can_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder for compiled kernels they are compiled anew instead of failing."""
    njit = numba.njit

    def refuse(*args: object, cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("no locator available")
        return njit(*args, **options)

    monkeypatch.setattr(numba, "njit", refuse)
    assert jit(numba.int64(numba.int64))(lambda value: value + 1)(2) == 3
