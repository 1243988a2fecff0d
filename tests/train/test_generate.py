"""Answers are drawn from the model's own distribution, and are a task's own whatever is asked beside it."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import GenerationConfig

from corpusforge.errors import TrainingError
from corpusforge.train import generate, scratch
from corpusforge.train._config import ScratchConfig
from corpusforge.train.generate import Sampling, answers, sample

CONTEXT = 64
SHORT = Sampling(attempts=3, max_new_tokens=6)


@cache
def made():
    """A model from nothing and its tokenizer; a test that changes either puts it back."""
    tokenizer = scratch.train_tokenizer(["what is seven plus five? twelve, I say"] * 3, 400, CONTEXT)
    shape = ScratchConfig(vocab_size=400, hidden_size=16, layers=1, heads=2)
    return scratch.make_model(shape, tokenizer, CONTEXT, 0), tokenizer


def task(number, words=1, **more):
    prompt = [{"role": "user", "content": f"{number}" + " seven" * words}]
    return {"content_id": f"c{number}", "prompt": prompt, "tools": None, **more}


def logits(one):
    """What the model says of the first token of an answer."""
    model, tokenizer = made()
    ids = tokenizer.apply_chat_template(one["prompt"], add_generation_prompt=True, return_dict=True)["input_ids"]
    with torch.inference_mode():
        return model(torch.tensor([ids])).logits[0, -1].double()


def firsts(one, sampling):
    """First tokens of the attempts, through the ids of their texts' own entries."""
    model, tokenizer = made()
    seen = []
    read = generate._Writer.read

    def note(writer, ids):
        seen.append(ids[0])
        return read(writer, ids)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generate._Writer, "read", note)
        sample(model, tokenizer, [one], sampling)
    return np.bincount(seen, minlength=len(tokenizer))


