"""What two texts must agree in before they may be called the same in other words: their numbers and their names.

    "Ada pays 5 dollars in Rome."   numbers 5   names rome       (Ada begins the sentence: not known to be a name)
    "In Rome, Ada pays five."       numbers 5   names rome, ada

Numbers are compared as a bag: digits of any script, English number words, thousands parted or not. A name is a word
with a capital that does not begin a sentence, or with a capital or a digit behind its first letter (NASA, iPhone, B2);
each name must be a word of the other text, whatever its case. Languages that write all nouns large (German) agree more
seldom, scripts without capitals have no names; both are told in docs/stages/dedupe.md.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = re.compile(r"\d+(?:[.,\u066b\u066c]\d+)*")
_GROUPED: Final = re.compile(r"\d{1,3}(?:[,\u066c]\d{3})+(?!\d)")
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_POSSESSIVE: Final = re.compile(r"['\u2019][sS]?$")
_BEGINS: Final = re.compile(r"(?:^|[.!?:;\u2026\u3002\n\"\u201c\u00ab(\[{*#>|-])\s*$")
_WORDS: Final = (
    "zero", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
_SPELT: Final = {word: str(number) for number, word in enumerate(_WORDS) if word} | {
    word: str(10 * number)
    for number, word in enumerate(("thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred"), 3)
}
"""English number words; "one" is more often a pronoun."""


@dataclass(frozen=True)
class Facts:
    """Numbers in sorted order, names, and all words, the last two in lower case."""

    numbers: tuple[str, ...]
    names: frozenset[str]
    words: frozenset[str]

    def agree(self, other: Facts) -> bool:
        """Whether the numbers are equal, and each text's names are words of the other."""
        return self.numbers == other.numbers and self.names <= other.words and other.names <= self.words


def facts(text: str) -> Facts:
    """Numbers, names and words of a text."""
    text = unicodedata.normalize("NFKC", text)
    numbers = [_plain(found) for found in _NUMBER.findall(text)]
    names, words = set(), set()
    for found in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", found.group())
        folded = word.casefold()
        words.add(folded)
        if folded in _SPELT:
            numbers.append(_SPELT[folded])
        elif len(word) > 1 and (_inside(word) or (word[0].isupper() and not _begins(text, found.start()))):
            names.add(folded)
    return Facts(tuple(sorted(numbers)), frozenset(names), frozenset(words))


def _plain(number: str) -> str:
    """A number in western digits, thousands together."""
    whole = _GROUPED.fullmatch(number) is not None
    return "".join(str(unicodedata.digit(sign)) if sign.isdigit() else "" if whole else "." for sign in number)


def _inside(word: str) -> bool:
    """A capital behind the first letter, or letters and digits in one word."""
    parts = re.split(r"['\u2019-]", word)
    return any(any(sign.isupper() for sign in part[1:]) or (part[0].isalpha() and not part.isalpha()) for part in parts)


def _begins(text: str, at: int) -> bool:
    return _BEGINS.search(text[max(0, at - 8) : at]) is not None or not text[:at].strip()
