"""The gate on real builds: what a broken one says, what it leaves, and that it looks for itself."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.corpus import WEB
from tests.projects import chat, write_jsonl
from tests.test_pipeline import edit_params

from corpusforge import graph
from corpusforge.errors import GateError, ProjectError
from corpusforge.io import gate, releases
from corpusforge.project import Project
from corpusforge.shell import run_stage


@pytest.fixture
def project(corpus, tmp_path) -> Project:
    """A copy of the finished build, published and accepted."""
    shutil.copytree(corpus.root, tmp_path / "project", symlinks=True)
    copy = Project(tmp_path / "project")
    releases.publish(copy)
    releases.accept(copy)
    return copy


def rebuild(project: Project) -> list[str]:
    """Run every stage again; returns the checks that failed, and checks what a failed gate leaves behind."""
    before = releases.current(project)
    for stage in graph.DATA[:-1]:
        run_stage(project, stage)
    shutil.rmtree(project.data("gate_data"))
    if gate.judge(project).passed:
        run_stage(project, "gate_data")
        return []
    with pytest.raises(GateError, match="checks failed, nothing may be published") as stopped:
        run_stage(project, "gate_data")
    verdict = json.loads((project.root / gate.LAST_VERDICT).read_text())
    failed = [check["name"] for check in verdict["checks"] if not check["passed"]]
    assert all(f"  {name}: " in str(stopped.value) for name in failed)
    assert not project.data("gate_data").exists()
    with pytest.raises(GateError, match="gate_data refused this build"):
        releases.publish(project)
    assert releases.current(project) == before
    return failed


def test_the_same_build_passes_against_itself(project):
    assert rebuild(project) == []


@pytest.mark.parametrize("setting", [{"action": "flag"}, {"n": 40, "min_words": 40}])
def test_a_leak_that_decontaminate_lets_through_is_found_in_the_shards(project, setting):
    edit_params(project, lambda p: p["decontaminate"].update(setting))
    assert rebuild(Project(project.root)) == ["contamination"]


def test_a_worked_answer_under_another_question_is_a_leak(project):
    answer = (
        "Nineteen rows of forty three bulbs are nineteen times forty three which makes eight hundred and seventeen."
    )
    write_jsonl(project.root / "bench" / "exam.jsonl", [{"question": "How many tulips grow in all?", "answer": answer}])
    turns = [{"role": "user", "content": "What about the bulbs?"}, {"role": "assistant", "content": answer}]
    write_jsonl(project.root / "raw" / "web.jsonl", [*WEB, {"id": "solution", "messages": turns}])
    edit_params(project, lambda p: p["decontaminate"].update(action="flag"))
    assert rebuild(Project(project.root)) == ["contamination"]


def test_a_threshold_with_a_slipped_point_fails(project):
    near = [chat(7, id=f"near-{i}") for i in range(50)]
    for number, record in enumerate(near):
        words = record["messages"][1]["content"].split()
        words[3:15] = [f"other{number}{i}" for i in range(12)]
        record["messages"][1]["content"] = " ".join(words)
    write_jsonl(project.root / "raw" / "web.jsonl", near)
    edit_params(project, lambda p: p.update(dedupe={"threshold": 0.08}))
    assert {"loss.dedupe", "source_loss.web"} <= set(rebuild(Project(project.root)))


def test_a_source_that_lost_70_percent_of_its_rows_fails(project):
    lines = (project.root / "raw" / "forum.jsonl").read_text().splitlines(keepends=True)
    (project.root / "raw" / "forum.jsonl").write_text("".join(lines[: len(lines) * 3 // 10]))
    assert "baseline.source.forum" in rebuild(project)


def test_a_source_that_may_not_be_trained_on_fails_even_when_ingest_may_read_it(project):
    change = {"restrictions": ["no-train"], "allow": ["no-train"]}
    edit_params(project, lambda p: p["ingest"]["sources"][0].update(change))
    assert rebuild(Project(project.root)) == ["restriction.forum.no-train"]


def test_a_benchmark_that_is_no_longer_looked_for_fails(project):
    edit_params(project, lambda p: p["decontaminate"].update(benchmarks=[]))
    from corpusforge import methods

    methods.sync(Project(project.root))
    assert "baseline.benchmarks" in rebuild(Project(project.root))


def test_a_broken_baseline_is_named(project):
    (project.root / "baseline.json").write_text("[1]")
    with pytest.raises(ProjectError, match=r"baseline\.json is not a baseline"):
        gate.judge(project)


def test_a_verdict_of_yes_is_in_the_output(corpus):
    verdict = json.loads((corpus.data("gate_data") / "verdict.json").read_text())
    assert verdict["passed"]
    assert {check["name"] for check in verdict["checks"]} >= {"counts", "contamination", "loss.dedupe", "min_rows"}


def test_texts_inside_json_are_found():
    assert list(gate.strings({"a": ['{"b": ["x"]}', "[no json]"], "c": 1, "d": None})) == ["x", "[no json]"]
