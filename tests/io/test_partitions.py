"""The bytes that `ingest` writes depend on the records alone: not on workers, pieces, or where rows wait meanwhile."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import RecordError
from corpusforge.io import partitions, pieces
from corpusforge.io.partitions import Made
from corpusforge.io.readers import blocks
from corpusforge.project import Project
from corpusforge.result import LEDGER

if TYPE_CHECKING:
    from pathlib import Path

MADE = """
from enum import IntEnum

import corpusforge

class Level(IntEnum):
    high = 1

def rows():
    yield {"text": "made", "level": Level.high}
    yield {"text": "made", "n": 1}

@corpusforge.shape("ticket")
def ticket(record):
    return [{"text": record["say"], "n": record["n"]}] * record["n"]
"""


def record(n: int) -> dict[str, Any]:
    """Records of several shapes: a conversation, several rows, a pair, one that is quarantined, one with a note."""
    return [
        {
            "id": n,
            "messages": [{"role": "user", "content": f"Tell me {n} things"}, {"role": "assistant", "content": "No"}],
        },
        {"instruction": f"Do {n}", "instances": [{"input": "", "output": "a"}, {"input": "b", "output": "c"}]},
        {"prompt": f"{n}?", "chosen": "yes", "rejected": "no", "license": "MIT"},
        {"odd": n},
        {"messages": [{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "no json"}]}], "x": 1e30},
    ][n % 5]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project with JSON Lines, an array, and a Python function that yields what cannot travel."""
    root = tmp_path_factory.mktemp("project")
    (root / "raw").mkdir()
    text = [json.dumps(record(n)) for n in range(60)]
    (root / "raw/a.jsonl").write_text("\n".join([*text[:20], "", "{broken", *text[20:40]]))
    (root / "raw/b.json").write_text("[" + ",\n".join(text[40:]) + "]")
    (root / "made_here.py").write_text(MADE)
    (root / "pictures").mkdir()
    (root / "pictures/a.png").write_bytes(b"PNG")
    more = [{"talk": n // 3, "role": "user", "say": str(n), "n": n % 3, "image": "a.png"} for n in range(12)]
    (root / "more.jsonl").write_text("".join(json.dumps(one) + "\n" for one in more))
    messages = {"path": "group[*]", "content": "say"}
    sources = [
        {"name": "all", "path": "raw", "license": "CC-BY-4.0"},
        {"name": "made", "reader": "python", "options": {"function": "made_here:rows"}},
        {"name": "few", "path": "raw/b.json", "limit": 3},
        {"name": "talks", "path": "more.jsonl", "group": "talk", "fields": {"messages": messages}},
        {"name": "own", "path": "more.jsonl", "shape": "made_here:ticket"},
        {"name": "seen", "path": "more.jsonl", "fields": {"text": "say"}, "options": {"images": "pictures"}},
    ]
    (root / "params.yaml").write_text(json.dumps({"ingest": {"sources": sources}, "engine": {"partition_rows": 7}}))
    (root / "dvc.yaml").write_text("stages: {}\n")
    return Project.find(root)


def built(project: Project, out: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Figures and files of one run."""
    out.mkdir()
    figures = partitions.run(project, out)
    return figures, {p.relative_to(out).as_posix(): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_workers_and_pieces_change_no_byte(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "1")
    figures, files = built(project, tmp_path / "whole")
    assert (figures["records"], figures["quarantined"]) == (66 + 3 * 12, 13 + 4)
    assert {n: figures["sources"][n]["rows"] for n in ("talks", "own", "seen")} == {"talks": 4, "own": 12, "seen": 12}
    assert figures["records"] == figures["with_rows"] + figures["quarantined"]
    assert sorted(files)[:2] == ["changes.parquet", "dropped.parquet"]
    assert len(files) == 2 + -(-figures["rows"] // 7)
    monkeypatch.setattr(blocks, "SIZE", 300)
    monkeypatch.setattr(pieces, "BATCH", 4)
    assert built(project, tmp_path / "cut") == (figures, files)
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "2")
    assert built(project, tmp_path / "spread") == (figures, files)


def test_strict_names_the_first_fault_from_a_worker(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    params = json.loads((project.root / "params.yaml").read_text())
    root = tmp_path / "strict"
    root.mkdir()
    params["ingest"] = {"sources": [{"name": "all", "path": str(project.root / "raw")}], "strict": True}
    (root / "params.yaml").write_text(json.dumps(params))
    (root / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "2")
    monkeypatch.setattr(blocks, "SIZE", 300)
    with pytest.raises(RecordError, match=r"a\.jsonl, line 4: unknown_shape"):
        built(Project.find(root), tmp_path / "out")


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(1, 12))
def test_every_row_is_in_one_partition_and_every_file_is_let_go_once(counts: list[int], size: int) -> None:
    """Full partitions, the last one aside; slices in order; a file is let go when its last row is in."""
    nothing = LEDGER.empty_table()
    made = [
        Made(f"{n}", count, nothing, nothing, {}, np.ones(count, np.int64))  # type: ignore[arg-type]
        for n, count in enumerate(counts)
    ]
    parts = list(partitions._parts(made, partitions_folder(), size))
    rows = [(path, row) for part in parts for path, start, count in part.slices for row in range(start, start + count)]
    assert rows == [(one.rows, row) for one in made for row in range(one.count)]
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert [path for part in parts for path in part.used] == [one.rows for one in made if one.count]
    last = {path: number for number, part in enumerate(parts) for path, _, _ in part.slices}
    assert {path: number for number, part in enumerate(parts) for path in part.used} == last


@given(st.lists(st.lists(st.integers(1, 12), max_size=9), max_size=6), st.integers(1, 6))
def test_large_rows_make_small_partitions(sizes: list[list[int]], size: int) -> None:
    """Wherever the pieces were cut, a partition ends with the row that fills it."""
    nothing = LEDGER.empty_table()

    def cuts(pieces_of: list[list[int]]) -> list[int]:
        made = [
            Made(f"{n}", len(one), nothing, nothing, {}, np.array(one, np.int64))  # type: ignore[arg-type]
            for n, one in enumerate(pieces_of)
        ]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partitions, "LARGEST", 10)
            return [len(part) for part in partitions._parts(made, partitions_folder(), size)]

    found, rows = cuts(sizes), [row for one in sizes for row in one]
    assert found == cuts([rows]) == cuts([[row] for row in rows])
    assert sum(found) == len(rows)
    for part in found:
        taken, rows = rows[:part], rows[part:]
        assert sum(taken[:-1]) < 10
        assert sum(taken) >= 10 or part == size or not rows


def partitions_folder() -> Path:
    """Any folder: nothing is written."""
    from pathlib import Path

    return Path("rows")


@given(st.lists(st.integers(0, 9), max_size=9))
def test_row_groups_of_a_ledger_do_not_depend_on_its_pieces(tmp_path_factory: Any, counts: list[int]) -> None:
    folder = tmp_path_factory.mktemp("ledger")
    lines = pa.table([pa.array([str(n) for n in range(sum(counts))])] * len(LEDGER), schema=LEDGER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "_LINES", 4)
        for name, pieces_of in (("whole", [sum(counts)]), ("cut", counts)):
            ledger, start = partitions._Ledger(folder / name), 0
            for count in pieces_of:
                ledger.add(lines.slice(start, count))
                start += count
            ledger.close()
    assert (folder / "whole").read_bytes() == (folder / "cut").read_bytes()
