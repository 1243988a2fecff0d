"""Shingles as 64-bit hashes: numba kernels over the buffers of an Arrow string column.

A text is a sequence of units: words (runs of letters, digits and their marks, lower-cased), or single characters in
scripts without spaces. A shingle is `k` consecutive units. A text of fewer units is one shingle as a whole, and then
punctuation counts too ("C" is not "C++"), blanks and case do not. A text without any unit has no shingle.

    "The cat sat on the mat."   k=5   ->   {the cat sat on the, cat sat on the mat}
    "今天上午我们"                k=5   ->   {今天上午我, 天上午我们}
    "Yes!"                      k=5   ->   {yes!}

Sections of a text (parted by U+001E) are shingled apart, each with its own hash function; hashes of sections behind
the first carry the top bit, so that a comparison can count the first section and the rest separately.

The hashes depend on the text alone: not on the platform's byte order, the process, or the rows around.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.text.kernels import Bytes, T, jit
from corpusforge.text.normalise import character_classes, normalise
from corpusforge.text.words import ROOM, finalise, fold, hash_words, until

Offsets = npt.NDArray[np.int32]
Hashes = npt.NDArray[np.uint64]

ANSWER_BIT: Final = np.uint64(1 << 63)

_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_OFFSETS: Final = T.Array(nb.int32, 1, "C", readonly=True)
_PRIME: Final = np.uint64(0x100000001B3)  # FNV-1a
_BASIS: Final = np.uint64(0xCBF29CE484222325)  # FNV-1a
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, golden ratio: base of the rolling polynomial
_SECTION: Final = np.uint8(0x1E)
_M1: Final = np.uint64(0xFF51AFD7ED558CCD)  # MurmurHash3 finaliser
_M2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_S33: Final = np.uint64(33)


@dataclass(frozen=True)
class Shingles:
    """Hashes of all rows in one array; those of row i are `hashes[starts[i]:starts[i + 1]]`, in text order."""

    hashes: npt.NDArray[np.uint64]
    starts: npt.NDArray[np.int64]
    units: npt.NDArray[np.int32]  # words (or characters) per row
    numbers: npt.NDArray[np.uint64]  # hash of the sequence of words with a digit; 0 where there is none


def shingle(texts: pa.Array, k: int) -> Shingles:
    """Shingles of `k` units of each text (any Arrow string array; nulls are empty).

    Takes 4 bytes per byte of all texts and 6 more per byte of the longest; hand over a slice at a time.
    """
    offsets, data = buffers(normalise(texts))
    count = len(offsets) - 1
    longest = int(np.diff(offsets).max()) if count else 0
    folded = np.empty(2 * longest + ROOM, np.uint8)
    starts = np.zeros(count + 1, np.int64)
    units = np.zeros(count, np.int32)
    numbers = np.zeros(count, np.uint64)
    # A unit takes at least two bytes (a letter and what parts it from the next), save for the last of a text.
    hashes = np.empty((len(data) + count) // 2 + 1, np.uint64)
    scratch = np.empty((longest + 1) // 2 + 1, np.uint64)
    _shingle_rows(offsets, data, character_classes(), k, folded, scratch, hashes, starts, units, numbers)
    return Shingles(hashes[: starts[-1]], starts, units, numbers)


def text_keys(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash each text by its characters, case and blanks aside; 0 for a text of blanks only."""
    return np.asarray(_keys(*buffers(normalise(texts))))


