"""Judging one model: what passes, what cannot be decided, and that nothing but model and items matters."""

from __future__ import annotations

import json

import pytest
import torch
from tests.evaluate import models
from tests.evaluate.models import turns

from corpusforge.errors import ConfigError, TrainingError
from corpusforge.evaluate.evaluate import EvaluateConfig, Held, evaluate
from corpusforge.train.generate import Sampling, answers

TOKENIZER = models.tokenizer()
MODEL = models.model(TOKENIZER)
CONFIG = EvaluateConfig(attempts=4, max_new_tokens=5)


def named(number, kind="t"):
    return {"row_id": f"s#{number}", "content_id": f"{kind}{number}", "source": "s"}


def task(number, gold="nothing that it says", verifier="exact"):
    spec = json.dumps({"answer": gold})
    prompt = turns(f"What is {number} plus 1?")
    return {**named(number), "prompt": prompt, "verifier_kind": verifier, "verifier_spec": spec, "tools": None}


def solved(numbers):
    """Tasks whose gold answer is what the model says greedily."""
    said = answers(MODEL, TOKENIZER, [task(n) for n in numbers], Sampling(1, 0.0, max_new_tokens=5, max_length=64))
    return [task(number, text) for number, (text,) in zip(numbers, said, strict=True)]


HELD = Held(
    tasks=[*solved(range(4)), *(task(n) for n in range(4, 8))],
    legacy=[task(n) for n in range(10, 12)],
    rows=[{**named(n, "r"), "messages": turns(f"What is {n}?", f"It is {n}."), "tools": None} for n in range(5)],
    pairs=[
        {**named(n, "p"), "prompt": turns(f"{n}?"), "chosen": turns("", "3")[1:], "rejected": turns("", "44")[1:]}
        for n in range(5)
    ],
)


def judge(held=HELD, tokenizer=TOKENIZER, model=MODEL, max_length=64):
    return evaluate(model, tokenizer, held, CONFIG, max_length=max_length, name="m")


@pytest.fixture(scope="module")
def whole():
    return judge()


def test_a_greedy_answer_passes_where_it_is_the_gold_one(whole):
    found = whole.tasks.to_pylist()
    assert [line["greedy"] for line in found] == [True] * 4 + [False] * 6
    assert [line["set"] for line in found] == ["heldout"] * 8 + ["legacy"] * 2


def test_every_attempt_is_a_pass_a_fail_or_undecided():
    held = Held(tasks=[task(1), task(2, verifier="no such verifier"), *solved([3])])
    lines = judge(held).tasks.to_pylist()
    assert all(0 <= line["passes"] <= line["attempts"] for line in lines)
    assert [(line["attempts"], line["undecided"]) for line in lines] == [(4, 0), (0, 4), (4, 0)]


def test_a_prompt_that_fills_the_context_is_undecided_and_not_a_fail():
    (line,) = judge(Held(tasks=[task("1234567890" * 9)])).tasks.to_pylist()
    assert (line["passes"], line["attempts"], line["undecided"], line["greedy"]) == (0, 0, 4, None)


def test_the_order_of_items_changes_no_score(whole):
    order = [5, 2, 7, 0, 1, 6, 3, 4]
    turned = Held([HELD.tasks[n] for n in order], HELD.legacy, HELD.rows[::-1], HELD.pairs[::-1])
    other = judge(turned)
    assert sorted(whole.tasks.to_pylist(), key=str) == sorted(other.tasks.to_pylist(), key=str)
    one, two = ({row["content_id"]: row["value"] for row in found.rows.to_pylist()} for found in (whole, other))
    assert one == pytest.approx(two, abs=2e-6)


def test_the_scores_of_rows_and_pairs_are_named_and_rounded(whole):
    rows = whole.rows.to_pylist()
    assert [row["measure"] for row in rows] == ["loss"] * 5 + ["margin"] * 5
    assert all(row["value"] == round(row["value"], 6) for row in rows)
    assert all(row["tokens"] > 0 and row["bytes"] > 0 for row in rows[:5])
    assert rows[5]["tokens"] is None


def test_nothing_to_judge_on_gives_no_lines():
    found = judge(Held())
    assert (found.tasks.num_rows, found.rows.num_rows, Held().empty, HELD.empty) == (0, 0, True, False)


def test_a_template_that_raises_on_everything_is_an_error_and_on_something_is_not():
    tokenizer = models.tokenizer()
    tokenizer.chat_template = "{{ raise_exception('secret of ' ~ messages[0].content) }}"
    with pytest.raises(ConfigError, match="template of m raises on all of 20 conversations") as caught:
        judge(tokenizer=tokenizer)
    assert "secret" not in str(caught.value)
    tokenizer.chat_template = "{% if '4' in messages[0].content %}{{ raise_exception('no') }}{% endif %}" + (
        TOKENIZER.chat_template
    )
    found = judge(tokenizer=tokenizer)
    assert found.tasks["undecided"].to_pylist()[4] == 4
    assert found.rows.filter(found.rows["measure"].to_numpy(zero_copy_only=False) == "loss").num_rows == 4


def test_a_tokenizer_without_a_template_is_refused():
    tokenizer = models.tokenizer()
    tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="has no chat template"):
        judge(tokenizer=tokenizer)


def test_a_model_that_gives_no_numbers_is_refused():
    broken = models.model(TOKENIZER)
    with torch.no_grad():
        broken.model.norm.weight.fill_(float("nan"))
    for held in (Held(tasks=HELD.tasks), Held(rows=HELD.rows)):
        with pytest.raises(TrainingError, match="not finite"):
            judge(held, model=broken)
