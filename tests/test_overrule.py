"""overrides.csv in a project: what the file may say, the command that writes it, and the build that obeys."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import corpusforge as cf
from corpusforge import graph, methods
from corpusforge.cli import main
from corpusforge.errors import ConfigError, ProjectError, StaleLockError
from corpusforge.io import overrides
from corpusforge.io.report import page
from corpusforge.project import Project
from corpusforge.shell import run_stage
from corpusforge.stages._overrides import Override
from tests.projects import chat, make_project

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "action,row,name,reason,when,content\n"


def alike(number: int, **more: Any) -> dict[str, Any]:
    """Nearly what `chat` says, in fewer words."""
    one = chat(number, **more)
    one["messages"][1]["content"] = one["messages"][1]["content"].removesuffix(" to it.")
    return one


@pytest.fixture
def project(tmp_path: Path) -> Project:
    forum = [chat(n) for n in range(12)]
    web = [alike(1, id="a1"), alike(2, id="a2"), chat(3, id="a3"), *[chat(n) for n in range(30, 34)]]
    made = make_project(tmp_path, {"forum": forum, "web": web}, engine={"partition_rows": 5})
    run_stage(made, "ingest")
    return made


def dedupe(project: Project) -> dict[str, Any]:
    """Run dedupe anew."""
    methods.sync(project)
    return run_stage(Project(project.root), "dedupe")


def gone(project: Project) -> dict[str, str]:
    return {line["record_id"]: line["reason"] for line in project.ledger("dedupe").to_pylist()}


def test_the_next_build_obeys(project: Project) -> None:
    assert dedupe(project)["dropped"] == 3
    before = gone(project)
    cf.overrule("keep", "web:a1", project.root, why="another year", by="Ann Smith")
    cf.overrule("drop", ["forum:chat-5"], project.root, why="wrong", by="Ann Smith")
    assert "overrides.csv" in methods.watched(project)["dedupe"]
    metrics = dedupe(project)
    after = gone(project)
    assert set(before) - set(after) == {"a1"}
    assert after["chat-5"] == "override"
    assert metrics["reasons"]["override"] == metrics["overrides"]["dropped"] == 1
    assert metrics["kept_by_override"] == metrics["overrides"]["kept"] == 1
    assert "override (name Ann Smith, reason wrong)" in str(cf.trace("forum:chat-5", project.root))


def test_partitions_and_workers_change_no_byte(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    cf.overrule("keep", ["a1", "a2"], project.root, why="so", by="Ann")
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "1")
    one = dedupe(project)
    first = {path.name: path.read_bytes() for path in project.data("dedupe").rglob("*.parquet")}
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "2")
    two = dedupe(project)
    assert {path.name: path.read_bytes() for path in project.data("dedupe").rglob("*.parquet")} == first
    assert {**one, "speed": 0} == {**two, "speed": 0}


def test_a_file_that_dvc_does_not_watch_stops_the_stage(project: Project) -> None:
    (project.root / "overrides.csv").write_text(HEAD + "keep,a1,Ann,so,,\n", encoding="utf-8")
    with pytest.raises(StaleLockError, match=r"does not watch 'overrides.csv', which dedupe reads"):
        run_stage(project, "dedupe")


def test_a_row_id_is_written_with_its_content_and_own_ids_that_several_rows_share_as_row_ids(tmp_path: Path) -> None:
    made = make_project(tmp_path, {"forum": [chat(1, id="same"), chat(2, id="same"), chat(3, id="")]})
    run_stage(made, "ingest")
    found = cf.overrule("keep", ["same", "forum#3"], made.root, why="so", by="Ann").overrides
    assert [one.row for one in found][:2] == ["forum#1", "forum#2"]
    assert all(one.content for one in found[:2])


def test_a_line_is_written_once(project: Project) -> None:
    for added in (1, 0):
        found = cf.overrule("keep", "web:a1", project.root, why="so", by="Ann")
        assert (found.added, len(found.overrides)) == (added, 1)


def test_what_the_last_build_made_of_a_line_is_told(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    cf.overrule("keep", ["chat-7"], project.root, why="so", by="Ann")
    with (project.root / "overrides.csv").open("a", encoding="utf-8") as file:
        file.write("drop,forum:nobody,Ann,gone,,\n")
    dedupe(project)
    told = cf.overrule(project=project.root).to_dict()["lines"]
    assert [one["last_build"] for one in told] == ["it would have stayed anyway", "no row has this id"]
    assert main(["overrule", "--project", str(project.root), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == told


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("hold,a1,Ann,so,,\n", "overrides.csv:2: action 'hold' is not one of keep, drop"),
        ("keep,a1,,so,,\n", "overrides.csv:2: no name"),
        ("keep,a1,Ann,so,,\ndrop,a2,Ann, ,,\n", "overrides.csv:3: no reason"),
        ("keep,,Ann,so,,\n", "overrides.csv:2: no id"),
        ("keep,a1,Ann,so,,\n\ndrop,a1,Ann,so,,\n", "overrides.csv:4: drop a1, of which line 2 says keep"),
        ("keep,a1,Ann\n", "overrides.csv:2: 3 values, expected 6"),
        ('keep,a1,Ann,"so\n', "overrides.csv cannot be read"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, lines: str, says: str) -> None:
    (tmp_path / "overrides.csv").write_text(HEAD + lines, encoding="utf-8")
    with pytest.raises(ConfigError, match=says):
        overrides.read(tmp_path)


@pytest.mark.parametrize("head", ["", "action,row,name\n", "action,row,name,reason,why\n"])
def test_a_wrong_head_is_named(tmp_path: Path, head: str) -> None:
    (tmp_path / "overrides.csv").write_text(head, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"overrides.csv:1: expected the columns action,row,name,reason,when,content"):
        overrides.read(tmp_path)


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1).map(str.strip).filter(bool)


@given(
    st.lists(st.builds(Override, st.sampled_from(["keep", "drop"]), TEXT, TEXT, TEXT, TEXT), unique_by=lambda o: o.row)
)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, lines: list[Override]) -> None:
    root = tmp_path_factory.mktemp("file")
    overrides.write(root, lines)
    assert [(o.action, o.row, o.name, o.reason, o.when) for o in overrides.read(root)] == [
        (o.action, o.row, o.name, o.reason, o.when) for o in lines
    ]


def test_an_id_that_no_row_has_is_refused(project: Project) -> None:
    with pytest.raises(ProjectError, match="no row of data/ingest has the id 'nobody'"):
        cf.overrule("keep", ["a1", "nobody"], project.root, why="so", by="Ann")
    assert not (project.root / "overrides.csv").exists()


@pytest.mark.parametrize(("options", "says"), [({"by": "Ann"}, "no reason"), ({"why": "so"}, "no name")])
def test_a_reason_and_a_name_are_asked_for(
    project: Project, options: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("corpusforge.io.forgotten.who", lambda root: "")
    with pytest.raises(ConfigError, match=says):
        cf.overrule("keep", "a1", project.root, **options)


def test_the_opposite_of_a_line_is_refused(project: Project) -> None:
    cf.overrule("keep", "a1", project.root, why="so", by="Ann")
    with pytest.raises(ConfigError, match=r"overrides.csv: drop web:a1, of which line 2 says keep"):
        cf.overrule("drop", "web:a1", project.root, why="so", by="Bob")


def test_the_report_counts_overrides_and_warns_of_lines_without_a_row(project: Project) -> None:
    cf.overrule("keep", ["a1", "chat-7"], project.root, why="so", by="Ann")
    cf.overrule("drop", "chat-5", project.root, why="so", by="Ann")
    with (project.root / "overrides.csv").open("a", encoding="utf-8") as file:
        file.write("drop,forum:nobody,Ann,gone,,\n")
    methods.sync(project)
    for name in graph.DATA[1:]:
        run_stage(Project(project.root), name)
    report = json.loads((project.data("report") / "report.json").read_text(encoding="utf-8"))
    assert report["duplicates"]["overrides"]["kept"] == 1
    assert report["duplicates"]["pairs"][0] | {"exact": 0, "near": 0} == {
        "removed": "web", "kept": "forum", "where": "corpus", "exact": 0, "near": 0,
    }  # fmt: skip
    assert "overrides.csv:5: no row has the id forum:nobody" in report["warnings"]
    assert "overrides.csv:2: keeps what would have stayed anyway: forum:chat-7" in report["warnings"]
    html = page(report)
    assert "1 rows stayed and 1 went because somebody said so" in html
    assert "removed from" in html
