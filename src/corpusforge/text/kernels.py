"""How kernels are compiled: once for one signature, without the GIL, kept on disk."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

T: Any = nb.types


def jit(signature: Any) -> Any:
    """Compile for one signature when imported, without the GIL; kept on disk wherever there is a place to keep it."""

    def compiled(function: Any) -> Any:
        try:
            return nb.njit(signature, nogil=True, cache=True, error_model="numpy")(function)
        except RuntimeError:  # neither the package's folder nor the user's cache can be written
            return nb.njit(signature, nogil=True, error_model="numpy")(function)

    return compiled
