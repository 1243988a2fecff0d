r"""choice: the letter of the right option. Spec: {"answer": "B", "choices": ["A", "B", "C", "D"]}.

A letter counts where it is given as the answer: after "####", in a box, after "answer is" or "answer:", or when the
completion (or its last line) begins with it. All places are read, not only the last: an answer that names two
different letters fails, and so does a letter that was not offered. Prose that merely mentions letters names none.

    gold "B"    "B"  "(b)"  "B. Paris"  "**Answer:** B"  "\boxed{B}"  pass    "Answer: A or B"  fail    "E"  fail
"""

from __future__ import annotations

import re
from typing import Any, Final

from corpusforge.verify._final import boxes, line_after, marker_ends, spoken
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

_DRESS: Final = r"[\s*_$`\"'“”\[(\\{]*"
_LETTER: Final = re.compile(
    rf"{_DRESS}(?:(?:(?i:option|choice|letter)|text|textbf|mathrm)\b{_DRESS})?"
    # A capital may be followed by words; a small letter, and the words A and I, only by a mark or nothing.
    r"(?:(?P<alone>[A-Za-z])(?=[\s*_$`\"'”\])}]*(?:[).:,;\]]|$|\b(?:or|and)\b|[/&|]))|(?P<capital>[B-HJ-Z])(?![\w'’]))",
)
_CLOSED: Final = r"[\s*_$`\"'”\])}]*"
_HEDGE: Final = (
    r"(?i:or|and|(?:but\s+)?(?:it\s+)?"
    r"(?:also|maybe|perhaps|possibly|probably|alternatively|(?:could|might)(?:\s+also)?\s+be))\b"
)
_MORE: Final = re.compile(
    rf"(?:{_CLOSED}(?:[,;/&|]|[,;.(]?\s*{_HEDGE}){_DRESS}(?:,?\s*{_HEDGE}{_DRESS}){{0,3}}"
    # "B C", letters and nothing else on the line
    r"|\s(?=[A-Za-z](?:[ \t]+[A-Za-z])*[ \t]*\.?[ \t]*(?:$|\n)))(?:(?i:option|choice)\s+)?(?=[(\[*]*[A-Za-z](?![\w'’]))"
)
_OR_THIS: Final = re.compile(r"\bor\s+(?:(?i:option|choice)\s+)?(?:\((?P<round>[A-Z])\)|(?P<plain>[A-Z])[).:]\s+\w)")
_CHOSEN: Final = re.compile(
    r"\b(?:correct|right|best)\s+(?:option|choice|letter)\b[\s*_]{0,4}(?:[:=]|\bis\b(?!\s+not\b)\s*:?)", re.IGNORECASE
)
_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width forms to ASCII
_MOST_PLACES: Final = 100  # markers that are read
_MOST: Final = 2_000  # characters of an answer that are looked at


def check(task: Task, completion: Any) -> Verdict:
    """Pass when exactly the gold letter is given as the answer."""
    offered = _offered(task.spec.get("choices"))
    answer = task.spec.get("answer")
    gold = answer.strip().strip("().").upper() if isinstance(answer, str) else ""
    if offered is None or gold not in offered:
        return undecided("choice.unreadable_gold")
    named = letters(text_of(completion))
    if not named:
        return failed("choice.no_letter")
    if len(named) > 1:
        return failed("choice.several")
    (letter,) = named
    if letter not in offered:
        return failed("choice.not_offered")
    return passed("choice.letter") if letter == gold else failed("choice.letter")


def letters(completion: str) -> set[str]:
    """Every letter that the completion gives as its answer, in capitals."""
    text = spoken(completion)[0].translate(_WIDE)
    ends = [match.end() for match in re.finditer("####", text)] + marker_ends(text)
    ends += [match.end() for match in _CHOSEN.finditer(text)][-_MOST_PLACES:]
    places = [inside for _, _, inside in boxes(text)] + [line_after(text, end) for end in ends[-_MOST_PLACES:]]
    named = set().union(*(_named(place) for place in places))
    if named or places:
        return named
    lines = [line for line in (text[:_MOST], text.rstrip()[-_MOST:].splitlines()[-1] if text.strip() else "") if line]
    return set().union(*(_named(line) for line in lines))


def _named(place: str) -> set[str]:
    """The letter that a text begins with, and those joined to it."""
    place, named, at = place[:_MOST], set(), 0
    while match := _LETTER.match(place, at):
        named.add((match["alone"] or match["capital"]).upper())
        more = _MORE.match(place, match.end())
        if more is None:
            line = place[match.end() :].partition("\n")[0]
            return named | {found["round"] or found["plain"] for found in _OR_THIS.finditer(line)}
        at = more.end()
    return named


def _offered(choices: Any) -> set[str] | None:
    """Letters of the options: the options themselves where they are letters, else A, B, C, …; None for no list."""
    if not isinstance(choices, (list, tuple)) or not 2 <= len(choices) <= 26:
        return None
    if all(isinstance(one, str) and len(one) == 1 and one.isascii() and one.isalpha() for one in choices):
        return {one.upper() for one in choices}
    return {chr(ord("A") + number) for number in range(len(choices))}
