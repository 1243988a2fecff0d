"""Layers of a reward: what each says, how they become one number, and that none can be farmed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import ConfigError
from corpusforge.verify import Task, Verdict, verify
from corpusforge.verify.layers import (
    REGISTERED,
    RewardsConfig,
    combine,
    constraints,
    process,
    register,
    score,
    score_many,
)
from corpusforge.verify.layers.code import code

TASK = {
    "verifier": {"kind": "numeric", "spec": {"answer": "72"}},
    "prompt": "Ann sold 48 clips in April and half as many in May. How many?",
}
SOLVED = "48/2 = 24 clips in May, 48 + 24 = 72 altogether. The answer is 72."
SLIPPED = "48/2 = 24 clips in May, 48 + 24 = 71 altogether. The answer is 71."


@pytest.fixture
def polite():
    """A layer of one's own, gone after the test."""

    @register("polite")
    def polite(task: Any, completion: Any, *, words: tuple[str, ...] = ("please",)) -> float | None:
        return float(sum(completion.lower().count(word) for word in words)) if completion else None

    yield polite
    del REGISTERED["polite"]


def test_without_layers_a_pass_is_one_a_fail_zero_and_undecided_none() -> None:
    assert score(TASK, SOLVED).total == 1.0
    assert score(TASK, SLIPPED).total == 0.0
    assert score({"verifier": {"kind": "unheard_of", "spec": {}}}, SOLVED).total is None


def test_every_layer_is_kept_by_its_name() -> None:
    length = {"unit": "words", "at_most": 10, "slack": 10}
    found = score(TASK, SLIPPED, process={"weight": 0.2}, format={}, length=length, repetition={})
    assert found.values == {"outcome": 0.0, "process": 0.5, "format": 0.0, "length": 0.6, "repetition": 1.0}
    assert found.total == pytest.approx(0.2 * 0.5 + 0.1 * 0.6 + 0.1)
    assert "48" not in json.dumps(found.to_dict())


def test_an_undecided_outcome_leaves_the_whole_reward_none_and_the_layers_readable() -> None:
    found = score({**TASK, "verifier": {"kind": "numeric", "spec": {"answer": "?"}}}, SOLVED, process={})
    assert found.total is None
    assert found.values == {"outcome": None, "process": 1.0}


def test_a_layer_with_nothing_to_say_adds_nothing_and_nobody_gains_by_hiding_work() -> None:
    silent, shown = score(TASK, "The answer is 72.", process={}), score(TASK, SOLVED, process={})
    assert silent.values["process"] is None
    assert silent.total == 1.0 < (shown.total or 0)


def test_values_are_put_on_a_scale_clipped_and_weighed() -> None:
    assert score(TASK, SLIPPED, process={"range": [0.5, 1.0]}).values["process"] == 0.0
    assert score(TASK, SOLVED, process={"clip": [0.0, 0.8], "weight": 0.5}).total == pytest.approx(1.4)
    assert score(TASK, SLIPPED, process={"range": [0, 0.25]}).values["process"] == 1.0


VERDICTS = st.sampled_from([Verdict("pass", 1.0, "x"), Verdict("fail", 0.0, "x")])
RAW = st.none() | st.floats(-10, 10)
WEIGHT = st.floats(0, 100)


@given(RAW, RAW, WEIGHT, WEIGHT, st.floats(0.01, 10), st.floats(0, 0.99))
def test_no_failed_outcome_outweighs_a_passed_one(
    a: Any, b: Any, one: float, two: float, main: float, at: float
) -> None:
    config = RewardsConfig.model_validate(
        {"outcome": {"weight": main}, "process": {"weight": one}, "format": {"weight": two}, "failed_at_most": at}
    )
    lowest = combine(config, Verdict("pass", 1.0, "x"), {"process": None, "format": None}).total
    failed = combine(config, Verdict("fail", 0.0, "x"), {"process": a, "format": b}).total
    passed = combine(config, Verdict("pass", 1.0, "x"), {"process": a, "format": b}).total
    assert lowest is not None
    assert failed is not None
    assert passed is not None
    assert failed < lowest <= passed


FINITE = st.floats(allow_nan=False, allow_infinity=False)
ENDS = st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)).filter(lambda ends: ends[0] < ends[1])
LAYER = st.fixed_dictionaries({"weight": st.floats(0, 1e6), "range": ENDS.map(list)})


@given(st.sampled_from(["pass", "fail"]), st.lists(st.tuples(LAYER, FINITE), max_size=6), st.floats(5e-324, 1e6))
def test_whatever_settings_are_accepted_a_reward_is_finite(outcome: Any, layers: Any, weight: float) -> None:
    own = {f"m:layer{number}": block for number, (block, _) in enumerate(layers)}
    config = RewardsConfig.model_validate({"outcome": {"weight": weight}, "own": own, "failed_at_most": None})
    raw = {f"m:layer{number}": value for number, (_, value) in enumerate(layers)}
    found = combine(config, Verdict(outcome, float(outcome == "pass"), "x"), raw)
    assert found.total is not None
    assert math.isfinite(found.total)
    assert all(0 <= value <= 1 for value in found.values.values() if value is not None)


