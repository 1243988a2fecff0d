"""MinHash signatures and their bands, compatible with datasketch's `affine32` scheme.

The minimum of a random permutation over a set is the same for two sets with probability equal to their Jaccard
similarity (Broder 1997). `num_perm` such minima are a signature; bands of `rows` minima each make two rows meet in at
least one of `bands` buckets with probability 1 - (1 - J^rows)^bands (Leskovec, Rajaraman, Ullman, Mining of Massive
Datasets, ch. 3). Meeting makes a pair a candidate, nothing more.

The permutations are those of `datasketch.MinHash(num_perm, seed=seed)` (h -> a*h + b mod 2^32 behind the MurmurHash3
finaliser), so `signatures` equals `MinHash(…, hashfunc=identity).hashvalues` over the low 32 bits of the hashes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.kernels import T, jit

if TYPE_CHECKING:
    from corpusforge.text.shingles import Hashes

_MAX_ROWS: Final = 16  # more minima in a band make no bucket purer in practice
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_U64: Final = T.Array(nb.uint64, 1, "C", readonly=True)
_I64: Final = T.Array(nb.int64, 1, "C", readonly=True)
_U32: Final = T.Array(nb.uint32, 1, "C", readonly=True)
_U32_2D: Final = T.Array(nb.uint32, 2, "C", readonly=True)

Signature = npt.NDArray[np.uint32]


def parameters(threshold: float, num_perm: int, recall: float) -> tuple[int, int]:
    """Choose (bands, rows): the purest buckets that find a pair at exactly `threshold` with probability `recall`.

    The most rows per band for which at most `num_perm` minima reach the recall, with as few bands as that takes.
    Where even single minima do not reach it, all `num_perm` are used as bands of one.
    """
    for rows in range(min(_MAX_ROWS, num_perm), 0, -1):
        met = threshold**rows
        bands = (
            1
            if met >= 1
            else math.ceil(math.log1p(-min(recall, 1 - 1e-12)) / math.log1p(-met))
            if met
            else num_perm + 1
        )
        if bands * rows <= num_perm:
            return bands, rows
    return num_perm, 1


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """Probability that two sets of this similarity meet in at least one band."""
    return 1 - (1 - similarity**rows) ** bands


def permutations(num_perm: int, seed: int) -> tuple[Signature, Signature]:
    """Multipliers (odd) and addends, both uint32 of length `num_perm`, as datasketch draws them."""
    draw = np.random.RandomState(seed)
    a = draw.randint(0, 1 << 31, num_perm, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = draw.randint(0, 1 << 32, num_perm, dtype=np.uint32)
    return a, b


def signatures(hashes: Hashes, starts: npt.NDArray[np.int64], num_perm: int, seed: int) -> Signature:
    """One signature of `num_perm` minima per row; rows without shingles get the maximum everywhere."""
    return np.asarray(_signatures(hashes, starts, *permutations(num_perm, seed)))


def band_hashes(signature: Signature, bands: int, rows: int, guard: Hashes) -> Hashes:
    """Hash each band of each signature, mixed with the row's guard, so that only rows of equal guard can meet.

    Gives a (rows of the table, bands) array.
    """
    return np.asarray(_band_hashes(signature, bands, rows, guard))


@jit(nb.int64(_U64, nb.int64, nb.int64, nb.uint32[::1]))
def _premix(hashes: Hashes, begin: int, end: int, out: Signature) -> int:
    """Write the finalised low halves of hashes[begin:end] to `out`; give their number."""
    for i in range(end - begin):
        h = np.uint32(hashes[begin + i] & np.uint64(0xFFFFFFFF))
        h = np.uint32((h ^ (h >> np.uint32(16))) * np.uint32(0x85EBCA6B))
        h = np.uint32((h ^ (h >> np.uint32(13))) * np.uint32(0xC2B2AE35))
        out[i] = np.uint32(h ^ (h >> np.uint32(16)))
    return end - begin


@jit(nb.uint32[:, ::1](_U64, _I64, _U32, _U32))
def _signatures(hashes: Hashes, starts: npt.NDArray[np.int64], a: Signature, b: Signature) -> Signature:
    """Eight shingles a step: multiplier, addend and minimum are loaded once for the eight and stay in registers.

    The inner loop runs over the permutations, by whole vector registers. The last step is filled up with the row's
    last shingle, which changes no minimum.
    """
    count = len(starts) - 1
    longest = np.int64(0)
    for row in range(count):
        longest = max(longest, starts[row + 1] - starts[row])
    mixed = np.empty(longest + 8, np.uint32)
    out = np.full((count, len(a)), np.uint32(0xFFFFFFFF), np.uint32)
    for row in range(count):
        size = _premix(hashes, starts[row], starts[row + 1], mixed)
        mixed[size : size + 8] = mixed[max(size - 1, 0)]
        least = out[row]
        for at in range(0, size, 8):
            h0, h1, h2, h3 = mixed[at], mixed[at + 1], mixed[at + 2], mixed[at + 3]
            h4, h5, h6, h7 = mixed[at + 4], mixed[at + 5], mixed[at + 6], mixed[at + 7]
            for p in range(len(a)):
                m, c = a[p], b[p]
                one = min(np.uint32(m * h0 + c), np.uint32(m * h1 + c))
                two = min(np.uint32(m * h2 + c), np.uint32(m * h3 + c))
                three = min(np.uint32(m * h4 + c), np.uint32(m * h5 + c))
                four = min(np.uint32(m * h6 + c), np.uint32(m * h7 + c))
                least[p] = min(least[p], min(min(one, two), min(three, four)))
    return out


@jit(nb.uint64[:, ::1](_U32_2D, nb.int64, nb.int64, _U64))
def _band_hashes(signature: Signature, bands: int, rows: int, guard: Hashes) -> Hashes:
    out = np.empty((len(signature), bands), np.uint64)
    for row in range(len(signature)):
        for band in range(bands):
            value = guard[row]
            for at in range(band * rows, band * rows + rows):
                value = (value ^ np.uint64(signature[row, at])) * _STEP
                value ^= value >> np.uint64(29)
            out[row, band] = value
    return out
