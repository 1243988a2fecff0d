"""What a record was made from, however it says so: what is forgotten takes its descendants with it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from corpusforge.stages._record import Record
from corpusforge.stages.ingest import SourceConfig, ingest


def parents(said: Any, **fields: str) -> tuple[list[str], int]:
    """Parents of the row of a record that says `said`, and how many of them a note calls unread."""
    config = SourceConfig.model_validate({"name": "s", "path": "a", "license": "MIT", "fields": fields})
    record = {"prompt": "a", "completion": "b", "made": {"of": said}} if fields else {"prompt": "a", "completion": "b"}
    value = record if fields else {**record, "parents": said}
    made = ingest([Record(1, value, "a", 1, None)], config, detect_language=False)
    (row,) = made.kept.to_pylist()
    noted = [json.loads(one["detail"]) for one in made.changes.to_pylist() if one["reason"] == "parent_unread"]
    return row["source"]["parents"], sum(one["count"] for one in noted)


CASES = [
    ("u1", ["u1"], 0),
    (7, ["7"], 0),
    (7.0, ["7"], 0),
    (" u1 ", ["u1"], 0),
    ('["u1", 2]', ["u1", "2"], 0),
    (["u1", None, {"id": "u2"}, ["u3"], True, 0.5, "u4\n"], ["u1", "u4"], 5),
    ('{"id": "u1"}', [], 1),
    (True, [], 1),
    (["", "u1"], ["u1"], 0),
    ("", [], 0),
    (None, [], 0),
]


@pytest.mark.parametrize(("said", "read", "unread"), CASES)
def test_parents_are_read_one_by_one(said: Any, read: list[str], unread: int) -> None:
    assert parents(said) == (read, unread)


@pytest.mark.parametrize(("said", "read", "unread"), CASES)
def test_a_mapped_field_is_read_alike(said: Any, read: list[str], unread: int) -> None:
    assert parents(said, parents="made.of") == (read, unread)
