"""The data gate as a function of a report, a manifest, a baseline and what was looked up."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.stages.test_report import AFTER, BEFORE, counts, facts

from corpusforge.config import parse_params
from corpusforge.errors import ConfigError
from corpusforge.stages.gate_data import Evidence, GateDataConfig, Verdict, baseline_of, gate_data
from corpusforge.stages.report import report as report_of

MANIFEST = {"build": "b1", "shards": [{"rows": 9}]}


def report(**changes: Any) -> dict[str, Any]:
    return report_of(facts(**changes))


def judge(
    found: dict[str, Any] | None = None, accepted: dict[str, Any] | None = None, evidence: Any = None, **options: Any
) -> Verdict:
    """The verdict; further keyword arguments are the gate's options."""
    config = GateDataConfig.model_validate(options)
    return gate_data(found or report(), MANIFEST, accepted or {}, config, evidence)


def failed(verdict: Verdict) -> list[str]:
    return [check.name for check in verdict.failed]


def test_a_good_build_passes_every_check() -> None:
    verdict = judge()
    assert verdict.passed
    assert len(verdict.checks) > 10


def test_a_stage_that_drops_most_rows_fails_with_found_and_limit() -> None:
    metrics = {**facts().metrics, "dedupe": counts(10, 8)}
    drops = [{"stage": "dedupe", "source": "a", "reason": "near_duplicate", "rows": 8}]
    check = next(c for c in judge(report(metrics=metrics, drops=drops)).failed if c.name == "loss.dedupe")
    assert (check.found, check.limit, check.says) == (0.8, 0.3, "dedupe dropped 8 of 10 rows")


def test_params_move_a_limit() -> None:
    assert "loss.dedupe" in failed(judge(max_loss={"dedupe": 0.1}))
    assert "loss.dedupe" not in failed(judge(max_loss={"dedupe": 0.2}))


def test_a_limit_for_a_stage_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"params.yaml:3: gate_data.max_loss: no such stage: dedup;"):
        parse_params("ingest: {sources: []}\ngate_data:\n  max_loss: {dedup: 0.1}\n")


def test_records_left_out_on_purpose_are_no_loss() -> None:
    drops = [{"stage": "ingest", "source": "a", "reason": "excluded_by_where", "rows": 90}]
    ingest = {"records": 100, "with_rows": 10, "quarantined": 90, "rows": 10}
    metrics = {**facts().metrics, "ingest": {**ingest, "sources": {"a": ingest}}}
    assert "loss.ingest" not in failed(judge(report(metrics=metrics, drops=drops)))


def test_a_stage_that_drops_most_of_one_source_fails() -> None:
    drops = [{"stage": "dedupe", "source": "a", "reason": "near_duplicate", "rows": 8}]
    found = report(metrics={**facts().metrics, "dedupe": counts(10, 8)}, drops=drops)
    assert "source_loss.a" in failed(judge(found))
    assert "source_loss.a" not in failed(judge(found, source_loss={"a": 0.9}))


def test_counts_that_do_not_add_up_fail() -> None:
    assert failed(judge(report(metrics={**facts().metrics, "grade": counts(9, 0)}))) == ["counts"]


def test_a_shard_that_changed_on_disk_fails() -> None:
    assert failed(judge(evidence=Evidence(damaged=["sft/train-00000-of-00001.parquet"]))) == ["shards_intact"]


def test_a_report_of_another_build_fails() -> None:
    assert failed(judge(report() | {"build": "b0"})) == ["same_build"]


def test_a_leak_found_in_the_shards_fails_and_names_the_row() -> None:
    verdict = judge(evidence=Evidence(leaks={"exam": ["a#4"], "other": []}))
    assert failed(verdict) == ["contamination"]
    assert "exam in a#4" in verdict.failed[0].says


def test_no_train_rows_fail_even_where_ingest_allowed_them() -> None:
    found = report(after=[AFTER | {"restrictions": "no-train", "rows": 8, "copies": 9, "tokens": 9}])
    allowed = Evidence(allowed={"a": ["no-train"]})
    assert failed(judge(found, evidence=allowed)) == ["restriction.a.no-train"]
    assert judge(found, evidence=allowed, licences={"forbid": []}).passed
    assert failed(judge(found, licences={"forbid": []})) == ["restriction.a.no-train"]


