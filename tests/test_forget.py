"""forget: a person's rows leave the next release, with all that was made from them; who held them is named."""

from __future__ import annotations

import csv
import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge import graph, methods
from corpusforge.cli import main
from corpusforge.errors import ConfigError, ProjectError, StaleLockError
from corpusforge.io import releases
from corpusforge.project import Project
from corpusforge.shell import run_stage
from tests.projects import chat, make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

NAME = "Zora Exampleová"
PEOPLE, PERSON, CHILDREN, GRANDCHILDREN, COPIES = 60, 5, 6, 4, 2


def said(number: int, about: str, **more: Any) -> dict[str, Any]:
    """A conversation about somebody, unlike the others."""
    one = chat(number, **more)
    one["messages"][0]["content"] += f" It is for {about}."
    return one


def records() -> dict[str, list[dict[str, Any]]]:
    """A forum with five rows of one person; what was made from them, and from that; copies without a parent."""
    forum = [said(n, NAME if n < PERSON else f"person {n}", id=f"u{n}") for n in range(PEOPLE)]
    made = [chat(200 + n, id=f"m{n}", parents=[f"u{n % PERSON}"]) for n in range(CHILDREN)]
    made += [chat(300 + n, id=f"g{n}", parents=[f"m{n}"]) for n in range(GRANDCHILDREN)]
    made += [chat(400 + n, id=f"other{n}", parents=[f"u{PERSON + n}"]) for n in range(10)]
    exact = [{**forum[0], "id": "twin"}, {**made[0], "id": "copy-of-child", "parents": []}]
    near = said(1, NAME.replace("Zora", "Dora"), id="near")
    return {"forum": forum, "made": made, "web": [*exact, near, *[chat(n, id=f"w{n}") for n in range(500, 530)]]}


GONE = PERSON + CHILDREN + GRANDCHILDREN + COPIES


def build(project: Project) -> str:
    """Every data stage, and a release."""
    for name in graph.DATA:
        run_stage(project, name)
    return releases.publish(project).build


def shipped(project: Project) -> set[str]:
    shards = project.root / "releases" / "current" / "shards"
    return {
        row
        for path in shards.rglob("*.parquet")
        for row in pq.read_table(path, columns=["row_id"])["row_id"].to_pylist()
    }


LOOSE = {"max_source_loss": 1.0, "baseline": {"max_source_loss": 1.0}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / ".git").mkdir()
    return make_project(tmp_path, records(), gate_data=LOOSE, dedupe={"threshold": 0.7})


