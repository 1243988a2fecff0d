"""Written shingles are those that the kernels hash, and both hash functions give what they promise."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from datasketch.hashfunc import sha1_hash32, sha1_hash64
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.errors import ConfigError
from corpusforge.text.shingles import shingle
from corpusforge.text.tokens import Tokens, _sha1_all, sha1_hashes, shingle_hash, tokens

# Scripts with and without spaces, marks that stand alone, what NFKC takes apart, sections, blanks of many kinds.
PIECES = [
    *(
        "a",
        "B",
        "z",
        "9",
        "½",
        "é",
        "e\u0301",
        "ß",
        "ß\u0323",
        "ς",
        "Σ",
        "İ",
        "Ａ",
        "ﬁ",
        "…",
        "㍿",
        "ж",
        "ि",
        "क्षि",
        "ع",
        "안",
    ),
    *("今", "天", "ไทย", "カ゛", "😀", "\u200d", "\u00ad", "!", "-", "_", "\u2003", "\n", "\x1e", "\ufffd"),
]
TEXTS = st.one_of(st.text(), st.lists(st.sampled_from([*PIECES, " ", " ", " "]), max_size=40).map("".join))


@given(TEXTS, st.integers(1, 7))
@example("The cat sat on the mat.", 5)
@example("今天上午我们", 5)
@example(" Yes!\n No. ", 5)
@example("ß\u0323 ein zwei drei vier", 5)  # normalised once more, its marks would join its letters
@example("one\x1etwo three\x1e\x1e! four", 1)
def test_the_function_hashes_as_the_kernels_do(text: str, k: int) -> None:
    """Token by token, in text order: non-ASCII, normalisation, sections, texts shorter than a shingle."""
    hashes = shingle(pa.array([text], pa.string()), k).hashes
    written = tokens(text, k)
    assert [shingle_hash(token, k, bits=64) for token in written] == hashes.tolist()
    assert [shingle_hash(token, k) for token in written] == (hashes & np.uint64(0xFFFFFFFF)).tolist()


@given(st.lists(st.one_of(st.none(), TEXTS), max_size=5), st.integers(1, 7))
def test_sha1_is_that_of_datasketch(texts: list[str | None], k: int) -> None:
    """Over the tokens of each text, both widths."""
    hashes, starts = sha1_hashes(pa.array(texts, pa.string()), k)
    for row, text in enumerate(texts):
        own = hashes[starts[row] : starts[row + 1]]
        assert own.tolist() == [sha1_hash64(token) for token in tokens(text or "", k)]
        assert (own & np.uint64(0xFFFFFFFF)).tolist() == [sha1_hash32(token) for token in tokens(text or "", k)]


@pytest.mark.parametrize("size", [0, 1, 54, 55, 56, 63, 64, 65, 118, 119, 120, 128, 1000])
def test_sha1_at_the_borders_of_its_blocks(size: int) -> None:
    """Padding takes a further block from 56 bytes on."""
    data = (np.arange(size) % 251).astype(np.uint8)
    one = Tokens(data, np.array([[0, size, 0]]), np.array([0, 1]))
    expected = int.from_bytes(hashlib.sha1(data.tobytes()).digest()[:8], "little")
    assert _sha1_all(one.clean, one.spans).tolist() == [expected]


def test_tokens_are_readable() -> None:
    """Words parted by one blank; short texts whole, with their punctuation."""
    assert tokens("The cat  sat on the MAT.") == [b"the cat sat on the", b"cat sat on the mat"]
    assert tokens("天地玄黄", 3) == ["天 地 玄".encode(), "地 玄 黄".encode()]
    assert tokens(" Yes! \n No? ") == [b"yes! no?"]
    assert tokens("!?") == []
    assert tokens("a b\x1ec d", 2) == [b"a b", b"\x1ec d"]


def test_a_str_is_normalised_and_bytes_are_not() -> None:
    """Whoever has a shingle as text need not normalise it."""
    assert shingle_hash("Ｔｈｅ CAT sat, on the") == shingle_hash(b"the cat sat on the")


@pytest.mark.parametrize(("token", "count"), [("", 0), ("!!", 0), ("one two three four five six", 2)])
def test_what_is_no_single_shingle_is_refused(token: str, count: int) -> None:
    """And not shown."""
    with pytest.raises(ConfigError, match=f"found {count} shingles of 5 words in the token, expected 1") as caught:
        shingle_hash(token)
    assert "three" not in str(caught.value)


def test_other_widths_are_refused() -> None:
    """datasketch takes 32 bits or 64."""
    with pytest.raises(ConfigError, match="bits is 48, expected 32 or 64"):
        shingle_hash("one", bits=48)
