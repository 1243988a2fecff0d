"""Every text inside rows as one flat column: where it stands, who says it, and the string.

Overlap and quality rules look at messages one by one (an n-gram must not run from a question into its answer), and a
ledger line must say in which field the evidence is. Columnar; a row's pieces come column by column, in message order.

    row 7, column messages, message 2, part content, role assistant  ->  "72"      field name: messages[2].content
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.sample import ROLES

if TYPE_CHECKING:
    from collections.abc import Sequence

COLUMNS: Final = ("messages", "chosen", "rejected", "verifier")
PARTS: Final = ("content", "reasoning", "tool_calls", "spec")
_JSON_PARTS: Final = {"tool_calls", "spec"}


@dataclass(frozen=True)
class Pieces:
    """Parallel arrays, one entry per text that is neither null nor empty."""

    row: npt.NDArray[np.int64]
    column: npt.NDArray[np.int8]  # index into COLUMNS
    message: npt.NDArray[np.int64]  # position in the row's list; 0 for verifier
    part: npt.NDArray[np.int8]  # index into PARTS
    role: npt.NDArray[np.int8]  # index into ROLES; -1 unknown, null or not a message
    last: npt.NDArray[np.bool_]  # belongs to the last message of its list
    text: pa.Array  # large_string; JSON's escaped white space is blank, at the same offsets

    def field(self, number: int) -> str:
        """Name of one piece's field, as ledger lines give it."""
        column, part = COLUMNS[self.column[number]], PARTS[self.part[number]]
        return f"{column}.{part}" if column == "verifier" else f"{column}[{self.message[number]}].{part}"

    def where(self, mask: npt.NDArray[np.bool_]) -> Pieces:
        """Only the pieces that `mask` lets through."""
        return Pieces(
            self.row[mask],
            self.column[mask],
            self.message[mask],
            self.part[mask],
            self.role[mask],
            self.last[mask],
            self.text.filter(pa.array(mask)),
        )


def pieces(rows: pa.Table, columns: Sequence[str] = COLUMNS, parts: Sequence[str] = PARTS) -> Pieces:
    """All texts of `rows` in the given columns and parts."""
    found: list[Pieces] = []
    for column in columns:
        values = _one_array(rows[column])
        if column == "verifier":
            if "spec" in parts:
                found.append(_whole_column(pc.struct_field(values, "spec"), column, "spec"))
        else:
            found.extend(_of_messages(values, column, [p for p in parts if p != "spec"]))
    return _join(found)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _of_messages(values: pa.Array, column: str, parts: Sequence[str]) -> list[Pieces]:
    parents = pc.list_parent_indices(values).to_numpy(zero_copy_only=False).astype(np.int64)
    flat = pc.list_flatten(values)
    sizes = np.bincount(parents, minlength=len(values)).astype(np.int64)
    first = np.cumsum(sizes) - sizes
    position = np.arange(len(parents), dtype=np.int64) - first[parents]
    last = position == sizes[parents] - 1
    codes = pc.fill_null(pc.index_in(pc.struct_field(flat, "role"), value_set=pa.array(ROLES)), -1)
    roles = codes.to_numpy(zero_copy_only=False).astype(np.int8)
    found = []
    for part in parts:
        text = pc.struct_field(flat, part)
        keep = _present(text)
        found.append(
            Pieces(
                parents[keep],
                np.full(int(keep.sum()), COLUMNS.index(column), np.int8),
                position[keep],
                np.full(int(keep.sum()), PARTS.index(part), np.int8),
                roles[keep],
                last[keep],
                _readable(text.filter(pa.array(keep)), part),
            )
        )
    return found


def _whole_column(text: pa.Array, column: str, part: str) -> Pieces:
    keep = _present(text)
    count = int(keep.sum())
    return Pieces(
        np.flatnonzero(keep).astype(np.int64),
        np.full(count, COLUMNS.index(column), np.int8),
        np.zeros(count, np.int64),
        np.full(count, PARTS.index(part), np.int8),
        np.full(count, -1, np.int8),
        np.ones(count, np.bool_),
        _readable(text.filter(pa.array(keep)), part),
    )


def _present(text: pa.Array) -> npt.NDArray[np.bool_]:
    mask: npt.NDArray[np.bool_] = pc.fill_null(pc.not_equal(text, ""), False).to_numpy(zero_copy_only=False)
    return mask


def _readable(text: pa.Array, part: str) -> pa.Array:
    text = text.cast(pa.large_string())
    return pc.replace_substring_regex(text, r"\\[nrt]", "  ") if part in _JSON_PARTS else text


def _join(found: Sequence[Pieces]) -> Pieces:
    def joined(name: str, kind: Any) -> Any:
        return np.concatenate([np.empty(0, kind), *(getattr(p, name) for p in found)])

    return Pieces(
        joined("row", np.int64),
        joined("column", np.int8),
        joined("message", np.int64),
        joined("part", np.int8),
        joined("role", np.int8),
        joined("last", np.bool_),
        pa.concat_arrays([pa.array([], pa.large_string()), *(p.text for p in found)]),
    )
