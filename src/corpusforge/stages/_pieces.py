"""A table in pieces whose texts fit into memory several times over: so many rows at most, and so many bytes of text.

16,384 rows of 1 KB           one piece
16,384 rows of 50 KB each     eight pieces: an agent's traces are long
one row of 50 MB              a piece of its own
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from corpusforge.stages._stage import SLICE

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

ROWS: Final = SLICE
BYTES: Final = 2**27  # shingles take up to eight times as much


def pieces(rows: pa.Table, columns: list[str]) -> Iterator[pa.Table]:
    """The rows in order, at least one slice: at most `ROWS` rows and, save for single rows, `BYTES` of `columns`."""
    for at in range(0, max(rows.num_rows, 1), ROWS):
        yield from _halved(rows.slice(at, ROWS), columns)


def _halved(rows: pa.Table, columns: list[str]) -> Iterator[pa.Table]:
    if rows.num_rows < 2 or rows.select(columns).nbytes <= BYTES:
        yield rows
    else:
        half = rows.num_rows // 2
        yield from _halved(rows.slice(0, half), columns)
        yield from _halved(rows.slice(half), columns)
