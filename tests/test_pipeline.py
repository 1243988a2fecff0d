"""The whole graph on small real projects, run by DVC: counting, bytes, reruns, and what the next build does."""

from __future__ import annotations

import hashlib
import json
import shutil

import pytest
from ruamel.yaml import YAML

from corpusforge import graph
from corpusforge.project import Project
from corpusforge.shell import run_stage
from tests.projects import chat, init_dvc, make_project, repro, write_jsonl

SOURCES = {
    "desk": [chat(i) for i in range(60)],
    "line": [chat(i) for i in range(100, 140)] + [chat(5, id="twin-of-5")],
}


def hashes(project: Project, stage: str = "shard") -> dict[str, str]:
    """Relative path -> SHA-256 of every file a stage left."""
    folder = project.data(stage)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run_all(project: Project) -> None:
    for name in graph.DATA:
        run_stage(project, name)


def edit_params(project: Project, change) -> Project:
    path = project.root / "params.yaml"
    document = YAML().load(path.read_text())
    change(document)
    with path.open("w") as file:
        YAML().dump(document, file)
    return Project(project.root)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """A project that DVC built once; tests that change it take a copy."""
    project = make_project(tmp_path_factory.mktemp("built"), SOURCES, engine={"partition_rows": 30})
    init_dvc(project.root)
    done = repro(project.root)
    assert done.returncode == 0, done.stdout + done.stderr
    return project


@pytest.fixture
def copy(built, tmp_path) -> Project:
    """A copy of the built project, to be changed."""
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


def test_every_stage_accounts_for_every_row(built):
    ingest = built.metrics("ingest")
    assert ingest["records"] == 101 == ingest["with_rows"] + ingest["quarantined"]
    before = ingest["rows"]
    for stage in built.table_stages()[1:]:
        figures = built.metrics(stage)
        assert figures["in"] == before == figures["kept"] + figures["dropped"], stage
        assert figures["dropped"] == built.ledger(stage).num_rows == sum(figures["reasons"].values()), stage
        before = figures["kept"]
    assert built.metrics("dedupe")["dropped"] == 1


def test_nothing_to_do_is_nothing_done(built):
    before = hashes(built)
    done = repro(built.root)
    assert "up to date" in done.stdout
    assert "Running stage" not in done.stdout
    assert hashes(built) == before


@pytest.mark.parametrize("workers", ["1", "2"])
def test_workers_and_partitions_change_no_byte_of_the_shards(built, tmp_path, monkeypatch, workers):
    monkeypatch.setenv("CORPUSFORGE_WORKERS", workers)
    project = make_project(tmp_path, SOURCES, engine={"partition_rows": 30 if workers == "2" else 17})
    run_all(project)
    shards = {name: value for name, value in hashes(project).items() if name.endswith(".parquet")}
    assert shards == {name: value for name, value in hashes(built).items() if name.endswith(".parquet")}
    assert shards


def test_a_changed_threshold_reruns_dedupe_and_what_follows(copy):
    edit_params(copy, lambda p: p.update(dedupe={"threshold": 0.75}))
    done = repro(copy.root)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Running stage 'dedupe'" in done.stdout
    assert "Running stage 'ingest'" not in done.stdout


def test_another_library_version_reruns_its_stage_only(copy):
    lock = json.loads((copy.root / "methods.lock.json").read_text())
    lock["scrub"]["libraries"]["presidio-analyzer"] = "0.0.1"
    (copy.root / "methods.lock.json").write_text(json.dumps(lock))
    done = repro(copy.root)
    assert done.returncode != 0
    assert "Running stage 'scrub'" in done.stdout
    assert "Running stage 'filter'" not in done.stdout
    assert "corpusforge sync" in done.stdout + done.stderr


def test_a_removed_source_leaves_the_shards(copy):
    changed = edit_params(copy, lambda p: p["ingest"]["sources"].pop())
    from corpusforge import methods

    methods.sync(changed)
    done = repro(copy.root, "shard")
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(changed.metrics("blend")["by_source"]) == {"desk"}
    manifest = json.loads((changed.data("shard") / "manifest.json").read_text())
    assert set(manifest["sources"]) == {"desk"}


def test_a_source_that_dvc_does_not_watch_is_refused(copy):
    write_jsonl(copy.root / "raw" / "new.jsonl", [chat(900)])
    edit_params(copy, lambda p: p["ingest"]["sources"].append({"name": "new", "path": "raw/new.jsonl"}))
    done = repro(copy.root)
    assert done.returncode != 0
    assert "does not watch 'raw/new.jsonl'" in done.stdout + done.stderr


def test_a_missing_key_stops_before_the_first_stage(tmp_path):
    project = make_project(tmp_path, SOURCES)
    init_dvc(project.root)
    edit_params(project, lambda p: p.update(scrub={"key": "env:CORPUSFORGE_TEST_ABSENT"}))
    done = repro(project.root)
    assert done.returncode != 0
    assert "missing-key" in done.stdout + done.stderr
    assert not project.data("ingest").exists()


def test_an_unknown_key_names_line_and_neighbour(copy):
    edit_params(copy, lambda p: p.update(dedupe={"treshold": 0.9}))
    done = repro(copy.root)
    text = done.stdout + done.stderr
    lines = (copy.root / "params.yaml").read_text().splitlines()
    line = lines.index("  treshold: 0.9") + 1
    assert f"params.yaml:{line}: unknown key 'dedupe.treshold'" in text
    assert "did you mean 'threshold'?" in text
