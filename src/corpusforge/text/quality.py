"""Repetition inside one text, after the Gopher rules (Rae et al. 2021, appendix A1.1), measured on words.

    duplicate lines     share of the words that stand in a line which stood in the text before
    duplicate n-grams   share of the words inside a word 10-gram which stood in the text before

Gopher measures characters of web pages; words are used here because chat and code differ in punctuation. Lines of
fewer than three words (closing brackets, "end", list numbers) are not counted as duplicates.
"""

from __future__ import annotations

from typing import Any, Final

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text.ngrams import chunks, tokenise

N: Final = 10
MIN_WORDS: Final = 50  # below this a share says little: a poem's refrain, a table of two rows
_LINE_WORDS: Final = 3
_MULTIPLY: Final = np.uint64(0x9E3779B97F4A7C15)
_FNV: Final = np.uint64(0x100000001B3)
_SHIFT: Final = np.uint64(29)

Shares = npt.NDArray[np.float64]


def duplicate_lines(texts: pa.Array) -> Shares:
    """Share of each text's words that stand in repeated lines; 0 for texts of fewer than MIN_WORDS words."""
    shares = np.zeros(len(texts))
    for start, some in chunks(texts):
        lists = pc.split_pattern(pc.fill_null(some, ""), "\n")
        tokens = tokenise(pc.list_flatten(lists))
        lines = np.concatenate([[0], np.cumsum(pc.list_value_length(lists).to_numpy(zero_copy_only=False))])
        _line_shares(tokens.hashes, tokens.bounds, lines.astype(np.int64), shares[start : start + len(some)])
    return shares


def duplicate_ngrams(texts: pa.Array) -> Shares:
    """Share of each text's words inside repeated word n-grams; 0 for texts of fewer than MIN_WORDS words."""
    shares = np.zeros(len(texts))
    for start, some in chunks(texts):
        tokens = tokenise(some)
        _gram_shares(tokens.hashes, tokens.bounds, shares[start : start + len(some)])
    return shares


def _compile(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True)(function)


@_compile
def _slots(count: int) -> int:
    size = 16
    while size < 2 * count:
        size *= 2
    return size


@_compile
def _seen(key: Any, table: Any) -> Any:
    """Whether `key` is in the table; puts it there. Zero marks a free slot."""
    key |= np.uint64(1)
    mask = np.uint64(len(table) - 1)
    slot = (key >> _SHIFT) & mask
    while table[slot] != 0:
        if table[slot] == key:
            return True
        slot = (slot + np.uint64(1)) & mask
    table[slot] = key
    return False


@_compile
def _line_shares(hashes: Any, bounds: Any, lines: Any, shares: Any) -> None:
    for text in range(len(shares)):
        first, last = lines[text], lines[text + 1]
        total = bounds[last] - bounds[first]
        if total < MIN_WORDS:
            continue
        table = np.zeros(_slots(last - first), np.uint64)
        repeated = 0
        for line in range(first, last):
            size = bounds[line + 1] - bounds[line]
            if size < _LINE_WORDS:
                continue
            key = np.uint64(0)
            for at in range(bounds[line], bounds[line + 1]):
                key = (key ^ hashes[at]) * _FNV + _MULTIPLY
            if _seen(key, table):
                repeated += size
        shares[text] = repeated / total


@_compile
def _gram_shares(hashes: Any, bounds: Any, shares: Any) -> None:
    for text in range(len(shares)):
        first, size = bounds[text], bounds[text + 1] - bounds[text]
        if size < MIN_WORDS:
            continue
        table = np.zeros(_slots(size), np.uint64)
        covered, upto = 0, 0
        for at in range(size - N + 1):
            key = np.uint64(0)
            for word in range(first + at, first + at + N):
                key = (key ^ hashes[word]) * _FNV + _MULTIPLY
            if _seen(key, table):
                covered += at + N - max(at, upto)
                upto = at + N
        shares[text] = covered / size
