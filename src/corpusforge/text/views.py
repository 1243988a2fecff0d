"""Texts of rows as Arrow columns: what a row says, what it asks, what it answers.

Everything here is columnar (Polars list expressions over the Arrow buffers, no Python loop over rows) and pure. One
text is built of lines: per message its reasoning, content and tool-call JSON, empty parts left out.

    kind         prompt_text                         answer_text
    sft          all turns but system, assistant     assistant turns
    preference   messages                            chosen
    task         messages                            gold answer (`answer` in the verifier's spec, else the spec)
    rated        all turns but system, assistant     assistant turns, chosen

A column never holds null: a row without such a text gives "".
"""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa

from corpusforge.text.normalise import SECTION

_COLUMNS: Final = ("kind", "messages", "chosen", "rejected", "verifier")


def row_text(rows: pa.Table, *, system: bool = False, answers: bool = True) -> pa.Array:
    """Give all text of each row, as `string`: messages, then chosen and rejected answers.

    `system` includes system turns; without `answers` only what `prompt_text` holds is left. A task's gold answer is
    not part of its text.
    """
    roles = None if system else ~_role_is("system")
    if not answers:
        return _evaluate(rows, _prompt(system))
    return _evaluate(rows, _lines(_turns("messages", roles), _turns("chosen"), _turns("rejected")))


def prompt_text(rows: pa.Table) -> pa.Array:
    """Give what each row asks, as `string`, without the system prompt."""
    return _evaluate(rows, _prompt(system=False))


def answer_text(rows: pa.Table) -> pa.Array:
    """Give what each row answers, as `string`: assistant turns, the chosen answer, or a task's gold."""
    spec = pl.col("verifier").struct.field("spec")
    gold = pl.coalesce(spec.str.json_path_match("$.answer"), spec)
    said = pl.when(pl.col("kind").is_in(["sft", "rated"])).then(_turns("messages", _role_is("assistant")))
    return _evaluate(rows, _lines(said, _turns("chosen"), pl.when(pl.col("kind") == "task").then(gold)))


def compare_text(rows: pa.Table) -> pa.Array:
    """Give the text by which rows are compared for duplicates, as `string`: `row_text` without system prompts.

    A preference row's prompt, chosen and rejected answers are parted by U+001E, so that swapped answers differ.
    """
    parts = [_turns("messages", ~_role_is("system")), _turns("chosen"), _turns("rejected")]
    apart = pl.concat_str([part.fill_null("") for part in parts], separator=SECTION)
    return _evaluate(rows, pl.when(pl.col("kind") == "preference").then(apart).otherwise(_lines(*parts)))


def _prompt(system: bool) -> pl.Expr:
    """Choose the turns that ask: all of the messages where they are only a prompt, else those but the assistant's."""
    shown = pl.lit(True) if system else ~_role_is("system")
    asked = shown & ~_role_is("assistant")
    whole = pl.col("kind").is_in(["preference", "task"])
    return pl.when(whole).then(_turns("messages", shown)).otherwise(_turns("messages", asked))


def _role_is(role: str) -> pl.Expr:
    return pl.element().struct.field("role").eq_missing(role)


def _turns(column: str, which: pl.Expr | None = None) -> pl.Expr:
    """Join the turns of a message column that `which` (over one message) lets through; null where the column is."""
    fields = [_no_empty(pl.element().struct.field(name)) for name in ("reasoning", "content", "tool_calls")]
    text = pl.concat_str(fields, separator="\n", ignore_nulls=True)
    turns = text if which is None else text.filter(which)
    return pl.col(column).list.eval(turns.filter(turns != "")).list.join("\n")


def _no_empty(text: pl.Expr) -> pl.Expr:
    return pl.when(text != "").then(text)


def _lines(*texts: pl.Expr) -> pl.Expr:
    return pl.concat_str([_no_empty(text) for text in texts], separator="\n", ignore_nulls=True)


def _evaluate(rows: pa.Table, expression: pl.Expr) -> pa.Array:
    """Evaluate over the rows' text columns, one contiguous `string` array, nulls as ""."""
    frame = pl.DataFrame(pl.from_arrow(rows.select(_COLUMNS)))
    text = frame.select(expression.fill_null("").alias("text")).to_arrow(compat_level=pl.CompatLevel.oldest())["text"]
    chunks = text.cast(pa.string()).chunks
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
