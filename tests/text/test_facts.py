"""Numbers and names that two texts must agree in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text.facts import facts


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The capital of France is Paris.", "Paris is the capital of France."),
        ("Ada pays five dollars.", "ada pays 5 dollars"),
        ("It costs 1,000 dollars.", "It costs 1000 dollars."),
        ("It weighs 2,5 kilos", "It weighs 2.5 kilos"),
        ("١٢ boats and 3 carts", "3 carts and １２ boats"),
        ("whats the time in rome", "What is the time in Rome?"),
        ("Write a poem about a ferry.", "Compose verses on a ferry."),
        ('She said: "Go home."', "Go home, she said."),
        ("We met in the U2 bar", "At the u2 bar we met"),
        ("What is the capital of France?", "Which city is France's capital?"),
        ("The keeper\u2019s boat is in Rome", "In Rome is the boat of the keeper"),
        ("", "Nothing"),
    ],
)
def test_facts_agree(one: str, other: str) -> None:
    assert facts(one).agree(facts(other))
    assert facts(other).agree(facts(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ada pays 5 dollars.", "Ada pays 7 dollars."),
        ("Ada pays five dollars.", "Ada pays seven dollars."),
        ("Ada pays 5 and 5.", "Ada pays 5."),
        ("It costs 1.5 dollars", "It costs 15 dollars"),
        ("It costs 1,50 dollars", "It costs 1,500 dollars"),
        ("He lives in Rome.", "He lives in Oslo."),
        ("He lives in Rome.", "He lives there."),
        ("the nasa report", "the ESA report"),
        ("Room B2 is free", "Room B3 is free"),
        ("٣ boats", "٤ boats"),
    ],
)
def test_facts_differ(one: str, other: str) -> None:
    assert not facts(one).agree(facts(other))
    assert not facts(other).agree(facts(one))


@given(st.text(max_size=60))
def test_every_text_agrees_with_itself(text: str) -> None:
    assert facts(text).agree(facts(text))
