"""The gate for models on disk: what it leaves, what is published and accepted, and what it refuses to read."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.evaluate.made import CONDITIONS, results
from tests.io.test_releases import build

from corpusforge.cli import main
from corpusforge.errors import ConfigError, GateError, ProjectError
from corpusforge.evaluate.profile import figures
from corpusforge.evaluate.results import ROWS, TASKS, Results
from corpusforge.io import atomic, dvc, gate, model_gate, releases
from corpusforge.io.evaluation import STAGES
from corpusforge.nightly import nightly
from corpusforge.project import Project
from corpusforge.train.model import fingerprint

PARAMS = (
    "ingest: {sources: []}\nscrub: {key: public-demo}\ntrain_sft: {}\ntrain_dpo: {}\nevaluate: {}\ngate_models: {}\n"
)
GOOD = {"sft": results(0.6), "dpo": results(0.7, seed=1)}
BAD = {**GOOD, "dpo": results(0.3, loss=1.5, seed=2)}


def tables(models: dict[str, Results]) -> tuple[pa.Table, pa.Table]:
    """Results as the tables that the stage writes."""
    tasks, rows = [], []
    for model, one in models.items():
        for which, counts, greedy in (("heldout", one.heldout, one.greedy), ("legacy", one.legacy, one.legacy_greedy)):
            for name, (passes, attempts) in counts.items():
                line = {"model": model, "set": which, "content_id": name, "row_id": name, "passes": passes}
                tasks.append({**line, "attempts": attempts, "undecided": 0, "greedy": greedy[name][0] == 1})
        rows += [
            {"model": model, "measure": "loss", "content_id": name, "value": loss, "tokens": 10, "bytes": 30}
            for name, loss in one.loss.items()
        ]
        rows += [{"model": model, "measure": "margin", "content_id": n, "value": m} for n, m in one.margin.items()]
    return pa.Table.from_pylist(tasks, TASKS), pa.Table.from_pylist(rows, ROWS)


def train(project: Project, models: dict[str, Results], weights: str = "w", count: int = 5) -> str:
    """Put a build with models where the stages would leave it, up to `evaluate`; returns its id."""
    name = build(project, count)
    report = {"build": name, "totals": {"rows_in_shards": count, "tokens_in_shards": 9}, "sources": {}, "origins": {}}
    report |= {"kinds": {}, "contamination": {}, "diversity": {}}
    atomic.write_json(project.data("report") / "report.json", report)
    hashes = {}
    for role in models:
        folder = project.data(STAGES[role]) / "model"
        atomic.write_text(folder / "model.safetensors", f"{role} {weights}")
        hashes[role] = fingerprint(folder)
    for table, part in zip(tables(models), ("tasks", "rows"), strict=True):
        project.data("evaluate").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, project.data("evaluate") / f"{part}.parquet")
    found = {"build": name, "conditions": CONDITIONS, "fingerprints": hashes, **figures(models)}
    atomic.write_json(project.figures_path("evaluate"), found)
    return name


def judge(project: Project) -> dict:
    """Run the gate's stage as the shell does."""
    with atomic.folder(project.data("gate_models")) as out:
        return model_gate.run(project, out)


@pytest.fixture
def project(tmp_path) -> Project:
    (tmp_path / "params.yaml").write_text(PARAMS)
    (tmp_path / "dvc.yaml").write_text("{}")
    return Project(tmp_path)


@pytest.fixture
def accepted(project) -> Project:
    """A project whose good models were published and accepted."""
    train(project, GOOD)
    judge(project)
    releases.publish(project)
    releases.accept(project)
    return project


def test_the_accepted_models_pass_against_themselves_from_what_baseline_json_holds(accepted):
    found = judge(accepted)
    assert found["accepted"] == found["build"]
    assert found["failed"] == 0
    assert all(drop == 0 for drop in found["found"].values())
    assert len(found["smallest_drops"]) == 8
    verdict = json.loads((accepted.data("gate_models") / "verdict.json").read_text())
    assert (verdict["passed"], set(verdict["fingerprints"])) == (True, {"sft", "dpo"})


def test_a_worse_model_stops_the_graph_and_its_verdict_is_kept(accepted):
    name = train(accepted, BAD, "worse", 6)
    with pytest.raises(GateError, match=r"gate_models: \d of \d+ checks failed") as caught:
        judge(accepted)
    assert "dpo.pass_rate: worse by" in str(caught.value)
    assert "sft." not in str(caught.value)
    assert caught.value.exit_code == 1
    kept = json.loads((accepted.root / model_gate.LAST_VERDICT).read_text())
    assert (kept["build"], kept["passed"]) == (name, False)


def test_what_the_gate_for_models_refused_is_not_published(accepted):
    before = releases.current(accepted)
    train(accepted, BAD, "worse", 6)
    with pytest.raises(GateError):
        judge(accepted)
    (accepted.data("gate_models") / "verdict.json").unlink()
    with pytest.raises(GateError, match=r"gate_models refused this build: dpo\.pass_rate"):
        releases.publish(accepted)
    assert releases.current(accepted) == before


