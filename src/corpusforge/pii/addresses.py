"""Postal addresses: a sure piece of one, and what stands around it.

No form is common to all addresses, but most have a piece that little else looks like: a number before a street's name
(`44 Elm Street`), a flat (`Apt. 7`), a box (`P.O. Box 12`), a state with a ZIP code, a street word of another language
before or inside the name (`Rue Dauphine 3`, `Lindenstraße 12`), a corner of two streets, or a word such as `address` in
front. From there the address goes on in both directions over capitalised words and numbers, across line ends: to the
left as far as the number it begins with, to the right over town, state and code.

    Send it to 44 Elm Street Apt. 7, Springfield OH 45501 today.   ->   "44 Elm Street Apt. 7, Springfield OH 45501"

Names of towns and countries alone are left to the named-entity tier.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpusforge.pii import invented
from corpusforge.pii.words import capitalised

if TYPE_CHECKING:
    from collections.abc import Iterator

SCORE: Final = 0.5
_TYPES: Final = "|".join(invented.STREET_TYPES)
_STATES: Final = (
    "A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]|N[CDEHJMVY]|O[HKR]|PA|PR|RI|S[CD]|T[NX]|UT|V[AT]"
    "|W[AIVY]"
)
_ABROAD: Final = (
    r"Rue|Rua|Via|Calle|Avenida|Viale|Piazza|Corso|Praça|Travessa|Carrera|Chemin|Impasse|Quai|Ulica|ul\.|Strada|Rúa"
)
_INSIDE: Final = (
    "straße|strasse|stra[sß]e|str\\.|gasse|weg|allee|platz|gade|vej|gatan|vägen|gränd|gata|veien|vegen|gaten|katu|kuja"
    "|utca|straat|laan|plein|kade|dreef|gracht|steeg|stien|allé|bakken|toften|haven"
)
_CUES: Final = (
    r"address(?: is| to|:| of \w+ is|es)?|to the same:|liv(?:e|es|ed|ing) (?:at|on)|resid(?:e|es|ing) at"
    r"|sent to|send (?:it )?to|deliver(?:ed|y)? (?:it )?to|ship(?:ped)? (?:it )?to|return (?:it )?to"
    r"|meet (?:me |us )?at|office is at|located at|arrived at|mail(?:ed)? (?:it )?to|it's (?:in|at)|it is (?:in|at)"
)
_CAPITAL: Final = "A-Z\u00c0-\u00d6\u00d8-\u00de\u0100-\u017f"
_NUMBER: Final = r"\d{1,6}(?:[-/]\d{1,5})?[A-Za-z]?(?![\w%$€£:]|[.,]\d)"
_WORD: Final = rf"[{_CAPITAL}][\w'’.\-]*"
_PARTICLE: Final = (
    r"(?:de|da|do|dos|das|di|del|della|der|den|des|du|la|le|les|las|los|el|van|von|of|the|y|e|og|upon|aan|and)"
)
_GAP: Final = r"(?:[ ]{0,2},?[ ]{1,3}|[ ,]{0,3}\n[^\w\n]{0,6})"
_NO_YEAR: Final = r"(?<![\w.$€£,/:\-])(?<!\b[Ii]n )(?<!ince )(?<!ntil )(?<!\bof )(?<!\bby )"
_STREET: Final = rf"{_NO_YEAR}{_NUMBER}[ ]{{1,2}}(?:(?:{_NUMBER}|{_WORD}|{_PARTICLE})[ ]{{1,2}}){{1,5}}?(?:{_TYPES})\b"
# Sure pieces, and what is looked for in no time and each of them needs.
_ANCHORS: Final = tuple(
    (re.compile(needed), tuple(map(re.compile, anchors)))
    for needed, *anchors in (
        (rf"[ ](?:{_TYPES})\b", _STREET),
        (
            r"[Aa]pt|APT|Apa|uite|SUI|Ste",
            r"(?<!\w)(?:[Aa]pt|APT|Apartment|[Ss]uite|SUITE|Ste)\b\.?[ ]?(?:#|[Nn]o\.?)?[ ]?\d{1,5}[A-Za-z]?\b"
            r"(?![.,]?\d)",
        ),
        (
            r"Box[ ]\d",
            r"(?<!\w)(?:P\.?[ ]?O\.?[ ]?|PSC[ ]\d{1,5},?[ ]|Unit[ ]\d{1,6}[ ]|AA[ ]|[A-Z]{2}[ ])Box[ ]\d{1,6}\b",
        ),
        (r"PO[ ]A", r"\b[AFD]PO[ ]A[AEP]\b"),
        (
            rf"(?:{_STATES})[ ,]{{1,2}}\d",
            rf"\b{_WORD},?[ \n]{{1,2}}(?:{_STATES})[ ,]{{1,2}}\d{{5}}(?:-\d{{4}})?\b(?![.,]?\d)",
        ),
        (
            rf"(?:{_ABROAD})[ ]",
            rf"\b(?:{_ABROAD})[ ](?:{_PARTICLE}[ ])*{_WORD}(?:[ ]{_WORD}){{0,3}},?[ ]{_NUMBER}",
            rf"\b{_NUMBER},?[ ](?:{_ABROAD})[ ](?:{_PARTICLE}[ ])*{_WORD}",
        ),
        (rf"(?:{_INSIDE})[ ]\d", rf"\b[{_CAPITAL}]\w+(?:{_INSIDE})[ ]{_NUMBER}"),
        (r"\d[A-Z\d]?[ ]\d[A-Z]{2}\b", r"\b[A-Z]{1,2}\d[A-Z\d]?[ ]\d[A-Z]{2}\b"),
    )
)
_CORNERED: Final = rf"{_WORD}|\d{{1,5}}(?:st|nd|rd|th)\b|{_NUMBER}|{_PARTICLE}"
_CORNER: Final = re.compile(rf"\bcorner of ((?:{_CORNERED})(?:[ ](?:{_CORNERED})){{0,9}})")
_CODE: Final = re.compile(
    r"(?i)\b(?:zip(?:[ \-]?code)?|post(?:al)?[ ]?code)\b(?: is|:|=|\")?[ ]{1,3}"
    r"(\d{4,5}(?:-\d{4})?|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})\b"
)
_CUE: Final = re.compile(
    rf"(?i:\b(?:{_CUES}))[ \n]{{1,2}}((?:{_NUMBER}[ ]{{1,2}}){{0,2}}{_WORD}"
    rf"(?:{_GAP}(?:{_WORD}|{_PARTICLE}[ ]{_WORD}|{_NUMBER})){{0,8}})"
)
_CUE_LOW: Final = re.compile(rf"\b(?:{_CUES})[ \n]{{1,2}}")
_NEXT_TO_WORD: Final = re.compile(rf"{_WORD}[ ,\n]+\d|\d[\w/\-]*[ ]+{_WORD}(?:[ ,\n]+{_WORD})")
_HOUSE: Final = re.compile(rf"{_NUMBER}[ ]{{1,2}}{_WORD}")
_LEFT: Final = re.compile(rf"(?:({_NUMBER})|({_WORD})|({_PARTICLE})){_GAP}$")
_RIGHT: Final = re.compile(rf"{_GAP}(?:({_NUMBER}(?:-\d{{4}})?)|(?:{_PARTICLE}[ ]){{0,2}}({_WORD}))")
_REACH: Final = 8  # words in either direction
_STOP: Final = frozenset(
    """
    Phone Tel Telephone Email E-mail Mail Fax Mobile Name Date Thanks Thank Regards Best Please I We The It My He She
    They This That What Is Are Do Can In On At And To From For With Where When Who How Yes No Bot User Call Dear Hi
    Hello
    """.split()  # noqa: SIM905
)
# What one of the patterns needs, for whole columns; in pieces whose automata stay small.
TRIGGERS: Final = (
    r"(?:[Aa]pt|APT|Apartment|[Ss]uite|SUITE|Ste)\.? ?(?:#|[Nn]o\.?)? ?\d|Box \d|[AFD]PO A[AEP]"
    rf"|(?:{_ABROAD}) [A-Zd]|(?:{_INSIDE}) \d",
    rf"[^\s] (?:{_TYPES})(?:[^A-Za-z]|$)|(?:{_STATES})[ ,]{{1,2}}\d{{5}}|[A-Z]\d[A-Z\d]? \d[A-Z]{{2}}|corner of "
    r"|[Zz]ip|[Pp]ost(?:al)? ?[Cc]ode|ZIP",
    rf"(?i:{_CUES})[ \n]{{1,2}}(?:[^\s]+\s{{1,3}}){{0,4}}\d",
)
TRIGGER: Final = "|".join(TRIGGERS)
# Without one of these in a text, no address is found there, whatever the triggers say.
NEEDED: Final = r"\d|corner of |PO A"


def find(text: str) -> list[tuple[int, int, float]]:
    """Start, end and score of every address, disjoint and in order."""
    if text.islower():
        text = capitalised(text)
    spans, known = [], dict[int, "re.Match[str] | None"]()
    for needed, anchors in _ANCHORS:
        if needed.search(text):
            hits = [match.span() for one in anchors for match in one.finditer(text)]
            spans += [(_to_the_left(text, start, known), _to_the_right(text, end)) for start, end in hits]
    if "corner of " in text:
        spans += [match.span(1) for match in _CORNER.finditer(text)]
    low = text.lower() if text.isascii() else ""
    if not low or "zip" in low or "post" in low:
        spans += [match.span(1) for match in _CODE.finditer(text)]
    spans += [match.span(1) for match in _cues(text, low) if _has_street(match.group(1))]
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        elif end > start:
            merged.append([start, end])
    return [(start, end, SCORE) for start, end in merged]


def _cues(text: str, low: str) -> Iterator[re.Match[str]]:
    """What `_CUE` matches; where the text is known in lower case, its words are looked for in that, which is faster."""
    if not low:
        yield from _CUE.finditer(text)
        return
    at = 0
    while (word := _CUE_LOW.search(low, at)) is not None:
        match = _CUE.match(text, word.start())
        if match:
            yield match
        at = match.end() if match else word.start() + 1


def _has_street(value: str) -> bool:
    """A number next to a word, and not a lone word, number or date."""
    return bool(_NEXT_TO_WORD.search(value)) and not _MONTH.search(value)


_MONTH: Final = re.compile(
    r"\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec|January|February|March|April|June|July|August|September"
    r"|October|November|December|AM|PM|Chapter|Section|Figure|Table|Step|Page)\b"
)


def _to_the_left(text: str, start: int, known: dict[int, re.Match[str] | None]) -> int:
    """As far as the number that the address begins with; where there is none, not at all.

    `known` is what stands before a position: the pieces of an address go over the same words.
    """
    at, begin, words = start, start, 0
    for _ in range(_REACH):
        match = _before(text, at, known)
        if match is None or (match.group(2) and match.group(2) in _STOP):
            break
        at = match.start()
        if match.group(1):
            begin, words = at, 0
        else:
            words += 1
    before = _before(text, begin, known) if begin < start else None
    if before and before.group(2) and before.group(2) not in _STOP and not _number_first(text, begin, start):
        return before.start()
    return begin


def _before(text: str, at: int, known: dict[int, re.Match[str] | None]) -> re.Match[str] | None:
    """The number or word that ends in front of `at`."""
    if at not in known:
        known[at] = _word_before(text, at)
    return known[at]


def _word_before(text: str, at: int) -> re.Match[str] | None:
    """The search begins at the last gap before the word, not further off."""
    low, end = max(0, at - 60), at - 1
    if at == 0 or text[end].isalnum():
        return None
    while end > low and not (text[end - 1].isalnum() or text[end - 1] == "_"):
        end -= 1
    gap = max(text.rfind(" ", low, end), text.rfind(",", low, end), text.rfind("\n", low, end))
    return _LEFT.search(text, max(low, gap + 1), at)


def _number_first(text: str, begin: int, start: int) -> bool:
    """Whether the number at `begin` is followed by a word: it is a house number then, and nothing stands before it."""
    return bool(_HOUSE.match(text[begin:start]))


def _to_the_right(text: str, end: int) -> int:
    at = end
    for _ in range(_REACH):
        match = _RIGHT.match(text, at, at + 80)
        if match is None or (match.group(2) and match.group(2).rstrip(".") in _STOP):
            break
        at = match.end() - (len(match.group()) - len(match.group().rstrip(".,'’-")))
    return at
