"""A source delivered again: the last version of a record stays, never two, and what went says why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.projects import chat, make_project, write_jsonl
from tests.test_licensing import edit

import corpusforge as cf
from corpusforge import graph, methods
from corpusforge.errors import RecordError
from corpusforge.io import releases
from corpusforge.shell import run_stage
from corpusforge.stages._redelivery import superseded
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

SCHEMA = dict.fromkeys(("base", "content_id", "name", "own"), pl.String)
LEDGER = dict.fromkeys(("row_id", "record_id", "source", "reason"), pl.String)
Version = tuple[str, int, str | None, str]  # delivery, record, own id, content


def source(**more: Any) -> SourceConfig:
    return SourceConfig(**{"name": "s", "path": "in", "key": "id", **more})


def gone(versions: list[Version], left_out: list[Version] = [], **more: Any) -> dict[str, tuple[str, str | None]]:  # noqa: B006
    """Record -> reason, and the record that stays in its place."""
    facts = [(f"s/{part}#{n}", content, "s", own) for part, n, own, content in versions]
    frame = pl.DataFrame(facts, schema=SCHEMA, orient="row")
    lines = [(f"s/{part}#{n}", own, "s", "excluded_by_where") for part, n, own, _ in left_out]
    ledger = pl.DataFrame(
        lines, schema=dict.fromkeys(("row_id", "record_id", "source", "reason"), pl.String), orient="row"
    )
    strict = more.pop("strict", False)
    found, figures = superseded(
        lambda: iter([frame[: len(frame) // 2], frame[len(frame) // 2 :]]), {"s": source(**more)}, ledger, strict=strict
    )
    assert figures["s"]["deleted"] == found["reason"].to_list().count("deleted_by_later")
    return {base: (why, json.loads(text).get("kept")) for base, why, text in found.iter_rows()}


TWICE: list[Version] = [
    *[("1", 1, "a", "x"), ("1", 2, "b", "y"), ("1", 3, "c", "z"), ("1", 4, None, "w")],
    *[("2", 1, "b", "new"), ("2", 2, "a", "x"), ("2", 3, "d", "v")],
]


def test_updates_replace_what_they_hold_and_leave_the_rest() -> None:
    assert gone(TWICE) == {
        "s/1#1": ("replaced_by_later", "s/2#2"),
        "s/1#2": ("replaced_by_later", "s/2#1"),
    }


def test_a_whole_delivery_deletes_what_it_lacks() -> None:
    deleted = {"s/1#3": ("deleted_by_later", None), "s/1#4": ("deleted_by_later", None)}
    assert gone(TWICE, deliveries="whole") == gone(TWICE) | deleted


def test_two_of_one_delivery_conflict_or_repeat() -> None:
    versions: list[Version] = [("1", 1, "a", "x"), ("1", 2, "a", "y"), ("1", 3, "b", "z"), ("1", 4, "b", "z")]
    assert gone(versions) == {"s/1#1": ("same_id_conflict", "s/1#2"), "s/1#3": ("repeated_id", "s/1#4")}
    with pytest.raises(RecordError, match="1 records have the id of another of the same delivery: s/1#1 and s/1#2"):
        gone(versions, strict=True)
    assert gone(versions[2:], strict=True)


@pytest.mark.parametrize("where", [("2", 9), ("3", 1)], ids=["same delivery", "a delivery of nothing else"])
def test_a_last_version_that_was_left_out_takes_the_others_with_it(where: tuple[str, int]) -> None:
    out: Version = (*where, "a", "")
    found = gone(TWICE, [out])
    assert found["s/1#1"] == ("replaced_by_later", f"s/{where[0]}#{where[1]}")
    assert "s/2#2" in found
    assert gone(TWICE, [("1", 0, "a", "")]) == gone(TWICE)


@given(
    st.lists(
        st.tuples(st.sampled_from("123"), st.none() | st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12
    ),
    st.sampled_from(["updates", "whole"]),
)
def test_of_each_id_one_stays_the_last_and_whole_is_the_last_delivery(
    said: list[tuple[str, str | None, str]], deliveries: str
) -> None:
    versions = [(part, n, own, text) for n, (part, own, text) in enumerate(sorted(said, key=lambda one: one[0]), 1)]
    found = gone(versions, deliveries=deliveries)
    left = [one for one in versions if f"s/{one[0]}#{one[1]}" not in found]
    ids = [own for _, _, own, _ in left if own is not None]
    assert len(ids) == len(set(ids))
    newest = versions[-1][0] if versions else ""
    last = {own: (part, n) for part, n, own, _ in versions if own is not None}
    expected = {(part, n) for part, n, own, _ in versions if own is None or last[own] == (part, n)}
    if deliveries == "whole":
        expected = {one for one in expected if one[0] == newest}
    assert {(part, n) for part, n, _, _ in left} == expected


def test_the_key_is_the_own_id_and_must_be_one_thing() -> None:
    assert source(key="ticket").fields == {"id": "ticket"}
    with pytest.raises(ValidationError, match="two fields"):
        source(key="ticket", fields={"id": "uid"})
    with pytest.raises(ValidationError, match="needs a `key`"):
        SourceConfig(name="s", path="in", deliveries="whole")


def deliver(project: Project, name: str, records: list[dict[str, Any]]) -> None:
    write_jsonl(
        project.root / "raw" / "support" / f"{name}.jsonl", [{"ticket": one.pop("id"), **one} for one in records]
    )


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Two deliveries of a support desk in a folder: tickets 0 to 29, then 5 to 34, of which three are changed."""
    made = make_project(tmp_path, {"support": []}, engine={"partition_rows": 7}, gate_data={"max_source_loss": 1.0})
    (tmp_path / "raw" / "support.jsonl").unlink()
    made = edit(made, "support", path="raw/support", key="ticket", deliveries="whole")
    deliver(made, "2026-11-01", [chat(n, id=n) for n in range(30)])
    deliver(made, "2026-11-08", [chat(n + 100 * (n in (7, 8, 9)), id=n) for n in range(5, 35)])
    methods.sync(made)
    return made


