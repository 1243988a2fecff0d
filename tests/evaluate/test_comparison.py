"""Comparing two models: permutation tests, the gate's rule with its stated error rates, several measures at once."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from corpusforge.errors import ConfigError
from corpusforge.evaluate import comparison
from corpusforge.evaluate.comparison import (
    SeedSd,
    Sensitivity,
    estimate_seed_sd,
    holm,
    holm_adjusted,
    matched,
    noninferiority,
    paired_test,
)
from corpusforge.evaluate.statistics import attempt_variance, pass_rate_interval

K = 4
PAIRS = st.lists(st.tuples(st.integers(0, K), st.integers(0, K)), min_size=2, max_size=25).map(
    lambda pairs: (np.array(pairs) / K).T
)


@given(PAIRS)
def test_exchanging_the_models_turns_the_sign_and_nothing_else(pairs):
    there, back = paired_test(*pairs), paired_test(*pairs[::-1])
    assert (back.difference, back.low, back.high) == (-there.difference, -there.high, -there.low)
    assert (back.p_value, back.n, back.method) == (there.p_value, there.n, there.method)


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_tasks_does_not_matter(pairs, random):
    mixed = pairs[:, random.sample(range(pairs.shape[1]), pairs.shape[1])]
    assert paired_test(*mixed) == paired_test(*pairs)
    assert noninferiority(*mixed, 0.02) == noninferiority(*pairs, 0.02)


@settings(max_examples=25)
@given(st.lists(st.integers(-9, 9), min_size=2, max_size=8))
def test_few_differences_get_the_p_value_of_all_signs(differences):
    d = np.array(differences, float)
    sums = [abs(np.dot(signs, d)) for signs in product([-1, 1], repeat=len(d))]
    found = paired_test(d, np.zeros(len(d)), kind="loss")
    assert found.p_value == pytest.approx(np.mean(np.array(sums) >= abs(d.sum()) - 1e-9))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(2, 5))
def test_right_and_wrong_give_mcnemars_exact_test(better, worse, same):
    a, b = [1] * better + [0] * worse + [1] * same, [0] * better + [1] * worse + [1] * same
    expected = stats.binomtest(better, better + worse).pvalue if better + worse else 1
    assert paired_test(a, b).p_value == pytest.approx(expected)


def test_p_values_of_equal_models_are_uniform():
    rng = np.random.default_rng(11)
    p_values = [paired_test(*rng.standard_t(4, (2, 30)), kind="loss").p_value for _ in range(200)]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


def test_a_shift_is_found():
    rng = np.random.default_rng(12)
    loss = rng.normal(2, 0.5, 200)
    found = paired_test(loss + rng.normal(0.05, 0.1, 200), loss, kind="loss")
    assert found.p_value < 0.001
    assert 0.02 < found.low < found.difference < found.high < 0.08


def test_draws_in_blocks_are_the_draws_at_once(monkeypatch):
    a, b = np.random.default_rng(13).normal(size=(2, 16))
    once = paired_test(a, b, kind="loss")
    monkeypatch.setattr(comparison, "BLOCK", 16 * 1_000)
    assert paired_test(a, b, kind="loss") == once


def test_models_that_never_differed_are_not_known_to_be_equal():
    found = paired_test(np.ones(20), np.ones(20))
    assert found.low < 0 < found.high
    assert found.p_value == 1


def attempts_of(rates, rng):
    """Pass fractions of K attempts on tasks with these rates."""
    return rng.binomial(K, rates) / K


def retrained(tasks, drop, sd, rng):
    """Task rates of a retraining: all of them moved by the drop and by the luck of the seed."""
    return np.clip(tasks - drop + sd * rng.normal(), 0, 1)


def stopped(drop, *, margin, sd=0.0, tasks=100, runs=1_500, believed=None):
    """How often the gate stops a candidate of this drop, and how often it said that it would."""
    rng, stops, stated = np.random.default_rng(21), 0, 0.0
    for _ in range(runs):
        truth = rng.uniform(0.3, 0.8, tasks)
        new, old = (attempts_of(retrained(truth, by, sd, rng), rng) for by in (drop, 0))
        verdict = noninferiority(new, old, margin, seed_sd=sd if believed is None else believed)
        stops += not verdict.passed
        stated += verdict.sensitivity.power(drop)
    return stops / runs, stated / runs


@pytest.mark.parametrize("margin", [0.0, 0.05])
@pytest.mark.parametrize("sd", [0.0, 0.03])
def test_a_drop_of_the_margin_raises_a_false_alarm_as_often_as_alpha_says(margin, sd):
    assert 0.03 < stopped(margin, margin=margin, sd=sd)[0] < 0.068


def test_without_the_noise_of_seeds_the_gate_would_cry_wolf():
    assert stopped(0.0, margin=0.0, sd=0.03, believed=0.0)[0] > 2 * 0.05


@pytest.mark.parametrize(("drop", "sd"), [(0.06, 0.0), (0.1, 0.0), (0.1, 0.03), (0.2, 0.03)])
def test_a_drop_is_found_as_often_as_stated(drop, sd):
    found, stated = stopped(drop, margin=0.02, sd=sd)
    assert found == pytest.approx(stated, abs=0.05)


def test_a_drop_planned_from_one_model_is_found_four_times_in_five():
    rng, found = np.random.default_rng(23), 0
    pilot = attempt_variance(rng.binomial(K, 0.55, 100), [K] * 100)
    planned = Sensitivity(se=np.sqrt(2 * pilot), df=99, margin=0.02, alpha=0.05)
    assert planned.power(planned.smallest_drop()) == pytest.approx(0.8)
    for _ in range(1_000):
        old, new = (attempts_of(np.full(100, 0.55 - drop), rng) for drop in (0, planned.smallest_drop()))
        found += not noninferiority(new, old, 0.02).passed
    assert found / 1_000 == pytest.approx(0.8, abs=0.05)


@given(PAIRS, st.floats(0, 0.3), st.floats(0, 0.1))
def test_a_candidate_is_stopped_exactly_when_the_drop_surely_exceeds_the_margin(pairs, margin, sd):
    verdict = noninferiority(*pairs, margin, seed_sd=sd)
    assert verdict.passed == (verdict.drop_low <= margin)
    if abs(verdict.p_value - 0.05) > 1e-9:
        assert verdict.passed == (verdict.p_value > 0.05)
    assert verdict.drop_low <= verdict.drop <= verdict.drop_high


@pytest.mark.parametrize("df", [4, 9, 99])
def test_the_stated_power_is_that_of_the_noncentral_t(df):
    sees = Sensitivity(se=0.1, df=df, margin=0.05, alpha=0.05)
    drops = np.linspace(0, 1, 21)
    expected = stats.nct.sf(stats.t.isf(0.05, df), df, (drops - 0.05) / 0.1)
    assert [sees.power(drop) for drop in drops] == pytest.approx(expected, abs=0.015)


@given(st.floats(0, 1), st.floats(0, 1), st.integers(4, 10**6))
def test_a_larger_drop_is_found_more_often_and_the_margin_hardly_ever(se, margin, df):
    sees = Sensitivity(se, df, margin, 0.05)
    powers = [sees.power(margin + more) for more in (0, 0.01, 0.1, 1)]
    assert powers == sorted(powers)
    assert powers[0] < 0.06


@given(PAIRS)
def test_a_candidate_that_is_no_worse_passes(pairs):
    better, worse = np.maximum(*pairs), np.minimum(*pairs)
    assert noninferiority(better, worse, 0.0).passed


def test_a_loss_that_rises_is_a_drop():
    rng = np.random.default_rng(24)
    old = rng.normal(2, 0.5, 100)
    new = old + rng.normal(0.1, 0.1, 100)
    assert not noninferiority(new, old, 0.05, kind="loss").passed
    assert noninferiority(old, new, 0.05, kind="loss").passed


@pytest.mark.parametrize("wild", [np.nan, np.inf])
@pytest.mark.parametrize("judge", [paired_test, lambda *values, kind: noninferiority(*values, 0.0, kind=kind)])
def test_a_diverged_model_is_not_judged_by_its_finite_losses(wild, judge):
    with pytest.raises(ConfigError, match="found 1 losses that are no finite number"):
        judge([1.0, 1.0, wild], [2.0, 2.0, 2.0], kind="loss")


def test_equal_drops_on_two_tasks_prove_nothing_though_they_round_differently():
    thirds = np.array([[2, 0], [3, 1]]) / 3
    assert np.ptp(thirds[1] - thirds[0]) > 0
    assert noninferiority(*thirds, 0.0).passed


def test_the_same_model_passes_without_any_noise():
    loss = np.linspace(1, 2, 10)
    verdict = noninferiority(loss, loss, 0.0, kind="loss")
    assert (verdict.passed, verdict.p_value, verdict.smallest_drop) == (True, 1.0, 0.0)


def test_summary_rates_are_compared_too_and_see_less():
    rng = np.random.default_rng(25)
    truth = rng.beta(0.5, 0.5, 200)
    old, new = (rng.binomial(8, truth * kept) for kept in (1, 0.85))
    paired = noninferiority(new / 8, old / 8, 0.02)
    rates = noninferiority(*(pass_rate_interval(passes, [8] * 200) for passes in (new, old)), 0.02)
    assert rates.drop == pytest.approx(paired.drop)
    assert rates.smallest_drop > 1.5 * paired.smallest_drop
    assert (paired.passed, rates.method) == (False, "unpaired t")


def test_a_rate_against_values_per_task_is_unpaired_and_keeps_its_false_alarms():
    rng, stops = np.random.default_rng(26), 0
    for _ in range(1_000):
        old = pass_rate_interval(rng.binomial(1, 0.9, 300), [1] * 300)
        stops += not noninferiority(rng.binomial(1, 0.9, 60), old, 0.0).passed
    assert 0.02 < stops / 1_000 < 0.07


def test_tasks_are_paired_by_id_and_a_task_without_a_value_is_left_out():
    new, old = matched({"t3": 1.0, "t1": 0.5, "t2": 0.0}, {"t1": 0.25, "t4": 1.0, "t3": np.nan, "t2": 0.0})
    assert new.tolist() == [0.5, 0.0, 1.0]
    assert noninferiority(new, old, 0.0).tasks == paired_test(new, old).n == 2


def test_a_verdict_is_plain_json():
    verdict = noninferiority([0.5, 1, 0.25], [0.75, 1, 0.5], 0.05, seed_sd=SeedSd(0.01, 0.03, 4))
    assert json.loads(json.dumps(verdict.to_dict(), allow_nan=False))["tasks"] == 3


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(P_VALUES, st.floats(0.001, 0.4))
def test_holm_rejects_step_by_step(p_values, alpha):
    rejected, left = set(), sorted(range(len(p_values)), key=lambda i: p_values[i])
    while left and p_values[left[0]] * len(left) < alpha:
        rejected.add(left.pop(0))
    assert {i for i, no in enumerate(holm(p_values, alpha)) if no} == rejected


@given(P_VALUES)
def test_adjusted_p_values_keep_their_order_and_never_shrink(p_values):
    adjusted = holm_adjusted(p_values)
    assert np.all(adjusted >= p_values)
    assert np.all(np.diff(adjusted[np.argsort(p_values, kind="stable")]) >= 0)


def test_the_noise_of_seeds_is_measured_from_retrainings():
    rng = np.random.default_rng(27)
    measured = [estimate_seed_sd(rng.normal(0.6, np.hypot(0.03, 0.01), 5), 0.01**2) for _ in range(2_000)]
    assert np.sqrt(np.mean([found.sd**2 for found in measured])) == pytest.approx(0.03, rel=0.05)
    assert np.mean([found.upper >= 0.03 for found in measured]) == pytest.approx(0.95, abs=0.015)


def test_retrainings_that_differ_less_than_sampling_does_show_no_noise():
    assert estimate_seed_sd([0.5, 0.5001, 0.4999], 0.01).sd == 0


def test_a_noise_measured_on_few_retrainings_is_trusted_less():
    old, new = np.tile([[0.75], [0.5]], 50) + np.tile([0.0, 0.1], 25)
    known, measured = (noninferiority(new, old, 0.02, seed_sd=sd) for sd in (0.05, SeedSd(0.05, 0.1, 3)))
    assert measured.smallest_drop > known.smallest_drop
    assert measured.p_value > known.p_value


@pytest.mark.parametrize(
    ("new", "old", "says"),
    [
        ([0.5], [0.5], "found 1 tasks with a value from both models; expected at least two"),
        ([0.5, np.nan], [0.5, 1.0], "found 1 tasks"),
        ([0.5, 0.5, 1.0], [0.5, 0.5], "equal lists"),
        ([2.5, 1.0], [2.0, 1.0], "kind='loss'"),
        (pass_rate_interval([0], [0]), [0.5, 0.5], "a rate of 0 tasks"),
    ],
)
def test_what_cannot_be_compared_is_refused(new, old, says):
    with pytest.raises(ConfigError, match=says):
        noninferiority(new, old, 0.02)
