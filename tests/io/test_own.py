"""A shape of one's own: a decorated function in the project's folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import make_project, write_jsonl

from corpusforge import methods
from corpusforge.errors import SourceError, StaleLockError
from corpusforge.io.ingest import read_with_ledger
from corpusforge.project import Project

if TYPE_CHECKING:
    from pathlib import Path

CODE = """
import corpusforge

@corpusforge.shape("ticket", gives="prompt_completion")
def ticket(record):
    if record["kind"] == "spam":
        return None
    return [
        {"prompt": record["subject"], "completion": reply, "origin": "human", "note": record["kind"], "license": "MIT"}
        for reply in record["replies"]
    ]

def plain(record):
    return {"text": "x"}
"""
TICKETS = [
    {"id": 1, "kind": "bug", "subject": "Q?", "replies": ["A.", "B."]},
    {"id": 2, "kind": "spam", "subject": "Q?", "replies": []},
    {"id": 3, "kind": "odd"},
]


def read(root: Path, code: str = CODE, records: list[Any] = TICKETS, shape: str = "tickets:ticket") -> Any:
    (root / "tickets.py").write_text(code)
    write_jsonl(root / "t.jsonl", records)
    return read_with_ledger("t.jsonl", name="s", shape=shape, root=root, detect_language=False)


def test_one_record_gives_many_rows_each_with_its_own_provenance(tmp_path: Path) -> None:
    """None is no row, an exception is quarantined with its name; the table shows the shape's name."""
    result = read(tmp_path)
    rows = result.kept.to_pylist()
    assert [row["row_id"] for row in rows] == ["s#1", "s#1.1"]
    assert [row["messages"][1]["content"] for row in rows] == ["A.", "B."]
    assert [(row["source"]["origin"], row["source"]["license"]) for row in rows] == [("human", "MIT")] * 2
    assert [json.loads(row["extra"]) for row in rows] == [{"note": "bug"}] * 2
    assert result.reasons() == {"no_rows": 1, "shape_failed": 1}
    assert json.loads(result.dropped.to_pylist()[1]["detail"])["error"] == "KeyError"
    assert result.metrics["shapes"] == {"ticket": 1}


def test_a_changed_function_is_read_again(tmp_path: Path) -> None:
    """In the same process, as in a notebook; and nothing is left in the folder."""
    read(tmp_path)
    changed = read(tmp_path, CODE.replace('record["subject"]', 'record["subject"] * 2'))
    assert changed.kept.to_pylist()[0]["messages"][0]["content"] == "Q?Q?"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.jsonl", "tickets.py"]


@pytest.mark.parametrize(
    ("shape", "code", "says"),
    [
        ("tickets:plain", CODE, r"tickets:plain is no shape\s+write @corpusforge.shape\(\"plain\"\)"),
        ("tickets:tiket", CODE, "has no function 'tiket'\\s+did you mean 'ticket'"),
        ("tickets:ticket", "import nothing_like_it", "tickets cannot be imported \\(ModuleNotFoundError\\)"),
        ("tickets:ticket", CODE.replace("subject", "sbject"), r"gives a row with shape tickets:ticket: shape_failed"),
        ("json:dumps", CODE, "json:dumps is no shape"),
    ],
    ids=["not decorated", "misspelt", "cannot be imported", "always fails", "of a library"],
)
def test_a_function_that_cannot_be_used_stops_the_build(tmp_path: Path, shape: str, code: str, says: str) -> None:
    records = [TICKETS[0]] if "sbject" in code else TICKETS
    with pytest.raises(SourceError, match=says):
        read(tmp_path, code, records, shape)


def test_a_project_module_never_takes_the_place_of_a_library(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(CODE)
    write_jsonl(tmp_path / "t.jsonl", TICKETS)
    with pytest.raises(SourceError, match="json cannot be imported"):
        read_with_ledger("t.jsonl", shape="json:ticket", root=tmp_path)


def test_dvc_reruns_ingest_when_the_function_changes(tmp_path: Path) -> None:
    """The module is one of the files that the stage depends on; a lock without it is stale."""
    project = make_project(tmp_path, {"t": TICKETS})
    (tmp_path / "tickets.py").write_text(CODE)
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("origin: human", "origin: human\n    shape: tickets:ticket"))
    project = Project(tmp_path)
    with pytest.raises(StaleLockError, match=r"'tickets\.py'|recorded with python"):
        methods.check(project, "ingest")
    methods.sync(project)
    methods.check(project, "ingest")
    assert methods.watched(project)["ingest"] == ["raw/t.jsonl", "tickets.py"]
    assert "tickets.py" in (tmp_path / "dvc.yaml").read_text()
