"""Whether the turns of a row fit together: roles, order, tool calls and their answers.

Roles are checked in columns; only rows with tool calls or tool turns are looked at one by one.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from corpusforge.sample import ROLES

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS: Final = ("messages", "chosen", "rejected")

Faults = npt.NDArray[Any]


def role_faults(rows: pa.Table) -> Faults:
    """Name of the first fault in the order of turns per row, "" where there is none.

    A leading assistant turn and two user turns in a row are unusual but sound, and pass.
    """
    frame = _frame(rows)
    role = pl.element().struct.field("role")
    known = role.is_in(ROLES).fill_null(False)
    unknown = [pl.col(c).list.eval(~known).list.any().fill_null(False) for c in _COLUMNS]
    systems = pl.col("messages").list.eval(role.eq_missing("system")).list.sum().fill_null(0) > 1
    last = pl.col("messages").list.last().struct.field("role")
    ends_with = pl.col("kind").eq("sft") & last.is_in(["user", "system"])
    answers = [pl.col(c).list.eval(role.eq_missing("assistant")).list.any() for c in ("chosen", "rejected")]
    no_assistant = pl.col("kind").eq("preference") & ~(answers[0].fill_null(True) & answers[1].fill_null(True))
    fault = (
        pl.when(pl.any_horizontal(unknown))
        .then(pl.lit("unknown_role"))
        .when(systems)
        .then(pl.lit("two_system_turns"))
        .when(ends_with)
        .then(pl.lit("user_last"))
        .when(no_assistant)
        .then(pl.lit("answer_without_assistant"))
        .otherwise(pl.lit(""))
    )
    faults = frame.select(fault.alias("fault"))["fault"].to_numpy(allow_copy=True).astype(object)
    has_tool = frame.select(pl.col("messages").list.eval(role.eq_missing("tool")).list.any().fill_null(False))
    for row in np.flatnonzero(has_tool.to_series().to_numpy()):
        faults[row] = faults[row] or _tool_turn_fault(rows["messages"][int(row)].as_py())
    return faults


def call_faults(rows: pa.Table) -> Faults:
    """Name of the first fault in a tool call per row: not a list, no name, arguments that are not an object."""
    frame = _frame(rows)
    calls = pl.element().struct.field("tool_calls")
    has = [pl.col(c).list.eval(calls.is_not_null()).list.any().fill_null(False) for c in _COLUMNS]
    faults = np.full(rows.num_rows, "", object)
    for row in np.flatnonzero(frame.select(pl.any_horizontal(has)).to_series().to_numpy()):
        for column in _COLUMNS:
            for turn in rows[column][int(row)].as_py() or []:
                faults[row] = faults[row] or _call_fault(turn["tool_calls"])
    return faults


def equal_answers(rows: pa.Table) -> npt.NDArray[np.bool_]:
    """Preference rows whose chosen and rejected answers say the same, white space at the ends aside."""
    fields = ("role", "content", "reasoning", "tool_calls")
    texts = [pl.element().struct.field(f).fill_null("").str.strip_chars() for f in fields]
    said = {c: pl.col(c).list.eval(pl.concat_str(texts, separator="\x1f")).list.join("\x1e") for c in _COLUMNS[1:]}
    same = pl.col("kind").eq("preference") & said["chosen"].eq(said["rejected"]).fill_null(False)
    mask: npt.NDArray[np.bool_] = _frame(rows).select(same).to_series().to_numpy()
    return mask


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows.select(["kind", *_COLUMNS])))


def _call_fault(text: str | None) -> str:
    if text is None:
        return ""
    calls = _parsed(text)
    if not isinstance(calls, list):
        return "calls_not_a_list"
    for call in calls:
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
            return "call_without_name"
        if not isinstance(function.get("arguments", {}), dict):
            return "arguments_not_an_object"
    return ""


def _tool_turn_fault(turns: list[dict[str, Any]]) -> str:
    """A tool turn must answer a call that was made before it, by its id where calls have ids."""
    called, ids = False, set()
    for turn in turns:
        if turn["tool_calls"]:
            called = True
            calls = _parsed(turn["tool_calls"])
            ids |= {c["id"] for c in calls or [] if isinstance(c, dict) and isinstance(c.get("id"), str)}
        if turn["role"] == "tool":
            if not called:
                return "tool_without_call"
            if turn["tool_call_id"] and ids and turn["tool_call_id"] not in ids:
                return "orphan_tool_call_id"
    return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
