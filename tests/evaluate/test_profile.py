"""Figures of models, tests between them, and the table."""

from __future__ import annotations

import json

import pytest
from tests.evaluate.made import results

from corpusforge.evaluate.profile import evaluation_table, figures, profile
from corpusforge.evaluate.results import Results
from corpusforge.evaluate.statistics import wilson

SMALL = Results(
    heldout={"a": (1, 2), "b": (2, 2), "c": (0, 0)},
    greedy={"a": (1, 1), "b": (1, 1)},
    loss={"r1": 1.0, "r2": 2.0},
    margin={"p1": 1.0, "p2": 0.0, "p3": -2.0, "p4": 3.0},
    undecided=2,
)


def test_a_profile_has_rates_over_tasks_and_means_over_rows_and_pairs():
    found = profile(SMALL)
    assert (found["pass_rate"], found["attempts"], found["tasks"], found["undecided"]) == (0.75, 4, 2, 2)
    assert (found["preference_accuracy"], found["heldout_loss"]) == (0.625, 1.5)
    assert found["greedy"]["pass_rate"] == 1.0
    assert found["greedy"]["low"] == pytest.approx(wilson(2, 2).low, abs=1e-6)


def test_what_was_not_measured_is_null_and_never_zero():
    found = profile(Results())
    assert [found[name] for name in ("pass_rate", "low", "preference_accuracy", "heldout_loss")] == [None] * 4
    assert found["legacy"]["pass_rate"] is None


def test_each_model_is_tested_against_the_one_it_started_from():
    found = figures(
        {"base": results(0.1), "sft": results(0.5, seed=1), "grpo": results(0.7, seed=2), "raw": results(0.4)}
    )
    assert list(found["models"]) == ["base", "sft", "grpo"]
    assert list(found["tests"]) == ["sft_vs_base", "grpo_vs_sft", "curated_vs_raw"]
    better = found["tests"]["sft_vs_base"]["pass_rate"]
    assert better["low"] > 0
    assert (better["p_value"], better["n"]) == (pytest.approx(0, abs=1e-3), 100)
    assert found["curation"]["curated"] == found["models"]["sft"]


def test_without_a_model_from_raw_rows_there_is_no_curation():
    found = figures({"base": SMALL, "sft": SMALL})
    assert "curation" not in found
    assert found["tests"]["sft_vs_base"]["legacy"] is None
    assert found["tests"]["sft_vs_base"]["pass_rate"]["p_value"] == 1.0


def test_the_order_of_models_and_tasks_changes_nothing():
    models = {"base": results(0.2), "sft": results(0.5, seed=1), "dpo": results(0.6, seed=2)}
    turned = {name: models[name] for name in reversed(models)}
    turned = {
        name: Results(**{key: dict(reversed(value.items())) for key, value in vars(one).items() if key != "undecided"})
        for name, one in turned.items()
    }
    one, two = (json.dumps(figures(given), sort_keys=True) for given in (models, turned))
    assert one == two


def test_the_table_has_a_row_per_model_and_raw_against_curated():
    found = figures({"grpo": SMALL, "sft": SMALL, "base": Results(), "raw": SMALL})
    found |= {"conditions": {"temperature": 0.7}, "left_out": {"tasks_seen_in_training": 3}, "tasks": 2}
    shown = evaluation_table(found)
    models, tests, curation = shown.blocks
    assert [row[0] for row in models.rows] == ["base", "sft", "grpo"]
    assert models.rows[0][1:] == ["-"] * 5
    assert models.rows[1][2].startswith("0.750 (")
    assert "pass rate T=0.7" in models.columns
    assert models.note == "In brackets: 95% intervals. Left out: 3 tasks seen in training."
    assert [row[0] for row in curation.rows] == ["raw", "curated"]
    assert len(tests.rows) > 0
    assert "grpo vs sft" in str(shown)


def test_a_p_value_that_rounds_to_nothing_is_never_shown_as_zero():
    found = figures({"base": results(0.02, tasks=150), "sft": results(0.98, tasks=150, loss=0.1, seed=1)})
    table = evaluation_table(found).blocks[1]
    shown = [row[table.columns.index("p")] for row in table.rows]
    assert "<1e-06" in shown
    assert "0" not in shown