@given(VERDICTS, RAW, RAW)
def test_a_value_is_from_0_to_1_or_none(verdict: Verdict, a: Any, b: Any) -> None:
    values = combine(RewardsConfig(process={}, length={}), verdict, {"process": a, "length": b}).values  # type: ignore[arg-type]
    assert all(value is None or 0 <= value <= 1 for value in values.values())


def test_params_may_let_steps_outweigh_the_outcome() -> None:
    assert score(TASK, SLIPPED, process={"weight": 4.0}).total == 0.5
    assert score(TASK, SLIPPED, process={"weight": 4.0}, failed_at_most=None).total == 2.0


@pytest.mark.parametrize(
    "padding",
    [
        "1 = 1\n" * 100,
        "5+5 = 10\n" * 100,
        "5+7 = 12, 7 + 5 = 12.0, (5+7) = 12\n" * 30,
        "<<5=5>>" * 100,
        "\n".join(f"{n}+1 = {n + 1}" for n in range(1_000, 1_100)),
        "7 = 7, 7+0 = 7+0\n" * 50,
    ],
)
def test_padding_with_what_is_true_anyway_earns_nothing(padding: str) -> None:
    assert process(Task.of(TASK), f"{padding}The answer is 7.") is None
    assert score(TASK, f"{padding}\n{SLIPPED}", process={}).total == score(TASK, SLIPPED, process={}).total


def test_padding_with_numbers_of_the_prompt_cannot_make_a_wrong_step_vanish() -> None:
    padding = "\n".join(f"48 + {n} = {48 + n}" for n in range(500))
    share = process(Task.of(TASK), f"{padding}\n48 + 24 = 71")
    assert share is not None
    assert share <= 12 / 13
    assert (score(TASK, f"{padding}\n{SLIPPED}", process={}).total or 0) <= 0.2


def test_a_wrong_step_is_not_outvoted_by_saying_the_right_one_again() -> None:
    assert process(Task.of(TASK), "48+24 = 71\n" + "48+24 = 72\n" * 50) == 0.5


def test_only_the_chosen_kinds_of_steps_count() -> None:
    assert score(TASK, SOLVED, process={"steps": ["calls", "code"]}).values["process"] is None


CODE = {"verifier_kind": "assert_tests", "verifier_spec": {"tests": ["assert f(1) == 1"], "entry_point": "f"}}


@pytest.mark.parametrize(
    ("said", "tally"),
    [
        ("```python\ndef f(a):\n    return a\n```", (1, 0)),
        ("def f(a):\n    return a\n", (1, 0)),
        ("```python\ndef f(a) return a\n```", (0, 1)),
        ("```python\npass\n```", (0, 1)),
        ("```python\n'''f'''\n```", (0, 1)),
        ("```python\ndef f(a):\n    ...\n```", (0, 1)),
        ("I would add one.", (0, 0)),
        ("<think>```python\ndef f(a) return\n```</think>```python\ndef f(a):\n    return a\n```", (1, 0)),
    ],
)
def test_code_is_a_step_where_it_parses_and_does_something(said: str, tally: tuple[int, int]) -> None:
    assert code(Task.of(CODE), said) == tally


def test_the_inside_of_a_function_that_the_prompt_began_is_code() -> None:
    spec = {"tests": [], "prompt": "def f(a):\n    '''Add.'''\n", "entry_point": "f"}
    assert code(Task("assert_tests", spec), "    return a\n") == (1, 0)


def test_code_in_a_task_of_another_kind_is_no_step() -> None:
    assert code(Task.of(TASK), "```python\nx = 1\n```") == (0, 0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<think>2+2</think><answer>4</answer>", 1.0),
        ("<think>\n2+2\n</think>\n\n<answer>4</answer>\n", 1.0),
        ("<answer>4</answer>", 0.0),
        ("<answer>4</answer><think>2+2</think>", 0.0),
        ("<think>2+2</think> so <answer>4</answer>", 0.0),
        ("<think>2+2</think><answer>4</answer> done", 0.0),
        ("<think></think><answer>4</answer>", 0.0),
        ("<think>a</think><answer>4</answer><answer>5</answer>", 0.0),
        ("<think>a<answer>4</answer></think>", 0.0),
        ("4", 0.0),
    ],
)
def test_the_format_is_the_tags_and_nothing_beside_them(text: str, value: float) -> None:
    assert constraints.has_format(text, ["think", "answer"]) == value


def test_a_tag_that_the_prompt_opened_is_not_asked_for_again() -> None:
    assert constraints.has_format("2+2</think><answer>4</answer>", ["think", "answer"], opened=True) == 1.0
    assert score(TASK, "2+2</think><answer>72</answer>", format={"opened": True}).values["format"] == 1.0


