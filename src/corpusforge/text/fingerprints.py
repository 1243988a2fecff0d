"""128-bit fingerprints of texts, for exact copies: equal for equal characters, whatever the Unicode form.

Two lanes of a multiply-xorshift hash over eight bytes at a time, with the length mixed in and the MurmurHash3 finaliser
at the end. Two different texts among a thousand million agree with probability 1e-21.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.kernels import T, jit
from corpusforge.text.normalise import composed
from corpusforge.text.registers import load
from corpusforge.text.shingles import buffers

if TYPE_CHECKING:
    import pyarrow as pa

    from corpusforge.text.kernels import Bytes
    from corpusforge.text.shingles import Hashes, Offsets

_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_OFFSETS: Final = T.Array(nb.int32, 1, "C", readonly=True)
_KEYS: Final = T.Array(nb.uint64, 2, "C", readonly=True)
_I64: Final = T.Array(nb.int64, 1, "C", readonly=True)
_M1: Final = np.uint64(0xFF51AFD7ED558CCD)
_M2: Final = np.uint64(0xC4CEB9FE1A85EC53)
_M3: Final = np.uint64(0x9E3779B97F4A7C15)
_S29: Final = np.uint64(29)
_S32: Final = np.uint64(32)
_S33: Final = np.uint64(33)


def fingerprints(texts: pa.Array) -> npt.NDArray[np.uint64]:
    """Hash each text in NFC: an array (texts, 2). Null is as the empty text."""
    return np.asarray(_fingerprints(*buffers(composed(texts))))


def first_equal(keys: npt.NDArray[np.uint64], ranked: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """For each row the first of `ranked` with the same key (two numbers); -1 where it is that row, or not ranked."""
    return np.asarray(_first_equal(keys, ranked))


@jit(nb.uint64[:, ::1](_OFFSETS, _BYTES))
def _fingerprints(offsets: Offsets, data: Bytes) -> Hashes:
    out = np.empty((len(offsets) - 1, 2), np.uint64)
    for row in range(len(out)):
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        size = np.uint64(end - begin)
        one = size * _M3 + np.uint64(1)
        two = size * _M1 + np.uint64(2)
        at = begin
        while at < end:
            word = np.uint64(0)
            if at + 8 <= end:
                word = load(data, at)
            else:
                for i in range(end - at):
                    word |= np.uint64(data[at + i]) << np.uint64(8 * i)
            at += 8
            one = (one ^ word) * _M1
            one ^= one >> _S32
            two = (two ^ word) * _M2
            two ^= two >> _S29
        one = (one ^ (one >> _S33)) * _M2
        two = (two ^ (two >> _S33)) * _M1
        out[row, 0] = one ^ (one >> _S33)
        out[row, 1] = two ^ (two >> _S33)
    return out


@jit(nb.int64[::1](_KEYS, _I64))
def _first_equal(keys: Hashes, ranked: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    size = 2
    while size < 2 * len(ranked):
        size *= 2
    first = np.full(size, -1, np.int64)
    out = np.full(len(keys), -1, np.int64)
    for row in ranked:
        at = np.int64(keys[row, 0]) & (size - 1)
        while first[at] >= 0 and (keys[first[at], 0] != keys[row, 0] or keys[first[at], 1] != keys[row, 1]):
            at = (at + 1) & (size - 1)
        if first[at] < 0:
            first[at] = row
        else:
            out[row] = first[at]
    return out
