"""Folding, borders and hashes of words against a plain reading, at every length and place."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.text.normalise import character_classes
from corpusforge.text.words import ROOM, fold, hash_words, until

ASCII = st.text(st.characters(max_codepoint=127), max_size=150)
WORDS = st.lists(
    st.sampled_from(["a", "Z", "9", "ab12cd34", "x" * 8, "Y" * 9, "0" * 63, "w" * 64, "é", "٣", "今", " "])
)


def folded(text: str, *, ascii_only: bool = False, before: str = "") -> bytes:
    """The folded text, of data that has something in front."""
    data = np.frombuffer((before + text).encode(), np.uint8)
    out = np.full(2 * len(data) + ROOM, 0xFF, np.uint8)
    size = fold(data, len(before.encode()), len(data), character_classes(), ascii_only, out)
    assert not out[size : size + 64].any()
    return out[:size].tobytes()


def hashes(text: str) -> tuple[list[int], int]:
    """The hashes of the words, and of the words with a digit."""
    data = np.frombuffer(folded(text) + bytes(ROOM), np.uint8).copy()
    out = np.zeros(len(text) + 1, np.uint64)
    count, numbers = hash_words(data, len(data) - ROOM, out, np.uint64(0))
    return out[:count].tolist(), int(numbers)


@given(ASCII, st.text("a ", max_size=9))
@example("", "")
@example("\x1e@[`{/:AZaz09\x7f\x00", "")
def test_ascii_folds_eight_at_a_time_as_it_does_one_by_one(text: str, before: str) -> None:
    """Both ways give the words of the definition, wherever the text begins."""
    words = re.findall(rb"[a-z0-9]+", text.lower().encode())
    for ascii_only in (True, False):
        assert [w for w in folded(text, ascii_only=ascii_only, before=before).split(b"\0") if w] == words


@given(WORDS, st.sampled_from([" ", "--", "\u2003", "." * 70]))
def test_a_word_hashes_alike_wherever_it_stands(words: list[str], gap: str) -> None:
    """Across the borders of 64 bytes too; different words differ; ideographs are words by themselves."""
    plain = [word.lower() for word in words if word.strip()]
    found, _ = hashes(gap.join(words))
    assert found == [hashes(word)[0][0] for word in plain]
    assert len({*found}) == len({*plain})


@given(WORDS)
def test_numbers_are_the_words_with_a_digit_in_their_order(words: list[str]) -> None:
    """ASCII or not; whatever else stands between."""
    digits = [word for word in words if any(letter.isdigit() for letter in word)]
    assert hashes(" ".join(words))[1] == hashes(" ".join(digits))[1]
    assert (hashes(" ".join(words))[1] == 0) == (not digits)
    if len({*digits}) > 1:
        assert hashes(" ".join(sorted(digits)))[1] != hashes(" ".join(sorted(digits, reverse=True)))[1]


@given(st.text("ab\x1eé", max_size=40), st.integers(0, 8))
def test_the_next_section_and_what_is_before_it(text: str, skip: int) -> None:
    """Where it is, and whether all before it is ASCII."""
    data = text.encode()
    begin = min(skip, len(data))
    end = data.find(b"\x1e", begin)
    end = len(data) if end < 0 else end
    assert until(np.frombuffer(data, np.uint8), begin, len(data), 0x1E) == (end, data[begin:end].isascii())
