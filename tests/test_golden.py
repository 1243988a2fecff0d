"""A small corpus with a fault of every kind, and what each stage makes of it, to the letter.

`golden/input` holds the sources, `golden/expected/<stage>.json` kept ids, ledger lines and figures. A change here is a
change to output: it belongs in the changelog. `CORPUSFORGE_GOLDEN=write pytest tests/test_golden.py` writes them anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpusforge import graph
from corpusforge.shell import run_stage
from tests.projects import make_project

if TYPE_CHECKING:
    from corpusforge.project import Project

GOLDEN = Path(__file__).parent / "golden"
STAGES = ("ingest", *(node.name for node in graph.GRAPH if node.tables))


def records(name: str) -> str:
    return (GOLDEN / "input" / f"{name}.jsonl").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Project:
    root = tmp_path_factory.mktemp("golden")
    benchmark = {"name": "bench", "path": "raw/bench.jsonl", "license": "MIT", "origin": "human"}
    blocks = {"engine": {"partition_rows": 9}, "decontaminate": {"benchmarks": [benchmark]}, "blend": {"heldout": 0.1}}
    made = make_project(root, {name: [] for name in ("desk", "tasks", "pairs")}, **blocks)
    for name in ("desk", "tasks", "pairs", "bench"):
        (root / "raw" / f"{name}.jsonl").write_text(records(name), encoding="utf-8")
    for stage in (*STAGES, "shard", "report", "gate_data"):
        run_stage(made, stage)
    return made


def lines(project: Project, stage: str, ledger: str) -> list[list[object]]:
    table = project.ledger(stage, ledger).to_pylist()
    return [[line["record_id"] or line["row_id"], line["reason"], json.loads(line["detail"])] for line in table]


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_makes_of_the_corpus_what_it_made_before(project, stage):
    found = {
        "kept": project.rows(stage, ["row_id"])["row_id"].to_pylist(),
        "dropped": lines(project, stage, "dropped"),
        "changes": lines(project, stage, "changes"),
        "figures": project.metrics(stage),
    }
    path = GOLDEN / "expected" / f"{stage}.json"
    if os.environ.get("CORPUSFORGE_GOLDEN") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    assert found == json.loads(path.read_text(encoding="utf-8"))


def test_every_planted_fault_left_for_its_reason(project):
    gone = {line[0]: (stage, line[1]) for stage in STAGES for line in lines(project, stage, "dropped")}
    expected = {
        "twin": ("dedupe", "exact_duplicate"),
        "near": ("dedupe", "near_duplicate"),
        "empty": ("filter", "empty"),
        "refusal": ("filter", "refusal"),
        "repeats": ("filter", "repetition"),
        "roles": ("filter", "broken_roles"),
        "equal": ("filter", "equal_answers"),
        "no-gold": ("health", "unverifiable_gold"),
        "leak": ("decontaminate", "benchmark_question"),
    }
    assert {name: gone.get(name) for name in expected} == expected
    assert {stage for stage, _ in gone.values()} == {"ingest", "dedupe", "filter", "health", "decontaminate"}
