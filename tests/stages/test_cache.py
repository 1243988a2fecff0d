"""With what the last build knew, dedupe gives what it gives without: for any edits, options and damage."""

from __future__ import annotations

import itertools
import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.io import cache as disk
from corpusforge.io.scratch import write_mapped
from corpusforge.stages._cache import READ, known_or_made
from corpusforge.stages._stage import Held, in_memory
from corpusforge.stages.dedupe import STAGE, DedupeConfig, _hashed
from corpusforge.text import shingles
from corpusforge.text.prints import prints

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.result import StageResult

WORDS = [f"word{i}" for i in range(40)]
LONG = " ".join(WORDS)


def made(number: int, edit: int) -> dict[str, Any]:
    """One of many rows of every kind; few words, so that rows of other numbers are near copies or copies.

    Edit 1 is of the text, edit 2 of what else the row has: gold, answer, call, tools, rating, image.
    """
    words = list(WORDS)
    for place in range(number % 3):
        words[(number * 7 + place) % len(words)] = f"other{number % 4}"
    words += ["edited"] * (edit == 1)
    text, kind, other = " ".join(words), number % 6, edit == 2
    if kind == 0:
        verifier = {"kind": "numeric", "spec": json.dumps({"answer": str(number % 2 + 2 * other)})}
        return row(number, text, kind="task", verifier=verifier)
    if kind == 1:
        answers = {"chosen": [message("assistant", LONG)], "rejected": [message("assistant", text)]}
        answers = answers if not other else dict(zip(answers, reversed(answers.values()), strict=True))
        return row(number, "Which?", kind="preference", **answers)
    if kind == 2:
        calls = json.dumps([{"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}])
        turns = [message("user", text), message("assistant", None, tool_calls=calls), message("tool", text * 3)]
        return row(number, "x", messages=turns, tools=f'[{{"name":"{"g" if other else "f"}"}}]')
    if kind == 3:
        value = float(number % 2 + 2 * other)
        return row(number, text, "Yes", kind="rated", rating={"value": value, "scale": "1", "by": "me"})
    if kind == 4:
        return row(number, text, images=[{"bytes": bytes([number % 3 + 3 * other]), "path": None}])
    return row(number, text, "今天上午我们" * (number % 2 + other))


def build(rows: pa.Table, config: DedupeConfig, cache: Any, place: Path, parts: int = 2) -> StageResult:
    """What the shell does: a summary per partition, one decision, then the cache is written."""
    inputs = {"cache": cache}
    cuts = np.linspace(0, rows.num_rows, parts + 1).astype(int)
    files = []
    for number, (a, b) in enumerate(itertools.pairwise(cuts)):
        files.append(place / f"summary-{number}")
        write_mapped(STAGE.summarise(rows.slice(a, b - a), config, inputs), files[-1])
    summary = pa.concat_tables([disk.read_mapped(file) for file in files])
    decision = STAGE.decide(summary, config, inputs, Held(rows))
    result = STAGE.apply(rows, decision.verdicts, config, inputs)
    cache.finish(files)
    cache.close()
    return type(result)("dedupe", result.kept, result.dropped, result.changes, result.metrics | dict(decision.metrics))


def same(one: StageResult, other: StageResult) -> bool:
    """Rows, ledgers and figures."""
    tables = ("kept", "dropped", "changes")
    return one.metrics == other.metrics and all(getattr(one, name).equals(getattr(other, name)) for name in tables)


def opened(place: Path, config: DedupeConfig) -> disk.RowCache:
    """The cache of a project at `place`."""
    found = disk.of(config, place)
    assert found is not None
    return found


CONFIG = DedupeConfig(cache="known")
ROWS = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 2)), min_size=4, max_size=12, unique_by=lambda one: one[0])
OPTIONS = st.sampled_from(
    [{}] * 12 + [{"seed": 2}, {"shingle": 3}, {"threshold": 0.5}, {"numbers_matter": False}, {"exact_only": True}]
)


