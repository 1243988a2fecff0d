"""Losses and margins: against a plain computation of one row at a time, whatever the batch, padding and template."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.evaluate import models
from tests.evaluate.models import turns

from corpusforge.errors import ConfigError
from corpusforge.evaluate import likelihood

TOKENIZER = models.tokenizer()
MODEL = models.model(TOKENIZER)
ROWS = [
    {"messages": turns("What is 2 plus 3?", "It is 5.")},
    {"messages": turns("Hi", "Hello there, what may I do for you today?", "Nothing.", "Fine.")},
    {"messages": turns("What is 12 plus 30? Think before you answer, please.", "42")},
]


def plain(messages):
    """Nats and count of the assistant's tokens, from one forward pass over the template's own marks."""
    coded = TOKENIZER.apply_chat_template(
        messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, return_tensors="pt"
    )
    with torch.no_grad():
        logits = MODEL(input_ids=coded["input_ids"]).logits[0]
    ids, said = coded["input_ids"][0], torch.as_tensor(coded["assistant_masks"]).reshape(-1)
    nats = [-torch.log_softmax(logits[t - 1], -1)[ids[t]].item() for t in range(1, len(ids)) if said[t]]
    return sum(nats), len(nats)


@pytest.mark.parametrize("side", ["left", "right"])
def test_losses_are_those_of_single_rows_whatever_the_side_of_padding(side):
    tokenizer = models.tokenizer()
    tokenizer.padding_side = side
    for row, loss in zip(ROWS, likelihood.losses(MODEL, tokenizer, ROWS, 64), strict=True):
        nats, tokens = plain(row["messages"])
        assert (loss.value, loss.tokens) == (pytest.approx(nats / tokens, abs=1e-5), tokens)


def test_a_margin_is_the_difference_of_two_plain_sums():
    pair = {"prompt": turns("What is 2 plus 3?"), "chosen": [said("It is 5.")], "rejected": [said("6, I believe.")]}
    chosen, rejected = (plain([*pair["prompt"], *pair[side]])[0] for side in ("chosen", "rejected"))
    assert likelihood.margins(MODEL, TOKENIZER, [pair], 64) == [pytest.approx(rejected - chosen, abs=1e-4)]


def said(text):
    return {"role": "assistant", "content": text}


def test_a_margin_counts_the_answer_and_not_the_assistants_turns_in_the_prompt():
    text = likelihood.encode(TOKENIZER, turns("Hi", "Hello", "2 plus 2?", "4"), None, 64, first=3)
    scored = [token for token, counts in zip(text.ids, text.said, strict=True) if counts]
    assert TOKENIZER.decode(scored) == "4<|end|>"


def test_swapping_the_answers_turns_the_sign():
    pair = {"prompt": turns("Hi"), "chosen": [said("Yes")], "rejected": [said("No, never")]}
    other = pair | {"chosen": pair["rejected"], "rejected": pair["chosen"]}
    one, two = likelihood.margins(MODEL, TOKENIZER, [pair, other], 64)
    assert one == pytest.approx(-two)
    assert one != 0


@given(st.lists(st.integers(0, 2), min_size=1, max_size=8), st.integers(0, 3))
@settings(max_examples=10)
def test_neither_order_nor_company_changes_a_loss(places, tight):
    rows = [ROWS[place] for place in places]
    cells = likelihood.CELLS
    try:
        likelihood.CELLS = cells if tight == 0 else tight * 10_000
        found = likelihood.losses(MODEL, TOKENIZER, rows, 64)
    finally:
        likelihood.CELLS = cells
    alone = [likelihood.losses(MODEL, TOKENIZER, [row], 64)[0].value for row in rows]
    assert [one.value for one in found] == pytest.approx(alone, abs=1e-5)


def test_what_counts_is_the_assistants_text_in_bytes():
    (loss,) = likelihood.losses(MODEL, TOKENIZER, [{"messages": turns("Hi", "Grüße", "So?", "Ja")}], 64)
    assert loss.size == len("Grüße<|end|>Ja<|end|>".encode())


def test_a_row_is_cut_at_the_limit_and_none_when_nothing_is_left():
    whole = likelihood.encode(TOKENIZER, ROWS[0]["messages"], None, 64)
    cut = likelihood.encode(TOKENIZER, ROWS[0]["messages"], None, len(whole.ids) - 2)
    assert (cut.tokens, cut.size) == (whole.tokens - 2, whole.size - len(".<|end|>"))
    assert likelihood.losses(MODEL, TOKENIZER, [{"messages": turns("Hi there", "Yes")}], 3) == [None]


def test_a_template_that_raises_gives_no_score():
    tokenizer = models.tokenizer()
    tokenizer.chat_template = "{{ raise_exception('no') }}"
    assert likelihood.losses(MODEL, tokenizer, ROWS, 64) == [None] * 3


def test_an_earlier_turn_that_the_template_rewrites_is_not_scored():
    tokenizer = models.tokenizer()
    tokenizer.chat_template = (
        "{% for m in messages %}<|{{ m.role }}|>"
        "{% if m.role == 'assistant' and not loop.last %}(said){% else %}{{ m.content }}{% endif %}<|end|>"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    text = likelihood.encode(tokenizer, turns("Hi", "Hello", "2 plus 2?", "4"), None, 64)
    assert tokenizer.decode([t for t, counts in zip(text.ids, text.said, strict=True) if counts]) == "4<|end|>"


def test_a_tokenizer_without_offsets_is_refused():
    class Slow:
        is_fast = False

        def apply_chat_template(self, messages, **_):
            return "".join(message["content"] for message in messages)

    with pytest.raises(ConfigError, match="where its tokens stand"):
        likelihood.encode(Slow(), turns("a", "b"), None, 9)


def test_the_model_is_left_in_its_mode():
    MODEL.train()
    likelihood.losses(MODEL, TOKENIZER, ROWS[:1], 64)
    assert MODEL.training
    MODEL.eval()
