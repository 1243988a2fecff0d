"""Phone numbers that no numbering plan knows, but the text calls a phone number.

phonenumbers finds what is valid in the regions it is asked for. People also write numbers with a digit missing, or of
a country that was not asked for: `(88) 684-334`, `25-62-29-72`. Where a word such as `call`, `fax` or `mobile` stands
next to seven to fifteen digits in phone-like groups, they are one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from corpusforge.pii import phones

if TYPE_CHECKING:
    from collections.abc import Iterator

SCORE: Final = 0.4
_REACH: Final = 100  # characters
_SEVEN: Final = phones.python(phones.SEVEN_DIGITS)

_WORDS: Final = (
    r"phones?|telephone|tel|mobile|mob|cell(?:phone)?|fax|call|dial|whatsapp|sms|text|contact|reach|ring|hotline"
)
_FILLERS: Final = r"(?: (?:number|no\.?|me|us|him|her|them|at|on|is|to|the|my|our|your)){0,4}"
_NUMBER: Final = (
    r"(?<![\w.$€£:/=\-])(?<!\d,)(?:\+|00)?\(?\d{1,5}\)?(?:[ .\-]{0,2}\(?\d{1,5}\)?){1,6}"
    r"(?:[ ]?(?:x|ext\.?)[ ]?\d{1,6})?(?![\w%$€£]|[.,:/=]\d)"
)
_BEFORE: Final = re.compile(rf"(?i)\b(?:{_WORDS}|answering)(?:s|ing|ed)?{_FILLERS}[:#.]?\s{{1,2}}({_NUMBER})")
_LABEL: Final = r"[ \-]{1,2}(?:office|fax|mobile|cell|home|work|phone|tel)\b"
_AFTER: Final = re.compile(rf"(?i)({_NUMBER}){_LABEL}")
# What each pattern needs, as something that is looked for in no time: in lower case, in less than none.
_NEEDED: Final = (rf"\b(?:{_WORDS}|answering)", rf"\d{_LABEL}")
_ASKED: Final = tuple(zip((_BEFORE, _AFTER), map(re.compile, _NEEDED), strict=True))
_ASKED_ANY_CASE: Final = tuple(zip((_BEFORE, _AFTER), (re.compile(f"(?i){one}") for one in _NEEDED), strict=True))


def named_phones(text: str) -> list[tuple[int, int, float]]:
    """Start, end and score of the numbers that `text` calls a phone number."""
    found = set()
    lower, asked = (text.lower(), _ASKED) if text.isascii() else (text, _ASKED_ANY_CASE)
    for low, high in _around(text):
        for pattern, needed in asked:
            for match in pattern.finditer(text, low, high) if needed.search(lower, low, high) else ():
                digits = sum(character.isdigit() for character in re.split("(?i)x|ext", match.group(1))[0])
                if 7 <= digits <= 15:
                    found.add((match.start(1), match.end(1), SCORE))
    return sorted(found)


def _around(text: str) -> Iterator[tuple[int, int]]:
    """Parts of the text around seven digits in a row: a number, and the words that name it, are no longer than that."""
    low, high = 0, -1
    for match in _SEVEN.finditer(text):
        if match.start() - _REACH > high >= 0:
            yield low, high
        if match.start() - _REACH > high:
            low = max(0, match.start() - _REACH)
        high = match.end() + _REACH
    if high >= 0:
        yield low, min(high, len(text))
