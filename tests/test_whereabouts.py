"""Which places hold personal data, and which of them `dvc push` would take: told, and true of a real push."""

from __future__ import annotations

import subprocess
import sys

import pytest

from corpusforge.cli import main
from corpusforge.io import atomic
from corpusforge.whereabouts import places
from tests.projects import chat, environment, init_dvc, make_project, repro


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = make_project(tmp_path_factory.mktemp("where") / "project", {"desk": [*map(chat, range(20)), {"odd": 1}]})
    init_dvc(made.root)
    done = repro(made.root, "scrub")
    assert done.returncode == 0, done.stdout + done.stderr
    return made


def test_every_place_before_scrub_is_listed_and_none_is_pushed(project):
    found = {one.path: one.pushed for one in places(project)}
    expected = [
        "raw/desk.jsonl",
        "data/ingest",
        "data/ingest/dropped.parquet",
        "data/dedupe",
        "data/filter",
        ".dvc/cache",
    ]
    assert [path for path in expected if found.get(path, True)] == []
    assert "data/scrub" not in found


def test_a_real_push_takes_what_is_not_listed_and_nothing_else(project):
    remote = project.root.parent / "remote"
    for command in (["remote", "add", "-d", "there", str(remote)], ["push", "-q"]):
        subprocess.run([sys.executable, "-m", "dvc", *command], cwd=project.root, check=True, env=environment())
    pushed = {path.name: path.read_bytes() for path in remote.rglob("*") if path.is_file()}
    held = {
        one.path: [p.read_bytes() for p in (project.root / one.path).rglob("*.parquet") if p.parent.name == "rows"]
        for one in places(project)
        if one.path.startswith("data/")
    }
    assert (project.data("scrub") / "rows/part-00000.parquet").read_bytes() in pushed.values()
    assert [path for path, files in held.items() if any(file in pushed.values() for file in files)] == []


def test_a_stage_that_may_be_pushed_and_a_tracked_source_are_told(project, capsys):
    text = (project.root / "dvc.yaml").read_text()
    atomic.write_text(project.root / "dvc.yaml", text.replace("push: false", "push: true", 1))
    atomic.write_text(project.root / "raw/desk.jsonl.dvc", "outs: []\n")
    found = {one.path: one.pushed for one in places(project)}
    atomic.write_text(project.root / "dvc.yaml", text)
    assert found["data/ingest"]
    assert found["raw/desk.jsonl"]
    assert not found["data/filter"]
    main(["doctor", "--project", str(project.root)])
    assert "TAKES it" in capsys.readouterr().out
    (project.root / "raw/desk.jsonl.dvc").unlink()
