"""Words and n-grams from Arrow buffers agree with plain Python."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import ngrams

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def one_letter(text: str) -> bool:
    """No character is made of several letters: true of all but two-part Indic vowel signs, Hangul, and a few notes."""
    parts = ["".join(p for p in unicodedata.normalize("NFD", c) if unicodedata.category(p) != "Mn") for c in text]
    return all(len(part) <= 1 or "\uac00" <= c <= "\ud7a3" for part, c in zip(parts, text, strict=True))


ENTITY_TEXT = st.lists(
    st.sampled_from(["a@b.org", "+49 30 123456", "10.0.0.1", "<EMAIL>", "4111 1111 1111 1111", "é", " ", "x", ","]),
    max_size=12,
).map("".join)


def cut(text: str) -> list[str]:
    """The words of a text, through the kernel."""
    tokens = ngrams.tokenise(pa.array([text]))
    return ngrams.words(text.encode(), tokens.starts, tokens.ends)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Ana's Café don\u2019t", ["anas", "cafe", "dont"]),
        ("x^3 + y^3", ["x", "3", "y", "3"]),
        ("add_two(a, b)", ["add_two", "a", "b"]),
        ("日本 go", ["日", "本", "go"]),
        ("zero\u200bwidth", ["zerowidth"]),
        ("Straße ΣΊΣΥΦΟΣ", ["straße", "σισυφοσ"]),
        ("", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    """Letters, digits and underscores make words; accents, case and invisible characters do not matter."""
    assert cut(text) == words


@given(TEXT.filter(one_letter))
def test_unicode_form_does_not_matter(text: str) -> None:
    """NFC and NFD of a text have the same words."""
    assert cut(unicodedata.normalize("NFC", text)) == cut(unicodedata.normalize("NFD", text))


@given(st.lists(st.one_of(st.none(), TEXT), max_size=6))
def test_every_text_is_cut_by_itself(texts: list[str | None]) -> None:
    """Many texts in one array, nulls and slices included, give what each gives alone."""
    together = ngrams.tokenise(pa.array(["before", *texts], pa.string()).slice(1))
    for number, text in enumerate(texts):
        alone = ngrams.tokenise(pa.array([text or ""]))
        own = together.hashes[together.bounds[number] : together.bounds[number + 1]]
        assert own.tolist() == alone.hashes.tolist()


@given(st.text("ab c", max_size=40), st.text("ab c", max_size=12), st.integers(1, 3))
def test_find_is_substring_search_on_words(text: str, known: str, n: int) -> None:
    """A gram table finds exactly the positions that comparing words finds."""
    wanted = [known.split()[i : i + n] for i in range(len(known.split()) - n + 1)]
    tokens = ngrams.tokenise(pa.array([text, known]))
    table = ngrams.GramTable(np.unique(ngrams.grams(tokens, 1, n)), [n])
    hits = table.find(ngrams.tokenise(pa.array([text])))
    words = text.split()
    assert hits.position.tolist() == [i for i in range(len(words) - n + 1) if words[i : i + n] in wanted]


@given(ENTITY_TEXT)
def test_masked_offsets_lead_back(text: str) -> None:
    """Every word outside entities stands in the text where its masked offset says."""
    masked = ngrams.mask_entities(pa.array([text]))[0].as_py()
    for at, char in enumerate(masked):
        if char != ngrams.ENTITY:
            start, end = ngrams.original_offset(text, at), ngrams.original_offset(text, at + 1)
            assert text[start:end] == char


@given(ENTITY_TEXT)
def test_both_regex_engines_mask_alike(text: str) -> None:
    """Polars masks the column as Python masks the text whose offsets are looked up."""
    assert ngrams.mask_entities(pa.array([text]))[0].as_py() == ngrams._PYTHON_ENTITIES.sub(ngrams.ENTITY, text)


def test_hashes_are_pinned() -> None:
    """Hashes do not change between releases unnoticed."""
    tokens = ngrams.tokenise(pa.array(["Natalia sold clips to 48 friends"]))
    assert f"{tokens.hashes[0]:016x} {ngrams.grams(tokens, 0, 3)[1]:016x}" == "1ec39fa1be519ea8 a357f40cd00b8c79"


def test_chunks_cover_all_texts_once() -> None:
    """Slices follow each other without gap, also when one text is larger than a slice."""
    texts = pa.array(["x" * 10, "y" * (9 << 20), "z", None])
    assert [t for _, some in ngrams.chunks(texts) for t in some.to_pylist()] == texts.to_pylist()
    assert next(start for start, _ in ngrams.chunks(texts)) == 0
