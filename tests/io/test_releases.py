"""Publishing, going back, and what a reader of `current` sees meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest
from tests import rows as make

from corpusforge.errors import GateError, ProjectError
from corpusforge.io import atomic, gate, releases
from corpusforge.io.shards import write_shards
from corpusforge.project import Project


def build(project: Project, count: int, passed: bool = True) -> str:
    """Put a build of `count` rows where the stages would leave it; returns its id."""
    rows = make.table([make.row(i, f"question {i}", f"answer {i}") for i in range(1, count + 1)])
    held = write_shards(rows, project.data("shard"))
    for stage, name, value in (
        ("report", "report.json", {"build": held["build"]}),
        ("report", "index.html", "page"),
        ("gate_data", "verdict.json", {"build": held["build"], "passed": passed, "checks": []}),
    ):
        project.data(stage).mkdir(parents=True, exist_ok=True)
        (project.data(stage) / name).write_text(json.dumps(value))
    return str(held["build"])


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)


def shard_rows(project: Project) -> int:
    folder = project.root / "releases" / "current" / "shards"
    return sum(pq.read_metadata(path).num_rows for path in folder.rglob("*.parquet"))


def test_a_release_is_a_copy_that_outlives_the_stage_outputs(project):
    build(project, 3)
    release = releases.publish(project)
    shutil.rmtree(project.data("shard"))
    assert (release.status, release.rows, shard_rows(project)) == ("published", 3, 3)


def test_the_same_build_again_publishes_nothing(project):
    name = build(project, 3)
    releases.publish(project)
    history = (project.root / "releases" / "history.jsonl").read_text()
    again = releases.publish(project)
    assert (again.status, again.build) == ("same corpus", name)
    assert (project.root / "releases" / "history.jsonl").read_text() == history


@pytest.mark.parametrize("wrong", ["no verdict", "verdict says no", "verdict of another build"])
def test_what_the_gate_has_not_passed_is_not_published(project, wrong):
    build(project, 3)
    releases.publish(project)
    before = releases.current(project)
    build(project, 4, passed=wrong != "verdict says no")
    verdict = project.data("gate_data") / "verdict.json"
    if wrong == "no verdict":
        verdict.unlink()
    if wrong == "verdict of another build":
        verdict.write_text(json.dumps({"build": before, "passed": True}))
    with pytest.raises(ProjectError, match="gate_data has not passed"):
        releases.publish(project)
    assert releases.current(project) == before
    assert shard_rows(project) == 3


def test_a_build_that_the_gate_refused_is_answered_with_its_checks(project):
    name = build(project, 4)
    (project.data("gate_data") / "verdict.json").unlink()
    checks = [{"name": "loss.dedupe", "passed": False}, {"name": "rows", "passed": True}]
    atomic.write_json(project.root / gate.LAST_VERDICT, {"build": name, "passed": False, "checks": checks})
    with pytest.raises(GateError, match=r"gate_data refused this build: loss\.dedupe") as caught:
        releases.publish(project)
    assert caught.value.exit_code == 1
    build(project, 5)
    (project.data("gate_data") / "verdict.json").unlink()
    with pytest.raises(ProjectError, match="gate_data has not passed"):
        releases.publish(project)


def test_a_shard_that_was_changed_after_the_gate_is_not_published(project):
    build(project, 3)
    shard = next(project.data("shard").rglob("*.parquet"))
    shard.write_bytes(shard.read_bytes() + b"x")
    with pytest.raises(GateError, match=r"1 files are not what the manifest says: sft/train-00000-of-00001.parquet"):
        releases.publish(project)
    assert releases.current(project) is None


def test_rollback_goes_to_the_release_before_and_no_further(project):
    first, second = build(project, 3), None
    releases.publish(project)
    second = build(project, 4)
    releases.publish(project)
    assert releases.rollback(project).build == first
    assert shard_rows(project) == 3
    with pytest.raises(ProjectError, match="no earlier release"):
        releases.rollback(project)
    assert releases.rollback(project, second[:6]).build == second
    assert [(r["build"], r["current"]) for r in releases.releases(project)] == [(first, False), (second, True)]


def test_rollback_to_a_damaged_release_is_refused(project):
    first = build(project, 3)
    releases.publish(project)
    build(project, 4)
    releases.publish(project)
    next((project.root / "releases" / first).rglob("*.parquet")).write_bytes(b"")
    with pytest.raises(GateError, match="damaged"):
        releases.rollback(project)
    assert shard_rows(project) == 4


def test_publishing_mends_a_damaged_release(project):
    name = build(project, 3)
    releases.publish(project)
    next((project.root / "releases" / name).rglob("*.parquet")).write_bytes(b"")
    assert releases.publish(project).status == "published"
    assert shard_rows(project) == 3


def test_without_symbolic_links_the_pointer_is_a_file(project, monkeypatch):
    def refuse(*_arguments, **_options):
        raise OSError("no symbolic links")

    monkeypatch.setattr("pathlib.Path.symlink_to", refuse)
    name = build(project, 3)
    releases.publish(project)
    assert (project.root / "releases" / "current").read_text() == f"{name}\n"
    assert releases.current_folder(project) == project.root / "releases" / name


@pytest.mark.parametrize("after", [0.0, 0.004, 0.02])
def test_a_kill_while_publishing_leaves_current_whole(project, after):
    build(project, 3)
    releases.publish(project)
    build(project, 200)
    code = (
        "import sys, pathlib; from corpusforge.project import Project; from corpusforge.io import releases; "
        "print('go', flush=True); releases.publish(Project(pathlib.Path(sys.argv[1])))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(project.root)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"go\n"
    time.sleep(after)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert shard_rows(project) in (3, 200)
    assert releases.publish(project).rows == 200
    assert shard_rows(project) == 200
    assert not list((project.root / "releases").glob(".*unfinished*"))
