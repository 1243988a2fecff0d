"""`init`: what a new project holds, and what it never touches."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from ruamel.yaml import YAML

from corpusforge import graph, methods
from corpusforge.errors import ConfigError, ProjectError, SourceError
from corpusforge.init import SCHEMA_LINE, init
from corpusforge.io import scaffold
from corpusforge.project import Project
from tests.projects import chat, make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

PARAMS = """\
ingest:
  sources:
    - {name: a, path: raw/a.jsonl, license: MIT, origin: human}
scrub:
  key: public-demo
"""


@pytest.fixture
def without_dvc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave git and DVC out: they take a second, and most properties do not need them."""
    monkeypatch.setattr(scaffold, "start_git", lambda _folder: "")
    monkeypatch.setattr(scaffold, "start_dvc", lambda _folder: "")


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recipe of our own, in the place of those that are shipped."""
    folder = tmp_path / "recipes" / "tiny"
    (folder / "extra").mkdir(parents=True)
    (folder / "params.yaml").write_text(PARAMS)
    (folder / "README.md").write_text("# tiny\n")
    (folder / "extra" / "note.txt").write_text("kept\n")
    monkeypatch.setattr(scaffold, "recipes", lambda: {"tiny": folder})
    return folder


@pytest.mark.usefixtures("without_dvc")
def test_a_recipe_becomes_a_project_that_is_in_sync(tiny: Path, tmp_path: Path) -> None:
    done = init(tmp_path / "new", recipe="tiny")
    project = Project.find(tmp_path / "new")
    assert methods.sync(project) == []
    assert done.todo == [f"cd {tmp_path / 'new'}", "dvc repro"]
    assert (project.root / "extra" / "note.txt").read_text() == "kept\n"


def test_a_stage_that_dvc_yaml_lacks_is_put_in_its_place_and_the_users_own_stay(tmp_path: Path) -> None:
    project = make_project(tmp_path, {"a": [chat(1)]})
    path = tmp_path / "dvc.yaml"
    document = YAML(typ="safe").load(path.read_text())
    own = {"fetch": {"cmd": "true"}}
    document["stages"] = own | {
        name: stage for name, stage in document["stages"].items() if name not in {"grade", "ingest"}
    }
    with path.open("w") as file:
        YAML().dump(document, file)
    methods.sync(project)
    stages = list(YAML(typ="safe").load(path.read_text())["stages"])
    assert [name for name in stages if name != "fetch"] == list(graph.DATA)
    assert "fetch" in stages


@pytest.mark.usefixtures("without_dvc")
def test_the_graph_has_every_stage_in_order(tiny: Path, tmp_path: Path) -> None:
    init(tmp_path / "new", recipe="tiny")
    text = (tmp_path / "new" / "dvc.yaml").read_text()
    places = [text.index(f"\n  {name}:") for name in graph.DATA]
    assert places == sorted(places)


@pytest.mark.usefixtures("without_dvc")
def test_params_name_the_schema_that_lies_beside_them(tiny: Path, tmp_path: Path) -> None:
    init(tmp_path / "new", recipe="tiny")
    assert (tmp_path / "new" / "params.yaml").read_text().startswith(SCHEMA_LINE)
    assert (tmp_path / "new" / "schemas" / "params.schema.json").is_file()


def test_it_is_a_dvc_project_in_a_git_repository(tiny: Path, tmp_path: Path) -> None:
    init(tmp_path / "new", recipe="tiny")
    assert (tmp_path / "new" / ".git").is_dir()
    config = (tmp_path / "new" / ".dvc" / "config").read_text()
    assert "analytics = false" in config
    assert "check_update = false" in config


def test_inside_a_repository_it_becomes_a_subproject(tiny: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    init(tmp_path / "deep" / "new", recipe="tiny")
    assert not (tmp_path / "deep" / "new" / ".git").exists()
    assert (tmp_path / "deep" / "new" / ".dvc").is_dir()


@pytest.mark.usefixtures("without_dvc")
def test_raw_and_quarantined_rows_are_never_pushed_by_default(tiny: Path, tmp_path: Path) -> None:
    init(tmp_path / "new", recipe="tiny")
    text = (tmp_path / "new" / "dvc.yaml").read_text()
    assert text.count("push: false") == sum(graph.node(name).private for name in graph.DATA)


@pytest.mark.usefixtures("without_dvc")
def test_a_folder_with_files_is_refused_and_with_force_no_file_is_replaced(tiny: Path, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used" / "README.md").write_text("mine\n")
    with pytest.raises(ProjectError, match="not empty"):
        init(tmp_path / "used", recipe="tiny")
    init(tmp_path / "used", recipe="tiny", force=True)
    assert (tmp_path / "used" / "README.md").read_text() == "mine\n"
    with pytest.raises(ProjectError, match="already is a project"):
        init(tmp_path / "used", recipe="tiny", force=True)


@pytest.mark.usefixtures("without_dvc")
def test_an_unknown_recipe_is_answered_with_those_there_are(tiny: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        init(tmp_path / "new", recipe="tinny")
    assert "tiny" in caught.value.hint
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("without_dvc")
def test_from_a_file_the_source_is_declared_relative_to_the_project(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "my chats.jsonl", [chat(n) for n in range(5)])
    done = init(tmp_path / "new", source=tmp_path / "my chats.jsonl")
    project = Project(tmp_path / "new")
    (source,) = project.params.ingest.sources
    assert (source.name, source.path, source.license) == ("my-chats", "../my chats.jsonl", "unknown")
    assert any("license" in step for step in done.todo)


@pytest.mark.usefixtures("without_dvc")
def test_without_a_key_the_next_steps_say_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CORPUSFORGE_KEY", raising=False)
    write_jsonl(tmp_path / "a.jsonl", [chat(n) for n in range(5)])
    done = init(tmp_path / "new", source=tmp_path / "a.jsonl")
    assert any("corpusforge key new" in step for step in done.todo)
    assert done.todo[-2:] == ["corpusforge sync", "dvc repro"]


@pytest.mark.usefixtures("without_dvc")
def test_a_new_key_lies_outside_the_project_and_is_named_in_params(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write_jsonl(tmp_path / "a.jsonl", [chat(n) for n in range(5)])
    for name in ("first", "second"):
        done = init(tmp_path / name, source=tmp_path / "a.jsonl", new_key=True)
        assert done.todo[-1] == "dvc repro"
        assert methods.sync(Project(tmp_path / name)) == []
    key = (tmp_path / "home" / ".config" / "corpusforge" / "key").read_text().strip()
    for path in (p for p in (tmp_path / "first").rglob("*") if p.is_file()):
        assert key.encode() not in path.read_bytes()


@pytest.mark.usefixtures("without_dvc")
def test_a_file_without_a_readable_record_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{\n")
    with pytest.raises(SourceError, match="no record could be read"):
        init(tmp_path / "new", source=tmp_path / "a.jsonl")
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("without_dvc")
def test_every_shipped_recipe_can_be_laid_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSFORGE_KEY", "0123456789abcdef")
    assert set(scaffold.recipes()) >= {"demo", "math_rlvr", "chat_preference"}
    for name in scaffold.recipes():
        init(tmp_path / name, recipe=name)
        assert Project(tmp_path / name).params.ingest.sources
