"""Does a stand-in occur in a row already? Asked once per value, and a long row can hold very many.

Looking through ten megabytes takes milliseconds, and a hundred thousand times that is minutes. So from the hundredth
question on a table of the hashes of all pieces of eight characters answers first: a stand-in of which one piece is not
in it occurs nowhere. It never says so wrongly; what it cannot rule out is looked for in the text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

_PIECE: Final = 8  # characters
_SHORT: Final = 20_000  # characters: a text that is looked through at once
_PATIENCE: Final = 100  # questions
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


class Occupied:
    """A text, asked without regard to case whether it contains others."""

    def __init__(self, text: str) -> None:
        self._text = text.lower()
        self._asked = 0
        self._bits = min(25, max(16, len(text).bit_length() + 2))
        self._table: npt.NDArray[np.bool_] | None = None

    def __contains__(self, value: str) -> bool:
        value = value.lower()
        if self._table is None and len(self._text) > _SHORT:
            self._asked += 1
            if self._asked > _PATIENCE:
                self._table = np.zeros(1 << self._bits, np.bool_)
                self._table[self._hashes(self._text)] = True
        if self._table is not None and len(value) >= _PIECE and not self._table[self._hashes(value)].all():
            return False
        return value in self._text

    def _hashes(self, text: str) -> npt.NDArray[Any]:
        codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
        count = len(codes) - _PIECE + 1
        hashes = np.zeros(count, np.uint64)
        for at in range(_PIECE):
            hashes = (hashes + codes[at : at + count]) * _FACTOR
        return hashes >> np.uint64(64 - self._bits)