@pytest.mark.parametrize("wrong", ["no verdict", "other build", "other scores", "other weights"])
def test_models_that_were_not_judged_as_they_are_here_are_not_published(project, wrong):
    train(project, GOOD)
    judge(project)
    if wrong == "no verdict":
        (project.data("gate_models") / "verdict.json").unlink()
    elif wrong == "other build":
        build(project, 9)
    elif wrong == "other scores":
        found = project.metrics("evaluate")
        found["fingerprints"]["sft"] = "0" * 16
        atomic.write_json(project.figures_path("evaluate"), found)
    else:
        (project.data("train_dpo") / "model" / "model.safetensors").write_text("another run")
    with pytest.raises(ProjectError, match="gate_models has not passed"):
        releases.publish(project)
    assert releases.current(project) is None


def test_a_release_holds_figures_verdict_and_scores_and_no_weights(accepted):
    release = releases.current_folder(accepted)
    assert json.loads((release / "models.json").read_text())["models"]["dpo"]["tasks"] == 100
    assert json.loads((release / "model_verdict.json").read_text())["passed"]
    assert (release / "evaluation" / "tasks.parquet").exists()
    assert not list(release.rglob("*.safetensors"))


def test_the_same_corpus_with_other_models_is_published_and_with_the_same_is_not(accepted):
    assert releases.publish(accepted).status == "same corpus"
    train(accepted, {**GOOD, "dpo": results(0.72, seed=4)}, "again")
    judge(accepted)
    assert releases.publish(accepted).status == "published"
    found = json.loads((releases.current_folder(accepted) / "models.json").read_text())
    assert found["fingerprints"] == accepted.metrics("evaluate")["fingerprints"]


def test_without_the_block_nothing_of_models_is_asked_or_released(project):
    (project.root / "params.yaml").write_text("ingest: {sources: []}\n")
    other = Project(project.root)
    train(other, BAD)
    release = releases.publish(other)
    assert not (release.path / "models.json").exists()
    assert "models" not in releases.accept(other)


def test_the_gate_for_data_reads_the_same_baseline(accepted):
    assert gate.read_baseline(accepted.root / "baseline.json")["rows"] == 5


@pytest.mark.parametrize("models", ["text", {"build": "b"}, {"ids": {}, "results": {"sft": 3}, "build": "b"}])
def test_accepted_models_that_cannot_be_read_are_named(accepted, models):
    baseline = json.loads((accepted.root / "baseline.json").read_text())
    atomic.write_json(accepted.root / "baseline.json", {**baseline, "models": models})
    with pytest.raises(ProjectError, match=r"baseline\.json: `models` cannot be read"):
        model_gate.judge(accepted)


def test_any_model_needs_an_accepted_one_of_its_role(accepted):
    with pytest.raises(ProjectError, match=r"no grpo model was accepted.*accepted: sft, dpo"):
        model_gate.judge_model(accepted, "./mine", "grpo")
    with pytest.raises(ConfigError, match="no such role: 'rlhf'"):
        model_gate.judge_model(accepted, "./mine", "rlhf")


def test_any_model_is_judged_against_the_accepted_one_of_its_role_alone(accepted, monkeypatch):
    def stand_in(_project, _name, role):
        return replace(model_gate.accepted_models(accepted), results={role: BAD["dpo"]}), None

    monkeypatch.setattr("corpusforge.io.evaluation.judge", stand_in)
    verdict = model_gate.judge_model(accepted, "./mine", "dpo")
    assert "dpo.pass_rate" in [check.name for check in verdict.failed]
    assert not [check for check in verdict.checks if check.name.startswith("sft")]
    assert not [note for note in verdict.notes if "not trained" in note]


def test_the_command_says_no_with_exit_code_1(accepted, capsys):
    assert main(["gate", "--project", str(accepted.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["passed"]
    train(accepted, BAD, "worse")
    assert main(["gate", "--project", str(accepted.root)]) == 1
    assert "dpo.pass_rate" in capsys.readouterr().out


def test_before_evaluate_has_run_the_command_says_so(project, capsys):
    build(project, 3)
    assert main(["gate", "--project", str(project.root)]) == ProjectError.exit_code
    assert "evaluate has not run here" in capsys.readouterr().err


def test_nightly_builds_up_to_this_gate_and_tells_its_checks(accepted, monkeypatch):
    train(accepted, BAD, "worse", 6)
    asked = []

    def repro(_root, target, _log):
        asked.append(target)
        with pytest.raises(GateError):
            judge(accepted)
        return dvc.Outcome(1, ["train_sft", "evaluate"], failed_stage="gate_models", message="no")

    monkeypatch.setattr("corpusforge.io.dvc.repro", repro)
    monkeypatch.setattr("corpusforge.methods.sync", lambda _project: [])
    result = nightly(accepted)
    assert (asked, result["status"], result["failed_stage"]) == (["gate_models"], "gate failed", "gate_models")
    assert "dpo.pass_rate" in [check["name"] for check in result["failed_checks"]]


@pytest.mark.parametrize("name", ["tasks.parquet", "rows.parquet", "figures.json"])
def test_scores_that_are_damaged_are_neither_judged_nor_published(accepted, name):
    (accepted.data("evaluate") / name).write_bytes(b"\xff")
    with pytest.raises(ProjectError, match=f"evaluate/{name} cannot be read"):
        judge(accepted)
    with pytest.raises(ProjectError, match=f"evaluate/{name} cannot be read"):
        releases.publish(accepted)
