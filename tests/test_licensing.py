"""licences: who stated which terms, how much stands under them, and what a build refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

import corpusforge as cf
from corpusforge.cli import main
from corpusforge.io.shards import write_shards
from corpusforge.project import Project
from corpusforge.shell import run_stage
from tests.projects import chat, make_project
from tests.rows import row, table

if TYPE_CHECKING:
    from corpusforge.licensing import Licences


def lines(found: Licences) -> set[tuple[str, str, str, int, str]]:
    return {(one.source, one.license, ",".join(one.restrictions), one.rows, one.stated) for one in found.corpus}


def edit(project: Project, name: str, **more: Any) -> Project:
    """Change a source of params.yaml."""
    path = project.root / "params.yaml"
    params = YAML().load(path.read_text())
    next(one for one in params["ingest"]["sources"] if one["name"] == name).update(more)
    with path.open("w") as file:
        YAML().dump(params, file)
    return Project(project.root)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two sources: one whose records state their own terms, one without a licence."""
    own = [chat(n, **({"license": "cc-by-4.0"} if n % 2 else {})) for n in range(6)]
    own += [chat(9, restrictions="not for training")]
    made = make_project(tmp_path, {"own": own, "bare": [chat(n) for n in range(20, 24)]})
    return edit(made, "bare", license="unknown")


def test_rows_are_counted_per_licence_with_who_stated_it(project: Project) -> None:
    run_stage(project, "ingest")
    found = cf.licences(project)
    assert lines(found) == {
        ("own", "MIT", "", 3, "params, records"),
        ("own", "CC-BY-4.0", "", 3, "records"),
        ("bare", "unknown", "", 4, "nobody"),
    }
    assert all(one.tokens > 0 for one in found.corpus)
    refusal = {"stage": "ingest", "source": "own", "reason": "restricted", "refused": ["no-train"], "rows": 1}
    assert found.refused == [refusal]
    assert "allow: [no-train]" in str(found)
    assert found.shipped == []


def test_shards_say_what_is_shipped_copies_included(tmp_path: Path) -> None:
    rows = table([row(1, "a", license="CC-BY-4.0", restrictions=["consent"]), row(2, "b"), row(3, "c")])
    write_shards(rows, tmp_path / "shards")
    found = cf.licences(tmp_path / "shards")
    assert {(one.license, tuple(one.restrictions), one.rows, one.tokens) for one in found.shipped} == {
        ("CC-BY-4.0", ("consent",), 1, None),
        ("MIT", (), 2, None),
    }
    assert found.corpus == []


def test_a_table_of_rows_is_counted(tmp_path: Path) -> None:
    said = ["mit", "MIT License", "cc-by-nc-4.0", None, ["mit", "cc-by-nc-4.0"]]
    records = [{"id": str(n), "text": f"text {n}", "license": one} for n, one in enumerate(said)]
    with pytest.warns(UserWarning, match="plain texts"):
        found = cf.licences(cf.read(records))
    assert {one.license: one.rows for one in found.corpus} == {
        "MIT": 2,
        "CC-BY-NC-4.0": 1,
        "unknown": 1,
        "MIT AND CC-BY-NC-4.0": 1,
    }


def test_before_anything_runs_it_says_what_the_build_would_refuse(project: Project) -> None:
    edit(project, "own", restrictions=["no-train"])
    found = cf.licences(project.root)
    assert {one.name: one.refused for one in found.declared} == {"own": ["no-train"], "bare": []}
    assert "refuses no-train" in str(found)
    assert "allow: [no-train]" in str(found)


def test_files_beside_the_data_are_shown_and_taken_over_by_nobody(project: Project) -> None:
    raw = project.root / "raw"
    (raw / "LICENSE").write_text("Apache License\n Version 2.0, January 2004\n")
    (raw / "README.md").write_text(
        "---\nlicense: cc-by-nc-4.0\n---\nIntro.\nPlease do not use this for any training.\n"
    )
    (raw / "README.sh").write_text("non-commercial")
    run_stage(project, "ingest")
    found = cf.licences(project)
    bare = next(one for one in found.declared if one.name == "bare")
    assert bare.carrier_license == "Apache-2.0 (raw/LICENSE)"
    assert [(one.says, one.file, one.line) for one in bare.unstated] == [
        ("CC-BY-NC-4.0", "raw/README.md", 1),
        ("no-train", "raw/README.md", 5),
    ]
    assert ("bare", "unknown", "", 4, "nobody") in lines(found)


def test_a_stated_carrier_goes_before_a_file(project: Project) -> None:
    (project.root / "raw" / "LICENSE").write_text("Apache License\n Version 2.0, January 2004\n")
    edit(project, "bare", carrier_license="mit")
    found = {one.name: one.carrier_license for one in cf.licences(project.root).declared}
    assert found == {"own": "Apache-2.0 (raw/LICENSE)", "bare": "MIT (params)"}


def test_the_command_prints_what_the_function_returns(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    run_stage(project, "ingest")
    assert main(["licences", str(project.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == cf.licences(project).to_dict()


def test_the_terms_of_the_recipe_math_rlvr_are_caught(tmp_path: Path, shared: Path) -> None:
    """GPTeacher's provider terms are allowed by name, the 252 user tasks are a benchmark, and as a source they stop."""
    recipe = YAML(typ="safe").load((Path(__file__).parent.parent / "pipelines/math_rlvr/params.yaml").read_text())
    recipe["scrub"]["key"] = "public-demo"
    wanted = {"self_instruct", "gpteacher_roleplay"}
    recipe["ingest"]["sources"] = [one for one in recipe["ingest"]["sources"] if one["name"] in wanted]
    (tmp_path / "raw").symlink_to(shared / "data")
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    with (tmp_path / "params.yaml").open("w") as file:
        YAML(typ="safe").dump(recipe, file)
    found = cf.licences(tmp_path)
    told = {one.name: (one.license, one.restrictions, one.allowed, one.refused) for one in found.declared}
    assert told["gpteacher_roleplay"] == ("MIT", ["provider-terms"], ["provider-terms"], [])
    assert told["self_instruct_user_tasks"][:2] == ("Apache-2.0", ["no-train"])
    assert {("self_instruct", "no-train")} == {(one.name, near.says) for one in found.declared for near in one.unstated}
    benchmark = next(one for one in recipe["decontaminate"]["benchmarks"] if one["name"] == "self_instruct_user_tasks")
    recipe["ingest"]["sources"].append(benchmark | {"name": "user_tasks"})
    with (tmp_path / "params.yaml").open("w") as file:
        YAML(typ="safe").dump(recipe, file)
    assert next(one for one in cf.licences(tmp_path).declared if one.name == "user_tasks").refused == ["no-train"]
