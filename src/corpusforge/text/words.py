"""The words of a text, found and hashed eight bytes at a time.

    "The cat's 9 lives"   ->   the·cat·s·9·lives·      folded: words in lower case, a zero byte (·) behind each
                          ->   0 3 4 7 8 9 10 11 12 17  where each begins and ends
                          ->   five hashes

Folding ASCII is arithmetic on eight bytes in one register, and so is finding the borders: a bit for each byte, 64 to a
step. Other texts are folded character by character. A word's hash depends on its folded bytes alone.
"""

from __future__ import annotations

from typing import Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.kernels import Bytes, T, jit
from corpusforge.text.normalise import DIGIT, IGNORED, MARK, SEPARATOR, UNIT
from corpusforge.text.registers import load, lowest, store

Hashes = npt.NDArray[np.uint64]

_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_ONE: Final = np.uint64(1)
_SEVEN: Final = np.uint64(7)
_EIGHT: Final = np.uint64(8)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGH: Final = np.uint64(0x8080808080808080)
_LOW7: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_LOWER: Final = np.uint64(0x2020202020202020)  # the bit that makes an ASCII letter a small one
_GATHER: Final = np.uint64(0x0102040810204080)  # moves the lowest bit of byte i to bit 56 + i
# Added to bytes below 0x80, these set the top bit of those from 'a', behind 'z', from '0', behind '9' on.
_FROM_A, _PAST_Z, _FROM_0, _PAST_9 = (
    np.uint64((0x80 - point) * 0x0101010101010101) for point in (ord("a"), ord("z") + 1, ord("0"), ord("9") + 1)
)
_BASIS: Final = np.uint64(0xCBF29CE484222325)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_M1: Final = np.uint64(0xFF51AFD7ED558CCD)  # MurmurHash3 finaliser
_M2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_S32: Final = np.uint64(32)
_S33: Final = np.uint64(33)
OTHER_DIGIT: Final = np.uint8(1)  # stands before a digit that is not ASCII, in folded texts
ROOM: Final = 136  # bytes that `fold` writes beyond twice the text


@jit(nb.uint64(nb.uint64))
def finalise(value: np.uint64) -> np.uint64:
    """Apply the MurmurHash3 finaliser, a bijection of 64-bit values."""
    value = (value ^ (value >> _S33)) * _M1
    value = (value ^ (value >> _S33)) * _M2
    return value ^ (value >> _S33)


@jit(T.UniTuple(nb.int64, 2)(_BYTES, nb.int64, nb.int64))
def decode(data: Bytes, at: int, end: int) -> tuple[Any, int]:
    """Code point at `at`, ASCII lower-cased, and its width; a byte that cannot begin a character is taken alone."""
    lead = np.int64(data[at])
    if lead < 0x80:
        return (lead + 32 if 65 <= lead <= 90 else lead), 1
    width = 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1
    if width == 1 or at + width > end:
        return 0xFFFD, 1
    point = lead & (0x7F >> width)
    for i in range(1, width):
        point = (point << 6) | (np.int64(data[at + i]) & 0x3F)
    return point, width


@jit(T.Tuple((nb.int64, nb.boolean))(_BYTES, nb.int64, nb.int64, nb.uint8))
def until(data: Bytes, at: int, end: int, mark: np.uint8) -> tuple[int, bool]:
    """The first place of the byte `mark` (below 0x80) in data[at:end], else `end`; and whether all before is ASCII."""
    marks = np.uint64(mark) * _ONES
    seen = np.uint64(0)
    while at + 8 <= end:
        value = load(data, at)
        other = value ^ marks
        if (other - _ONES) & ~other & _HIGH:
            break
        seen |= value
        at += 8
    while at < end and data[at] != mark:
        seen |= np.uint64(data[at])
        at += 1
    return at, (seen & _HIGH) == 0


@jit(nb.uint64(nb.uint64))
def _folded(value: np.uint64) -> np.uint64:
    """Eight ASCII bytes, capitals made small, all but letters and digits made zero."""
    small = value | _LOWER
    letter = (small + _FROM_A) & ~(small + _PAST_Z) & _HIGH
    digit = (value + _FROM_0) & ~(value + _PAST_9) & _HIGH
    letters = (letter - (letter >> _SEVEN)) | letter
    digits = (digit - (digit >> _SEVEN)) | digit
    return (small & letters) | (value & digits)