def lines(project: Project) -> list[dict[str, str]]:
    with (project.root / "forget.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_a_person_leaves_the_next_release_and_the_builds_that_held_them_are_named(project: Project) -> None:
    first = build(project)
    before = shipped(project)
    (project.root / "releases" / first / "models.json").write_text(
        json.dumps({"models": {}, "fingerprints": {"base": "0", "sft": "abc", "dpo": "def"}})
    )
    found = cf.forget(project, match=NAME.upper(), why="request 114", by="Ann")
    assert (found.named, found.descendants, found.copies) == (PERSON + 1, CHILDREN + GRANDCHILDREN, COPIES - 1)
    assert [(one.build, one.place, one.current) for one in found.holders] == [
        (first, f"releases/{first}", True),
        (first, "data/shard", False),
    ]
    assert found.holders[0].rows == len(before & set(found.rows)) > 0
    assert found.holders[0].models == {"sft": "abc", "dpo": "def"}
    text = (project.root / "forget.csv").read_text(encoding="utf-8")
    assert NAME not in text
    assert "Zora" not in text
    assert {(one["why"], one["by"]) for one in lines(project)} == {("request 114", "Ann")}
    second = build(project)
    assert second != first
    assert not shipped(project) & set(found.rows)
    assert not [row for row in shipped(project) if "near" in row]
    figures = project.metrics("ingest")
    assert figures["quarantine"] == {"forgotten": GONE, "near_copy_of_forgotten": 1}
    assert figures["records"] == figures["with_rows"] + figures["quarantined"]
    ledger = project.ledger("ingest").to_pylist()
    assert {line["record_id"] for line in ledger if line["reason"] == "forgotten"} == {None}
    assert not cf.forget(project, source="web", dry_run=True).written


def test_a_near_copy_waits_for_a_person(project: Project) -> None:
    """Its original was kept, it was not: it must not come back in its place."""
    for name in ("ingest", "dedupe"):
        run_stage(project, name)
    found = cf.forget(project, record_id=["u1"])
    assert [(one["row"], one["of"], one["action"]) for one in found.near] == [("web#3", "forum#2", "hold")]
    (held,) = [one for one in lines(project) if one["action"] == "hold"]
    run_stage(project, "ingest")
    assert run_stage(project, "ingest")["quarantine"]["near_copy_of_forgotten"] == 1
    path = project.root / "forget.csv"
    path.write_text(path.read_text().replace("hold,", "keep,"))
    assert "near_copy_of_forgotten" not in run_stage(project, "ingest")["quarantine"]
    assert held["content"]


def test_a_near_copy_that_was_kept_stays_until_it_is_decided(project: Project) -> None:
    for name in ("ingest", "dedupe"):
        run_stage(project, name)
    found = cf.forget(project, record_id=["near"])
    assert [(one["row"], one["action"]) for one in found.near] == [("forum#2", "ask")]
    assert run_stage(project, "ingest")["quarantine"] == {"forgotten": 1}
    assert "forum#2" in str(cf.forget(project, record_id=["u1"], dry_run=True).rows)


def test_lines_put_in_front_and_new_copies_change_nothing(project: Project) -> None:
    """Row ids move, and a later delivery brings the text again under another id: what was forgotten stays out."""
    run_stage(project, "ingest")
    cf.forget(project, record_id=["u3"])
    made = records()
    forum = [chat(900, id="new"), *made["forum"]]
    again = {**made["forum"][3], "id": "again"}
    write_jsonl(project.root / "raw" / "forum.jsonl", forum)
    write_jsonl(project.root / "raw" / "web.jsonl", [again])
    run_stage(project, "ingest")
    rows = project.rows("ingest", ["row_id", "source"])
    assert {"u3", "again", "m3"}.isdisjoint({one["record_id"] for one in rows["source"].to_pylist()})
    assert "forum#4" in rows["row_id"].to_pylist()
    edited = {**made["forum"][3], "messages": chat(901)["messages"]}
    write_jsonl(project.root / "raw" / "forum.jsonl", [edited])
    assert run_stage(project, "ingest")["sources"]["forum"]["rows"] == 0


def test_a_source_is_forgotten_by_one_line_and_its_children_go(project: Project) -> None:
    run_stage(project, "ingest")
    found = cf.forget(project, source="forum")
    assert found.named == PEOPLE
    assert [one["source"] for one in lines(project)].count("forum") == 1
    run_stage(project, "ingest")
    left = {one["name"] for one in project.rows("ingest", ["source"])["source"].to_pylist()}
    assert left == {"web"}


def test_dvc_watches_the_file_and_a_stage_refuses_to_overlook_it(project: Project) -> None:
    run_stage(project, "ingest")
    cf.forget(project, record_id=["u1"])
    dvc = project.root / "dvc.yaml"
    assert "forget.csv" in dvc.read_text()
    dvc.write_text(dvc.read_text().replace("- forget.csv", ""))
    with pytest.raises(StaleLockError, match=r"does not watch 'forget\.csv'"):
        run_stage(Project(project.root), "ingest")


def test_rows_of_older_releases_alone_are_found_by_id(project: Project) -> None:
    """The source has dropped them since; whoever asks must still be told who held them."""
    first = build(project)
    write_jsonl(project.root / "raw" / "forum.jsonl", [chat(n, id=f"v{n}") for n in range(700, 740)])
    run_stage(project, "ingest")
    with pytest.raises(ProjectError, match="has this id"):
        cf.forget(project, record_id=["elsewhere:u20"])
    found = cf.forget(project, record_id=["forum:u20"])
    assert (found.named, [one.place for one in found.holders]) == (0, [f"releases/{first}", "data/shard"])
    assert [(one["row"], one["source"]) for one in lines(project)] == [("", "forum")]
    assert (found.without_rows, "of records that are no rows now, 1 stay out" in str(found)) == (1, True)


def test_asking_twice_writes_once(project: Project) -> None:
    run_stage(project, "ingest")
    cf.forget(project, record_id=["u1"])
    once = lines(project)
    cf.forget(project, record_id=["u1"])
    assert lines(project) == once


def test_what_is_not_there_is_said(project: Project) -> None:
    run_stage(project, "ingest")
    for asked, message in (
        ({"record_id": ["nobody"]}, "has this id"),
        ({"match": "no such text"}, "no row of data/ingest holds"),
        ({"source": "forums"}, "did you mean 'forum'"),
    ):
        with pytest.raises(ProjectError, match=message):
            cf.forget(project, **asked)
    with pytest.raises(ConfigError, match="no regular expression"):
        cf.forget(project, match="(", regex=True)
    assert cf.forget(project, match="zora example.*á", regex=True, dry_run=True).named == PERSON + 1
    assert not (project.root / "forget.csv").exists()


HEADER = "action,row,source,revision,own,content,because,why,by,when"


@pytest.mark.parametrize(
    "text", ["a,b\n1,2\n", f"{HEADER}\nforget,x\n", f"{HEADER}\nforgt,a#1,,,,,,,,\n", f"{HEADER}\nforget,,,,,,,,,\n"]
)
def test_a_broken_file_stops_the_build(project: Project, text: str) -> None:
    (project.root / "forget.csv").write_text(text)
    methods.sync_graph(project)
    with pytest.raises(ConfigError, match=r"forget\.csv:2"):
        run_stage(project, "ingest")


def test_the_command_says_what_the_function_says(
    project: Project, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run_stage(project, "ingest")
    where = ["--project", str(project.root)]
    assert main(["forget", "--record-id", "u1", "--dry-run", *where]) == 0
    assert "would go" in capsys.readouterr().out
    assert main(["forget", "--record-id", "u1", "--why", "case 7", "--json", *where]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["named"], told["written"]) == (1, True)
    assert main(["forget", *where]) == 0
    shown = capsys.readouterr().out
    assert "hold 1" in shown
    shutil.rmtree(tmp_path / "data")
    assert main(["forget", "--record-id", "u1", *where]) == 3
