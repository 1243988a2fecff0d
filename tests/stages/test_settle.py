"""What states stricter terms than the build accepts goes, with its reason; all else stays."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.projects import make_project
from tests.rows import row, table

from corpusforge.errors import SourceError
from corpusforge.io.memory import read_records
from corpusforge.licences import NEEDS_ALLOWING, RESTRICTIONS
from corpusforge.shell import run_stage
from corpusforge.stages._policy import Policy, Terms, check_allowed
from corpusforge.stages._settle import all_accepted, refused, settle
from corpusforge.stages.ingest import SourceConfig


def source(**more: Any) -> SourceConfig:
    return SourceConfig(**{"name": "test", "path": "x.jsonl", "license": "MIT", **more})


def terms(policy: dict[str, Any] | None = None, **more: Any) -> Terms:
    return check_allowed([source(**more)], policy=Policy(**(policy or {})))


def reasons(rows: pa.Table, accepted: Terms) -> dict[str, tuple[str, list[str]]]:
    """Record -> reason and what was refused."""
    found = refused(rows, accepted)
    return {base: (why, json.loads(text)["refused"]) for base, why, text in found.iter_rows()}


NC = {"license": "CC-BY-NC-4.0"}
OPEN: dict[str, Any] = {"license": "unknown"}  # a source that declares nothing
BY_POLICY = "denied_by_policy"


@pytest.mark.parametrize(
    ("row_says", "params_say", "found"),
    [
        ({}, {}, None),
        ({"restrictions": ["no-train"]}, {}, ("restricted", ["no-train"])),
        ({"restrictions": ["no-train"]}, {"allow": ["no-train"]}, None),
        ({"restrictions": ["no-train"]}, {"license": "unknown"}, ("restricted", ["no-train"])),
        ({"restrictions": ["non-commercial"]}, {}, ("restricted", ["non-commercial"])),
        ({"restrictions": ["non-commercial"]}, {"restrictions": ["non-commercial"]}, None),
        ({"restrictions": ["non-commercial"]}, {"license": "CC-BY-NC-4.0"}, None),
        ({"restrictions": ["non-commercial"]}, {"license": "unknown"}, None),
        (NC, {**OPEN, "policy": {"deny": ["*-nc-*"]}}, (BY_POLICY, ["*-nc-*"])),
        ({"license": "MIT OR CC-BY-NC-4.0"}, {**OPEN, "policy": {"deny": ["*-NC-*"]}}, None),
        ({"license": "GPL-3.0-only"}, {**OPEN, "policy": {"allow": ["MIT"]}}, (BY_POLICY, ["not allowed"])),
        (OPEN, {**OPEN, "policy": {"allow": ["MIT"]}}, None),
        (OPEN, {**OPEN, "policy": {"unknown": "drop"}}, ("unknown_licence", [])),
        (OPEN, {**OPEN, "policy": {"deny": ["unknown"]}}, ("unknown_licence", [])),
        ({"restrictions": ["consent"]}, {**OPEN, "policy": {"deny": ["consent"]}}, (BY_POLICY, ["consent"])),
    ],
)  # fmt: skip
def test_a_row_is_judged_by_its_own_terms(
    row_says: dict[str, Any], params_say: dict[str, Any], found: tuple[str, list[str]] | None
) -> None:
    rows = table([row(1, "plain"), row(2, "other", **row_says)])
    accepted = terms(**params_say)
    hit = reasons(rows, accepted)
    assert hit.get("test#2") == found
    assert all_accepted(rows["source"], accepted) == (not hit)


def test_unknown_licences_can_fail_the_build() -> None:
    with pytest.raises(SourceError, match="2 rows have no licence that is known"):
        refused(table([row(1, "a", license="unknown"), row(2, "b", license="unknown")]), terms({"unknown": "fail"}))


def test_a_source_that_policy_refuses_stops_before_anything_runs() -> None:
    with pytest.raises(SourceError, match=r"is under GPL-3\.0-only, which ingest\.policy\.deny refuses"):
        terms({"deny": ["GPL-*"]}, license="GPL-3.0-only")
    with pytest.raises(SourceError, match=r"ingest\.policy\.allow does not name"):
        terms({"allow": ["Apache-2.0"]})
    with pytest.raises(SourceError, match=r"non-commercial[\s\S]*allow: \[non-commercial\]"):
        terms({"deny": ["non-commercial"]}, license="CC-BY-NC-4.0")


@pytest.mark.parametrize("deny", ["mitt", "*-foo-*", "no-trian"])
def test_a_misspelt_prohibition_is_refused(deny: str) -> None:
    with pytest.raises(ValidationError, match="SPDX"):
        Policy(deny=[deny])


def test_a_record_goes_with_all_its_rows_and_one_line() -> None:
    rows = table([row(1, "a"), row(2, "b"), {**row(2, "c"), "row_id": "test#2.1"}, row(21, "d")])
    gone = refused(table([row(2, "b", restrictions=["no-train"])]), terms())
    settled = settle(rows, gone)
    assert settled.kept["row_id"].to_pylist() == ["test#1", "test#21"]
    assert settled.gone["row_id"].to_pylist() == ["test#2", "test#2.1"] == settled.strict["row_id"].to_pylist()
    assert settled.lines["row_id"].to_pylist() == ["test#2"]
    assert json.loads(settled.lines["detail"][0].as_py())["record"] == 2


WORDS = st.lists(st.sampled_from(sorted(RESTRICTIONS)), max_size=3, unique=True)
NAMES = st.sampled_from(["MIT", "CC-BY-NC-4.0", "CC-BY-SA-4.0", "unknown", "MIT AND CC-BY-4.0"])


@given(st.lists(st.tuples(NAMES, WORDS), max_size=20), WORDS, st.sampled_from(["MIT", "unknown"]))
def test_every_row_stays_or_has_a_line_and_what_stays_is_accepted(
    said: list[tuple[str, list[str]]], allow: list[str], declared: str
) -> None:
    rows = table([row(n, str(n), license=name, restrictions=words) for n, (name, words) in enumerate(said, 1)])
    accepted = terms(allow=allow, license=declared)
    settled = settle(rows, refused(rows, accepted))
    assert sorted([*settled.kept["row_id"].to_pylist(), *settled.lines["row_id"].to_pylist()]) == sorted(
        rows["row_id"].to_pylist()
    )
    for one in settled.kept["source"].to_pylist():
        assert not set(one["restrictions"]) & set(NEEDS_ALLOWING) - set(allow)


def test_reading_in_memory_refuses_as_a_build_does() -> None:
    said = [{"id": "a", "text": "x", "license": "mit"}, {"id": "b", "text": "y", "license": "cc-by-nc-4.0"}]
    result = read_records(said, policy={"deny": ["*-NC-*"]})
    assert [(line["record_id"], line["reason"]) for line in result.dropped.to_pylist()] == [("b", "denied_by_policy")]
    assert (result.metrics["rows"], result.metrics["quarantined"], result.metrics["records"]) == (1, 1, 2)


def test_a_build_quarantines_restricted_rows_and_lays_them_aside(tmp_path) -> None:
    said = [
        {"id": f"r{n}", "text": f"text {n}", **({"restrictions": "not for training"} if n % 3 == 0 else {})}
        for n in range(30)
    ]
    project = make_project(tmp_path, {"talk": said}, engine={"partition_rows": 4})
    metrics = run_stage(project, "ingest")
    assert (metrics["records"], metrics["with_rows"], metrics["quarantined"], metrics["rows"]) == (30, 20, 10, 20)
    reasons, kinds = {"restricted": 10}, {"sft": 20}
    assert metrics["sources"]["talk"] == {
        "records": 30, "with_rows": 20, "quarantined": 10, "rows": 20, "reasons": reasons, "kinds": kinds,
    }  # fmt: skip
    assert metrics["quarantine"] == {"restricted": 10}
    assert sum(metrics["domains"].values()) == 20
    ledger = project.ledger("ingest")
    assert ledger["record_id"].to_pylist() == [f"r{n}" for n in range(0, 30, 3)]
    assert set(ledger["reason"].to_pylist()) == {"restricted"}
    assert project.rows("ingest").num_rows == 20
    laid = pa.concat_tables([pq.read_table(p) for p in sorted((tmp_path / "data/ingest/refused").iterdir())])
    assert laid["row_id"].to_pylist() == ledger["row_id"].to_pylist()


def test_a_build_of_which_nothing_is_accepted_is_an_empty_one(tmp_path) -> None:
    said = [{"id": f"r{n}", "text": f"text {n}", "restrictions": ["no-train"]} for n in range(9)]
    project = make_project(tmp_path, {"talk": said}, engine={"partition_rows": 2})
    assert run_stage(project, "ingest")["quarantined"] == 9
    assert run_stage(project, "dedupe")["in"] == 0
