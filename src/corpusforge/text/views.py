"""Texts of rows as Arrow columns: what a row says, what it asks, what it answers.

Everything here is columnar (Polars list expressions over the Arrow buffers, no Python loop over rows) and pure. One
text is built of lines: per message its reasoning, content and tool-call JSON, empty parts left out.

    kind         prompt_text                         answer_text
    sft          all turns but system, assistant     assistant turns
    preference   messages                            chosen
    task         messages                            gold answer (`answer` in the verifier's spec, else the spec)
    rated        all turns but system, assistant     assistant turns, chosen

`compare_text`, by which rows are duplicates, is in sections parted by U+001E; the sections behind the first must be
similar by themselves as well (see shingles.py):

    kind                        first section                                    behind it
    sft, rated                  all turns but system
    the same, with tool turns   user turns, 256 characters of each tool result   assistant turns
    task                        the prompt
    the same, with tool turns   tool results                                     all other turns
    preference                  the prompt                                       chosen; rejected

A column never holds null: a row without such a text gives "".
"""

from __future__ import annotations

from typing import Final

import polars as pl
import pyarrow as pa

SECTION: Final = "\x1e"  # set between parts of one text whose shingles must not mix (chosen, rejected)
RESULT_HEAD: Final = 256  # characters of a tool result that are compared, where it is part of a trace

_COLUMNS: Final = ("kind", "messages", "chosen", "rejected", "verifier")
# The id of a call is drawn anew in each run; the form is that of shapes/calls.py, so no argument looks like it.
_CALL_ID: Final = r'\{"id":(?:"[^"\\]*"|-?\d+),"type":"function","function":\{'
_NO_CALL_ID: Final = '{"type":"function","function":{'


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
    """Give the text by which rows are compared for duplicates, as `string`, without system prompts and ids of calls.

    It depends on the row alone. In a trace what was asked, what was done and what tools gave back are told apart: two
    tasks over one repository share their file dumps, two runs of one task their steps.
    """
    frame = _frame(rows)
    traces = pl.col("messages").list.eval(_role_is("tool")).list.any().fill_null(value=False)
    pairs = pl.col("kind") == "preference"
    any_pair, any_trace = frame.select(pairs.any(), traces.any().alias("traces")).row(0)
    text = _without_mark(_asked_and_done())
    if any_trace:  # else all of it would be made for nothing
        text = (
            pl.when(traces & (pl.col("kind") == "task"))
            .then(_given_and_asked())
            .otherwise(pl.when(traces).then(_trace()).otherwise(text))
        )
    if any_pair:
        text = pl.when(pairs).then(_pair()).otherwise(text)
    return _text(frame, text)


def _asked_and_done() -> pl.Expr:
    """All turns but system."""
    return _lines(_compared("messages", ~_role_is("system")), _compared("chosen"), _compared("rejected"))


def _trace() -> pl.Expr:
    """What was asked and how each tool's answer begins; apart from it, what was done."""
    asked = _compared("messages", ~_role_is("system") & ~_role_is("assistant"))
    done = _compared("messages", _role_is("assistant"))
    return _sections(asked, _lines(done, _compared("chosen"), _compared("rejected")))


def _given_and_asked() -> pl.Expr:
    """What tools gave, whole, because the answer of a task may hang on it; apart from it, all that was asked."""
    asked = _compared("messages", ~_role_is("system") & ~_role_is("tool"))
    return _sections(_turns("messages", _role_is("tool")), asked)


def _pair() -> pl.Expr:
    """The prompt, the chosen and the rejected answer, so that swapped answers differ."""
    return _sections(_compared("messages", ~_role_is("system")), _compared("chosen"), _compared("rejected"))


def _prompt(system: bool) -> pl.Expr:
    """Choose the turns that ask: all of the messages where they are only a prompt, else those but the assistant's."""
    shown = pl.lit(True) if system else ~_role_is("system")
    asked = shown & ~_role_is("assistant")
    whole = pl.col("kind").is_in(["preference", "task"])
    return pl.when(whole).then(_turns("messages", shown)).otherwise(_turns("messages", asked))


def _role_is(role: str) -> pl.Expr:
    return pl.element().struct.field("role").eq_missing(role)


def _turns(column: str, which: pl.Expr | None = None, *, compared: bool = False) -> pl.Expr:
    """Join the turns of a message column that `which` (over one message) lets through; null where the column is.

    `compared` takes the head of what tools gave, and calls without their ids.
    """
    reasoning, content, calls = (pl.element().struct.field(name) for name in ("reasoning", "content", "tool_calls"))
    if compared:
        content = pl.when(_role_is("tool")).then(content.str.strip_chars().str.head(RESULT_HEAD)).otherwise(content)
        calls = calls.str.replace_all(_CALL_ID, _NO_CALL_ID)
    fields = [_no_empty(field) for field in (reasoning, content, calls)]
    text = pl.concat_str(fields, separator="\n", ignore_nulls=True)
    turns = text if which is None else text.filter(which)
    return pl.col(column).list.eval(turns.filter(turns != "")).list.join("\n")


def _compared(column: str, which: pl.Expr | None = None) -> pl.Expr:
    return _turns(column, which, compared=True)


def _sections(*parts: pl.Expr) -> pl.Expr:
    return pl.concat_str([_without_mark(part.fill_null("")) for part in parts], separator=SECTION)


def _without_mark(text: pl.Expr) -> pl.Expr:
    """The text without the mark of sections, which a text of its own must not make."""
    return text.str.replace_all(SECTION, " ", literal=True)


def _no_empty(text: pl.Expr) -> pl.Expr:
    return pl.when(text != "").then(text)


def _lines(*texts: pl.Expr) -> pl.Expr:
    return pl.concat_str([_no_empty(text) for text in texts], separator="\n", ignore_nulls=True)


def _evaluate(rows: pa.Table, expression: pl.Expr) -> pa.Array:
    """Evaluate over the rows' text columns, one contiguous `string` array, nulls as ""."""
    return _text(_frame(rows), expression)


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows.select(_COLUMNS)))


def _text(frame: pl.DataFrame, expression: pl.Expr) -> pa.Array:
    text = frame.select(expression.fill_null("").alias("text")).to_arrow(compat_level=pl.CompatLevel.oldest())["text"]
    chunks = text.cast(pa.string()).chunks
    return pa.concat_arrays(chunks) if chunks else pa.array([], pa.string())