@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_first_tokens_are_drawn_as_the_softmax_says(temperature):
    from scipy.stats import chisquare

    drawn = firsts(task(1), Sampling(attempts=3000, max_new_tokens=1, temperature=temperature))
    expected = torch.softmax(logits(task(1)) / temperature, -1).numpy() * drawn.sum()
    rank = np.argsort(expected)  # pooled from the rarest on, so that no group is small
    groups = np.flatnonzero(np.diff(np.cumsum(expected[rank]) // 50, prepend=-1))
    assert len(groups) > 5
    assert chisquare(*(np.add.reduceat(counts[rank], groups) for counts in (drawn, expected))).pvalue > 0.001


def test_a_nucleus_holds_the_likeliest_tokens_that_reach_its_share_and_no_other():
    likely = torch.softmax(logits(task(1)) / 0.05, -1).numpy()
    order = np.argsort(-likely)
    nucleus = set(order[: int(np.searchsorted(np.cumsum(likely[order]), 0.8)) + 1].tolist())
    drawn = firsts(task(1), Sampling(attempts=2000, max_new_tokens=1, temperature=0.05, top_p=0.8))
    assert set(np.flatnonzero(drawn).tolist()) == nucleus
    assert 1 < len(nucleus) < len(drawn)


def test_no_default_of_transformers_or_of_the_model_leaks_in():
    model, tokenizer = made()
    before = sample(model, tokenizer, [task(1)], SHORT)
    own = model.generation_config
    model.generation_config = GenerationConfig(
        top_k=1, repetition_penalty=9.0, min_new_tokens=6, do_sample=True, temperature=0.01, num_beams=3
    )
    try:
        assert sample(model, tokenizer, [task(1)], SHORT) == before
        assert model.generation_config.top_k == 1
    finally:
        model.generation_config = own
    more_than_fifty = firsts(task(1), Sampling(attempts=2000, max_new_tokens=1))
    assert np.count_nonzero(more_than_fifty) > 50


def test_greedy_takes_the_likeliest_token_for_every_attempt():
    drawn = firsts(task(1), Sampling(attempts=4, max_new_tokens=1, temperature=0))
    assert drawn.tolist() == np.bincount([int(logits(task(1)).argmax())], minlength=len(drawn)).tolist()
    assert len(set(sample(*made(), [task(1)], Sampling(attempts=4, temperature=0))[0].texts)) == 1


@settings(max_examples=8)
@given(words=st.lists(st.integers(1, 20), min_size=2, max_size=6), batch_tokens=st.integers(1, 400), data=st.data())
def test_a_task_gets_its_answers_whatever_is_asked_beside_it(words, batch_tokens, data):
    tasks = [task(number, count) for number, count in enumerate(words)]
    whole = sample(*made(), tasks, SHORT)
    order = data.draw(st.permutations(range(len(tasks))))
    mixed = sample(*made(), [tasks[place] for place in order], replace(SHORT, batch_tokens=batch_tokens))
    assert mixed == [whole[place] for place in order]
    assert sample(*made(), tasks[:1], SHORT) == whole[:1]


def test_attempts_differ_and_so_do_seeds():
    first = sample(*made(), [task(1)], SHORT)[0].texts
    assert len(set(first)) == 3
    assert sample(*made(), [task(1)], replace(SHORT, seed=1))[0].texts != first
    assert sample(*made(), [task(1)], replace(SHORT, attempts=2))[0].texts == first[:2]


def test_torch_draws_the_same_after_as_without():
    torch.manual_seed(5)
    alone = torch.rand(3)
    torch.manual_seed(5)
    sample(*made(), [task(1)], SHORT)
    assert torch.equal(torch.rand(3), alone)


def test_a_model_in_training_answers_without_dropout_and_goes_on_training():
    model, tokenizer = made()
    resting = sample(model, tokenizer, [task(1)], SHORT)
    model.train()
    try:
        assert sample(model, tokenizer, [task(1)], SHORT) == resting
        assert model.training
    finally:
        model.eval()


def test_what_cannot_be_asked_is_refused_with_the_reason_and_costs_no_other_task_its_answer():
    model, tokenizer = made()
    picky = copy.deepcopy(tokenizer)
    picky.chat_template = "{% if messages | length > 1 %}{{ raise_exception('one turn') }}{% endif %}" + (
        tokenizer.chat_template
    )
    tasks = [task(1), task(2, CONTEXT), task(3, prompt=task(3)["prompt"] * 2), task(4, tools="[1")]
    found = sample(model, picky, tasks, SHORT)
    assert [one.refused for one in found] == [None, "prompt_too_long", "template_error", "template_error"]
    assert found[0] == sample(*made(), [task(1)], SHORT)[0]
    assert answers(model, picky, tasks, SHORT) == [list(found[0].texts), None, None, None]


def test_an_answer_never_leaves_the_context():
    tasks = [task(number, number) for number in (5, 50, 52, 53)]
    _, tokenizer = made()
    found = sample(*made(), tasks, Sampling(max_new_tokens=1000, attempts=2, temperature=0))
    for one, written in zip(tasks, found, strict=True):
        length = len(tokenizer.apply_chat_template(one["prompt"], add_generation_prompt=True)["input_ids"])
        assert length + written.tokens <= CONTEXT
        assert all(written.finished) or length + written.tokens == CONTEXT
    shorter = sample(*made(), tasks, Sampling(max_new_tokens=1000, max_length=30, temperature=0))
    assert [one.refused for one in shorter] == [None, *["prompt_too_long"] * 3]


def forced(ids):
    """A writer whose model wrote `ids`."""
    return generate._Writer.of(*made(), SHORT).read(ids)


def test_an_answer_ends_at_its_end_and_keeps_the_marks_of_a_call():
    _, tokenizer = made()
    call = '<tool_call>{"name": "f"}</tool_call>'
    ids = tokenizer.encode(call)
    written = forced([*ids, tokenizer.eos_token_id, *[tokenizer.pad_token_id] * 3])
    assert (written.text, written.finished, written.tokens) == (call, True, len(ids) + 1)
    cut = forced(ids)
    assert (cut.text, cut.finished, cut.tokens) == (call, False, len(ids))


def test_the_makers_ends_count_beside_the_tokenizers():
    model, tokenizer = made()
    own = model.generation_config
    user = tokenizer.convert_tokens_to_ids("<|user|>")
    model.generation_config = GenerationConfig(eos_token_id=[user])
    try:
        assert generate._Writer.of(model, tokenizer, SHORT).ends == {user, tokenizer.eos_token_id}
    finally:
        model.generation_config = own


def test_a_model_that_says_no_number_is_an_error():
    model, tokenizer = made()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model.lm_head, "forward", lambda hidden: torch.full((*hidden.shape[:-1], 400), torch.nan))
        with pytest.raises(TrainingError, match="not finite"):
            sample(model, tokenizer, [task(1)], SHORT)


def test_progress_counts_every_answer():
    told = []
    sample(*made(), [task(1), task(2)], replace(SHORT, batch_tokens=1), told.append)
    assert sum(told) == 6
    sample(*made(), [task(1), task(2)], replace(SHORT, temperature=0), told.append)
    assert sum(told) == 12


def test_nothing_is_said_of_long_prompts(caplog, capfd):
    sample(*made(), [task(1), task(2, CONTEXT)], SHORT)
    assert (caplog.text, capfd.readouterr().err) == ("", "")


def test_a_prompt_that_the_template_writes_nothing_of_is_not_asked():
    model, tokenizer = made()
    silent = copy.deepcopy(tokenizer)
    silent.chat_template = "{{ '' }}"
    (one,) = sample(model, silent, [task(1)], SHORT)
    assert (one.texts, one.refused) == ((), "template_error")
