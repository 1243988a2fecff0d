"""Every try is counted once, and the tasks that are chosen are those that can still be mixed."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import CountError
from corpusforge.train.rollout import ATTEMPTS, OUTCOMES, REASONS, RolloutConfig, figures, judge, rollout

TRIES = st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=12), max_size=20)
CONFIG = RolloutConfig()


def tasks(count):
    names = [f"t{number}" for number in range(count)]
    columns = dict.fromkeys(("row_id", "content_id", "record_id"), names)
    columns |= {"source": [f"s{number % 2}" for number in range(count)], "verifier_kind": ["numeric"] * count}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def tried(*tries, **options):
    return rollout(tasks(len(tries)), tries, RolloutConfig(**options))


def reasons(*tries, **options):
    return tried(*tries, **options)["reason"].to_pylist()


@given(TRIES)
def test_every_try_is_a_pass_a_fail_or_undecided(tries):
    table = tried(*tries)
    assert table.schema == ATTEMPTS
    for line, outcomes in zip(table.to_pylist(), tries, strict=True):
        assert line["passes"] == outcomes.count("pass")
        assert line["attempts"] - line["passes"] == outcomes.count("fail")
        assert line["attempts"] + line["undecided"] == len(outcomes)


@given(TRIES)
def test_a_task_is_chosen_or_has_the_reason_why_not(tries):
    for line in tried(*tries).to_pylist():
        assert line["chosen"] == (line["reason"] is None)
        assert line["reason"] in (None, *REASONS)
        assert not line["chosen"] or line["mixed"] >= CONFIG.min_mixed
        assert line["reason"] != "solved" or 2 * line["passes"] >= line["attempts"] > 0
        assert line["reason"] != "unsolved" or 2 * line["passes"] < line["attempts"]


@given(TRIES)
def test_figures_add_up_over_sources_and_reasons(tries):
    found = figures(tried(*tries))
    for name in ("tasks", "tried", "attempts", "passes", "undecided", "chosen"):
        assert found[name] == sum(source[name] for source in found["by_source"].values())
    assert found["chosen"] + sum(found["reasons"].values()) == found["tasks"] == len(tries)
    assert found["attempts"] + found["undecided"] == sum(map(len, tries))
    assert found["pass_rate"] is None or 0 <= found["low"] <= found["pass_rate"] <= found["high"] <= 1


@given(st.integers(0, 8))
def test_of_eight_tries_those_with_both_outcomes_are_chosen_by_default(passes):
    found = reasons(["pass"] * passes + ["fail"] * (8 - passes))
    assert found == ["unsolved" if passes == 0 else "solved" if passes == 8 else None]


def test_few_tries_prove_nothing_and_many_do():
    assert reasons(["pass"] * 2, ["fail"] * 2, ["pass"] * 16, ["fail"] * 16) == [None, None, "solved", "unsolved"]


def test_a_task_that_is_mostly_undecided_is_not_chosen():
    mostly, half, all_of_it = ["undecided"] * 5 + ["pass", "fail"], ["undecided", "pass"], ["undecided"] * 4
    assert reasons(mostly, half, all_of_it) == ["undecided", None, "undecided"]


def test_a_task_that_was_not_tried_is_not_chosen_even_when_anything_goes():
    assert reasons([], ["fail"], min_mixed=0) == ["not_tried", None]


@given(st.integers(0, 20), st.integers(0, 20), st.integers(2, 32))
def test_passes_and_fails_count_alike(passes, fails, group):
    mixed, _ = judge(np.array([passes, fails]), np.array([passes + fails] * 2), np.zeros(2), 0.3, group)
    assert mixed[0] == pytest.approx(mixed[1])


@given(st.integers(0, 16), st.floats(0, 1), st.floats(0, 1))
def test_a_higher_threshold_never_chooses_more(passes, one, other):
    task = ["pass"] * passes + ["fail"] * (16 - passes)
    low, high = sorted((one, other))
    assert tried(task, min_mixed=high)["chosen"][0].as_py() <= tried(task, min_mixed=low)["chosen"][0].as_py()


def test_model_and_sampling_are_written_down():
    table = rollout(tasks(1), [["pass"]], CONFIG, model="9f0c", sampling={"temperature": 1.0, "attempts": 1})
    assert table["model"].to_pylist() == ["9f0c"]
    assert json.loads(table["sampling"][0].as_py()) == {"attempts": 1, "temperature": 1.0}


@pytest.mark.parametrize("tries", [[], [["pass", "maybe"]]])
def test_what_cannot_be_counted_is_refused(tries):
    with pytest.raises(CountError, match="outcomes"):
        rollout(tasks(1), tries, CONFIG)
