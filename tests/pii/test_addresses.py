"""Postal addresses are found whole, and what only looks like one stays. All of them are invented."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.pii import addresses, phones
from corpusforge.pii.context import View
from corpusforge.pii.marks import is_standin_address
from corpusforge.pii.recognisers import find
from corpusforge.pii.standins import Standins

TRIGGER = phones.python(addresses.TRIGGER)
WHOLE = [
    "44 Elm Street Apt. 7, Springfield OH 45501",
    "1207 North Harbor Boulevard",
    "P.O. Box 314",
    "PSC 12, Box 3456\nAPO AP 96201",
    "Rue Dauphine 3",
    "Lindenstraße 12",
    "12 Rua das Flores",
    "9 Elm 44\nSuite 12\nDayton, OH 45402",
]


def values(text):
    return [text[one.start : one.end] for one in find(View(text)) if one.entity == "ADDRESS"]


@pytest.mark.parametrize("address", WHOLE)
@pytest.mark.parametrize("around", ["{}", "Please send it to {} today.", "He wrote:\n{}\nand left."])
def test_an_address_is_found_whole(address, around):
    found = values(around.format(address))
    assert len(found) == 1
    assert address in found[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("my zip code is 45402", "45402"),
        ("at the corner of Elm and 3rd Street", "Elm and 3rd Street"),
        ("i live at 44 elm street apt. 7 in dayton", "44 elm street apt. 7"),
        ("the address is Elm 44, Dayton", "Elm 44, Dayton"),
    ],
)
def test_what_the_words_around_give_away(text, value):
    assert values(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "He drove 44 miles down the road to Dayton.",
        "In 2019 Wall Street fell by 12 %.",
        "The rent of the apartment is 1200 a month, apartment 359.60 + 800",
        "See Unit 3, Box 2 is red, Section 4 Place 2",
        "address = 'x' + street[12]",
        "She came to 12 March events and lived at home.",
        "Way to go! 3 Ways, 4 Squares",
    ],
)
def test_what_only_looks_like_an_address(text):
    assert values(text) == []


@given(st.sampled_from(WHOLE), st.integers(0, 1000))
def test_a_stand_in_keeps_the_form_and_is_known_as_ours(address, number):
    made = Standins(b"k" * 16, str(number), "").of("ADDRESS", address)
    assert is_standin_address(made)
    assert [c for c in made if c in ",\n."] == [c for c in address if c in ",\n."]
    assert not values(f"It went to {made} today.")


def test_megabytes_take_seconds():
    started = time.process_time()
    for text in ("12 Elm " * 100_000, "Street " * 100_000, "1 2 3 " * 100_000, "A" * 500_000):
        find(View(text))
    assert time.process_time() - started < 30
