"""Records of one group are read as one, and counted for themselves."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import write_jsonl

from corpusforge.errors import SourceError
from corpusforge.io import groups, pieces
from corpusforge.io.ingest import read_with_ledger

if TYPE_CHECKING:
    from pathlib import Path

MESSAGES = {"path": "group[*]", "role": "speaker", "content": "text"}


def turn(talk: Any, speaker: str, text: str, **more: Any) -> dict[str, Any]:
    return {"talk": talk, "speaker": speaker, "text": text, **more}


TURNS = [
    turn("a", "user", "Q?"),
    turn("a", "assistant", "A.", license="CC-BY-4.0"),
    turn("b", "user", "R?"),
    turn("b", "assistant", {"no": "text"}),
    turn("c", "user", "S?", keep=False),
    turn("c", "user", "T?"),
    turn(None, "user", "lost"),
]


def read(root: Path, records: list[Any] = TURNS, **options: Any) -> Any:
    write_jsonl(root / "t.jsonl", records)
    fields = {"messages": MESSAGES, "id": "talk"}
    return read_with_ledger("t.jsonl", name="s", group="talk", fields=fields, root=root, license="MIT", **options)


def test_lines_of_one_talk_become_one_row(tmp_path: Path) -> None:
    """It stands where its first line stands, has the group's key as its id, and all the licences of its lines."""
    result = read(tmp_path)
    first, second = result.kept.to_pylist()
    assert (first["row_id"], first["source"]["record_id"]) == ("s#1", "a")
    assert [message["content"] for message in first["messages"]] == ["Q?", "A."]
    assert first["source"]["license"] == "MIT AND CC-BY-4.0"
    assert (second["row_id"], len(second["messages"])) == ("s#5", 2)


@pytest.mark.parametrize(
    ("named", "own"),
    [({}, ["t1", "7"]), ({"id": "group[0].speaker"}, ["user", "user"])],
    ids=["of the group", "named"],
)
def test_the_groups_value_is_the_id_unless_fields_name_another(
    tmp_path: Path, named: dict[str, str], own: list[str]
) -> None:
    """Whatever the field is called, and wherever it stands."""
    write_jsonl(tmp_path / "t.jsonl", [{"at": {"talk": t}, "speaker": "user", "text": "Q?"} for t in ("t1", "t1", 7)])
    fields = {"messages": MESSAGES, **named}
    result = read_with_ledger("t.jsonl", name="s", group="at.talk", fields=fields, root=tmp_path, license="MIT")
    assert [row["source"]["record_id"] for row in result.kept.to_pylist()] == own


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    """Those of a talk that gave no row each have their line in the ledger."""
    result = read(tmp_path, where={"keep": {"not_equals": False}})
    lines = [f"{line['row_id']} {line['reason']}" for line in result.dropped.to_pylist()]
    assert lines == ["s#3 content_not_text", "s#4 content_not_text", "s#5 excluded_by_where", "s#7 group_missing"]
    figures = result.metrics["sources"]["s"]
    assert (figures["records"], figures["with_rows"], figures["quarantined"], figures["rows"]) == (7, 3, 4, 2)
    assert json.loads(result.dropped.to_pylist()[1]["detail"])["line"] == 4


def test_a_talk_that_is_refused_for_its_terms_goes_with_all_its_lines(tmp_path: Path) -> None:
    """One line of it states a restriction that nobody allowed; each of its lines is listed."""
    refused = [turn("a", "user", "Q?"), turn("a", "assistant", "A.", restrictions="no-train")]
    result = read(tmp_path, [*refused, *TURNS[4:6]])
    lines = [f"{line['row_id']} {line['reason']}" for line in result.dropped.to_pylist()]
    assert lines == ["s#1 restricted", "s#2 restricted"]
    figures = result.metrics["sources"]["s"]
    assert (figures["records"], figures["with_rows"], figures["quarantined"], figures["rows"]) == (4, 2, 2, 1)
    assert (figures["reasons"], figures["kinds"]) == ({"restricted": 2}, {"sft": 1})


@pytest.mark.parametrize("fields", [{}, {"messages": MESSAGES}], ids=["no mapping", "mapping"])
def test_a_group_that_no_record_has_stops_the_build(tmp_path: Path, fields: dict[str, Any]) -> None:
    """After the first thousand, with the nearest right name."""
    write_jsonl(tmp_path / "t.jsonl", [turn("a", "user", "Q?")] * 1500)
    with pytest.raises(SourceError, match=r"group: none of the first 1,000 records has 'tlk'\s+did you mean 'talk'"):
        read_with_ledger("t.jsonl", name="s", group="tlk", fields=fields, root=tmp_path)


def test_one_group_among_records_of_none_is_enough(tmp_path: Path) -> None:
    """Those of none are listed under their own ids; where all have a value that is no name, each is listed too."""
    alone = {"id": "mine", "text": "alone"}
    result = read(tmp_path, [*[alone] * 600, *TURNS[:2], *[alone] * 600])
    assert (len(result.kept), result.reasons()) == (1, {"group_missing": 1200})
    write_jsonl(tmp_path / "u.jsonl", [{**alone, "talk": 1.5}] * 1500)
    result = read_with_ledger("u.jsonl", name="s", group="talk", root=tmp_path)
    assert result.reasons() == {"group_missing": 1500}
    assert set(result.dropped["record_id"].to_pylist()) == {"mine"}


def test_cuts_of_batches_and_files_do_not_cut_a_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = read(tmp_path)
    monkeypatch.setattr(pieces, "BATCH", 1)
    assert read(tmp_path).kept.equals(whole.kept)


def test_a_group_that_comes_back_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first lines have given a row already; sorting mends it."""
    torn = [TURNS[0], TURNS[2], TURNS[1]]
    with pytest.raises(SourceError, match=r"t\.jsonl, line 3: the records of this talk do not stand together\s+sort"):
        read(tmp_path, torn)
    monkeypatch.setattr(groups, "LOOKED_BACK", 1)
    assert read(tmp_path, torn).kept.num_rows == 3
