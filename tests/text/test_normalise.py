"""Unicode forms that are the same text, and scripts that keep their letters."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest

from corpusforge.text.normalise import DIGIT, LETTER, SEPARATOR, UNIT, character_classes, normalise


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ｆｕｌｌ", "full"), ("CAFÉ", "cafe\u0301"), ("Straße", "STRASSE"), ("ΛΌΓΟΣ", "λόγος"), ("ﬁne", "Fine")],
)
def test_same_text_in_another_form(one: str, other: str) -> None:
    """Width, composition, case, sharp s, final sigma and ligatures do not matter."""
    same = normalise(pa.array([one + "é", other + "é"])).to_pylist()
    assert same[0] == same[1]


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
