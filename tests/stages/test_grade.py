"""Grades say what they were measured by, and never more than was measured."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.io.ingest import read
from corpusforge.sample import check_schema
from corpusforge.stages.grade import grade

if TYPE_CHECKING:
    from pathlib import Path


def graded(extra: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Difficulty of a row whose source states `extra`."""
    rows = table([row(1, "How many?", "Two.", extra=json.dumps(extra))])
    difficulty: dict[str, Any] = grade(rows, **options).kept["difficulty"].to_pylist()[0]
    return difficulty


@pytest.mark.parametrize(
    ("extra", "value", "method"),
    [
        ({"passes": 40, "attempts": 64}, 0.375, "source:passes/attempts"),
        ({"passes": 0, "attempts": 64}, 1.0, "source:passes/attempts"),
        ({"passes": 0, "attempts": 0}, None, "source:passes/attempts"),
        ({"pass_rate": 0.25}, 0.75, "source:pass_rate"),
        ({"level": "Level 5"}, 1.0, "source:level"),
        ({"level": 2}, 0.25, "source:level"),
        ({"difficulty": "Hard"}, 0.8, "source:difficulty"),
        ({"difficulty": 0.3}, 0.3, "source:difficulty"),
        ({"passes": 9, "attempts": 10, "difficulty": "hard"}, 0.1, "source:passes/attempts"),
    ],
)
def test_what_the_source_measured_counts(extra: dict[str, Any], value: float | None, method: str) -> None:
    """Attempts, rates, levels and names become values; a task that was never tried has none."""
    assert graded(extra) == {"value": value, "method": method}


@pytest.mark.parametrize(
    "extra",
    [
        {"difficulty": 1200},
        {"level": "B2"},
        {"passes": 5, "attempts": 4},
        {"passes": 2, "attempts": 4},
        {"difficulty": {"n": 3}},
    ],
)
def test_what_means_nothing_is_not_guessed(extra: dict[str, Any]) -> None:
    """An unknown scale, an impossible count and too few attempts leave the grade to the text."""
    assert graded(extra)["method"] == "static-1"


def test_attempts_are_noted_with_their_counts(shared: Path) -> None:
    """Case P40: unsolved and hardly tried tasks are flagged, ties are not ranked, fields are kept."""
    lines = (shared / "cases/P40.jsonl").read_text(encoding="utf-8").splitlines()
    rows = table([row(n, "Solve it.", extra=text, record_id=json.loads(text)["id"]) for n, text in enumerate(lines)])
    result = grade(rows)
    noted = {(line["reason"], line["record_id"]) for line in result.changes.to_pylist()}
    few = {("few_attempts", name) for name in ("ll1", "ll3", "ll5")}
    assert noted == few | {("unsolved", "ll1"), ("unsolved", "ll2"), ("untried", "ll6")}
    values = {r["source"]["record_id"]: r["difficulty"] for r in result.kept.to_pylist()}
    assert values["ll2"]["value"] > values["ll4"]["value"]
    assert len({values[i]["value"] for i in ("ll1", "ll3", "ll5")}) == 1
    assert values["ll6"]["value"] is None
    assert result.kept["extra"].to_pylist() == lines


def test_more_steps_are_harder() -> None:
    """Solution steps, numbers, branches and offered tools raise the static grade."""

    def value(**more: Any) -> float:
        found: float = grade(table([row(1, **more)])).kept["difficulty"].to_pylist()[0]["value"]
        return found

    def maths(steps: int, numbers: int) -> float:
        asked = message("user", "Add " + ", ".join(str(n) for n in range(numbers)))
        return value(messages=[asked, message("assistant", "1 + 1 = 2\n" * steps)], domain="math")

    assert maths(1, 2) < maths(6, 2) < maths(6, 9)
    flat, nested = (
        "def f(x):\n    return x\n",
        "def f(x):\n    for a in x:\n        if a and x:\n            return a\n",
    )
    spec = [json.dumps({"tests": ["assert f(1)"], "reference": code}) for code in (flat, nested)]
    codes = [
        value(messages=[message("user", "Write f.")], kind="task", verifier={"kind": "assert_tests", "spec": s})
        for s in spec
    ]
    assert codes[0] < codes[1]


def test_nothing_to_measure_has_no_grade() -> None:
    """A row without text has a null value and is counted."""
    result = grade(table([row(1, messages=[]), row(2, "Hi", "Hello")]))
    assert result.kept["difficulty"].to_pylist()[0] == {"value": None, "method": None}
    assert result.metrics["unmeasured"] == 1


def test_tokens_are_a_quarter_of_the_characters() -> None:
    """The default counter is characters / 4, rounded up, system turns and tool schemas included."""
    rows = table(
        [row(1, messages=[message("system", "abcd"), message("user", "abc")], tools='[{"a":1}]'), row(2, messages=[])]
    )
    assert grade(rows).kept["tokens"].to_pylist() == [5, 0]  # 8 with the line break, and 9


def test_a_tokenizer_counts_its_own_tokens() -> None:
    """With a tokenizer, tokens are its tokens, without special ones."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    assert grade(table([row(1, "one two", "three")]), tokenizer=tokenizer).kept["tokens"].to_pylist() == [3]


@settings(max_examples=40)
@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=6), st.integers(0, 6))
def test_cuts_change_nothing_and_values_are_shares(turns: list[tuple[str, str]], cut: int) -> None:
    """Every row stays, values lie between 0 and 1, partitions and a second run make no difference."""
    rows = table([row(n, *pair) for n, pair in enumerate(turns)])
    whole = grade(rows).kept
    check_schema(whole, "grade")
    assert whole.drop_columns(["difficulty", "tokens"]) == rows
    assert all(d["value"] is None or 0 <= d["value"] <= 1 for d in whole["difficulty"].to_pylist())
    parts = pa.concat_tables([grade(rows.slice(0, cut)).kept, grade(rows.slice(cut)).kept])
    assert parts.to_pylist() == whole.to_pylist() == grade(whole).kept.to_pylist()


def test_gsm8k_solutions_of_more_steps_are_harder(shared: Path) -> None:
    """On real tasks the grade rises with the number of worked steps."""
    rows = read(shared / "data/gsm8k/train.jsonl")
    values = [d["value"] for d in grade(rows).kept["difficulty"].to_pylist()]
    steps = [json.loads(extra)["solution"].count("\n") for extra in rows["extra"].to_pylist()]
    few = [v for v, s in zip(values, steps, strict=True) if s <= 2]
    many = [v for v, s in zip(values, steps, strict=True) if s >= 6]
    assert sum(few) / len(few) + 0.1 < sum(many) / len(many)