def byte_keys(values: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash each value (string or binary) by its exact bytes; 0 for null and for empty."""
    return np.asarray(_byte_keys(*buffers(values)))


def short_keys(texts: pa.Array, k: int) -> npt.NDArray[np.uint64]:
    """Hash each text of fewer than `k` units as `text_keys` does; 0 for the longer ones."""
    offsets, data = buffers(normalise(texts))
    longest = int(np.diff(offsets).max(initial=0))
    folded, scratch = np.empty(2 * longest + ROOM, np.uint8), np.empty((longest + 1) // 2 + 1, np.uint64)
    return np.asarray(_short_keys(offsets, data, character_classes(), k, folded, scratch))


def combine(*columns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix columns of hashes into one, order mattering."""
    mixed = np.full(len(columns[0]), _BASIS)
    for column in columns:
        mixed = mix((mixed ^ column) * _STEP)
    return mixed


def mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Apply the MurmurHash3 finaliser, a bijection of 64-bit values, to each."""
    values = (values ^ (values >> _S33)) * _M1
    values = (values ^ (values >> _S33)) * _M2
    return values ^ (values >> _S33)


def buffers(values: pa.Array) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8]]:
    """Offsets and bytes of a string or binary array, without a copy where it has no offset and no nulls."""
    if values.null_count:
        values = values.fill_null("" if pa.types.is_string(values.type) else b"")
    _, raw_offsets, raw_data = values.buffers()
    if not len(values) or raw_offsets is None:
        return np.zeros(len(values) + 1, np.int32), np.zeros(0, np.uint8)
    offsets = np.frombuffer(raw_offsets, np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(raw_data, np.uint8) if raw_data is not None and raw_data.size else np.zeros(0, np.uint8)
    return offsets - offsets[0] if offsets[0] else offsets, data[offsets[0] : offsets[-1]]


@jit(nb.uint64(_BYTES, nb.int64, nb.int64))
def _key(data: Bytes, begin: int, end: int) -> np.uint64:
    """Hash the characters of data[begin:end]; a run of blanks counts once, at the ends not at all."""
    key = _BASIS
    blank = False
    any_seen = False
    for at in range(begin, end):
        byte = data[at]
        if byte <= 0x20:
            blank = any_seen
            continue
        if blank:
            key = (key ^ np.uint64(0x20)) * _PRIME
            blank = False
        any_seen = True
        key = (key ^ np.uint64(byte + 32 if 65 <= byte <= 90 else byte)) * _PRIME
    return finalise(key) if any_seen else np.uint64(0)


@jit(nb.int64(nb.uint64[::1], nb.int64, nb.int64, nb.uint64, nb.uint64[::1], nb.int64))
def _roll(units: Hashes, count: int, k: int, salt: np.uint64, out: Hashes, at: int) -> int:
    """Write the hashes of all runs of `k` units, a rolling polynomial, from out[at] on; give the place behind."""
    top = np.uint64(1)
    for _ in range(k - 1):
        top *= _STEP
    value = np.uint64(0)
    for i in range(count):
        if i >= k:
            value -= units[i - k] * top
        value = value * _STEP + units[i]
        if i >= k - 1:
            out[at] = finalise(value + salt)
            at += 1
    return at


@jit(
    nb.void(
        _OFFSETS,
        _BYTES,
        _BYTES,
        nb.int64,
        nb.uint8[::1],
        nb.uint64[::1],
        nb.uint64[::1],
        nb.int64[::1],
        nb.int32[::1],
        nb.uint64[::1],
    )
)
def _shingle_rows(
    offsets: Offsets,
    data: Bytes,
    classes: Bytes,
    k: int,
    folded: Bytes,
    scratch: Hashes,
    hashes: Hashes,
    starts: npt.NDArray[np.int64],
    units: npt.NDArray[np.int32],
    numbers: Hashes,
) -> None:
    at = 0
    for row in range(len(offsets) - 1):
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        section = 0
        while begin <= end:
            stop, plain = until(data, begin, end, _SECTION)
            size = fold(data, begin, stop, classes, plain, folded)
            count, numbers[row] = hash_words(folded, size, scratch, numbers[row])
            salt = np.uint64(section) * _M2
            first = at
            if count >= k:
                at = _roll(scratch, count, k, salt, hashes, at)
            elif count:
                hashes[at] = finalise(_key(data, begin, stop) + salt + np.uint64(1))
                at += 1
            for i in range(first, at):
                hashes[i] = hashes[i] | ANSWER_BIT if section else hashes[i] & ~ANSWER_BIT
            units[row] += count
            begin = stop + 1
            section += 1
        starts[row + 1] = at


@jit(nb.uint64[::1](_OFFSETS, _BYTES))
def _keys(offsets: Offsets, data: Bytes) -> Hashes:
    out = np.zeros(len(offsets) - 1, np.uint64)
    for row in range(len(out)):
        out[row] = _key(data, np.int64(offsets[row]), np.int64(offsets[row + 1]))
    return out


@jit(nb.uint64[::1](_OFFSETS, _BYTES))
def _byte_keys(offsets: Offsets, data: Bytes) -> Hashes:
    out = np.zeros(len(offsets) - 1, np.uint64)
    for row in range(len(out)):
        key = _BASIS
        for at in range(offsets[row], offsets[row + 1]):
            key = (key ^ np.uint64(data[at])) * _PRIME
        if offsets[row + 1] > offsets[row]:
            out[row] = finalise(key)
    return out


@jit(nb.uint64[::1](_OFFSETS, _BYTES, _BYTES, nb.int64, nb.uint8[::1], nb.uint64[::1]))
def _short_keys(offsets: Offsets, data: Bytes, classes: Bytes, k: int, folded: Bytes, scratch: Hashes) -> Hashes:
    out = np.zeros(len(offsets) - 1, np.uint64)
    for row in range(len(out)):
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        size = fold(data, begin, end, classes, False, folded)
        if hash_words(folded, size, scratch, np.uint64(0))[0] < k:
            out[row] = _key(data, begin, end)
    return out
