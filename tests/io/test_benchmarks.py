"""Benchmarks are read like sources and never refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from corpusforge.errors import SourceError
from corpusforge.io.benchmarks import load_benchmarks, load_folder
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from pathlib import Path


def write(path: Path, *records: dict[str, str]) -> None:
    """JSON Lines."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_a_benchmark_that_must_not_be_trained_on_is_read(tmp_path: Path) -> None:
    """`no-train` holds back sources, not what they are checked against."""
    write(tmp_path / "b.jsonl", {"question": "Why?", "answer": "So."})
    rows = load_benchmarks([SourceConfig(name="secret", path="b.jsonl", restrictions=["no-train"])], tmp_path)
    assert [s["name"] for s in rows["source"].to_pylist()] == ["secret"]


def test_a_folder_holds_a_benchmark_per_file(tmp_path: Path) -> None:
    """Data files are benchmarks named by their stems; other files are left alone; equal stems keep their endings."""
    write(tmp_path / "a.jsonl", {"question": "Why?", "answer": "So."})
    write(tmp_path / "b.jsonl", {"question": "Who?", "answer": "She."})
    (tmp_path / "b.csv").write_text("question,answer\nWhen?,Now.\n", encoding="utf-8")
    (tmp_path / "README.md").write_text("about", encoding="utf-8")
    assert sorted({s["name"] for s in load_folder(tmp_path)["source"].to_pylist()}) == ["a", "b.csv", "b.jsonl"]


@pytest.mark.parametrize(
    ("names", "match"),
    [(["a.jsonl", "a.jsonl"], "two benchmarks"), (["gone.jsonl"], "does not exist"), (["odd.jsonl"], "no usable item")],
)
def test_faults_name_the_benchmark(names: list[str], match: str, tmp_path: Path) -> None:
    """A benchmark that is missing, double or of no known shape is an error, because it would find nothing."""
    write(tmp_path / "a.jsonl", {"question": "Why?", "answer": "So."})
    write(tmp_path / "odd.jsonl", {"colour": "blue"})
    sources = [SourceConfig(name=name.removesuffix(".jsonl"), path=name) for name in names]
    with pytest.raises(SourceError, match=match):
        load_benchmarks(sources, tmp_path)


def test_an_empty_folder_is_an_error(tmp_path: Path) -> None:
    """A folder without data would find nothing."""
    with pytest.raises(SourceError, match="no data file"):
        load_folder(tmp_path)


def test_no_benchmarks_are_no_rows(tmp_path: Path) -> None:
    """An empty list is fine: a corpus may have nothing to keep out."""
    assert load_benchmarks([], tmp_path).num_rows == 0
