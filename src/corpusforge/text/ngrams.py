"""Words and word n-grams as 64-bit hashes, straight from Arrow's string buffers.

`tokenise` cuts texts into words: runs of letters, digits and underscores, lower-cased, without accents, apostrophes
and invisible characters (NFC and NFD agree, two-part vowel signs of Indic scripts aside), one word per character where
a script has no spaces (Han, kana, Thai, Lao, Khmer, Burmese). `mask_entities` first turns e-mail addresses, phone, card
and account numbers, IP addresses and stand-in tags into one word each, so that two texts that differ only there are the
same. `GramTable.find` reports every occurrence of a known n-gram. Hashes are stable over processes and machines;
whoever drops a row by them compares the words as well (`words`).

    "Ana's Café: mail a@b.org"  ->  anas cafe mail <entity>
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numba
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]

MAX_N: Final = 64
ENTITY: Final = "\ue000"  # private use: the one word that stands for any masked entity
_ENTITIES: Final = "|".join(
    [
        r"[<\[{][A-Z][A-Z0-9_]{2,40}[>\]}]",  # <EMAIL>, [PHONE_1]
        r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+",
        r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}",  # IPv4
        r"[0-9]{4}(?:[ -][0-9]{4}){3}",  # card
        r"[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}",  # IBAN
        r"[0-9]{3}-[0-9]{2}-[0-9]{4}",
        r"\+[0-9]{1,3}(?:[ .-]?\(?[0-9]{2,4}\)?){2,5}",
        r"\(?[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}",
    ]
)
_PYTHON_ENTITIES: Final = re.compile(_ENTITIES)
_TABLE: Final = 0x30000  # code points above are letters as they are
_CHUNK: Final = 8 << 20  # bytes of text tokenised at a time
_SEPARATOR, _LETTER, _IGNORED, _ALONE = 0, 1, 2, 3
_SYLLABLES: Final = (0xAC00, 0xD7A3)  # Hangul
_NO_SPACES: Final = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Burmese
    (0x1780, 0x17FF),  # Khmer
    (0x3040, 0x30FF),  # kana
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2FFFF),
)


@dataclass(frozen=True)
class Words:
    """The words of many texts: hash, first byte and end byte of each; text i owns words bounds[i]:bounds[i+1]."""

    hashes: U64
    starts: I32
    ends: I32
    bounds: I64


@dataclass(frozen=True)
class Hits:
    """Occurrences of known n-grams: text, position of the first word in the text, number of the n-gram."""

    text: I64
    position: I64
    gram: I32


def mask_entities(texts: pa.Array) -> pa.Array:
    """Replace every entity by the one word ENTITY."""
    masked = pl.Series(texts).str.replace_all(_ENTITIES, ENTITY)
    return masked.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())


def original_offset(text: str, masked_offset: int) -> int:
    """Offset in `text` of what stands at `masked_offset` once its entities are masked; good for starts and ends."""
    grown = 0
    for match in _PYTHON_ENTITIES.finditer(text):
        if masked_offset <= match.start() - grown:
            break
        grown += match.end() - match.start() - 1
    return masked_offset + grown


def tokenise(texts: pa.Array) -> Words:
    """Cut texts (nulls are empty) into words."""
    data, offsets = _buffers(texts)
    fold, kinds = _tables()
    room = int(offsets[-1] - offsets[0] + len(offsets)) // 2 + 1
    hashes, starts, ends = np.empty(room, np.uint64), np.empty(room, np.int32), np.empty(room, np.int32)
    bounds = np.zeros(len(offsets), np.int64)
    count = _tokenise(data, offsets, fold, kinds, hashes, starts, ends, bounds)
    return Words(hashes[:count], starts[:count], ends[:count], bounds)


def words(text: bytes, starts: Sequence[int] | I32, ends: Sequence[int] | I32) -> list[str]:
    """The words of one text, as they are compared."""
    return [_folded(text[start:end].decode("utf-8", "surrogatepass")) for start, end in zip(starts, ends, strict=True)]


def grams(tokens: Words, text: int, n: int) -> U64:
    """Hashes of all word n-grams of one text, in order; empty when it has fewer than n words."""
    own = tokens.hashes[tokens.bounds[text] : tokens.bounds[text + 1]]
    if len(own) < n:
        return np.empty(0, np.uint64)
    return np.asarray(_gram_hashes(own, n, _powers()), np.uint64)


class GramTable:
    """A set of n-grams of one or several lengths, each with its number, that texts can be searched for."""

    def __init__(self, hashes: U64, lengths: Sequence[int]) -> None:
        """`hashes` are distinct; gram number i is hashes[i]. `lengths` are the lengths, in words, that occur."""
        self.lengths = np.array(sorted(set(lengths)), np.int64)
        size = 1 << max(8, int(np.ceil(np.log2(len(hashes) * 3 + 1))))
        self._keys, self._numbers = np.zeros(size, np.uint64), np.full(size, -1, np.int32)
        self._bloom = np.zeros(max(1 << 13, size), np.uint8)
        _fill(hashes, self._keys, self._numbers, self._bloom)

    def find(self, tokens: Words) -> Hits:
        """Every occurrence in `tokens`, in order of text and position."""
        prefix = np.zeros(int(np.diff(tokens.bounds).max(initial=0)) + 1, np.uint64)
        room = 1024 + len(tokens.hashes) // 8
        while True:
            out = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
            table = (self._keys, self._numbers, self._bloom)
            count = _find(tokens.hashes, tokens.bounds, prefix, self.lengths, _powers(), table, out)
            if count <= room:
                return Hits(out[0][:count], out[1][:count], out[2][:count])
            room = count


def chunks(texts: pa.Array) -> Iterator[tuple[int, pa.Array]]:
    """The texts in slices of bounded size, each with the number of its first text."""
    if len(texts) == 0:
        return
    sizes = np.cumsum(pc.fill_null(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False))
    start = 0
    while start < len(texts):
        done = int(sizes[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(sizes, done + _CHUNK, side="right")))
        yield start, texts.slice(start, stop - start)
        start = stop


def _buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], I64]:
    if isinstance(texts, pa.ChunkedArray):
        texts = texts.combine_chunks()
    whole = pc.fill_null(texts, "").cast(pa.large_string())
    if isinstance(whole, pa.ChunkedArray):
        whole = pa.concat_arrays(whole.chunks) if whole.num_chunks else pa.array([], pa.large_string())
    _, offsets, data = whole.buffers()
    if offsets is None or len(whole) == 0:
        return np.zeros(1, np.uint8), np.zeros(1, np.int64)
    cut = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
    bytes_ = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    return bytes_, cut


@lru_cache(maxsize=1)
def _tables() -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """Folded form and kind of every code point below _TABLE."""
    fold = np.arange(_TABLE, dtype=np.uint32)
    kinds = np.zeros(_TABLE, np.uint8)
    for code in range(_TABLE):
        char = chr(code)
        category = unicodedata.category(char)
        if category in {"Mn", "Cf", "Me"}:
            kinds[code] = _IGNORED
        elif category[0] in "LNM" or char == "_":
            kinds[code] = _LETTER
            fold[code] = _fold_one(char)
    for low, high in _NO_SPACES:
        letters = kinds[low : high + 1]
        letters[letters == _LETTER] = _ALONE
    for apostrophe in "'\u2019\u02bc":  # don't, don\u2019t and dont are one word
        kinds[ord(apostrophe)] = _IGNORED
    kinds[ord(ENTITY)] = _ALONE
    return fold, kinds


def _fold_one(char: str) -> int:
    """Lower case without accents, where that is one character."""
    folded = char.casefold()
    bases = [c for c in unicodedata.normalize("NFKD", folded) if unicodedata.category(c) not in {"Mn", "Cf", "Me"}]
    if len(bases) == 1 and bases[0].isalnum():
        folded = bases[0].casefold()
    return ord(folded) if len(folded) == 1 else ord(char)


def _folded(word: str) -> str:
    if word.isascii():
        return word.lower().replace("'", "")
    fold, kinds = _tables()
    kept = (c for c in word if ord(c) >= _TABLE or kinds[ord(c)] != _IGNORED)
    letters = "".join(chr(fold[ord(c)]) if ord(c) < _TABLE else c for c in kept)
    return letters if letters.isascii() else unicodedata.normalize("NFD", letters)


@lru_cache(maxsize=1)
def _powers() -> U64:
    powers = [pow(_BASE, exponent, 1 << 64) for exponent in range(MAX_N + 1)]
    return np.array(powers, np.uint64)


_BASE: Final = 0x9E3779B97F4A7C15
_FNV: Final = np.uint64(0x100000001B3)
_SEED: Final = np.uint64(0xCBF29CE484222325)
_MULTIPLY: Final = np.uint64(_BASE)
_MIX_1: Final = np.uint64(0xFF51AFD7ED558CCD)
_MIX_2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_ONE: Final = np.uint64(1)
_SHIFT: Final = np.uint64(33)


def _compile(function: Any) -> Any:
    return numba.njit(cache=True, nogil=True)(function)


@_compile
def _mix(value: Any) -> Any:
    value ^= value >> _SHIFT
    value *= _MIX_1
    value ^= value >> _SHIFT
    value *= _MIX_2
    return value ^ (value >> _SHIFT)


@_compile
def _decode(data: Any, at: int) -> Any:
    """The code point at byte `at` of UTF-8 text, and its length."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return lead, 1
    if lead < 0xE0:
        return ((lead & 0x1F) << 6) | (np.int64(data[at + 1]) & 0x3F), 2
    if lead < 0xF0:
        return ((lead & 0x0F) << 12) | ((np.int64(data[at + 1]) & 0x3F) << 6) | (np.int64(data[at + 2]) & 0x3F), 3
    high = ((lead & 0x07) << 18) | ((np.int64(data[at + 1]) & 0x3F) << 12)
    return high | ((np.int64(data[at + 2]) & 0x3F) << 6) | (np.int64(data[at + 3]) & 0x3F), 4