@pytest.mark.parametrize(
    ("length", "value"), [(0, 0.0), (5, 0.5), (10, 1.0), (20, 1.0), (25, 0.5), (30, 0.0), (99, 0.0)]
)
def test_beyond_a_bound_the_value_falls_over_the_slack(length: int, value: float) -> None:
    assert constraints.within(length, at_least=10, at_most=20, slack=10) == value
    assert constraints.within(length, at_least=10, at_most=20) == float(10 <= length <= 20)


def test_tokens_are_counted_where_they_are_handed_over() -> None:
    config = RewardsConfig(length={"at_most": 3})  # type: ignore[arg-type]
    found = score_many([TASK, TASK], [SOLVED, SOLVED], config, tokens=[3, 4])
    assert [one.values["length"] for one in found] == [1.0, 0.0]
    assert score(TASK, SOLVED, length={"at_most": 3}).values["length"] is None


def test_repetition_costs_and_a_short_text_repeats_nothing() -> None:
    assert constraints.varied("so it is 72") == 1.0
    assert constraints.varied("all of these words are said here once and not again") == 1.0
    assert constraints.varied("and so on " * 200) < 0.05


@given(st.text(), st.integers(1, 6), st.floats(0, 0.9))
def test_every_text_has_constraints_from_0_to_1(text: str, words: int, at_most: float) -> None:
    assert 0 <= constraints.varied(text, words, at_most) <= 1
    assert constraints.has_format(text, ["think", "answer"]) in (0, 1)
    assert 0 <= constraints.within(len(text), 3, 9, 4) <= 1


def test_a_layer_of_ones_own_takes_params_and_a_scale(polite: Any) -> None:
    own = {"polite": {"weight": 0.5, "range": [0, 2], "params": {"words": ["please", "thanks"]}}}
    found = score(TASK, f"Please. {SOLVED}", own=own)
    assert found.values == {"outcome": 1.0, "polite": 0.5}
    assert found.total == 1.25


def test_module_and_function_name_a_layer_too() -> None:
    own = {"tests.verify.own_layer:shouts": {}}
    assert score(TASK, "72!", own=own).values["tests.verify.own_layer:shouts"] == 1.0


def test_a_layer_that_raises_is_none_and_told(polite: Any) -> None:
    found = score(TASK, [{"role": "assistant", "content": "72"}], own={"polite": {}})
    assert (found.values["polite"], found.faults, found.total) == (None, ("polite",), 1.0)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ({"proces": {}}, "did you mean 'process'"),
        ({"process": {"wieght": 0.2}}, "did you mean 'weight'"),
        ({"own": {"a:b": {"wieght": 0.2}}}, "did you mean 'weight'"),
        ({"process": 0.2}, "expected a block"),
        ({"process": {"clip": [1, 0]}}, "below the second"),
        ({"process": {"clip": [0, 2]}}, "within 0 and 1"),
        ({"process": {"steps": ["spelling"]}}, "steps"),
        ({"outcome": {"weight": 0}}, "greater than 0"),
        ({"outcome": {"weight": 1e308}}, "less than or equal to 1000000"),
        ({"process": {"weight": 1e308}}, "less than or equal to 1000000"),
        ({"process": {"range": [-1e308, 1e308]}}, "within -1,000,000,000 and 1,000,000,000"),
        ({"outcome": {"range": [2, 3]}}, "no more than a fail"),
        ({"failed_at_most": 1.0}, "less than 1"),
        ({"length": {"at_least": 9, "at_most": 3}}, "below at_least"),
        ({"own": {"process": {}}}, "beside `own`"),
        ({"own": {"unheard_of": {}}}, "no layer 'unheard_of'"),
        ({"own": {"no_such_module:f": {}}}, "cannot be imported"),
        ({"own": {"tests.verify.own_layer:whispers": {}}}, "no function 'whispers'"),
        ({"own": {"tests.verify.own_layer:shouts": {"params": {"loud": 1}}}}, "cannot be called"),
    ],
)
def test_wrong_options_are_told_before_anything_is_scored(layers: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        score(TASK, SOLVED, **layers)


@pytest.mark.parametrize(("name", "said"), [("process", "built in"), ("Loud", "is not one"), ("polite", "already")])
def test_a_name_that_is_taken_or_none_is_refused(name: str, said: str, polite: Any) -> None:
    with pytest.raises(ConfigError, match=said):
        register(name)(lambda task, completion: 1.0)
    assert register("polite")(polite) is polite


@given(st.text() | st.lists(st.dictionaries(st.sampled_from(["role", "content", "tool_calls"]), st.text())))
def test_every_completion_has_a_reward_as_its_verdict_says(completion: Any) -> None:
    found = score(TASK, completion, process={}, format={}, length={"unit": "characters"}, repetition={})
    assert found.faults == ()
    assert (found.total is None) == (verify(TASK, completion).outcome == "undecided")
