"""Draws: numbers that a string gets by lot, the same one on every machine, in every build and in every order.

Sampling by such a number does not depend on the order of rows or on the number of workers, and a row that is added
moves no other row.

    draw(["9f0c…", "77ab…"], "blend 0")  ->  uint64 [13604…, 2717…], uniform over 0 to 2^64 - 1
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def draw(values: pa.Array | pa.ChunkedArray, key: str) -> npt.NDArray[np.uint64]:
    """One uint64 per string (null counts as ""): BLAKE2b keyed with `key` (at most 64 bytes of UTF-8)."""
    array = pc.fill_null(values, "")
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.string())
    encoded = array.dictionary_encode()
    secret = key.encode()
    digests = b"".join(
        hashlib.blake2b(value.encode("utf-8", "surrogatepass"), digest_size=8, key=secret).digest()
        for value in encoded.dictionary.to_pylist()
    )
    drawn = np.frombuffer(digests, np.dtype("<u8")).astype(np.uint64)
    return drawn[encoded.indices.to_numpy(zero_copy_only=False)] if len(drawn) else drawn


def mix(values: npt.NDArray[np.uint64], number: npt.NDArray[np.uint64] | int) -> npt.NDArray[np.uint64]:
    """A second draw from a draw and a number (SplitMix64's finaliser over their sum)."""
    with np.errstate(over="ignore"):
        z = values + np.asarray(number, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: npt.NDArray[np.uint64] = z ^ (z >> np.uint64(31))
    return mixed
