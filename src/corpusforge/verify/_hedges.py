r"""Words that take an answer back: "not 72", "at least 72", "70 to 72", "72, but it could be 73" name no single answer.

    before("The answer is not ")  ->  "negated"      before("at least ")  ->  "several"      before("that is ")  ->  ""
    after(" is wrong")  ->  "negated"                after(" or more")    ->  "several"      after(" or so")     ->  ""
    others(", but it could be 73")  ->  where "73" stands          others(", of which 48 in April")  ->  nothing

A model that is paid for an answer with a way out learns to leave one. What stands directly at the answer counts, and
behind it what offers another one; prose that merely counts other things does not. "about 72" is an answer. All looks at
a bounded number of characters.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_DRESS: Final = r"[\s$€£¥({\[*_\"“'‘`]{0,6}"
_CANDIDATE: Final = rf"{_DRESS}(?P<other>[-+\u2212]?\.?[$\\\d\u00bc-\u00be\u2150-\u215e])"
_NOT: Final = r"(?:\b(?:not|never|neither|nor|cannot)|\w{2,7}n['’]t)"
_NEGATED: Final = re.compile(
    rf"(?:{_NOT}\s+(?:(?:be|been|equals?|equal\s+to|exactly|necessarily|really|actually|it|is|either)\s+){{0,3}}"
    r"|\b(?:anything\s+but|other\s+than|rather\s+than|instead\s+of|except(?:\s+for)?|excluding)\s+)"
    rf"{_DRESS}\Z",
    re.IGNORECASE,
)
_BOUND: Final = re.compile(
    r"(?:\b(?:at\s+(?:the\s+)?(?:very\s+)?(?:least|most)"
    r"|(?:more|less|fewer|greater|larger|bigger|smaller|lower|higher)\s+than(?:\s+or\s+equal\s+to)?"
    r"|exceed(?:s|ing)|upwards?\s+of|(?:any(?:thing|where)|somewhere)\s+(?:from|between)|one\s+of)"
    r"|(?:\A|\b(?:is|are|was|be)\s+)(?:up\s+to|between|from|over|under|above|below))\s+"
    rf"{_DRESS}\Z",
    re.IGNORECASE,
)
_SPACES: Final = "".join(map(chr, (*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B))))
_BLANKS: Final = _SPACES + "\u2028\u2029\u202f\u205f\u3000$€£¥({[*_\"“'‘`"
_BOUND_ENDS: Final = (
    *(
        "least",
        "most",
        "than",
        "to",
        "exceeds",
        "exceeding",
        "of",
        "from",
        "between",
        "over",
        "under",
        "above",
        "below",
    ),
)
_DENYING: Final = ("not", "n't", "n’t", "never", "neither", "nor", "but", "than", "instead", "except", "excluding")
_OPEN: Final = re.compile(
    r"[})$*]{0,3}(?:\+(?=[\s.,;!)$*]|\Z)(?!\s{0,3}[\d\\$(.])"
    r"|\s{0,3}(?:[^\W\d_]{1,20}\s+)?(?:,\s*|\(\s*)?(?:(?:or|and)\s+(?:more|less|fewer|greater|larger|higher|lower|above"
    r"|below|over|under|up|upwards?|beyond)\b(?!\s+[^\W\d_]+\s+(?:than|of))|at\s+(?:least|most)\b|±|\+/-"
    r"|give\s+or\s+take\b|plus\s+or\s+minus\b|plus[/-]minus\b))",
    re.IGNORECASE,
)
_REFUTED: Final = re.compile(
    r"\s{0,3}[})$*\"”']{0,3}(?:\s{0,3}[^\W\d_]{1,20})?\s+(?:(?:is|was|are|were)\s+(?:(?:definitely|certainly|clearly)\s+)?"
    r"(?:wrong|incorrect|false|impossible|(?:not|never)\s+(?:(?:the|a|my|your|an)\s+)?(?:(?:correct|right|final|valid)\s+)?"
    r"(?:answer|solution|result|correct|right|possible|it)\b)"
    r"|(?:is|was|are)n['’]t\s+(?:the\s+|a\s+)?(?:(?:correct|right|final)\s+)?(?:answer|solution|result|correct|right|possible|it)\b)",
    re.IGNORECASE,
)
_FILLERS: Final = (
    r"(?:(?:is|it|it['’]s|that|that['’]s|they|are|so|even|also|else|if|the|answer|number|as|many|much|about|around|exactly"
    r"|rather|indeed|maybe|perhaps|possibly|probably|minus|be)\b[\s,:]{1,3}){0,5}"
)
_OFFERED: Final = re.compile(
    r"\b(?:(?:could|might|may)\s+(?:(?:also|well|even|just|as|equally|still|instead|possibly)\s+){0,4}(?:be|equal)\s+"
    r"|(?:maybe|perhaps|possibly|alternatively|otherwise|or\s+else)\b[\s,:;.!\u2014-]{1,4})" + _FILLERS + _CANDIDATE,
    re.IGNORECASE,
)
_CORRECTED: Final = re.compile(
    r"\b(?:(?:on\s+second\s+thought|i\s+mean|correction|scratch\s+that)\b[\s,:;.!\u2014-]{1,4}"
    r"|(?:no|wait|actually|sorry|hmm)[,:;.!\u2026\u2014]{1,4}\s{1,3})" + _FILLERS + _CANDIDATE,
    re.IGNORECASE,
)
_JOINED: Final = re.compile(
    r"[})$*\s]{0,6}(?:[^\W\d_]{1,20}\s{1,3}){0,2}[,;.(\u2014?-]{0,2}\s{0,3}(?:or|and/or)\s{1,3}"
    + _FILLERS
    + _CANDIDATE,
    re.IGNORECASE,
)
_SAID_OF: Final = re.compile(
    r"(?<![\w.,])(?P<other>[-+\u2212]?\.?\d)[\d.,]{0,12}(?<![.,])[$)*]{0,3}\s{1,3}(?:[^\W\d_]{1,20}\s{1,3})?"
    r"(?:(?:is|are|seems?)\s+(?:also\s+|equally\s+|still\s+|just\s+as\s+)?(?:possible|plausible|acceptable|valid|fine)\b"
    r"|(?:could|might|may|would)\s+(?:also\s+|equally\s+|well\s+|as\s+well\s+){0,2}(?:be\s+(?:right|correct|possible|true|it)"
    r"|work|fit)\b|(?:also\s+)?works\s+(?:too|as\s+well)\b|also\s+(?:works|fits)\b)",
    re.IGNORECASE,
)
_DEPENDS: Final = re.compile(
    r"(?:[,;]\s{1,3}|\()(?:(?:and|or|but)\s+)?(?:(?:it['’]s|it\s+is)\s+)?"
    + _CANDIDATE
    + r"[\d.,]{0,12}\s{1,3}(?:[^\W\d_]{1,20}\s{1,3})?(?:if|unless|otherwise)\b",
    re.IGNORECASE,
)
_FROM_TO: Final = re.compile(
    r"[\s$%°*})]{0,4}(?P<unit>[^\W\d_]{1,20})?\s{0,3}(?:to|through|until|[\u2013\u2014-])[\s$€£¥*({]{0,4}",
    re.IGNORECASE,
)
_BETWEEN: Final = re.compile(r"[\s$%°*})]{0,4}(?:[^\W\d_]{1,20})?\s{1,3}and\s+[$€£¥*({]{0,4}", re.IGNORECASE)
_BETWEEN_BEFORE: Final = re.compile(rf"\bbetween\s+{_DRESS}\Z", re.IGNORECASE)
_CHANGE_BEFORE: Final = re.compile(rf"\w\s+from\s+{_DRESS}\Z", re.IGNORECASE)
_SPREAD_BEFORE: Final = re.compile(
    rf"\b(?:is|are|was|be|ranges?|ranging|runs?|anywhere|somewhere|lies?)\s+from\s+{_DRESS}\Z", re.IGNORECASE
)
_NEAR: Final = 60  # characters before a number that are looked at
_FAR: Final = 300  # characters behind it


def before(text: str) -> str:
    """What the end of a text makes of the number behind it: `negated`, `several` for a bound, or nothing."""
    near = text[-_NEAR:]
    low = near.lower()
    ends = low.rstrip(_BLANKS).endswith(_BOUND_ENDS)  # most texts need no pattern to be searched
    if ends and _BOUND.search(near if len(text) <= _NEAR else f"…{near}"):
        return "several"
    return "negated" if any(word in low for word in _DENYING) and _NEGATED.search(near) else ""


def after(text: str) -> str:
    """What the beginning of a text makes of the number before it: `several`, `negated`, or nothing."""
    near = text[: 2 * _NEAR]
    if _OPEN.match(near):
        return "several"
    return "negated" if _REFUTED.match(near) else ""


def others(text: str) -> Iterator[int]:
    """Where, behind an answer, each other answer begins that is offered in its place."""
    near = text[:_FAR]
    if joined := _JOINED.match(near):
        yield joined.start("other")
    for pattern in (_OFFERED, _CORRECTED, _SAID_OF, _DEPENDS):
        yield from (match.start("other") for match in pattern.finditer(near))


def doubted(between: str) -> bool:
    """Whether what stands between two numbers offers the second beside the first: ", but it could be "."""
    return re.search(r"[.!?\n]", between) is None and _OFFERED.search(f"{between[-_NEAR:]}1") is not None


def spans(earlier: str, between: str, later: str) -> bool:
    """Whether two numbers are the ends of one range, by what stands before, between and behind them.

    "", " to ", ""  ->  True      "it rose from ", " to ", ""  ->  False      "between ", " and ", ""  ->  True
    """
    near = earlier[-_NEAR:]
    if _BETWEEN.fullmatch(between):
        return bool(_BETWEEN_BEFORE.search(near))
    joined = _FROM_TO.fullmatch(between)
    if joined is None or (joined["unit"] and not later.lstrip().startswith(joined["unit"])):
        return False
    return not _CHANGE_BEFORE.search(near) or bool(_SPREAD_BEFORE.search(near))
