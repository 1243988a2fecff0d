"""Arrow arrays to NumPy and back, by their buffers.

`Array.to_numpy`, `pa.array` and `pa.scalar` import pandas where it is installed: a third of a second and 40 MB, which a
command that never uses it need not spend.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_TYPES: Final = {
    np.dtype(name): getattr(pa, name)() for name in ("int32", "int64", "uint32", "uint64", "float32", "float64")
}


def bools(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    """The values of a boolean array without nulls."""
    bits = np.unpackbits(np.frombuffer(array.buffers()[1] or b"", np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def numbers(array: pa.Array) -> npt.NDArray[Any]:
    """The values of an array of numbers; nulls are 0. Read-only, and no copy unless there are nulls."""
    kind = array.type.to_pandas_dtype()
    whole = np.frombuffer(array.buffers()[1] or b"", kind)[array.offset : array.offset + len(array)]
    return np.where(bools(array.is_valid()), whole, kind(0)) if array.null_count else whole


def arrow(values: npt.NDArray[Any]) -> pa.Array:
    """An Arrow array of booleans or numbers."""
    if values.dtype == np.bool_:
        packed = pa.py_buffer(np.packbits(values, bitorder="little"))
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, packed])
    return pa.Array.from_buffers(_TYPES[values.dtype], len(values), [None, pa.py_buffer(np.ascontiguousarray(values))])
