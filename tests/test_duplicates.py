"""`inspect --duplicates`: the groups of the ledger, and word by word how their rows differ."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge.cli import main
from corpusforge.errors import ProjectError, SourceError
from corpusforge.shell import run_stage
from tests.projects import chat, make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project


def said(number: int, last: str, **more: Any) -> dict[str, Any]:
    one = chat(number, **more)
    one["messages"][1]["content"] += f" {last}"
    return one


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    forum = [said(1, "first", id="f1"), *[chat(n) for n in range(2, 9)]]
    web = [said(1, "second", id="w1"), said(1, "first", id="w2"), chat(2, id="w3"), said(1, "third", id="w4")]
    made = make_project(tmp_path_factory.mktemp("project"), {"forum": forum, "web": web})
    for name in ("ingest", "dedupe"):
        run_stage(made, name)
    return made


def test_the_largest_groups_are_those_of_the_ledger(project: Project) -> None:
    found = cf.duplicates(project.root)
    lines = project.ledger("dedupe").to_pylist()
    kept = Counter(json.loads(line["detail"])["kept"] for line in lines)
    assert {group.kept: group.went for group in found.groups} == kept
    assert (found.rows, found.of) == (len(lines), len(kept))
    first = found.groups[0]
    assert (first.kept, first.source, first.went, first.exact, first.near) == ("forum#1", "forum", 3, 1, 2)
    assert first.sources == {"web": 3}
    assert first.least < first.most == 1.0
    assert not found.removed
    assert "first" not in str(found)


@pytest.mark.parametrize("place", ["", "data/dedupe"])
@pytest.mark.parametrize("cluster", ["forum#1", "f1", "web#1", "w1", "web:w1"])
def test_a_group_is_found_by_any_of_its_rows(project: Project, place: str, cluster: str) -> None:
    found = cf.duplicates(project.root / place, cluster=cluster)
    assert [group.kept for group in found.groups] == ["forum#1"]
    assert [one.own for one in found.removed] == ["w1", "w4", "w2"]


def test_a_group_is_found_by_its_cluster(project: Project) -> None:
    rows = project.rows("dedupe", ["row_id", "cluster"]).to_pylist()
    name = next(one["cluster"] for one in rows if one["row_id"] == "forum#1")
    assert [group.kept for group in cf.duplicates(project, cluster=name).groups] == ["forum#1"]


def test_a_row_that_went_differs_in_these_words(project: Project) -> None:
    found = cf.duplicates(project, cluster="w1")
    (change,) = found.removed[0].changes or []
    assert (change.kept, change.removed) == ("first", "second")
    assert found.removed[2].changes == []
    assert "[-first-] {+second+}" in str(found)
    assert "no word differs" in str(found)


def test_few_rows_of_a_group_are_shown_and_the_others_counted(project: Project) -> None:
    found = cf.duplicates(project, cluster="w1", top=1)
    assert [one.own for one in found.removed] == ["w1"]
    assert "2 more rows" in str(found)


def test_an_id_without_a_group_is_refused(project: Project) -> None:
    with pytest.raises(SourceError, match="nothing went for 'chat-5'"):
        cf.duplicates(project, cluster="chat-5")


def test_where_dedupe_has_not_run_there_is_nothing_to_see(tmp_path: Path) -> None:
    make_project(tmp_path, {"forum": [chat(1)]})
    with pytest.raises(ProjectError, match="dedupe has not run"):
        cf.duplicates(tmp_path)


def test_the_command_prints_what_the_function_returns(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(project.root / "data/dedupe"), "--duplicates", "--top", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told == cf.duplicates(project.root / "data/dedupe", top=1).to_dict()
    assert main(["inspect", str(project.root), "--cluster", "w1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["removed"][0]["changes"][0]["removed"] == "second"


LONG = " ".join(f"word{i}" for i in range(40))


def plain(path: Path, texts: list[str], **more: list[str]) -> Path:
    pq.write_table(pa.table({"text": texts, **more}), path)
    return path


def test_texts_of_plain_files_come_from_the_files(tmp_path: Path) -> None:
    new = plain(tmp_path / "new.parquet", [LONG, f"{LONG} end", "else"], id=["a", "b", "c"])
    cf.dedupe_files(new, tmp_path / "clean")
    bare = cf.duplicates(tmp_path / "clean", cluster="a")
    assert bare.groups[0].kept == "b"
    assert bare.removed[0].changes is None
    assert "--texts" in str(bare)
    (change,) = cf.duplicates(tmp_path / "clean", cluster="a", texts=new).removed[0].changes or []
    assert (change.kept, change.removed) == ("end", "")


def test_a_row_that_is_there_already_is_found_in_its_own_file(tmp_path: Path) -> None:
    new = plain(tmp_path / "new.parquet", [f"{LONG} late", "else"], id=["a", "b"])
    old = plain(tmp_path / "old.parquet", [f"{LONG} soon"], id=["a"])
    cf.dedupe_files(new, tmp_path / "clean", against=old)
    found = cf.duplicates(tmp_path / "clean", cluster="a", texts=new, against=old)
    (change,) = found.removed[0].changes or []
    assert (change.kept, change.removed) == ("soon", "late")


def test_rows_of_other_forms_are_read_again(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "new.jsonl", [said(1, "first"), said(1, "second"), chat(4)])
    cf.dedupe_files(tmp_path / "new.jsonl", tmp_path / "clean")
    (group,) = cf.duplicates(tmp_path / "clean").groups
    found = cf.duplicates(tmp_path / "clean", cluster=group.kept, texts=tmp_path / "new.jsonl")
    (change,) = found.removed[0].changes or []
    assert {change.kept, change.removed} == {"first", "second"}
