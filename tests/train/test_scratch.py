"""A tokenizer and a model from nothing: what the template writes, what it marks, and that a seed is a model."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import ConfigError
from corpusforge.train import scratch
from corpusforge.train._config import ScratchConfig
from corpusforge.train.model import state_hash

TEXTS = ["What is 48 plus 21?", "The answer is 69.", "Grüße aus Kœln, 東京 und 서울"] * 5
CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": [2, "x"]}}}
TOOLS = [{"type": "function", "function": {"name": "add", "description": "adds", "parameters": {}}}]
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Add 1 and 2."}]},
    {"role": "assistant", "content": "", "reasoning_content": "use the tool", "tool_calls": [CALL]},
    {"role": "tool", "name": "add", "content": "3"},
    {"role": "assistant", "content": "It is 3."},
]


@pytest.fixture(scope="module")
def tokenizer():
    return scratch.train_tokenizer(TEXTS, 400, 64)


def test_the_same_texts_give_the_same_tokenizer(tokenizer):
    again = scratch.train_tokenizer(iter(TEXTS), 400, 64)
    assert again.backend_tokenizer.to_str() == tokenizer.backend_tokenizer.to_str()


@given(st.text())
def test_every_text_survives_tokens_and_back(text):
    tokenizer = scratch.train_tokenizer(TEXTS, 330, 64)
    if not any(word in text for word in (*scratch.SPECIAL, *scratch.WRITTEN)):
        assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


def test_each_digit_and_each_role_marker_is_one_token(tokenizer):
    assert [tokenizer.decode(token) for token in tokenizer("4821")["input_ids"]] == list("4821")
    assert all(len(tokenizer(word)["input_ids"]) == 1 for word in (*scratch.SPECIAL, *scratch.WRITTEN))


def test_a_tool_call_is_still_there_when_special_tokens_are_left_out(tokenizer):
    ids = tokenizer("<|assistant|><tool_call>{}</tool_call><|end|>")["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "<tool_call>{}</tool_call>"


def test_the_template_writes_everything_that_a_conversation_has(tokenizer):
    text = tokenizer.apply_chat_template(TALK, tools=TOOLS, tokenize=False)
    for piece in (
        "Be brief.",
        "Add 1 and 2.",
        "use the tool",
        "adds",
        json.dumps(CALL["function"]["arguments"]),
        "It is 3.",
    ):
        assert piece in text
    assert text.count(scratch.END) == 6


def test_the_mask_covers_what_the_assistant_said_and_its_end(tokenizer):
    out = tokenizer.apply_chat_template(TALK, tools=TOOLS, return_dict=True, return_assistant_tokens_mask=True)
    said = tokenizer.decode(
        [token for token, mine in zip(out["input_ids"], out["assistant_masks"], strict=True) if mine]
    )
    assert said.startswith("<think>use the tool</think>")
    assert said.endswith(f"It is 3.{scratch.END}")
    assert said.count(scratch.END) == 2
    assert "Add 1 and 2." not in said


def test_a_prompt_is_the_beginning_of_the_whole(tokenizer):
    whole = tokenizer.apply_chat_template(TALK, tokenize=False)
    assert whole.startswith(tokenizer.apply_chat_template(TALK[:2], tokenize=False, add_generation_prompt=True))


def test_a_seed_is_a_model_and_leaves_the_random_state_alone(tokenizer):
    import torch

    size = ScratchConfig(vocab_size=400, hidden_size=16, layers=1, heads=2)
    before = torch.random.get_rng_state()
    one, same, other = (scratch.make_model(size, tokenizer, 64, seed) for seed in (0, 0, 1))
    assert state_hash(one) == state_hash(same) != state_hash(other)
    assert torch.equal(before, torch.random.get_rng_state())


def test_more_than_two_million_parameters_are_refused(tokenizer):
    with pytest.raises(ConfigError, match=r"model\.from_scratch: [\d,]+ parameters, at most 2,000,000"):
        scratch.make_model(ScratchConfig(hidden_size=512, layers=4), tokenizer, 64, 0)


def test_heads_that_do_not_divide_the_width_are_refused():
    with pytest.raises(ValueError, match="heads: 3 does not divide hidden_size 128"):
        ScratchConfig(heads=3)
