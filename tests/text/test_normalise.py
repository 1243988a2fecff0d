"""Unicode forms that are the same text, and scripts that keep their letters."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text.normalise import (
    DIGIT,
    LETTER,
    SEPARATOR,
    UNIT,
    _has_other,
    _inert,
    character_classes,
    composed,
    normalise,
)
from corpusforge.text.shingles import shingle


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ｆｕｌｌ", "full"), ("CAFÉ", "cafe\u0301"), ("Straße", "STRASSE"), ("ΛΌΓΟΣ", "λόγος"), ("ﬁne", "Fine")],
)
def test_same_text_in_another_form(one: str, other: str) -> None:
    """Width, composition, case, sharp s, final sigma and ligatures do not matter."""
    first, second = shingle(pa.array([one + "é", other + "é"]), 5).hashes
    assert first == second


def test_ascii_is_left_alone_and_null_is_empty() -> None:
    """Kernels lower ASCII themselves; a null is an empty text."""
    assert normalise(pa.array(["As It Is", None, ""])).to_pylist() == ["As It Is", "", ""]


@pytest.mark.parametrize("letters", ["привет", "مرحبا", "हिन्दी", "שלום", "한국어", "今天", "เช้านี้", "ひらがな"])
def test_no_script_normalises_away(letters: str) -> None:
    """Every letter and mark of every script has a class of its own, also after normalisation."""
    classes = character_classes()
    for character in normalise(pa.array([letters]))[0].as_py():
        assert classes[ord(character)] != SEPARATOR, unicodedata.name(character)


def test_classes_of_characters() -> None:
    """Ideographs and Thai are units; Hangul, which is written with spaces, is letters."""
    found = [character_classes()[ord(c)] for c in "a7. 今ก한²"]
    assert found == [LETTER, DIGIT, SEPARATOR, SEPARATOR, UNIT, UNIT, LETTER, DIGIT]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
def test_what_is_taken_for_plain_is(text: str) -> None:
    """Texts of any characters come out as the whole rule gives them, though most are passed over unread."""
    folded = unicodedata.normalize("NFKC", text).lower().replace("ß", "ss").replace("ς", "σ")
    assert [one.lower() for one in normalise(pa.array([text])).to_pylist()] == [folded.lower()]
    assert composed(pa.array([text, None])).to_pylist() == [unicodedata.normalize("NFC", text), ""]


def test_every_character_beside_a_base_and_a_mark_comes_out_composed() -> None:
    """No code point is taken for plain that joins another, or is joined, or has another form."""
    points = [point for point in range(0x20000) if not 0xD800 <= point < 0xE000]
    texts = [f"{a}{chr(p)}{b}" for p in points for a, b in (("e", "\u0301"), ("", "\u3099"), ("\u1100", "\u11a8"))]
    assert composed(pa.array(texts)).to_pylist() == pl.Series(texts).str.normalize("NFC").to_list()
    singles = pl.Series([chr(point) for point in points])
    wanted = singles.str.normalize("NFKC").str.to_lowercase().str.replace_many(["ß", "ς"], ["ss", "σ"])
    assert pl.Series(normalise(singles.to_arrow())).str.to_lowercase().to_list() == wanted.to_list()


def test_a_character_that_is_cut_off_is_not_read_beyond_its_text() -> None:
    """Of bytes that are no UTF-8: what stands behind the text would complete the character."""
    data = np.frombuffer("abc 今".encode(), np.uint8)
    rows, inert = np.zeros(1, np.int64), _inert(1)
    assert not _has_other(np.array([0, len(data)], np.int32), data, inert, rows)[0]
    assert _has_other(np.array([0, len(data) - 1], np.int32), data, inert, rows)[0]
