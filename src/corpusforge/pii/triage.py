"""The fast path: which rows can hold anything at all, asked of whole columns.

Presidio takes milliseconds for a text; most texts hold nothing. A necessary condition per entity (an `@` before a
dotted word, seven digits with nothing but separators between them, …) is a plain regular expression, which Polars
answers for a column at hundreds of megabytes a second. Only rows with a hit become Python objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.pii.context import INVISIBLE
from corpusforge.pii.recognisers import BITS, TRIGGERS

if TYPE_CHECKING:
    from collections.abc import Iterator

MESSAGE_COLUMNS = ("messages", "chosen", "rejected")
MESSAGE_TEXTS = ("content", "reasoning", "name", "parts", "tool_calls", "extra")
JSON_COLUMNS = ("tools", "extra")

_INVISIBLE = f"[{INVISIBLE}]"


def triage(rows: pa.Table) -> npt.NDArray[np.uint32]:
    """Per row, a bit mask of the triggers (recognisers.BITS) that at least one of its texts pulls."""
    masks = np.zeros(rows.num_rows, np.uint32)
    for texts, owner in columns(rows):
        series = _cleaned(pl.Series(values=texts))
        for group, pattern in TRIGGERS.items():
            hits = series.str.contains(pattern).fill_null(False).arg_true().to_numpy()
            if len(hits):
                np.bitwise_or.at(masks, owner[hits], np.uint32(BITS[group]))
    return masks


def columns(rows: pa.Table) -> Iterator[tuple[pa.Array, npt.NDArray[np.int64]]]:
    """Every text column that is not all null, flattened, with the row that each text belongs to."""
    for name in MESSAGE_COLUMNS:
        start = 0
        for chunk in rows[name].chunks:
            flat = pc.list_flatten(chunk)
            owner = pc.list_parent_indices(chunk).to_numpy(zero_copy_only=False) + start
            start += len(chunk)
            for field in MESSAGE_TEXTS:
                texts = pc.struct_field(flat, field)
                if texts.null_count < len(texts):
                    yield texts, owner
    for name in (*JSON_COLUMNS, "verifier"):
        column = pc.struct_field(rows[name], "spec") if name == "verifier" else rows[name]
        texts = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
        if texts.null_count < len(texts):
            yield texts, np.arange(rows.num_rows, dtype=np.int64)


def _cleaned(texts: pl.Series) -> pl.Series:
    """Without invisible characters and full-width forms, where any text has them."""
    odd = texts.str.contains("[" + INVISIBLE + "\uff01-\uff5e]").fill_null(False)
    if not odd.any():
        return texts
    plain = texts.filter(odd).str.replace_all(_INVISIBLE, "").str.normalize("NFKC")
    return texts.scatter(odd.arg_true(), plain)