@jit(nb.int64(_BYTES, nb.int64, nb.int64, nb.uint8[::1]))
def _fold_ascii(data: Bytes, at: int, end: int, out: Bytes) -> Any:
    to = 0
    while at + 8 <= end:
        store(out, to, _folded(load(data, at)))
        at += 8
        to += 8
    tail = np.uint64(0)
    for i in range(end - at):
        tail |= np.uint64(data[at + i]) << np.uint64(8 * i)
    store(out, to, _folded(tail))
    return to + end - at


@jit(nb.int64(_BYTES, nb.int64, nb.int64, _BYTES, nb.uint8[::1]))
def _fold_any(data: Bytes, at: int, end: int, classes: Bytes, out: Bytes) -> int:
    to = 0
    inside = False
    while at < end:
        point, width = decode(data, at, end)
        kind = classes[point] if point < len(classes) else SEPARATOR
        begin, at = at, at + width
        if kind == IGNORED or (kind == MARK and not inside):
            continue
        if inside and kind in (SEPARATOR, UNIT):
            out[to] = 0
            to += 1
        inside = kind not in (SEPARATOR, UNIT)
        if kind == DIGIT and width > 1:
            out[to] = OTHER_DIGIT
            to += 1
        if kind != SEPARATOR:
            for i in range(begin, at):
                out[to] = point if width == 1 else data[i]
                to += 1
        if kind == UNIT:
            out[to] = 0
            to += 1
    return to


@jit(nb.int64(_BYTES, nb.int64, nb.int64, _BYTES, nb.boolean, nb.uint8[::1]))
def fold(data: Bytes, at: int, end: int, classes: Bytes, ascii_only: bool, out: Bytes) -> Any:
    """Write the folded text of data[at:end] to `out`, zeros behind it; give its length.

    `out` takes twice the text and `ROOM`. A character of a script without spaces is a word by itself.
    """
    to = _fold_ascii(data, at, end, out) if ascii_only else _fold_any(data, at, end, classes, out)
    for behind in range(0, ROOM - 8, 8):
        store(out, to + behind, np.uint64(0))
    return to


@jit(nb.uint64(nb.uint8[::1], nb.int64))
def _filled(folded: Bytes, at: int) -> np.uint64:
    """A bit for each of 64 bytes that is not zero."""
    filled = np.uint64(0)
    for i in range(8):
        value = load(folded, at + 8 * i)
        some = (((value & _LOW7) + _LOW7) | value) & _HIGH
        filled |= (((some >> _SEVEN) * _GATHER) >> np.uint64(56)) << np.uint64(8 * i)
    return filled


@jit(T.UniTuple(nb.uint64, 2)(nb.uint8[::1], nb.int64, nb.int64))
def _hashed(folded: Bytes, at: int, end: int) -> tuple[np.uint64, np.uint64]:
    """The hash of a word, and whether it has a digit (not 0)."""
    hashed = _BASIS
    digits = np.uint64(0)  # of letters, small or not ASCII, one of the two upper bits is set
    value = load(folded, at)
    while end - at > 8:
        hashed = (hashed ^ value) * _M1
        hashed ^= hashed >> _S32
        digits |= ~(value | (value << _ONE))
        at += 8
        value = load(folded, at)
    own = ~np.uint64(0) >> (np.uint64(64) - _EIGHT * np.uint64(end - at))
    digits |= ~(value | (value << _ONE)) & own
    return finalise((hashed ^ (value & own)) * _M1), digits & _HIGH


@jit(T.Tuple((nb.int64, nb.uint64))(nb.uint8[::1], nb.int64, nb.uint64[::1], nb.uint64))
def hash_words(folded: Bytes, size: int, out: Hashes, numbers: np.uint64) -> tuple[int, np.uint64]:
    """Write the hash of each word of a folded text; give their number, and `numbers` with the words of digits mixed in.

    `numbers` depends on the words with a digit and their order.
    """
    count = 0
    begin: Any = np.int64(-1)  # of a word that goes on in the next 64 bytes
    before = np.uint64(0)
    for at in range(0, size + 1, 64):
        filled = _filled(folded, at)
        follows = (filled << _ONE) | before
        before = filled >> np.uint64(63)
        begins, ends = filled & ~follows, follows & ~filled
        while ends:
            if begin < 0:
                begin = at + lowest(begins)
                begins &= begins - _ONE
            out[count], digits = _hashed(folded, begin, at + lowest(ends))
            ends &= ends - _ONE
            begin = -1
            if digits:
                numbers = finalise((numbers ^ out[count]) * _STEP)
            count += 1
        if begins:
            begin = at + lowest(begins)
    return count, numbers