@_compile
def _add(value: Any, folded: Any) -> Any:
    """Take one letter into a word's hash; a Hangul syllable as the letters that NFD makes of it."""
    if _SYLLABLES[0] <= folded <= _SYLLABLES[1]:
        number = np.int64(folded) - _SYLLABLES[0]
        value = (value ^ np.uint64(0x1100 + number // 588)) * _FNV
        value = (value ^ np.uint64(0x1161 + number % 588 // 28)) * _FNV
        return (value ^ np.uint64(0x11A7 + number % 28)) * _FNV if number % 28 else value
    return (value ^ np.uint64(folded)) * _FNV


@_compile
def _tokenise(data: Any, offsets: Any, fold: Any, kinds: Any, hashes: Any, starts: Any, ends: Any, bounds: Any) -> Any:
    count = 0
    for text in range(len(offsets) - 1):
        first, end = offsets[text], offsets[text + 1]
        at, begin, value, last = first, np.int64(-1), _SEED, first
        while at < end:
            code, width = _decode(data, at)
            kind, folded = (kinds[code], fold[code]) if code < _TABLE else (np.uint8(_LETTER), np.uint32(code))
            if begin >= 0 and kind in (_SEPARATOR, _ALONE):
                hashes[count], starts[count], ends[count] = _mix(value), begin - first, last - first
                count += 1
                begin = np.int64(-1)
            if kind == _LETTER:
                if begin < 0:
                    begin, value = at, _SEED
                value = _add(value, folded)
                last = at + width
            elif kind == _ALONE:
                hashes[count] = _mix(_add(_SEED, folded))
                starts[count], ends[count] = at - first, at + width - first
                count += 1
            at += width
        if begin >= 0:
            hashes[count], starts[count], ends[count] = _mix(value), begin - first, last - first
            count += 1
        bounds[text + 1] = count
    return count


@_compile
def _gram_hashes(own: Any, n: int, powers: Any) -> Any:
    prefix = np.zeros(len(own) + 1, np.uint64)
    for at in range(len(own)):
        prefix[at + 1] = prefix[at] * _MULTIPLY + own[at]
    out = np.empty(len(own) - n + 1, np.uint64)
    for at in range(len(out)):
        out[at] = _mix((prefix[at + n] - prefix[at] * powers[n]) ^ np.uint64(n)) | _ONE
    return out


@_compile
def _fill(hashes: Any, keys: Any, numbers: Any, bloom: Any) -> Any:
    mask, bits = np.uint64(len(keys) - 1), np.uint64(len(bloom) * 8 - 1)
    for number in range(len(hashes)):
        slot = hashes[number] & mask
        while numbers[slot] >= 0:
            slot = (slot + _ONE) & mask
        keys[slot], numbers[slot] = hashes[number], number
        bit = (hashes[number] >> _SHIFT) & bits
        bloom[bit >> np.uint64(3)] |= np.uint8(1) << np.uint8(bit & np.uint64(7))


@_compile
def _lookup(key: Any, keys: Any, numbers: Any, bloom: Any) -> Any:
    """Number of the n-gram with this hash, or -1."""
    bit = (key >> _SHIFT) & np.uint64(len(bloom) * 8 - 1)
    if not (bloom[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7))) & np.uint8(1):
        return -1
    mask = np.uint64(len(keys) - 1)
    slot = key & mask
    while numbers[slot] >= 0 and keys[slot] != key:
        slot = (slot + _ONE) & mask
    return numbers[slot]


@_compile
def _find(hashes: Any, bounds: Any, prefix: Any, lengths: Any, powers: Any, table: Any, out: Any) -> Any:
    keys, numbers, bloom = table
    out_text, out_at, out_gram = out
    count = 0
    for text in range(len(bounds) - 1):
        first, size = bounds[text], bounds[text + 1] - bounds[text]
        for at in range(size):
            prefix[at + 1] = prefix[at] * _MULTIPLY + hashes[first + at]
        for at in range(size):
            for n in lengths:
                if at + n > size:
                    break
                key = _mix((prefix[at + n] - prefix[at] * powers[n]) ^ np.uint64(n)) | _ONE
                number = _lookup(key, keys, numbers, bloom)
                if number >= 0:
                    if count < len(out_text):
                        out_text[count], out_at[count], out_gram[count] = text, at, number
                    count += 1
    return count
