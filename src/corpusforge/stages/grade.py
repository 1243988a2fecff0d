"""grade: how hard and how long every row is, as stored columns that say what they were measured by.

Adds `difficulty` (value 0 easy to 1 hard, method) and `tokens`; drops nothing. What the source measured goes before
what we guess: attempts at the task, a stated pass rate, a level. Attempts become 1 - passes / attempts only from
`min_attempts` on, because 0 of 4 and 2 of 4 are hardly different; below that the row is graded by its text and noted.
A task that was never tried has no pass rate: its value is null, never 0. The text formula ("static-1") is in
`corpusforge.text.difficulty`: transparent, not calibrated against any model.

    {"passes": 40, "attempts": 64}  ->  difficulty {value: 0.375, method: "source:passes/attempts"}
    {"passes": 0, "attempts": 64}   ->  difficulty {value: 1.0, …}, changes: unsolved {"passes": 0, "attempts": 64}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import Field

from corpusforge.result import LEDGER, StageResult, ledger
from corpusforge.sample import ADDED
from corpusforge.stages._stage import Inputs, RowWise, StageConfig, configure, in_memory

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_PASSES: Final = "source:passes/attempts"
_RATES: Final = ("pass_rate", "solve_rate", "success_rate")
_NAMED: Final = {
    "trivial": 0.0, "very easy": 0.1, "introductory": 0.2, "easy": 0.2, "beginner": 0.2, "medium": 0.5,
    "intermediate": 0.5, "interview": 0.5, "hard": 0.8, "advanced": 0.8, "competition": 0.9, "very hard": 0.9,
}  # fmt: skip
_BINS: Final = (0.2, 0.4, 0.6, 0.8)
_CHARS_PER_TOKEN: Final = 4
_BATCH: Final = 1_000  # texts handed to the tokenizer at once


class GradeConfig(StageConfig):
    """What rows are measured by."""

    counter: str = "chars/4"
    """How tokens are counted: `chars/4` (characters / 4, within about 20 % for English prose), or the path of a
    tokenizer.json (or of the folder that holds it)."""

    min_attempts: int = Field(8, ge=1)
    """Attempts from which a task's pass rate is its difficulty; with 8, a rate of 0.95 still shows 8 of 8 in two of
    three tasks."""

    from_source: bool = True
    """Use difficulty that the source states (`passes` and `attempts`, `pass_rate`, `level`, `difficulty`)."""


def grade(
    rows: pa.Table, config: GradeConfig | None = None, *, tokenizer: Tokenizer | None = None, **options: Any
) -> StageResult:
    """Add `difficulty` and `tokens`. `tokenizer` counts tokens where config.counter names one.

    Keyword arguments are the fields of GradeConfig. Raises ConfigError for a wrong option.
    """
    return in_memory(STAGE, rows, configure(GradeConfig, config, options), {"tokenizer": tokenizer})


def _run(rows: pa.Table, config: GradeConfig, inputs: Inputs) -> StageResult:
    from corpusforge.text.difficulty import METHOD, static_difficulty

    stated = _stated(rows, config) if config.from_source else _nothing(rows.num_rows)
    graded = stated.with_columns(static=static_difficulty(rows)).with_columns(
        # An untried task keeps its null; where the source says nothing usable, the text decides.
        value=pl.when(pl.col("method").is_null()).then("static").otherwise("value"),
        method=pl.when(pl.col("method").is_null() & pl.col("static").is_not_null())
        .then(pl.lit(METHOD))
        .otherwise("method"),
    )
    tokens = token_counts(rows, inputs.get("tokenizer"))
    difficulty = pa.StructArray.from_arrays(
        [graded["value"].to_arrow().cast(pa.float64()), graded["method"].to_arrow().cast(pa.string())],
        ["value", "method"],
    )
    kept = _with_columns(rows, {"difficulty": difficulty, "tokens": pa.array(tokens, pa.int32())})
    return StageResult(STAGE.name, kept, changes=_notes(rows, graded, config), metrics=_metrics(graded, tokens))


STAGE = RowWise("grade", GradeConfig, _run, needs=("tokenizer",), columns=("difficulty", "tokens"))


def _with_columns(rows: pa.Table, columns: dict[str, pa.Array]) -> pa.Table:
    for name, values in columns.items():
        values = values.cast(ADDED[name])
        at = rows.schema.get_field_index(name)
        rows = rows.append_column(name, values) if at < 0 else rows.set_column(at, name, values)
    return rows


def _nothing(count: int) -> pl.DataFrame:
    kinds = {"value": pl.Float64, "method": pl.String, "passes": pl.Float64, "attempts": pl.Float64}
    return pl.DataFrame({name: pl.Series([None] * count, dtype=kind) for name, kind in kinds.items()})


def _stated(rows: pa.Table, config: GradeConfig) -> pl.DataFrame:
    """Difficulty as the source states it in `extra`, best evidence first: attempts, pass rate, level, difficulty."""
    extra = pl.DataFrame({"extra": pl.Series(rows["extra"], dtype=pl.String)})
    field = {
        n: pl.col("extra").str.json_path_match(f"$.{n}") for n in (*_RATES, "passes", "attempts", "level", "difficulty")
    }
    number = {name: text.cast(pl.Float64, strict=False) for name, text in field.items()}
    passes, attempts = number["passes"], number["attempts"]
    tried = passes.is_not_null() & attempts.is_not_null() & (passes >= 0) & (passes <= attempts)
    level = field["level"].str.extract(r"(?i)^\s*(?:level\s*)?([1-5])\s*$").cast(pl.Float64)
    named = field["difficulty"].str.to_lowercase().replace_strict(_NAMED, default=None, return_dtype=pl.Float64)
    share = pl.when(number["difficulty"].is_between(0, 1)).then(number["difficulty"])
    candidates = [(tried & (attempts == 0), _PASSES, pl.lit(None, pl.Float64))]
    candidates += [(tried & (attempts >= config.min_attempts), _PASSES, 1 - passes / attempts)]
    candidates += [(number[r].is_between(0, 1), f"source:{r}", 1 - number[r]) for r in _RATES]
    candidates += [(level.is_not_null(), "source:level", (level - 1) / 4)]
    candidates += [(share.is_not_null() | named.is_not_null(), "source:difficulty", pl.coalesce(share, named))]
    value, method = pl.lit(None, pl.Float64), pl.lit(None, pl.String)
    for holds, name, amount in reversed(candidates):
        holds = holds.fill_null(False)
        value, method = (
            pl.when(holds).then(amount).otherwise(value),
            pl.when(holds).then(pl.lit(name)).otherwise(method),
        )
    kept = {n: pl.when(tried.fill_null(False)).then(number[n]) for n in ("passes", "attempts")}
    return extra.select(value=value.round(4), method=method, **kept)


def token_counts(rows: pa.Table, tokenizer: Tokenizer | None) -> np.ndarray[Any, Any]:
    """Length of all that a trainer reads of a row: turns, both answers of a pair, tool schemas."""
    from corpusforge.text.views import row_text

    texts = pl.DataFrame(
        {"text": pl.Series(row_text(rows, system=True)), "tools": pl.Series(rows["tools"], dtype=pl.String)}
    )
    if tokenizer is None:
        chars = texts.select(pl.col("text").str.len_chars() + pl.col("tools").str.len_chars().fill_null(0)).to_series()
        return np.asarray(-(-chars.to_numpy().astype(np.int64) // _CHARS_PER_TOKEN))
    joined = texts.select(pl.concat_str("text", "tools", separator="\n", ignore_nulls=True)).to_series()
    counts = [
        len(one.ids)
        for start in range(0, len(joined), _BATCH)
        for one in tokenizer.encode_batch_fast(joined.slice(start, _BATCH).to_list(), add_special_tokens=False)
    ]
    return np.array(counts, np.int64)


def _notes(rows: pa.Table, graded: pl.DataFrame, config: GradeConfig) -> pa.Table:
    """Rows whose attempts say less than they seem to: never solved, or tried too few times."""
    passes, attempts = graded["passes"].to_numpy(), graded["attempts"].to_numpy()
    lines = []
    for reason, mask in (
        ("unsolved", (passes == 0) & (attempts > 0)),
        ("few_attempts", (attempts > 0) & (attempts < config.min_attempts)),
        ("untried", attempts == 0),
    ):
        found = np.flatnonzero(mask)
        details = [{"passes": int(passes[row]), "attempts": int(attempts[row])} for row in found]
        lines.append(ledger(rows, found, STAGE.name, [reason] * len(found), details))
    return pa.concat_tables([LEDGER.empty_table(), *lines])


def _metrics(graded: pl.DataFrame, tokens: np.ndarray[Any, Any]) -> dict[str, Any]:
    values = graded["value"].drop_nulls().to_numpy()
    bins = np.bincount(np.digitize(values, _BINS), minlength=len(_BINS) + 1)
    edges = (0.0, *_BINS, 1.0)
    methods = dict(graded["method"].drop_nulls().value_counts().sort("method").iter_rows())
    return {
        "difficulty": {
            f"{low:.1f}-{high:.1f}": int(n) for low, high, n in zip(edges[:-1], edges[1:], bins, strict=True)
        },
        "methods": methods,
        "unmeasured": graded["value"].null_count(),
        "tokens": int(tokens.sum()),
    }
