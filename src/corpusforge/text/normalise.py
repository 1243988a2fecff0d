"""What counts as the same text: Unicode form, case, and which characters make a word.

    "Ｆｕｌｌ‑width, CAFÉ"   ->   full width café       (NFKC, lower case, sharp s and final sigma folded)

`normalise` rewrites only the values that hold non-ASCII characters: the kernels lower ASCII as they read. Every
script keeps its letters: `character_classes` gives each code point its part in a word, from the Unicode general
category, and tells the scripts that write without spaces, whose characters are units of their own.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text.arrow import arrow
from corpusforge.text.kernels import T, jit
from corpusforge.text.registers import load

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpusforge.text.kernels import Bytes

SEPARATOR: Final = 0  # ends a word: blanks, punctuation, symbols
LETTER: Final = 1
DIGIT: Final = 2
MARK: Final = 3  # belongs to the word it stands in, never begins one
UNIT: Final = 4  # a character of a script without spaces: a word by itself
IGNORED: Final = 5  # zero-width and soft hyphen: as if absent

_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_OFFSETS: Final = T.Array(nb.int32, 1, "C", readonly=True)
_ROWS: Final = T.Array(nb.int64, 1, "C", readonly=True)
_TABLE: Final = T.Array(nb.boolean, 1, "C", readonly=True)

# Scripts written without spaces between words (Unicode blocks): Thai and Lao, Tibetan, Myanmar, Khmer, kana and
# CJK ideographs with their extensions. Hangul is not among them: Korean writes spaces.
_SPACELESS: Final = (
    (0x0E00, 0x0EFF),
    (0x0F00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x323AF),
)
_LAST: Final = 0x323B0  # no letters are assigned behind this code point
_INERT_BLOCKS: Final = ((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF))
_FIRST_MARK: Final = 0x300  # no character before it joins the one before
_FOLDS: Final = (["ß", "ς"], ["ss", "σ"])
_HIGH: Final = np.uint64(0x8080808080808080)
_BY_CATEGORY: Final = {"L": LETTER, "N": DIGIT, "M": MARK}


def normalise(texts: pa.Array) -> pa.Array:
    """NFKC and lower case for every value that is not plain already; nulls become "". Gives a `string` array."""
    return _where(texts, 1, lambda some: some.str.normalize("NFKC").str.to_lowercase().str.replace_many(*_FOLDS))


def composed(texts: pa.Array) -> pa.Array:
    """NFC of every value; nulls become "". Gives a `string` array."""
    return _where(texts, 0, lambda some: some.str.normalize("NFC"))


def _where(texts: pa.Array, form: int, change: Callable[[pl.Series], pl.Series]) -> pa.Array:
    """The texts, changed where some character is not inert in that form."""
    plain = texts if pa.types.is_string(texts.type) else texts.cast(pa.string())
    plain = pc.fill_null(plain, "") if plain.null_count else plain
    _, raw_offsets, raw_data = plain.buffers()
    if not len(plain) or raw_data is None or not raw_data.size:
        return plain
    offsets = np.frombuffer(raw_offsets, np.int32)[plain.offset : plain.offset + len(plain) + 1]
    data = np.frombuffer(raw_data, np.uint8)
    wide = np.flatnonzero(_not_ascii(offsets, data))
    if len(wide):
        wide = wide[_has_other(offsets, data, _inert(form), wide)]
    if not len(wide):
        return plain
    mask = np.zeros(len(plain), bool)
    mask[wide] = True
    changed = change(pl.Series(pl.from_arrow(plain.take(arrow(wide)))))
    return pc.replace_with_mask(
        plain, arrow(mask), changed.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())
    )


@lru_cache(maxsize=2)
def _inert(form: int) -> npt.NDArray[np.bool_]:
    """Code points that stay as they are, whatever stands beside them: in NFC (form 0), or in NFKC and lower case (1).

    Looked up for the alphabets and punctuation below U+3100; ideographs, Hangul syllables and emoji are inert by block.
    """
    table = np.zeros(_LAST, bool)
    canonical = (unicodedata.decomposition(chr(point)) for point in range(0xFFFF))
    followers = {int(parts.rpartition(" ")[2], 16) for parts in canonical if parts and parts[0] != "<"}
    followers |= {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}  # Hangul vowels and tails join by rule
    for point in range(0x3100):
        one = chr(point)
        stable = unicodedata.is_normalized("NFKC" if form else "NFC", one)
        alone = stable and not unicodedata.combining(one) and unicodedata.category(one) != "Cn" and one not in "ßς"
        table[point] = alone and (form == 0 or one.lower() == one)
    table[[point for point in followers if point >= _FIRST_MARK and point < 0x3100]] = False
    for first, last in _INERT_BLOCKS:
        table[first : last + 1] = True
    table.flags.writeable = False
    return table


@lru_cache(maxsize=1)
def character_classes() -> npt.NDArray[np.uint8]:
    """Return the class of each code point, as a table to index by code point; what lies behind it is SEPARATOR."""
    table = np.zeros(_LAST, np.uint8)
    for point in range(_LAST):
        category = unicodedata.category(chr(point))
        table[point] = IGNORED if category == "Cf" else _BY_CATEGORY.get(category[0], SEPARATOR)
    for first, last in _SPACELESS:
        block = table[first : last + 1]
        block[(block == LETTER) | (block == MARK)] = UNIT
    table.flags.writeable = False
    return table


@jit(nb.boolean[::1](_OFFSETS, _BYTES))
def _not_ascii(offsets: Any, data: Bytes) -> npt.NDArray[np.bool_]:
    """Whether each row has a byte beyond ASCII."""
    out = np.zeros(len(offsets) - 1, np.bool_)
    for row in range(len(out)):
        at = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        seen = np.uint64(0)
        while at + 8 <= end:
            seen |= load(data, at)
            at += 8
        while at < end:
            seen |= np.uint64(data[at])
            at += 1
        out[row] = (seen & _HIGH) != 0
    return out


@jit(nb.boolean[::1](_OFFSETS, _BYTES, _TABLE, _ROWS))
def _has_other(offsets: Any, data: Bytes, inert: Any, rows: Any) -> npt.NDArray[np.bool_]:
    """Whether each of the rows has a character that is not inert."""
    out = np.zeros(len(rows), np.bool_)
    for place in range(len(rows)):
        at = np.int64(offsets[rows[place]])
        end = np.int64(offsets[rows[place] + 1])
        while at < end:
            lead = np.int64(data[at])
            if lead < 0x80:
                at += 1
                continue
            width = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2
            if at + width > end:  # no UTF-8: cut within a character
                out[place] = True
                break
            point = lead & (0x7F >> width)
            for i in range(1, width):
                point = (point << 6) | (np.int64(data[at + i]) & 0x3F)
            at += width
            if point >= len(inert) or not inert[point]:
                out[place] = True
                break
    return out
