"""MinHash signatures and their bands, equal to datasketch's in each of its schemes.

The minimum of a random permutation over a set is the same for two sets with probability equal to their Jaccard
similarity (Broder 1997). `num_perm` such minima are a signature; bands of `rows` minima each make two rows meet in at
least one of `bands` buckets with probability 1 - (1 - J^rows)^bands (Leskovec, Rajaraman, Ullman, Mining of Massive
Datasets, ch. 3). Meeting makes a pair a candidate, nothing more.

The permutations are those of `datasketch.MinHash(num_perm, seed=seed, scheme=scheme)`, so `signatures` equals the
`hashvalues` of a MinHash that was updated with the same hashes:

    affine32   h -> a*h + b mod 2^32 behind the MurmurHash3 finaliser, a odd; over the low 32 bits of the hashes
    affine64   the same in 64 bits, over whole hashes: for sets of some 100 million shingles
    legacy     datasketch before 2.0: (a*h + b mod 2^64) mod 2^61 - 1, its low 32 bits; over the low 32 bits
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.errors import ConfigError
from corpusforge.text.kernels import T, jit
from corpusforge.text.words import finalise

if TYPE_CHECKING:
    from corpusforge.text.shingles import Hashes

_MAX_ROWS: Final = 16  # more minima in a band make no bucket purer in practice
_MERSENNE: Final = np.uint64((1 << 61) - 1)
_LOW: Final = np.uint64(0xFFFFFFFF)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_U64: Final = T.Array(nb.uint64, 1, "C", readonly=True)
_I64: Final = T.Array(nb.int64, 1, "C", readonly=True)
_U32: Final = T.Array(nb.uint32, 1, "C", readonly=True)
_U32_2D: Final = T.Array(nb.uint32, 2, "C", readonly=True)

Signature = npt.NDArray[np.uint32]
Minima = npt.NDArray[Any]  # of uint32 or uint64, as the scheme has it
SCHEMES: Final[dict[str, Any]] = {"affine32": np.uint32, "affine64": np.uint64, "legacy": np.uint64}


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


def permutations(num_perm: int, seed: int, scheme: str = "affine32") -> tuple[Minima, Minima]:
    """Multipliers and addends of the scheme's type, both of length `num_perm`, as datasketch draws them."""
    draw = np.random.RandomState(seed)
    if checked(scheme) == "legacy":
        limit = int(_MERSENNE)
        pairs = [
            (draw.randint(1, limit, dtype=np.uint64), draw.randint(0, limit, dtype=np.uint64)) for _ in range(num_perm)
        ]
        a, b = np.array(pairs, np.uint64).reshape(num_perm, 2).T
        return np.ascontiguousarray(a), np.ascontiguousarray(b)
    kind = SCHEMES[scheme]
    width = 8 * np.dtype(kind).itemsize
    multipliers = draw.randint(0, 1 << (width - 1), num_perm, dtype=kind) * kind(2) + kind(1)
    return multipliers, draw.randint(0, 1 << width, num_perm, dtype=kind)


def checked(scheme: str) -> str:
    """The scheme itself; ConfigError where datasketch has none of that name."""
    if scheme not in SCHEMES:
        raise ConfigError(f"scheme is {scheme!r}, expected one of {', '.join(map(repr, SCHEMES))}")
    return scheme


@overload
def signatures(
    hashes: Hashes, starts: npt.NDArray[np.int64], num_perm: int, seed: int, scheme: Literal["affine32"] = ...
) -> Signature: ...
@overload
def signatures(hashes: Hashes, starts: npt.NDArray[np.int64], num_perm: int, seed: int, scheme: str) -> Minima: ...
def signatures(
    hashes: Hashes, starts: npt.NDArray[np.int64], num_perm: int, seed: int, scheme: str = "affine32"
) -> Minima:
    """One signature of `num_perm` minima per row; rows without shingles get the maximum everywhere.

    Of type uint32 for affine32, else uint64. Raises ConfigError for a scheme that datasketch does not have.
    """
    a, b = permutations(num_perm, seed, scheme)
    return np.asarray(_KERNELS[scheme](hashes, starts, a, b))


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


@jit(nb.uint64[:, ::1](_U64, _I64, _U64, _U64))
def _signatures_64(hashes: Hashes, starts: npt.NDArray[np.int64], a: Hashes, b: Hashes) -> Hashes:
    count = len(starts) - 1
    out = np.full((count, len(a)), np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64)
    for row in range(count):
        least = out[row]
        for at in range(starts[row], starts[row + 1]):
            h = finalise(hashes[at])
            for p in range(len(a)):
                least[p] = min(least[p], a[p] * h + b[p])
    return out


@jit(nb.uint64[:, ::1](_U64, _I64, _U64, _U64))
def _signatures_legacy(hashes: Hashes, starts: npt.NDArray[np.int64], a: Hashes, b: Hashes) -> Hashes:
    """The product overflows 64 bits before the modulus is taken, in datasketch as here: old signatures have it so."""
    count = len(starts) - 1
    out = np.full((count, len(a)), _LOW, np.uint64)
    for row in range(count):
        least = out[row]
        for at in range(starts[row], starts[row + 1]):
            h = hashes[at] & _LOW
            for p in range(len(a)):
                value = a[p] * h + b[p]
                value = (value & _MERSENNE) + (value >> np.uint64(61))  # at most 2^61 + 6: one subtraction is left
                if value >= _MERSENNE:
                    value -= _MERSENNE
                least[p] = min(least[p], value & _LOW)
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


_KERNELS: Final = {"affine32": _signatures, "affine64": _signatures_64, "legacy": _signatures_legacy}
