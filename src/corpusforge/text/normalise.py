"""What counts as the same text: Unicode form, case, and which characters make a word.

    "Ｆｕｌｌ‑width, CAFÉ"   ->   full width café       (NFKC, lower case, sharp s and final sigma folded)

`normalise` rewrites only the values that hold non-ASCII characters: the kernels lower ASCII as they read. Every
script keeps its letters: `character_classes` gives each code point its part in a word, from the Unicode general
category, and tells the scripts that write without spaces, whose characters are units of their own.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

SEPARATOR: Final = 0  # ends a word: blanks, punctuation, symbols
LETTER: Final = 1
DIGIT: Final = 2
MARK: Final = 3  # belongs to the word it stands in, never begins one
UNIT: Final = 4  # a character of a script without spaces: a word by itself
IGNORED: Final = 5  # zero-width and soft hyphen: as if absent

SECTION: Final = "\x1e"  # set between parts of one text whose shingles must not mix (chosen, rejected)

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
_BY_CATEGORY: Final = {"L": LETTER, "N": DIGIT, "M": MARK}


def normalise(texts: pa.Array) -> pa.Array:
    """NFKC and lower case for every value that is not pure ASCII; nulls become "". Gives a `string` array."""
    plain = texts if pa.types.is_string(texts.type) else texts.cast(pa.string())
    plain = pc.fill_null(plain, "") if plain.null_count else plain
    wide = pc.invert(pc.string_is_ascii(plain))
    some = pc.any(wide).as_py()
    return pc.replace_with_mask(plain, wide, _folded(pc.filter(plain, wide))) if some else plain


def _folded(texts: pa.Array) -> pa.Array:
    """NFKC, lower case, sharp s and final sigma as the letters that they stand for."""
    folded = pl.col("text").str.normalize("NFKC").str.to_lowercase().str.replace_many(["ß", "ς"], ["ss", "σ"])
    frame = pl.DataFrame({"text": pl.Series(pl.from_arrow(texts))}).select(folded)
    column = frame.to_arrow(compat_level=pl.CompatLevel.oldest())["text"].cast(pa.string())
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())


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
