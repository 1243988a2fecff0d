"""Intervals of pass rates, pass@k, and which tasks a group of attempts can teach from."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corpusforge.errors import ConfigError
from corpusforge.evaluate.statistics import (
    attempt_variance,
    fractions,
    mixed_probability,
    pass_at_k,
    pass_rate_interval,
    wilson,
)

TASKS = st.lists(st.integers(0, 9).flatmap(lambda k: st.tuples(st.integers(0, k), st.just(k))), min_size=1, max_size=30)


@given(st.integers(0, 50), st.integers(0, 50), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_what_scipy_computes(passes, fails, level):
    attempts = passes + fails
    if not attempts:
        assert wilson(0, 0, level) == (0, 1)
        return
    expected = stats.binomtest(passes, attempts).proportion_ci(level, method="wilson")
    assert wilson(passes, attempts, level) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(TASKS)
def test_an_interval_holds_its_rate_and_stays_within_0_and_1(tasks):
    rate = pass_rate_interval(*zip(*tasks, strict=True))
    if rate.value is None:
        assert (rate.low, rate.high, rate.attempts) == (0, 1, 0)
        return
    assert 0 <= rate.low <= rate.value <= rate.high <= 1
    assert rate.high - rate.low > 0
    assert rate.tasks <= rate.effective <= rate.attempts


@given(TASKS, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(tasks, random):
    mixed = random.sample(tasks, len(tasks))
    assert pass_rate_interval(*zip(*tasks, strict=True)) == pass_rate_interval(*zip(*mixed, strict=True))


@given(st.lists(st.integers(0, 1), min_size=1, max_size=40))
def test_with_one_attempt_per_task_the_interval_is_wilsons(passes):
    rate = pass_rate_interval(passes, [1] * len(passes))
    assert (rate.low, rate.high) == pytest.approx(wilson(sum(passes), len(passes)), abs=1e-9)


def test_tasks_that_are_all_alike_count_once_each():
    rate = pass_rate_interval([1] * 7, [3] * 7)
    assert rate.effective == 7
    assert (rate.low, rate.high) == pytest.approx(wilson(7 / 3, 7))


def test_tasks_that_always_or_never_pass_count_once_each():
    repeated = pass_rate_interval([8] * 6 + [0] * 4, [8] * 10)
    once = pass_rate_interval([1] * 6 + [0] * 4, [1] * 10)
    assert (repeated.low, repeated.high, repeated.effective) == (once.low, once.high, 10)


@pytest.mark.parametrize(
    ("tasks", "attempts", "beta"), [(50, 4, (0.3, 0.3)), (50, 4, (5000, 500)), (20, 8, (9.8, 0.2)), (20, 1, (2, 2))]
)
def test_a_95_percent_interval_covers_the_rate_about_as_often(tasks, attempts, beta):
    rng, truth, inside = np.random.default_rng(5), beta[0] / sum(beta), 0
    for _ in range(400):
        rate = pass_rate_interval(rng.binomial(attempts, rng.beta(*beta, tasks)), [attempts] * tasks)
        inside += rate.low <= truth <= rate.high
    assert inside / 400 > 0.91


def test_an_undecided_task_has_no_value_and_does_not_count():
    assert np.isnan(fractions([0, 1], [0, 2])).tolist() == [True, False]
    assert pass_rate_interval([3, 0, 1], [4, 0, 4]) == pass_rate_interval([3, 1], [4, 4])


@given(st.integers(0, 6), st.integers(0, 6), st.integers(1, 7))
def test_pass_at_k_is_the_share_of_subsets_with_a_pass(passes, fails, k):
    outcomes = [True] * passes + [False] * fails
    found = pass_at_k([passes], [len(outcomes)], k)[0]
    if k > len(outcomes):
        assert np.isnan(found)
    else:
        assert found == pytest.approx(np.mean([any(chosen) for chosen in combinations(outcomes, k)]))


@settings(max_examples=25)
@given(st.integers(0, 8), st.integers(0, 8), st.integers(1, 16))
def test_mixed_probability_is_the_beta_binomials(passes, fails, group):
    alike = stats.betabinom(group, 0.5 + passes, 0.5 + fails).pmf([0, group]).sum() if group > 1 else 1
    assert mixed_probability([passes], [passes + fails], group)[0] == pytest.approx(1 - alike, abs=1e-9)


def test_a_task_that_passes_half_the_time_teaches_most_and_an_unknown_one_more_than_a_hopeless_one():
    hopeless, unknown, half = mixed_probability([0, 0, 8], [16, 0, 16], 8)
    assert hopeless < unknown < half


def test_attempt_variance_is_what_repeating_the_attempts_shows():
    rng = np.random.default_rng(3)
    rates = rng.beta(0.5, 0.5, 40)
    passes = rng.binomial(4, rates, (4_000, 40))
    estimated = np.mean([attempt_variance(row, [4] * 40) for row in passes[:500]])
    assert estimated == pytest.approx(np.var(passes.mean(axis=1) / 4), rel=0.1)


@pytest.mark.parametrize(("passes", "attempts"), [([3], [2]), ([-1], [2]), ([1, 1], [2]), ([float("nan")], [2])])
def test_impossible_counts_are_refused(passes, attempts):
    with pytest.raises(ConfigError, match="expected"):
        fractions(passes, attempts)


def test_the_variance_of_attempts_needs_a_task_with_two():
    with pytest.raises(ConfigError, match="no task with two decided attempts"):
        attempt_variance([1, 0], [1, 1])