def test_provider_terms_pass_only_where_params_allow_them_by_name() -> None:
    found = report(after=[AFTER | {"restrictions": "provider-terms", "rows": 8, "copies": 9, "tokens": 9}])
    assert failed(judge(found)) == ["restriction.a.provider-terms"]
    assert judge(found, evidence=Evidence(allowed={"a": ["provider-terms"]})).passed


def test_a_denied_licence_and_an_unknown_one_fail_when_told_to() -> None:
    licences = [("CC-BY-NC-4.0", 4), ("unknown", 5)]
    found = report(after=[AFTER | {"license": name, "rows": 4, "copies": n, "tokens": 9} for name, n in licences])
    assert judge(found).passed
    limits = {"deny": ["*-NC-*"], "refuse_unknown": True}
    assert failed(judge(found, licences=limits)) == ["licence_denied", "licence_unknown"]


def test_the_synthetic_share_has_a_limit() -> None:
    after = [AFTER | {"origin": o, "rows": 4, "copies": n, "tokens": 9} for o, n in (("human", 5), ("synthetic", 4))]
    found = report(after=after)
    assert failed(judge(found, max_synthetic=0.4)) == ["synthetic_share"]
    assert judge(found, max_synthetic=0.5).passed


def baseline(**changes: Any) -> dict[str, Any]:
    return baseline_of(report()) | changes


def test_the_accepted_build_passes_against_itself() -> None:
    assert judge(accepted=baseline()).passed


@pytest.mark.parametrize("rows", [30, 1000])
def test_a_source_that_lost_70_percent_of_its_accepted_rows_fails(rows: int) -> None:
    checks = judge(accepted=baseline(sources={"a": rows})).failed
    assert [check.name for check in checks] == ["baseline.source.a"]
    assert checks[0].found == pytest.approx(1 - 9 / rows, abs=1e-6)


def test_a_source_that_is_gone_fails_unless_that_was_meant() -> None:
    before = baseline(sources={"a": 9, "gone": 1})
    assert failed(judge(accepted=before)) == ["baseline.source.gone"]
    assert judge(accepted=before, baseline={"removed_sources": ["gone"]}).passed


def test_rows_of_a_source_taken_out_on_purpose_are_not_missed_in_the_total() -> None:
    before = baseline(rows=99, sources={"a": 9, "gone": 90})
    assert failed(judge(accepted=before)) == ["baseline.rows", "baseline.source.gone"]
    assert judge(accepted=before, baseline={"removed_sources": ["gone"]}).passed


def test_drift_of_origins_rows_and_benchmarks_fails() -> None:
    before = baseline(rows=20, origins={"human": 5, "synthetic": 5}, benchmarks=["exam", "finals"])
    assert failed(judge(accepted=before)) == ["baseline.rows", "baseline.synthetic_share", "baseline.benchmarks"]


def test_homogenisation_is_compared_only_over_equally_many_words() -> None:
    richer = {"all": {"words": 100, "distinct_2": 1.2}}
    assert failed(judge(accepted=baseline(diversity=richer))) == ["baseline.diversity.all"]
    longer = {"all": {"words": 120, "distinct_2": 1.2}}
    assert judge(accepted=baseline(diversity=longer)).passed


@given(st.integers(0, 200), st.floats(0, 1))
def test_a_verdict_is_no_exactly_when_a_loss_is_above_its_limit(lost: int, limit: float) -> None:
    base = copy.deepcopy(REPORT)
    entry = next(stage for stage in base["stages"] if stage["stage"] == "filter")
    entry |= {"in": 200, "dropped": lost}
    verdict = judge(base, max_loss={"filter": limit})
    assert ("loss.filter" in failed(verdict)) == (lost / 200 > limit)


REPORT = report_of(facts(before=[BEFORE | {"rows": 10}]))
