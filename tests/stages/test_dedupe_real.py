"""Dedupe on public data sets: what goes is a duplicate, and every similarity is worked out anew by other code."""

from __future__ import annotations

import csv
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

import corpusforge as cf
from corpusforge.text.views import prompt_text

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from _real_sets import HATECHECK, SOURCES, Removals, febrl_of, found, removals, rows_of


@pytest.fixture(scope="module")
def data(shared: Path) -> Path:
    """Folder of the data sets."""
    return shared / "data"


def checked(data: Path, name: str, fields: dict[str, Any] | None = None) -> Removals:
    """Removals at the defaults, each of them right by the second opinion."""
    gone = removals(rows_of(data, name, fields))
    assert gone.wrong == []
    return gone


def test_gpteacher_exact_rows_are_counted_right(data: Path) -> None:
    """Rows equal within and across its two files, by a set of their texts; and a few near ones."""
    records = [r for path in SOURCES["gpteacher"][0] for r in json.loads((data / path).read_bytes())]
    names = ("instruction", "input", "output")
    distinct = {tuple(unicodedata.normalize("NFC", r[name]).strip() for name in names) for r in records}
    rows = rows_of(data, "gpteacher")
    exact = cf.dedupe(rows, exact_only=True)
    assert (rows.num_rows, exact.dropped.num_rows) == (len(records), len(records) - len(distinct))
    gone = checked(data, "gpteacher")
    near = len(gone.pairs) - exact.dropped.num_rows
    assert 300 < near < 700


@pytest.mark.parametrize("way", HATECHECK)
def test_hatecheck_labels_are_never_merged(data: Path, way: str) -> None:
    """Whatever the label is stored as, a removed row and the one it went for are labelled alike."""
    with (data / "hatecheck/test_suite_cases.csv").open(encoding="utf-8") as file:
        label = {row["case_id"]: row["label_gold"] for row in csv.DictReader(file)}
    rows = rows_of(data, "hatecheck", HATECHECK[way])
    own = {r["row_id"]: r["source"]["record_id"] for r in rows.select(["row_id", "source"]).to_pylist()}
    gone = removals(rows)
    assert gone.wrong == []
    assert 40 < len(gone.pairs) < 100
    assert [pair for pair in gone.pairs if label[own[pair[0]]] != label[own[pair[1]]]] == []


def test_gsm8k_loses_one_task(data: Path) -> None:
    """Of 7,473 tasks two are one but for a name: same numbers, same gold. No other goes."""
    assert checked(data, "gsm8k").pairs == [("gsm8k#6692", "gsm8k#2484", 0.928571)]


@pytest.mark.parametrize("name", ["oasst", "tau_bench", "bfcl", "hh_rlhf", "self_instruct"])
def test_sets_without_duplicates_keep_all(data: Path, name: str) -> None:
    """Branches of one tree, tools of one shop, calls of one function, answers to one prompt: all stay."""
    assert checked(data, name).pairs == []


def test_branches_of_a_tree_share_a_cluster(data: Path) -> None:
    """Rows that ask the same are held out together; rows of a tree are by their record, which is blend's to see."""
    kept = cf.dedupe(rows_of(data, "oasst")).kept
    asked: dict[str, set[str]] = {}
    for prompt, cluster in zip(prompt_text(kept).to_pylist(), kept["cluster"].to_pylist(), strict=True):
        asked.setdefault(" ".join(prompt.lower().split()), set()).add(cluster)
    assert (kept.num_rows, len(asked)) == (312, 255)
    assert all(len(clusters) == 1 for clusters in asked.values())


@pytest.mark.parametrize(("number", "recall"), [(1, 0.95), (3, 0.85)])
def test_records_at_the_documented_setting(data: Path, number: int, recall: float) -> None:
    """FEBRL as sets of words at 0.4: what goes is right, and most of what should go does."""
    precision, share = found(febrl_of(data, number), shingle=1, threshold=0.4)
    assert precision > 0.999
    assert share > recall
