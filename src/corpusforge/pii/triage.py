"""The fast path: which rows can hold anything at all, asked of whole columns.

Presidio takes milliseconds for a text; most texts hold nothing. A necessary condition per entity (an `@` before a
dotted word, seven digits with nothing but separators between them, …) is a plain regular expression, which Polars
answers for a column at hundreds of megabytes a second. Only rows with a hit become Python objects.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.pii import addresses, ids
from corpusforge.pii.context import INVISIBLE, WIDE
from corpusforge.pii.recognisers import BITS, TRIGGERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    _Positions = npt.NDArray[np.int64]

MESSAGE_COLUMNS = ("messages", "chosen", "rejected")
MESSAGE_TEXTS = ("content", "reasoning", "name", "tool_call_id", "parts", "tool_calls", "extra")
JSON_COLUMNS = ("tools", "extra")
STRUCT_TEXTS = (("rating", "by"), ("verifier", "spec"))

_INVISIBLE = f"[{INVISIBLE}]"
_JSON = r"^\s*[\[{]"  # how a text begins that may be JSON
# Per group what is asked of a column, one step after the other: a text goes on that matches one of a step's patterns.
_STEPS = {group: ((pattern,),) for group, pattern in TRIGGERS.items()} | {
    "address": (addresses.TRIGGERS,),
    "ids": (*ids.NEEDED, (ids.TRIGGER,)),
}


def triage(rows: pa.Table) -> npt.NDArray[np.uint32]:
    """Per row, a bit mask of the triggers (recognisers.BITS) that at least one of its texts pulls."""
    masks = np.zeros(rows.num_rows, np.uint32)
    parts = [part for texts, owner in columns(rows) for part in _read(pl.Series(values=texts), owner)]
    # Where one text of a row has an address's trigger, all of them are searched: what an address needs may be in any.
    placed = np.zeros(rows.num_rows, np.bool_)
    for texts, owner in parts:
        placed[owner[_where(texts, None, ((addresses.NEEDED,),))]] = True
    for texts, owner in parts:
        for group, steps in _STEPS.items():
            hits = _where(texts, np.flatnonzero(placed[owner]) if group == "address" else None, steps)
            if len(hits):
                np.bitwise_or.at(masks, owner[hits], np.uint32(BITS[group]))
    return masks


def _read(texts: pl.Series, owner: _Positions) -> Iterator[tuple[pl.Series, _Positions]]:
    """The texts as they are, and those that may be JSON with escapes once more as their strings read."""
    yield _cleaned(texts), owner
    escaped = (texts.str.contains("\\", literal=True) & texts.str.contains(_JSON)).fill_null(False)
    if escaped.any():
        yield _cleaned(_unescaped(texts.filter(escaped))), owner[escaped.to_numpy()]


def _where(texts: pl.Series, among: _Positions | None, steps: Sequence[Sequence[str]]) -> _Positions:
    """Positions (of those in `among`, or of all) of the texts that match one pattern of each step."""
    for patterns in steps:
        some = texts if among is None else texts.gather(among)
        hits = np.flatnonzero(reduce(or_, (some.str.contains(pattern) for pattern in patterns)).to_numpy())
        among = hits if among is None else among[hits]
    return np.arange(len(texts)) if among is None else among


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
    alone = [(rows[name], "") for name in JSON_COLUMNS] + [(rows[name], field) for name, field in STRUCT_TEXTS]
    for given, field in alone:
        column = pc.struct_field(given, field) if field else given
        texts = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
        if texts.null_count < len(texts):
            yield texts, np.arange(rows.num_rows, dtype=np.int64)


def _unescaped(texts: pl.Series) -> pl.Series:
    r"""JSON as its strings read, however deep they are packed in others: `\\"` is a quote, `\u0040` an at sign.

    For triggers only: what stays of the JSON around them, and what is not JSON at all, may read otherwise.
    """
    texts = texts.str.replace_all(r"\\+", "\\", literal=False)
    coded = texts.str.contains(r"\\u").arg_true()
    if len(coded):
        texts = texts.scatter(coded, [_characters(text) for text in texts.gather(coded)])
    texts = texts.str.replace_all(r"\\([\"/])", "$1")
    return texts.str.replace_all(r"\\n", "\n").str.replace_all(r"\\[bfrt]", "\t")


def _characters(text: str) -> str:
    r"""The text with its `\u` escapes read, by codecs that take them for what they are and leave all else."""
    decoded = text.encode("raw_unicode_escape").decode("raw_unicode_escape", "replace")
    return decoded.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _cleaned(texts: pl.Series) -> pl.Series:
    """Without nulls, and without invisible characters and full-width forms where any text has them."""
    texts = texts.fill_null("")
    odd = texts.str.contains(f"[{INVISIBLE}{WIDE}]")
    if not odd.any():
        return texts
    plain = texts.filter(odd).str.replace_all(_INVISIBLE, "").str.normalize("NFKC")
    return texts.scatter(odd.arg_true(), plain)
