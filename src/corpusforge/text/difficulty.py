"""How hard a row looks, from its text alone: a fixed, readable formula, not a judgement.

Each feature becomes a share x / (x + half), so `half` is the amount that counts as middling; a row's value is the
weighted mean of the features that its kind of work has. Features that a row lacks (no worked solution, no tests) are
left out and the rest weighs more.

    work     features (weight, half)
    maths    solution steps (2, 4)  numbers in the prompt (1, 5)  prompt words (1, 60)  long words (0.5, 0.1 of words)
    code     branches in the solution (2, 5)  tests (0.5, 5)  prompt words (1, 80)  solution lines (1, 15)
    tools    tools offered (1, 3)  calls made (2, 2)  prompt words (1, 40)
    other    prompt words (1, 60)  answer words (1, 150)  turns (0.5, 3)  long words (0.5, 0.1 of words)

A grade-school sum in two steps comes out near 0.35, a program with three nested loops near 0.6.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from corpusforge.text.views import answer_text, prompt_text

if TYPE_CHECKING:
    import pyarrow as pa

METHOD: Final = "static-1"
_MATHS_VERIFIERS: Final = ("numeric", "math")
_CODE_VERIFIERS: Final = ("assert_tests", "doctest", "program", "unit_tests")
_BRANCH: Final = r"\b(?:if|elif|for|while|and|or|except|case|catch|switch)\b|&&|\|\|"
_TEST: Final = r"\bassert\b|\"want\"|>>> "
_STEP: Final = r"(?m)^.*\S.*$"

Feature = tuple[float, float, pl.Expr]  # weight, half, amount (null where the row has none)


def static_difficulty(rows: pa.Table) -> pl.Series:
    """Value from 0 (easy) to 1 (hard) per row; null where there is no text to measure."""
    frame = _features(rows)
    work = pl.col("work")
    value = (
        pl.when(work == "math")
        .then(_mean(_MATHS))
        .when(work == "code")
        .then(_mean(_CODE))
        .when(work == "tools")
        .then(_mean(_TOOLS))
        .otherwise(_mean(_OTHER))
    )
    return frame.select(
        pl.when(pl.col("prompt_words") + pl.col("answer_words") > 0).then(value.round(4)).alias("value")
    )["value"]


def _features(rows: pa.Table) -> pl.DataFrame:
    columns = ["messages", "chosen", "tools", "verifier", "domain", "extra"]
    frame = pl.DataFrame(pl.from_arrow(rows.select(columns))).with_columns(
        prompt=pl.Series(prompt_text(rows), dtype=pl.String), answer=pl.Series(answer_text(rows), dtype=pl.String)
    )
    verifier = pl.col("verifier").struct.field("kind")
    spec = pl.col("verifier").struct.field("spec")
    work = (
        pl.when(verifier.is_in(_CODE_VERIFIERS) | (pl.col("domain") == "code"))
        .then(pl.lit("code"))
        .when(verifier.is_in(_MATHS_VERIFIERS) | (pl.col("domain") == "math"))
        .then(pl.lit("math"))
        .when(pl.col("tools").is_not_null() | (pl.col("domain") == "tools"))
        .then(pl.lit("tools"))
        .otherwise(pl.lit("other"))
    )
    worked = pl.col("extra").str.json_path_match("$.solution")
    reference = spec.str.json_path_match("$.reference")
    said = pl.when(pl.col("verifier").is_null()).then(pl.col("answer"))
    called = pl.element().struct.field("tool_calls").str.count_matches('"arguments"')
    frame = frame.with_columns(work=work, solution=pl.coalesce(worked, reference, said), spec=spec)
    return frame.with_columns(
        prompt_words=_words("prompt"),
        answer_words=_words("answer"),
        solution_lines=pl.col("solution").str.count_matches(_STEP),
        branches=pl.col("solution").str.count_matches(_BRANCH),
        numbers=pl.col("prompt").str.count_matches(r"\d+(?:[.,]\d+)*"),
        long_words=pl.col("prompt").str.count_matches(r"\b\w{9,}\b") / pl.max_horizontal(_words("prompt"), pl.lit(1)),
        tests=pl.col("spec").str.count_matches(_TEST),
        offered=pl.col("tools").str.count_matches('"parameters"'),
        calls=pl.sum_horizontal(pl.col(c).list.eval(called).list.sum() for c in ("messages", "chosen")),
        turns=pl.col("messages").list.len(),
    )


def _words(column: str) -> pl.Expr:
    return pl.col(column).str.count_matches(r"\S+")


def _present(column: str) -> pl.Expr:
    return pl.when(pl.col(column) > 0).then(pl.col(column))


_MATHS: Final[list[Feature]] = [
    (2, 4, _present("solution_lines")),
    (1, 5, pl.col("numbers")),
    (1, 60, pl.col("prompt_words")),
    (0.5, 0.1, pl.col("long_words")),
]
_CODE: Final[list[Feature]] = [
    (2, 5, pl.when(pl.col("solution_lines") > 0).then(pl.col("branches"))),
    (0.5, 5, _present("tests")),
    (1, 80, pl.col("prompt_words")),
    (1, 15, _present("solution_lines")),
]
_TOOLS: Final[list[Feature]] = [
    (1, 3, pl.col("offered").fill_null(0)),
    (2, 2, _present("calls")),
    (1, 40, pl.col("prompt_words")),
]
_OTHER: Final[list[Feature]] = [
    (1, 60, pl.col("prompt_words")),
    (1, 150, _present("answer_words")),
    (0.5, 3, pl.col("turns").fill_null(0)),
    (0.5, 0.1, pl.col("long_words")),
]


def _mean(features: list[Feature]) -> pl.Expr:
    """Weighted mean of x / (x + half) over the features that the row has."""
    shares = pl.sum_horizontal(weight * (amount / (amount + half)).fill_null(0.0) for weight, half, amount in features)
    weights = pl.sum_horizontal(
        pl.when(amount.is_not_null()).then(float(w)).otherwise(0.0) for w, _, amount in features
    )
    return shares / weights
