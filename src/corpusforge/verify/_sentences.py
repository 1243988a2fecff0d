r"""How many sentences a text has, by rules: no model, no download, the same everywhere.

    "Dr. Smith paid $3.50. Was it 5 p.m.? Yes!"  ->  3        "1. First.\n2. Second."  ->  2

A sentence ends at a full stop, question or exclamation mark that a blank or the end of the text follows (after marks of
Chinese, Japanese and Hindi nothing need follow), not at line ends, as in NLTK's Punkt, by which IFEval counts. A stop
after an abbreviation, an initial or the number of a list item ends none; three dots do before a capital only.
"""

from __future__ import annotations

import re
from typing import Final

_END: Final = re.compile(
    # Looked for where a run of marks begins, not inside of it: a million dots and a letter would take hours.
    r"(?<![.!?\u2026\u203d])[.!?\u2026\u203d]++[\"'”’)\]}*_»]{0,4}(?=\s|\Z)|[\u3002\uff01\uff1f\u0964\u0965\u06d4\u061f]+"
)
_SAYS: Final = re.compile(r"[^\W_]")
_OPENING: Final = "\"'“‘([*_"
_CLOSING: Final = "\"'”’)]}*_»"
_TITLES: Final = "mr mrs ms mx dr prof rev hon st mt sgt capt gen col lt cmdr gov sen rep pres"
_MONTHS: Final = "jan feb apr jun jul aug sep sept oct nov dec"
_SHORT: Final = "vs v viz cf e.g i.e eg ie fig figs eq nos vol ch pp p eds approx ca dept univ assn bros ave blvd rd"
_NEVER: Final = frozenset(f"{_TITLES} {_MONTHS} {_SHORT}".split())
_LATIN: Final = "a.m p.m ph.d m.d b.a m.a b.c a.d etc"
_SOMETIMES: Final = frozenset(f"{_LATIN} inc ltd co corp jr sr u.s u.k u.s.a u.n no mar est al ed art sec".split())
_LOOK: Final = 20  # characters before a stop in which its word stands


def count(text: str) -> int:
    """The number of sentences; what no mark ends is one, what has no letter or digit is none."""
    found = start = 0
    for end in _END.finditer(text):
        if _ends(text, end):
            found += _says(text, start, end.start())
            start = end.end()
    return found + _says(text, start, len(text))


def _says(text: str, start: int, end: int) -> bool:
    return _SAYS.search(text, start, end) is not None


def _ends(text: str, end: re.Match[str]) -> bool:
    """Whether a mark ends a sentence."""
    marks = end[0].rstrip(_CLOSING)
    if any(mark not in ".\u2026" for mark in marks):
        return True
    following = text[end.end() : end.end() + _LOOK].lstrip().lstrip(_OPENING)[:1]
    if marks != ".":
        return not following.islower()
    before = text[max(0, end.start() - _LOOK) : end.start()].split()
    word = before[-1].lstrip(_OPENING) if before else ""
    if word.lower() in _NEVER or (len(word) == 1 and word.isupper() and word != "I"):  # an abbreviation, an initial
        return not following
    if word.lower() in _SOMETIMES:
        return not following or following.isupper()
    return not (word.isdigit() and _begins_a_line(text, end.start() - len(word)))


def _begins_a_line(text: str, at: int) -> bool:
    """Whether nothing but blanks and marks of lists and headings stands before on the line."""
    _, newline, line = text[max(0, at - _LOOK) : at].rpartition("\n")
    return (bool(newline) or at <= _LOOK) and not line.strip(" \t*#>-_")
