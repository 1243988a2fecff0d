"""Numbers in JSON that `datasets` cannot read as they stand.

`datasets` decodes JSON with pandas' fast parser, which has 64 bits for whole numbers and some fifteen decimals. At
2^64 + 1 it raises, which would end a training run at that row; above that it may read another number; 5e-324 it reads
as 0. So a number that it cannot hold at all is written as a string of the same digits, one that it rounds stays, and
both are listed in the manifest. Last-digit differences of ordinary decimals are neither changed nor listed.

    {"order":123456789012345678901}  ->  {"order":"123456789012345678901"}, listed as messages[1]…arguments.order, text
"""

from __future__ import annotations

import importlib
import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_SUSPECT: Final = r"\d{17,}|\d[eE][-+]?\d{2,}|\d\.\d{14,}"
_NEAR: Final = 1e-12  # relative


class _Float(float):
    """A float that remembers how it was written."""

    text: str


def readable(form: pa.Table) -> tuple[pa.Table, list[dict[str, str]]]:
    """The form with every message readable by `datasets`, and what was found: row id, column, JSON path, held as."""
    found: list[dict[str, str]] = []
    for place, field in enumerate(form.schema):
        if pa.types.is_list(field.type) and field.type.value_type == pa.json_():
            column, more = _readable(form[field.name], form["row_id"], field.name)
            found += more
            if more:
                form = form.set_column(place, field, column)
    return form, found


def _readable(column: pa.ChunkedArray, ids: pa.ChunkedArray, name: str) -> tuple[pa.Array, list[dict[str, str]]]:
    lists = (
        column.chunks[0] if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])
    )
    texts = lists.flatten().storage
    suspects = np.flatnonzero(pc.match_substring_regex(texts, _SUSPECT).to_numpy(zero_copy_only=False))
    lengths = pc.list_value_length(lists).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths)
    row = np.searchsorted(ends, suspects, side="right")
    found: list[dict[str, str]] = []
    changed: dict[int, str] = {}
    for at, line, text in zip(suspects.tolist(), row.tolist(), texts.take(pa.array(suspects)).to_pylist(), strict=True):
        here: list[dict[str, str]] = []
        message = _walk(json.loads(text, parse_float=_written), f"[{at - ends[line] + lengths[line]}]", here)
        found += [{"row_id": ids[line].as_py(), "column": name, **one} for one in here]
        if any(one["held_as"] == "text" for one in here):
            changed[at] = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    if changed:
        mask = np.zeros(len(texts), bool)
        mask[list(changed)] = True
        texts = pc.replace_with_mask(
            texts, pa.array(mask), pa.array([changed[at] for at in sorted(changed)], pa.string())
        )
    offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.ExtensionArray.from_storage(pa.json_(), texts)), found


def _written(number: str) -> float:
    value = _Float(number)
    value.text = number
    return value


def _walk(value: Any, path: str, found: list[dict[str, str]]) -> Any:
    """The value with unreadable numbers as text; `found` gets their paths, and those of numbers read as others."""
    if isinstance(value, dict):
        return {key: _walk(inner, f"{path}.{key}", found) for key, inner in value.items()}
    if isinstance(value, list):
        return [_walk(inner, f"{path}[{place}]", found) for place, inner in enumerate(value)]
    if isinstance(value, _Float):
        held = _float_held(value)
        if held:
            found.append({"path": path, "held_as": held})
        return value.text if held == "text" else value
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        found.append({"path": path, "held_as": "text"})
        return str(value)
    return value


def _float_held(value: _Float) -> str:
    """How a shard holds a float that is read as another one; "" for one that is not."""
    try:
        read = float(importlib.import_module("pandas.io.json").ujson_loads(value.text))
    except (ValueError, OverflowError):
        return "text"
    return "" if read == value or abs(read - value) <= _NEAR * abs(value) else "number"
