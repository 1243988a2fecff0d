"""128-bit fingerprints of rows by the exact bytes of their columns, nested ones too: equal only where every value is.

    messages [{"role": "user", "content": "Hi"}]        one
    messages [{"role": "user", "content": "Hi "}]       another: no blank, case or Unicode form is passed over
    messages [{"role": "user", "content": null}]        and another than that of ""

The hash is that of fingerprints.py; values of lists and structs are mixed in their order, with the length of lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numba as nb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text.fingerprints import _KEYS, _M1, _M2, _M3, _S29, _S32, _fingerprints
from corpusforge.text.kernels import T, jit
from corpusforge.text.shingles import buffers

if TYPE_CHECKING:
    from collections.abc import Iterable

Prints = npt.NDArray[np.uint64]  # (rows, 2)

_STARTS: Final = T.Array(nb.int64, 1, "C", readonly=True)
_NULL: Final = np.array([0x6C756E, 0x6C6C756E], np.uint64)


def prints(columns: Iterable[pa.Array]) -> Prints:
    """Fingerprint each row of the columns: an array (rows, 2)."""
    mixed: Prints | None = None
    for column in columns:
        own = _of(column)
        mixed = np.full(own.shape, _M3) if mixed is None else mixed
        _mix_in(mixed, own)
    if mixed is None:
        raise ValueError("no columns")
    return mixed


def _of(values: pa.Array) -> Prints:
    """Fingerprint each value."""
    if values.null_count == len(values):
        return np.tile(_NULL, (len(values), 1))
    if pa.types.is_list(values.type):
        sizes = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        found = np.asarray(_lists(starts, _of(values.flatten())))
    elif pa.types.is_struct(values.type):
        found = prints(values.flatten())
    elif pa.types.is_string(values.type) or pa.types.is_binary(values.type):
        found = np.asarray(_fingerprints(*buffers(values)))
    else:
        found = np.asarray(_fingerprints(*buffers(pc.cast(values, pa.string()))))
    if values.null_count:
        found[~np.asarray(pc.is_valid(values))] = _NULL
    return found


@jit(nb.void(nb.uint64[:, ::1], _KEYS))
def _mix_in(mixed: Prints, own: Prints) -> None:
    for row in range(len(mixed)):
        one = (mixed[row, 0] ^ own[row, 0]) * _M1
        two = (mixed[row, 1] ^ own[row, 1]) * _M2
        mixed[row, 0] = one ^ (one >> _S32)
        mixed[row, 1] = two ^ (two >> _S29)


@jit(nb.uint64[:, ::1](_STARTS, _KEYS))
def _lists(starts: npt.NDArray[np.int64], items: Prints) -> Prints:
    out = np.empty((len(starts) - 1, 2), np.uint64)
    for row in range(len(out)):
        size = np.uint64(starts[row + 1] - starts[row])
        one = size * _M3 + np.uint64(1)
        two = size * _M1 + np.uint64(2)
        for at in range(starts[row], starts[row + 1]):
            one = (one ^ items[at, 0]) * _M1
            one ^= one >> _S32
            two = (two ^ items[at, 1]) * _M2
            two ^= two >> _S29
        out[row, 0] = one
        out[row, 1] = two
    return out
