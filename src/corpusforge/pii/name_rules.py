"""Names that a small model misses and that the words around them give away.

    Mr. Okoro is late          a title              My name is Okoro      an introduction
    Okoro's daughter           kin and belongings   Okoro: "Who is it?"   a line of dialogue
    Ada, Bo and Okoro          a list in which one is known to be a person

Rules find people only. They are written for English, take one to three capitalised words, and leave words that are no
names (days, months, languages, function words).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpusforge.pii.marks import is_address_word
from corpusforge.pii.recognisers import Span
from corpusforge.pii.words import FUNCTION_WORDS, TERMS, capitalised

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SCORE: Final = 0.6
_WORD: Final = "[A-Z\u00c0-\u00de][\\w’'\\-]*[\\w]"
_NAME: Final = rf"({_WORD}(?:[ ](?:[A-Z]\.[ ])?(?:(?:van|von|de|der|da|di|del|la|al|bin|ter)[ ]){{0,2}}{_WORD}){{0,2}})"
_TITLES: Final = (
    r"Mr|Mrs|Ms|Miss|Mx|Dr|Prof|Professor|Sir|Madam|Mme|Herr|Frau|Rev|Capt|Captain|Sgt|Lt|Uncle|Aunt|Producer|commenter"
)
_KIN: Final = (
    r"address|daughter|son|wife|husband|mother|father|brother|sister|friend|house|phone|email|birthday|boss|account|family"
    r"|mom|mum|dad|name|number|passport|card|child|children|parents|cousin|uncle|aunt|room|desk|office"
)
_RULES: Final = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b(?i:{_TITLES})\b\.?[ ]{_NAME}",
        rf"\b(?i:my name is|my name's|named (?:him|her)|(?:maiden|last|first|full|middle|his|her|given) name (?:is|was)"
        rf"|call me|signed,?|regards,|sincerely,|from:|to:|name:|speak(?:ing)? (?:to|with)|said) {_NAME}",
        rf"(?m)^\W{{0,6}}(?i:Hi|Hello|Hey|Dear|Thanks|Thank you),? {_NAME}(?=[,.!\n]|\Z)",
        rf"\b(?i:I'm|I am|This is) {_NAME}(?=[,.!;]| and | from |\Z)",
        rf"{_NAME}['’][sS] (?:\w+ )?(?i:{_KIN})\b",
        rf"(?m)^\W{{0,4}}({_WORD}), (?i:can|could|would|please|will|did|do|are) (?i:you|I|we)\b",
        rf"(?m)(?:^|\")\W{{0,4}}({_WORD}(?: {_WORD})?):\W{{0,3}}\"",
        rf"(?m)^\W{{0,4}}({_WORD}) (?i:is|was) (?i:from|very|my|his|her|our|married|born)\b",
        rf"(?i:guardian|assistant to|together with|married to|says|said"
        rf"|(?:written|sung|composed|directed|painted|not) by) {_NAME}",
        rf"{_NAME},? (?i:says|said|asked|replied|explained|told|answered|spent|lives|lived|works|worked|was born|has to"
        rf"|is a \d+)\b",
    )
)
_LIST: Final = re.compile(rf"{_WORD}(?:, {_WORD}){{1,20}}(?:,? and {_WORD})?|{_WORD} and {_WORD}")
_ADJECTIVE: Final = re.compile(r".{3,}(?:ish|ese|ian|ican|ly|ing|ed|ism|ist)$")


def find(text: str, sentences: Sequence[tuple[int, str]], known: Sequence[Span]) -> Iterator[Span]:
    """People that a rule finds in the sentences of a text; `known` is what the model found."""
    people = {text[span.start : span.end] for span in known if span.entity == "PERSON"}
    if text.islower():
        sentences = [(at, capitalised(sentence)) for at, sentence in sentences]
    for at, sentence in sentences:
        for rule in _RULES:
            for match in rule.finditer(sentence):
                span = _trimmed(sentence, *match.span(1))
                if span:
                    people.add(sentence[span[0] : span[1]])
                    yield _person(at + span[0], at + span[1])
    for at, sentence in sentences:
        for low, high in _in_lists(sentence, people):
            yield _person(at + low, at + high)


def _in_lists(sentence: str, people: set[str]) -> Iterator[tuple[int, int]]:
    """All members of lists of which one is known to be a person."""
    for match in _LIST.finditer(sentence):
        words = [found.span() for found in re.finditer(_WORD, match.group())]
        if any(match.group()[low:high] in people for low, high in words):
            spans = (_trimmed(sentence, match.start() + low, match.start() + high) for low, high in words)
            yield from (span for span in spans if span)


def _person(start: int, end: int) -> Span:
    return Span(start, end, "PERSON", SCORE, "NameRules")


def _trimmed(sentence: str, start: int, end: int) -> tuple[int, int] | None:
    """Without words at either end that are no names; None where nothing is left."""
    words = [match.span() for match in re.finditer(r"[^ ]+", sentence[start:end])]
    while words and _no_name(sentence[start + words[0][0] : start + words[0][1]]):
        words.pop(0)
    while words and _no_name(sentence[start + words[-1][0] : start + words[-1][1]]):
        words.pop()
    return (start + words[0][0], start + words[-1][1]) if words else None


def _no_name(word: str) -> bool:
    plain = word.removesuffix("'s").removesuffix("’s")
    return (
        plain.lower() in FUNCTION_WORDS
        or plain.upper() in TERMS
        or is_address_word(plain)
        or bool(_ADJECTIVE.match(plain))
        or not plain[:1].isupper()
    )
