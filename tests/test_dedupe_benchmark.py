"""benchmarks/dedupe.py runs, and benchmarks/dedupe_check.py sees what is wrong with a result."""

from __future__ import annotations

import importlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchmarks.dedupe_check import check, pieces

SCRIPTS = Path(__file__).resolve().parent.parent / "benchmarks"
ROWS, COPIES, WORDS = 40, 10, 60


class Result:
    """A corpus, its truth, and a right result, whose rows a test may spoil before it writes them."""

    def __init__(self, folder: Path) -> None:
        draw = random.Random(3)
        self.folder = folder
        texts = [[f"w{draw.randrange(10**6)}" for _ in range(WORDS)] for _ in range(ROWS)]
        texts += [[*texts[i][:-1], "other"] for i in range(COPIES)]
        self.rows = [{"id": f"r{i}", "text": " ".join(words)} for i, words in enumerate(texts)]
        self.kept = [dict(row) for row in self.rows[:ROWS]]
        alike = (WORDS - 5) / (WORDS - 3)  # of 56 shingles on either side, one differs
        copies = {f"r{ROWS + i}": f"r{i}" for i in range(COPIES)}
        self.gone = {copy: {"kept": first, "method": "minhash", "similarity": alike} for copy, first in copies.items()}
        self.truth = [{"id": copy, "original_id": first, "similarity": alike} for copy, first in copies.items()]

    def write(self) -> None:
        (self.folder / "out").mkdir()
        details = [json.dumps(value) for value in self.gone.values()]
        ledger = {"record_id": list(self.gone), "reason": ["near_duplicate"] * len(details), "detail": details}
        for name, table in (
            ("c", pa.Table.from_pylist(self.rows)),
            ("t", pa.Table.from_pylist(self.truth)),
            ("out/kept", pa.Table.from_pylist(self.kept)),
            ("out/dropped", pa.table(ledger)),
        ):
            pq.write_table(table, self.folder / f"{name}.parquet")

    def faults(self) -> set[str]:
        self.write()
        _, faults = check(self.folder / "c.parquet", self.folder / "out", 0.8, self.folder / "t.parquet")
        return set(faults)


@pytest.fixture
def result(tmp_path: Path) -> Result:
    return Result(tmp_path)


def test_a_right_result_has_no_fault(result: Result) -> None:
    assert result.faults() == set()


def test_a_partner_that_went_itself(result: Result) -> None:
    result.gone["r1"] = {"kept": "r0", "similarity": 1.0}
    del result.kept[1]
    assert "partner is not kept" in result.faults()


def test_a_partner_that_nobody_knows(result: Result) -> None:
    result.gone["r40"]["kept"] = "nobody"
    assert result.faults() == {"partner is not in the input"}


def test_a_removal_that_names_nobody(result: Result) -> None:
    result.gone["r40"] = {}
    assert result.faults() == {"no kept row named"}


def test_a_similarity_that_is_another(result: Result) -> None:
    result.gone["r40"]["similarity"] += 2e-6
    assert result.faults() == {"similarity is not the one in the ledger"}


def test_a_similarity_below_the_threshold(result: Result) -> None:
    result.gone["r40"] |= {"kept": "r5", "similarity": 0.0}
    assert result.faults() == {"similarity below 0.8"}


def test_a_row_that_is_neither_kept_nor_removed(result: Result) -> None:
    del result.kept[20]
    assert result.faults() == {"row missing"}


def test_a_row_that_is_both_kept_and_removed(result: Result) -> None:
    result.kept.append(result.rows[40])
    assert result.faults() == {"row more than once in the result"}


def test_a_row_that_nobody_brought(result: Result) -> None:
    result.kept.append({"id": "new", "text": "out of nowhere"})
    assert result.faults() == {"row that the input does not have"}


def test_a_kept_text_that_changed(result: Result) -> None:
    result.kept[20]["text"] += " more"
    assert result.faults() == {"text of a kept row changed"}


def test_a_planted_pair_that_was_missed(result: Result) -> None:
    del result.gone["r40"]
    result.kept.append(result.rows[40])
    assert {fault.partition(",")[0] for fault in result.faults()} == {"planted pair of which no row went"}


def test_the_command_ends_with_1_and_few_examples(result: Result) -> None:
    del result.kept[20:]
    result.write()
    command = [sys.executable, SCRIPTS / "dedupe_check.py", result.folder / "c.parquet", result.folder / "out"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "FAULT: row missing: 20" in ran.stdout
    assert len(ran.stdout.splitlines()) == 1 + (1 + 5) + 1


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("a b c d e", "A, b c\nd e!", True), ("ﬁve w o r ds", "five w o r ds", True), ("c", "c++", False)],
)
def test_which_texts_are_the_same_to_the_checker(one: str, other: str, same: bool) -> None:
    assert (pieces(one) == pieces(other)) is same


def test_a_removal_counts_as_right_where_any_kept_row_is_alike(result: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    judge = importlib.import_module("_dedupe_quality").judge
    del result.truth[0]  # nobody planted this pair, and the ledger does not name it either
    result.gone = {name: {} for name in (*result.gone, "r20")}
    del result.kept[20]  # went for nothing
    result.write()
    found = judge(result.folder / "c.parquet", result.folder / "t.parquet", result.folder / "out", 0.8, 1)
    assert (found.removed, found.pairs, found.found, found.false) == (COPIES + 1, COPIES - 1, COPIES - 1, 1)


def test_the_benchmark_runs(shared: Path, tmp_path: Path) -> None:
    script = [sys.executable, SCRIPTS / "dedupe.py", "--rows", "300", "--only", "datasketch", "--workers", "1"]
    ran = subprocess.run(
        [*script, "--data", shared / "data", "--work", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-2_000:] + ran.stderr[-2_000:]
    rows = {line.split()[0]: line.split() for line in ran.stdout.splitlines() if line.startswith(("corpus", "data"))}
    assert rows["corpusforge"][-1] == "1.0000"
    assert float(rows["datasketch"][-2]) >= 0.97
