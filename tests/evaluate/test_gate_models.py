"""The gate for models, as a function of results: what it lets through, what it stops, and what it cannot see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluate.made import judged, results

from corpusforge.errors import ConfigError
from corpusforge.evaluate.gate_models import NOTHING, GateModelsConfig, gate_models
from corpusforge.evaluate.results import Judged, Results
from corpusforge.evaluate.seed_noise import seed_noise

GOOD = judged("b1", sft=results(0.6), dpo=results(0.6, seed=1), grpo=results(0.7, seed=2))
ALL = ("pass_rate", "legacy", "heldout_loss", "preference_accuracy")


def failed(verdict):
    return [check.name for check in verdict.failed]


def test_models_pass_against_themselves():
    verdict = gate_models(GOOD, GOOD)
    assert verdict.passed
    assert [check.name for check in verdict.checks if check.method] == [
        f"{role}.{measure}" for role in ("sft", "dpo", "grpo") for measure in ALL
    ]
    assert all(check.found == 0 and check.p_value in (None, 1.0) for check in verdict.checks)


@pytest.mark.parametrize("role", ["sft", "dpo", "grpo"])
def test_a_model_that_is_much_worse_is_stopped_by_name(role):
    worse = replace(GOOD, results={**GOOD.results, role: results(0.3, loss=1.2, seed=9)})
    assert {f"{role}.pass_rate", f"{role}.legacy", f"{role}.heldout_loss"} <= set(failed(gate_models(worse, GOOD)))
    assert all(name.startswith(role) for name in failed(gate_models(worse, GOOD)))


def test_a_better_model_passes():
    assert gate_models(replace(GOOD, results={"sft": results(0.9, loss=0.5, seed=3)}), GOOD).passed


def test_a_drop_within_the_limit_passes_and_params_move_the_limit():
    worse = judged(sft=results(0.4, seed=4))
    assert "sft.pass_rate" in failed(gate_models(worse, GOOD))
    assert gate_models(worse, GOOD, GateModelsConfig(max_drop=0.3, max_loss_rise=0.3)).passed


def test_more_noise_between_seeds_makes_the_gate_more_careful():
    worse = judged(sft=results(0.45, seed=4))
    known = {"pass_rate": 0.1}
    calm, noisy = (gate_models(worse, GOOD, GateModelsConfig(seed_sd=sd)).checks for sd in ({}, known))
    before, after = (next(c for c in checks if c.name == "sft.pass_rate") for checks in (calm, noisy))
    assert (before.passed, after.passed) == (False, True)
    assert after.smallest_drop > before.smallest_drop + 0.1
    few = next(c for c in gate_models(worse, GOOD, config(3)).checks if c.name == "sft.pass_rate")
    assert few.smallest_drop > after.smallest_drop


def config(runs):
    return GateModelsConfig(seed_sd=dict.fromkeys(ALL, 0.1), seed_runs=runs)


def test_the_noise_of_each_measure_is_its_own():
    worse = judged(sft=results(0.45, loss=1.3, seed=4))
    for measure in ("pass_rate", "legacy", "heldout_loss"):
        verdict = gate_models(worse, GOOD, GateModelsConfig(seed_sd={measure: 0.2}))
        assert f"sft.{measure}" not in failed(verdict)
        assert {f"sft.{other}" for other in ("pass_rate", "legacy", "heldout_loss") if other != measure} <= set(
            failed(verdict)
        )


def test_the_noise_of_the_loss_is_a_share_of_it():
    """The same models in other units of loss get the same verdict."""
    noise = GateModelsConfig(seed_sd={"heldout_loss": 0.07})
    p_values = []
    for scale in (1, 100):
        old, new = (
            judged(sft=replace(one, per_byte={k: scale * v for k, v in one.per_byte.items()}))
            for one in (results(loss=1.0), results(loss=1.25, seed=5))
        )
        check = next(c for c in gate_models(new, old, noise).checks if c.name == "sft.heldout_loss")
        p_values.append(check.p_value)
        assert check.limit == pytest.approx(0.05 * scale, rel=0.05)
    assert p_values[0] == pytest.approx(p_values[1], rel=1e-3)
    assert 0 < p_values[0] < 1


def test_a_verdict_says_where_the_noise_of_seeds_is_left_out():
    assert gate_models(GOOD, GOOD).notes[0].startswith("no seed_sd of pass_rate, legacy, heldout_loss, preference_accu")
    assert "no seed_sd of legacy:" in gate_models(
        GOOD, GOOD, GateModelsConfig(seed_sd={"pass_rate": 0.1}, measures=["pass_rate", "legacy"])
    ).notes[0]  # fmt: skip
    assert gate_models(GOOD, GOOD, config(5)).notes == []
    assert gate_models(GOOD, GOOD, GateModelsConfig(seed_sd=dict.fromkeys(ALL, 0.0))).notes == []


def test_retrainings_with_noise_of_seeds_are_refused_as_rarely_as_stated():
    """Every training moves all its items together; ten tell how far. Unknown, the noise stops most retrainings."""
    rng = np.random.default_rng(3)

    def training(seed: int) -> Results:
        rate, loss = rng.normal(0.55, 0.06), rng.normal(1.0, 0.08)
        return results(float(rate), loss=float(loss), seed=seed)

    refused = {"known": 0, "unknown": 0}
    for trial in range(60):
        noise = seed_noise([training(1_000 * trial + k) for k in range(10)])
        known = GateModelsConfig(seed_sd={name: one.sd for name, one in noise.items()}, seed_runs=10)
        old, new = (judged(sft=training(1_000 * trial + 100 + k)) for k in range(2))
        refused["known"] += not gate_models(new, old, known).passed
        refused["unknown"] += not gate_models(new, old).passed
    assert refused["known"] <= 7  # P(more | .05) = 1 %
    assert refused["unknown"] >= 20


def test_the_noise_of_seeds_is_found_again_and_sampling_is_no_part_of_it():
    still = seed_noise([results(0.6, attempts=2, seed=k) for k in range(30)])
    moved = seed_noise([results(0.6, loss=1 + k % 2 / 5, attempts=2, seed=k) for k in range(30)])
    assert set(still) == set(ALL)
    assert still["pass_rate"].sd < 0.02 < still["pass_rate"].upper + 0.02
    assert still["heldout_loss"].sd < 0.002
    assert moved["heldout_loss"].sd == pytest.approx(0.1 / 1.1 * (30 / 29) ** 0.5, rel=0.02)
    assert moved["heldout_loss"].df == 29
    assert "legacy" not in seed_noise([replace(results(seed=k), legacy={}) for k in range(2)])


@pytest.mark.parametrize(
    "trainings", [[results()], [], [results(), replace(results(), legacy={})]], ids=["one", "none", "unlike"]
)
def test_noise_from_too_few_or_unlike_trainings_is_an_error(trainings):
    with pytest.raises(ConfigError):
        seed_noise(trainings)


def test_false_alarms_are_as_rare_as_stated():
    """Twelve checks each, alpha .2: of 60 pairs of equal models, 12 are expected to fail at most."""
    config = GateModelsConfig(alpha=0.2, max_drop=0.0, max_loss_rise=0.0)
    alarms = 0
    for seed in range(60):
        one, two = (judged(**{r: results(seed=1000 * k + seed + s) for k, r in enumerate(("sft", "dpo", "grpo"), 1)})
                    for s in (0, 100_000))  # fmt: skip
        alarms += not gate_models(one, two, config).passed
    assert alarms <= 20  # P(more | .2) = 1 %


def test_every_check_states_the_drop_that_it_finds():
    verdict = gate_models(GOOD, GOOD)
    assert verdict.false_alarm_rate == 0.05
    rates = [c for c in verdict.checks if c.name.endswith("pass_rate")]
    assert all(0.02 < check.smallest_drop < 0.5 for check in rates)
    fewer = {role: results(tasks=25, seed=seed) for seed, role in enumerate(("sft", "dpo", "grpo"))}
    small = gate_models(judged(**fewer), judged(**{r: results(tasks=25, seed=9) for r in fewer}))
    assert small.checks[1].smallest_drop > rates[0].smallest_drop


def test_where_nothing_was_accepted_models_are_held_to_their_start():
    verdict = gate_models(judged(base=results(0.1), sft=results(0.6, seed=1), dpo=results(0.2, seed=2)))
    assert failed(verdict) == ["dpo.pass_rate", "dpo.legacy"]
    assert {check.name for check in verdict.checks} == {
        f"{m}.{x}" for m in ("sft", "dpo") for x in ("pass_rate", "legacy")
    }
    assert verdict.notes == ["nothing was accepted: models are compared with the ones they started from"]
    assert verdict.accepted is None


def test_a_gate_that_compared_nothing_says_so():
    talk = replace(results(), heldout={}, legacy={}, greedy={}, legacy_greedy={})
    assert NOTHING in gate_models(judged(base=talk, sft=talk)).notes
    assert NOTHING not in gate_models(judged(base=results(), sft=results())).notes


def test_a_model_that_is_new_is_held_to_its_start_and_one_that_is_gone_is_noted():
    accepted = judged("b0", sft=results(), dpo=results(seed=1))
    verdict = gate_models(judged(sft=results(), grpo=results(0.3, seed=5)), accepted)
    assert failed(verdict) == ["grpo.pass_rate", "grpo.legacy"]
    assert "dpo: accepted, and not trained in this build" in verdict.notes


def test_a_measure_that_is_gone_fails_until_params_say_that_it_may_be():
    blind = judged(sft=replace(results(), legacy={}))
    assert failed(gate_models(blind, GOOD)) == ["sft.legacy"]
    assert gate_models(blind, GOOD, GateModelsConfig(measures=["pass_rate", "heldout_loss"])).passed


def test_a_measure_that_is_new_is_noted():
    accepted = judged(sft=replace(results(), margin={}))
    noted = gate_models(judged(sft=results()), accepted, GateModelsConfig(seed_sd=dict.fromkeys(ALL, 0.01))).notes
    assert noted == ["sft.preference_accuracy: accepted has none"]


def test_other_conditions_fail():
    other = replace(GOOD, conditions={**GOOD.conditions, "temperature": 0.5})
    verdict = gate_models(other, GOOD)
    assert failed(verdict) == ["conditions"]
    assert verdict.failed[0].says.startswith("judged under another temperature;")
    assert gate_models(other, GOOD, GateModelsConfig(measures=[])).passed


def test_a_model_whose_answers_cannot_be_decided_fails():
    one = results()
    lost = {name: (0, 0) if number < 30 else counts for number, (name, counts) in enumerate(one.heldout.items())}
    verdict = gate_models(judged(sft=replace(one, heldout=lost)), GOOD)
    assert failed(verdict) == ["sft.pass_rate.undecided"]
    assert verdict.failed[0].found == 0.3


def renamed(one: Results, start: int) -> Results:
    """The same scores on other items, from the item `start` on."""
    names = {name: name if n < start else f"other-{n}" for n, name in enumerate(one.heldout)}
    fields = {k: {names[i]: v for i, v in scores.items()} for k, scores in vars(one).items() if k != "undecided"}
    return Results(**fields)


def test_builds_with_other_items_are_compared_as_rates_and_their_losses_not_at_all():
    verdict = gate_models(judged(sft=renamed(results(), 5)), GOOD)
    methods = {check.name: check.method for check in verdict.checks if check.method}
    assert methods == dict.fromkeys(("sft.pass_rate", "sft.legacy", "sft.preference_accuracy"), "unpaired t")
    assert verdict.notes[1] == "sft.heldout_loss: too few items in common with accepted: 5 of 100"
    assert "sft.pass_rate" in failed(gate_models(judged(sft=renamed(results(0.2, seed=3), 5)), GOOD))


def test_builds_that_share_most_items_are_compared_on_those():
    verdict = gate_models(judged(sft=renamed(results(), 60)), GOOD)
    assert {check.items for check in verdict.checks if check.method} == {60}
    assert verdict.passed


def test_a_handful_of_items_is_no_error():
    tiny = judged(sft=results(tasks=1))
    verdict = gate_models(tiny, tiny)
    assert verdict.passed
    assert len([note for note in verdict.notes if "too few items" in note]) == 4


@given(st.permutations(["sft", "dpo", "grpo"]), st.integers(0, 5))
@settings(max_examples=10)
def test_the_order_of_models_does_not_matter(order, seed):
    models = {"sft": results(0.4, seed=seed), "dpo": results(0.6, seed=seed + 1), "grpo": results(0.7, seed=seed + 2)}
    straight, turned = Judged("b", models), Judged("b", {role: models[role] for role in order})
    accepted = replace(GOOD, conditions={})
    assert gate_models(straight, accepted).to_dict() == gate_models(turned, accepted).to_dict()


def test_a_verdict_shows_its_checks_and_its_error_rate():
    text = str(gate_models(replace(GOOD, results={"sft": results(0.3, seed=9)}), GOOD))
    assert "sft.pass_rate" in text
    assert "at most 5%" in text
    assert "dpo: accepted, and not trained in this build" in text
