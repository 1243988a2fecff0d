"""Phone numbers as they are written at home, where the row's language tells the region.

Presidio asks for eight regions, and our rules know the words that English puts beside a number. In a row in Japanese,
`090-2345-6789` is a number of Japan's whatever stands beside it. So in rows of the languages below, the language's
regions are asked for too. A number stands when it is valid there and begins as no other number does, with 0 or +, or
when a word of the language names it (`फ़ोन`, `هاتف`).

    ja    番号は090-2345-6789。   ->   [(3, 16)]
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import phonenumbers

from corpusforge.pii import phones, plausible
from corpusforge.pii.marks import is_standin_phone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.pii.context import View

RECOGNISER: Final = "PhoneOfRegion"
SCORE: Final = 0.4
REGIONS: Final = {
    "de": ("DE", "AT", "CH"),
    "ja": ("JP",),
    "ar": ("SA", "EG", "AE", "MA", "IQ", "JO", "LB", "KW", "QA"),
    "hi": ("IN",),
}
_WORD: Final = {
    "de": "telefon|tel\\b|handy|mobil|nummer|ruf|fax|erreichbar",
    "ja": "電話|携帯|番号|TEL|FAX|連絡先",
    "ar": "هاتف|جوال|الرقم|رقم|موبايل|اتصل|الاتصال|فاكس",
    "hi": "फ़ोन|फोन|मोबाइल|नंबर|नम्बर|संपर्क|कॉल|व्हाट्सएप",
}
_NAMED: Final = {language: re.compile(f"(?i){words}") for language, words in _WORD.items()}
_BEFORE: Final = 40  # characters in which a word may name the number
_AFTER: Final = 20
_TRIES: Final = 2_000  # candidates that may fail in one text and region
_SEVEN: Final = phones.python(phones.SEVEN_DIGITS)


def find(view: View, language: str) -> Iterator[tuple[int, int]]:
    """Start and end, in the view, of numbers of the language's regions."""
    if language not in REGIONS or not _SEVEN.search(view.text):
        return
    seen: set[tuple[int, int]] = set()
    for region in REGIONS[language]:
        for match in phonenumbers.PhoneNumberMatcher(view.text, region, max_tries=_TRIES):
            span = (match.start, match.end)
            if span not in seen and _stands(view, *span, language):
                seen.add(span)
                yield span


def _stands(view: View, start: int, end: int, language: str) -> bool:
    value = view.text[start:end]
    if view.place(start, end) != "prose" or is_standin_phone(value) or plausible.is_no_number(value):
        return False
    if re.search(r"[\d.$€£¥%=*/^_#]$", view.text[max(0, start - 1) : start]):
        return False
    low, high = view.back(start, end)
    around = view.original[max(0, low - _BEFORE) : low] + "\n" + view.original[high : high + _AFTER]
    return value[0] in "0+" or value[:2] in ("(0", "(+") or bool(_NAMED[language].search(around))
