"""The named-entity tier: sentences of their own, and rules for what the model misses. All names are invented."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.pii import names

pytest.importorskip(names.MODEL)

TEXTS = st.lists(
    st.sampled_from(
        [
            "Mr. Okoro left.",
            "How many are there?",
            "no capitals here",
            "\n",
            " ",
            "Ada, Bo and Okoro ate.",
            "```\nX = 1\n```",
        ]
    ),
    max_size=8,
).map(" ".join)


def people(text):
    return [text[one.start : one.end] for one in next(names.find([text])) if one.entity == "PERSON"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("It was mr. Okoro who called.", "Okoro"),
        ("My name is Tuvoli", "Tuvoli"),
        ("my name is tuvoli", "tuvoli"),
        ("Hi Tuvoli,\nthe meeting is off.", "Tuvoli"),
        ("They met Tuvoli's daughter.", "Tuvoli"),
        ('Tuvoli: "Who is it?"', "Tuvoli"),
        ("Tuvoli, can you please call back?", "Tuvoli"),
    ],
)
def test_what_the_words_around_give_away(text, name):
    assert name in people(text)


@pytest.mark.parametrize(
    "text", ["Yes, can you do it?", 'Answer: "yes"', "I am British, and this is English.", "I'm sorry"]
)
def test_words_that_are_nobody(text):
    assert people(text) == []


@pytest.mark.parametrize(
    "code",
    [
        'def check(address):\n    try:\n        return "Invalid Email"\n    except KeyError:\n        return "MSP"',
        "def is_prime(n):\n    return -1 if n < 2 else any(map(lambda x: n % int(x), str(n)))",
        'def words(text):\n    """\n    words("Hi, my name is Tuvoli") == ["Tuvoli"]\n    """\n    return False',
    ],
)
def test_code_without_a_fence_has_no_names(code):
    assert next(names.find([code])) == []
    assert people(f"My name is Tuvoli.\n{code}\nMr. Okoro wrote it.") == ["Tuvoli", "Okoro"]


@given(TEXTS, TEXTS)
def test_a_text_does_not_change_what_is_found_in_another(one, other):
    alone = [next(names.find([text])) for text in (one, other)]
    assert list(names.find([one, other])) == alone


@given(TEXTS)
def test_sentences_stand_where_they_say(text):
    for start, sentence in names.sentences(text):
        there = text[start : start + len(sentence)]
        assert len(there) == len(sentence)
        assert all(one in (" ", other) for one, other in zip(sentence, there, strict=True))  # code is blanked


def test_the_model_alone_says_what_is_in_a_sentence():
    text = "Margaret Thompson moved to Chicago. How many were there?"
    (_, sentence), *others = names.sentences(text)
    assert not others
    document = names.model()(sentence)
    found = [(e.start_char, e.end_char, names.LABELS[e.label_]) for e in document.ents]
    assert [(one.start, one.end, one.entity) for one in next(names.find([text]))] == found