def test_a_folder_of_deliveries_never_leaves_both(project: Project) -> None:
    metrics = run_stage(project, "ingest")
    assert metrics["quarantine"] == {"deleted_by_later": 5, "replaced_by_later": 25}
    assert (metrics["records"], metrics["with_rows"], metrics["quarantined"]) == (60, 30, 30)
    assert metrics["redelivered"]["support"] == {
        "deliveries": 2,
        "changed": 3,
        "unchanged": 22,
        "deleted": 5,
        "conflicts": 0,
        "repeated": 0,
        "without_key": 0,
    }
    rows = project.rows("ingest", ["source"])["source"].to_pylist()
    assert sorted(int(one["record_id"]) for one in rows) == list(range(5, 35))
    line = next(one for one in project.ledger("ingest").to_pylist() if one["record_id"] == "7")
    assert json.loads(line["detail"])["kept"] == "support/2026-11-08.jsonl#3"


def test_reading_a_folder_in_memory_does_the_same(project: Project) -> None:
    result = cf.ingest(str(project.root / "raw" / "support"), {"key": "ticket"})
    assert result.reasons() == {"replaced_by_later": 25}
    assert result.kept.num_rows == 35


def test_diff_says_which_ids_came_went_and_changed(project: Project) -> None:
    """Row ids name the file, so every row of a new delivery would be another; own ids are the same."""
    for stage in graph.DATA:
        run_stage(project, stage)
    first = releases.publish(project)
    deliver(project, "2026-11-15", [chat(n + 200 * (n == 20), id=n) for n in range(10, 36)])
    for stage in graph.DATA:
        run_stage(project, stage)
    found = cf.diff(first.path, project.root)
    assert (found.added, found.changed) == (["support:35"], ["support:20"])
    assert found.removed == sorted(f"support:{n}" for n in range(5, 10))
    assert found.reasons == {"ingest deleted_by_later": 5}
