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


@jit(nb.uint32[:, ::1](_U64, _I64, _U32, _U32))
def _signatures(hashes: Hashes, starts: npt.NDArray[np.int64], a: Signature, b: Signature) -> Signature:
    count = len(starts) - 1
    out = np.full((count, len(a)), np.uint32(0xFFFFFFFF), np.uint32)
    for row in range(count):
        least = out[row]
        for at in range(starts[row], starts[row + 1]):
            h = np.uint32(hashes[at] & np.uint64(0xFFFFFFFF))
            h = np.uint32((h ^ (h >> 16)) * np.uint32(0x85EBCA6B))
            h = np.uint32((h ^ (h >> 13)) * np.uint32(0xC2B2AE35))
            h = np.uint32(h ^ (h >> 16))
            for p in range(len(a)):
                least[p] = min(least[p], np.uint32(a[p] * h + b[p]))
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
