"""Shingles as bytes, for tools that hash them in their own way: datasketch's SHA-1, or our hash as a function.

`shingles.py` hashes shingles without ever writing them. Here they are written, so that somebody else's hash function
can be fed the very sets that the kernels compare:

    "The cat sat on the mat."   k=5   ->   b"the cat sat on the", b"cat sat on the mat"
    "今天上午我们"                k=5   ->   b"今 天 上 午 我", b"天 上 午 我 们"   (in UTF-8)
    "Yes!"                      k=5   ->   b"yes!"                              (fewer words than a shingle)

Units are parted by one blank. A shingle of a text's second section (behind U+001E) begins with one U+001E, of the third
with two, and so on: so shingles of different sections are different tokens, as their hashes are different.

Two hash functions take such tokens. `shingle_hash` gives what the kernels give; `sha1_hashes` is datasketch's default
(the first bytes of SHA-1, little-endian; its `sha1_hash32` is the low half of its `sha1_hash64`), for columns of texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.errors import ConfigError
from corpusforge.text.kernels import Bytes, T, jit
from corpusforge.text.normalise import character_classes, normalise
from corpusforge.text.shingles import Hashes, Offsets, _shingle_rows, buffers
from corpusforge.text.words import OTHER_DIGIT, ROOM, fold, until

_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_OFFSETS: Final = T.Array(nb.int32, 1, "C", readonly=True)
_SPANS: Final = T.Array(nb.int64, 2, "C", readonly=True)
_SECTION: Final = np.uint8(0x1E)
_BLANK: Final = np.uint8(0x20)
_SLICE: Final = 16_384  # texts whose shingles are written at once

Positions = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Tokens:
    """Shingles of all rows: token i is `clean[spans[i, 0]:spans[i, 1]]` behind as many U+001E as `spans[i, 2]`.

    Those of row i are `starts[i]` to `starts[i + 1]`, in text order.
    """

    clean: Bytes
    spans: Positions
    starts: Positions

    def row(self, number: int) -> list[bytes]:
        """The tokens of one row."""
        own = self.spans[self.starts[number] : self.starts[number + 1]].tolist()
        return [b"\x1e" * section + self.clean[begin:end].tobytes() for begin, end, section in own]


def spans(texts: pa.Array, k: int) -> Tokens:
    """Write the shingles of `k` units of each text (any Arrow string array; nulls are empty)."""
    offsets, data = buffers(normalise(texts))
    count = len(offsets) - 1
    clean = np.empty(2 * len(data) + 2, np.uint8)
    found = np.empty((len(data) + count + 1, 3), np.int64)
    starts = np.zeros(count + 1, np.int64)
    longest = int(np.diff(offsets).max()) if count else 0
    folded, places = np.empty(2 * longest + ROOM, np.uint8), np.empty(longest + 2, np.int64)
    size = _spans(offsets, data, character_classes(), k, folded, places, clean, found, starts)
    return Tokens(clean[:size], found[: starts[-1]], starts)


def tokens(text: str, k: int = 5) -> list[bytes]:
    """Shingles of one text, repetitions included, in text order."""
    return spans(pa.array([text], pa.string()), k).row(0)


def shingle_hash(token: str | bytes, k: int = 5, bits: int = 32) -> int:
    """Our hash of one shingle, as datasketch's `hashfunc`: 32 bits for affine32 and legacy, 64 for affine64.

    Bytes are taken as `tokens` gives them; a str is normalised first, so `shingle_hash("The CAT sat on the")` is the
    same as that of b"the cat sat on the". A token of fewer than `k` units stands for a whole text. Raises ConfigError
    for what is not one shingle (no unit, or more than `k`).
    """
    if bits not in (32, 64):
        raise ConfigError(f"shingle_hash: bits is {bits}, expected 32 or 64")
    data = normalise(pa.array([token], pa.string()))[0].as_py().encode() if isinstance(token, str) else bytes(token)
    count, value = _token_hash(np.frombuffer(data, np.uint8), character_classes(), k)
    if count != 1:
        raise ConfigError(
            f"shingle_hash: found {count} shingles of {k} words in the token, expected 1",
            hint="cut a text into its shingles first: corpusforge.text.tokens.tokens(text, k)",
        )
    return int(value) & 0xFFFFFFFF if bits == 32 else int(value)


def sha1_hashes(texts: pa.Array, k: int) -> tuple[Hashes, Positions]:
    """The `sha1_hash64` of datasketch of each shingle, and where those of each row begin.

    The low half of each is `sha1_hash32`. `texts` is any Arrow string array; nulls are empty.
    """
    parts, sizes = [], [np.zeros(1, np.int64)]
    for at in range(0, len(texts), _SLICE):
        written = spans(texts.slice(at, _SLICE), k)
        parts.append(_sha1_all(written.clean, written.spans))
        sizes.append(np.diff(written.starts))
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64), np.cumsum(np.concatenate(sizes))


@jit(nb.int64(nb.uint8[::1], nb.int64, nb.uint8[::1], nb.int64, nb.int64[::1]))
def _write_units(folded: Bytes, size: int, clean: Bytes, to: int, places: Positions) -> int:
    """Write the words of a folded text from clean[to] on, a blank behind each; give their number.

    places[i] is where word i begins, places[count] where a further one would.
    """
    count = 0
    inside = False
    for i in range(size + 1):
        if folded[i] == 0:
            if inside:
                clean[to] = _BLANK
                to += 1
                count += 1
            inside = False
            continue
        if not inside:
            places[count] = to
            inside = True
        if folded[i] != OTHER_DIGIT:
            clean[to] = folded[i]
            to += 1
    places[count] = to
    return count


@jit(nb.int64(_BYTES, nb.int64, nb.int64, nb.uint8[::1], nb.int64))
def _write_whole(data: Bytes, begin: int, end: int, clean: Bytes, to: int) -> int:
    """Write the characters of data[begin:end] as `shingles._key` hashes them; give the place behind."""
    first = to
    blank = False
    for at in range(begin, end):
        byte = data[at]
        if byte <= 0x20:
            blank = to > first
            continue
        if blank:
            clean[to] = _BLANK
            to += 1
            blank = False
        clean[to] = byte + 32 if 65 <= byte <= 90 else byte
        to += 1
    return to


@jit(
    nb.int64(
        _OFFSETS, _BYTES, _BYTES, nb.int64, nb.uint8[::1], nb.int64[::1], nb.uint8[::1], nb.int64[:, ::1], nb.int64[::1]
    )
)
def _spans(
    offsets: Offsets,
    data: Bytes,
    classes: Bytes,
    k: int,
    folded: Bytes,
    places: Positions,
    clean: Bytes,
    out: Positions,
    starts: Positions,
) -> int:
    at = to = 0
    for row in range(len(offsets) - 1):
        begin = np.int64(offsets[row])
        end = np.int64(offsets[row + 1])
        section = 0
        while begin <= end:
            stop, plain = until(data, begin, end, _SECTION)
            count = _write_units(folded, fold(data, begin, stop, classes, plain, folded), clean, to, places)
            for i in range(count - k + 1):
                out[at, 0], out[at, 1], out[at, 2] = places[i], places[i + k] - 1, section
                at += 1
            if count >= k:
                to = places[count]
            elif count:
                out[at, 0], out[at, 2] = to, section
                to = _write_whole(data, begin, stop, clean, to)
                out[at, 1] = to
                at += 1
            begin = stop + 1
            section += 1
        starts[row + 1] = at
    return to


@jit(T.Tuple((nb.int64, nb.uint64))(_BYTES, _BYTES, nb.int64))
def _token_hash(data: Bytes, classes: Bytes, k: int) -> tuple[int, np.uint64]:
    """How many shingles data holds, and the hash of the first."""
    offsets = np.array([0, len(data)], np.int32)
    hashes = np.zeros(len(data) + 2, np.uint64)
    starts = np.zeros(2, np.int64)
    folded, scratch = np.empty(2 * len(data) + ROOM, np.uint8), np.empty(len(data) + 2, np.uint64)
    units, numbers = np.zeros(1, np.int32), np.zeros(1, np.uint64)
    _shingle_rows(offsets, data, classes, k, folded, scratch, hashes, starts, units, numbers)
    return starts[1], hashes[0]


@jit(nb.uint32(nb.uint32, nb.int64))
def _rotate(value: np.uint32, by: int) -> np.uint32:
    return np.uint32((value << np.uint32(by)) | (value >> np.uint32(32 - by)))


@jit(nb.void(nb.uint8[::1], nb.int64, nb.uint32[::1], nb.uint32[::1]))
def _sha1_block(message: Bytes, at: int, w: Words, state: Words) -> None:
    """One round of SHA-1 (FIPS 180-4, 6.1.2) over message[at:at + 64]."""
    for i in range(16):
        word = np.uint32(0)
        for j in range(4):
            word = np.uint32((word << np.uint32(8)) | np.uint32(message[at + 4 * i + j]))
        w[i] = word
    for i in range(16, 80):
        w[i] = _rotate(np.uint32(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]), 1)
    a, b, c, d, e = state[0], state[1], state[2], state[3], state[4]
    for i in range(80):
        if i < 20:
            mixed = np.uint32(((b & c) | (~b & d)) + np.uint32(0x5A827999))
        elif i < 40:
            mixed = np.uint32((b ^ c ^ d) + np.uint32(0x6ED9EBA1))
        elif i < 60:
            mixed = np.uint32(((b & c) | (b & d) | (c & d)) + np.uint32(0x8F1BBCDC))
        else:
            mixed = np.uint32((b ^ c ^ d) + np.uint32(0xCA62C1D6))
        following = np.uint32(_rotate(a, 5) + mixed + e + w[i])
        e, d, c, b, a = d, c, _rotate(b, 30), a, following
    state[0] += a
    state[1] += b
    state[2] += c
    state[3] += d
    state[4] += e


@jit(nb.uint64[::1](_BYTES, _SPANS))
def _sha1_all(clean: Bytes, spans: Positions) -> Hashes:
    """First eight bytes of the SHA-1 of each token, as a little-endian number."""
    longest = np.int64(0)
    for i in range(len(spans)):
        longest = max(longest, spans[i, 1] - spans[i, 0] + spans[i, 2])
    message = np.empty(longest + 128, np.uint8)
    w, state = np.empty(80, np.uint32), np.empty(5, np.uint32)
    out = np.empty(len(spans), np.uint64)
    for i in range(len(spans)):
        begin, section = spans[i, 0], spans[i, 2]
        size = spans[i, 1] - begin + section
        padded = (size + 8) // 64 * 64 + 64
        message[:section] = _SECTION
        message[section:size] = clean[begin : spans[i, 1]]
        message[size:padded] = 0
        message[size] = 0x80
        for j in range(8):
            message[padded - 1 - j] = ((size * 8) >> (8 * j)) & 0xFF
        state[0], state[1], state[2], state[3], state[4] = 0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0
        for at in range(0, padded, 64):
            _sha1_block(message, at, w, state)
        value = np.uint64(0)
        for j in range(8):
            byte = (state[j // 4] >> np.uint32(24 - 8 * (j % 4))) & np.uint32(0xFF)
            value |= np.uint64(byte) << np.uint64(8 * j)
        out[i] = value
    return out