@settings(max_examples=40)
@given(st.lists(st.tuples(ROWS, OPTIONS), min_size=2, max_size=4))
def test_any_build_after_any_other_is_the_cold_one(
    tmp_path_factory: pytest.TempPathFactory, builds: list[tuple[Any, Any]]
) -> None:
    """Rows added, taken out, edited and in another order; options changed and set back."""
    place = tmp_path_factory.mktemp("cache")
    for rows, options in builds:
        config = DedupeConfig(cache="known", **options)
        whole = table([made(*one) for one in rows])
        assert same(build(whole, config, opened(place, config), place), in_memory(STAGE, whole, config))


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each call of the shingle kernel gets."""
    calls: list[int] = []
    kernel = shingles.shingle

    def count(texts: pa.Array, k: int) -> Any:
        calls.append(len(texts))
        return kernel(texts, k)

    monkeypatch.setattr(shingles, "shingle", count)
    return calls


def test_texts_of_known_rows_are_not_shingled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing new: no call. One row edited: that one, for its bands and for its set."""
    rows = [made(number, 0) for number in range(24)]
    build(table(rows), CONFIG, opened(tmp_path, CONFIG), tmp_path)
    calls = counted(monkeypatch)
    mixed = random.Random(3).sample(rows, len(rows))
    build(table(mixed), CONFIG, opened(tmp_path, CONFIG), tmp_path)
    assert calls == []
    cache = opened(tmp_path, CONFIG)
    build(table([made(5, 1) if one["row_id"] == "test#5" else one for one in mixed]), CONFIG, cache, tmp_path)
    assert calls == [1, 1]
    assert cache.notes == ["cache knows 23 of 24 rows; 1 are made anew"]


def test_what_is_known_depends_on_no_other_column() -> None:
    """The columns that the print covers are all that bands and keys are made of."""
    rows = table([made(number, 0) for number in range(24)])
    whole, less = (_hashed(one, DedupeConfig()) for one in (rows, rows.select(READ)))
    assert all(np.array_equal(whole[name], less[name]) for name in whole)


LEAVES = {
    "kind": ["sft", "task", None],
    "messages": [
        *([message("user", text)] for text in ("a", "A", "a ", "", None, "é", "e\u0301")),
        [],
        None,
        [message("user", "a"), message("user", "a")],
        *([message("user", "a", **{name: "[]"})] for name in ("reasoning", "tool_calls", "name", "parts")),
        [message("assistant", "a")],
    ],
    "chosen": [[message("assistant", "a")], None],
    "rejected": [[message("assistant", "a")], None],
    "rating": [{"value": 1.0, "scale": "1", "by": "x"}, {"value": 1.5, "scale": "1", "by": "x"}, None],
    "tools": ["[]", '[{"a":1,"b":2}]', '[{"b":2,"a":1}]', None],
    "verifier": [
        {"kind": "exact", "spec": "1"},
        {"kind": "numeric", "spec": "1"},
        {"kind": "exact", "spec": "2"},
        None,
    ],
    "images": [
        [{"bytes": b"1", "path": None}],
        [{"bytes": None, "path": "1"}],
        [{"bytes": b"1", "path": "1"}],
        [],
        None,
    ],
}


@pytest.mark.parametrize("column", READ)
def test_every_value_has_a_print_of_its_own(column: str) -> None:
    """Null is not empty; case, blanks, Unicode form and the order of keys count; a slice is as the whole."""
    rows = table([row(1, "a") | {column: value} for value in LEAVES[column]])
    found = prints(rows[name].combine_chunks() for name in READ)
    assert len({tuple(one) for one in found.tolist()}) == len(LEAVES[column])
    part = rows.slice(1, 2)
    assert prints(pa.concat_arrays(part[name].chunks) for name in READ).tolist() == found[1:3].tolist()


class _Nobody:
    """A cache that knows nothing."""

    def find(self, own: Any) -> Any:
        return np.full(len(own), -1)


def test_without_anything_known_all_is_made() -> None:
    rows = table([made(number, 0) for number in range(6)])
    found = known_or_made(rows, _Nobody(), lambda some: _hashed(some, CONFIG))  # type: ignore[arg-type]
    assert list(found)[-2:] == ["print_0", "print_1"]
    assert known_or_made(rows.slice(0, 0), _Nobody(), lambda some: _hashed(some, CONFIG))["units"].dtype == np.int32  # type: ignore[arg-type]
