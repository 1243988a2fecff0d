"""Which entities are looked for, by whom, and where: the table that detection walks.

One line per entity: the Presidio recogniser that finds it, the trigger without which it cannot be there (a regular
expression that both Python and Polars read), and the rule that refuses implausible matches. `find` answers for one
text; `triage` answers the trigger question for whole columns.

    find("Mail zoe@corp.com", {"EMAIL_ADDRESS"})  ->  [Span(5, 17, "EMAIL_ADDRESS", 1.0, "EmailRecognizer")]
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from corpusforge.pii import plausible, secrets
from corpusforge.pii.numbers import named_phones
from corpusforge.pii.presidio import analyse

if TYPE_CHECKING:
    from corpusforge.pii.context import View

_PHONE_SEPARATORS: Final = (
    r"\-x\x{2010}-\x{2015}\x{2212}\x{30fc}\x{ff0d}-\x{ff0f} \x{a0}\x{3000}()\x{ff08}\x{ff09}.\[\]/~"
)
_DIGITS: Final = r"\d(?:[" + _PHONE_SEPARATORS + r"]{0,4}\d){6}"
_IP: Final = r"\d\.\d{1,3}\.\d{1,3}\.\d|[0-9A-Fa-f]{1,4}:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]"
SECRET: Final = "SECRET"  # noqa: S105  # the name of a group of entities


class RecogniserFailed(Exception):
    """A recogniser raised or ran out of time; carries its name and never the text."""


@dataclass(frozen=True)
class Entity:
    """One kind of personal data. `trigger` is a necessary condition; `group` names the columnar test it belongs to."""

    name: str
    recogniser: str
    trigger: str
    plausible: plausible.Rule
    group: str


@dataclass(frozen=True, order=True)
class Span:
    """A finding inside one text, in the text's own positions."""

    start: int
    end: int
    entity: str
    score: float
    recogniser: str


# In order of precedence where spans overlap.
ENTITIES: Final = (
    Entity("EMAIL_ADDRESS", "EmailRecognizer", r"@\w[\w\-]*\.\w", plausible.email, "at"),
    Entity(
        "IBAN_CODE",
        "IbanRecognizer",
        r"[A-Za-z]{2}\d{2}[ \-]?[A-Za-z0-9]{4}[ \-]?[A-Za-z0-9]{4}",
        plausible.anywhere,
        "iban",
    ),
    Entity("CRYPTO", "CryptoRecognizer", r"(?:[bB][cC]1|[13])[a-zA-Z0-9]{25}", plausible.anywhere, "crypto"),
    Entity(
        "CREDIT_CARD",
        "CreditCardRecognizer",
        r"\d{4}[\- ]?\d{3,4}[\- ]?\d{3,4}[\- ]?\d{3}",
        plausible.credit_card,
        "digits",
    ),
    Entity("US_ITIN", "UsItinRecognizer", r"9\d{2}[\- ]?\d{2}[\- ]?\d{4}", plausible.ssn, "digits"),
    Entity("US_SSN", "UsSsnRecognizer", r"\d{3}[\- .]?\d{2}[\- .]?\d{4}", plausible.ssn, "digits"),
    Entity("UK_NHS", "NhsRecognizer", r"\d{3}[\- ]?\d{3}[\- ]?\d{4}", plausible.nhs, "digits"),
    Entity("IP_ADDRESS", "IpRecognizer", _IP, plausible.ip_address, "ip"),
    Entity(
        "MAC_ADDRESS",
        "MacAddressRecognizer",
        r"[0-9A-Fa-f]{2}[:\-][0-9A-Fa-f]{2}[:\-][0-9A-Fa-f]{2}[:\-]|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}",
        plausible.mac_address,
        "mac",
    ),
    Entity("PHONE_NUMBER", "PhoneRecognizer", _DIGITS, plausible.phone, "digits"),
)
BY_NAME: Final = {entity.name: entity for entity in ENTITIES}
NAMES: Final = ("PERSON", "LOCATION", "ORGANIZATION")
KNOWN: Final = (*BY_NAME, *secrets.ENTITIES, *NAMES)
# Columnar triggers, one bit each: the digits trigger stands for five entities.
TRIGGERS: Final = {
    "at": BY_NAME["EMAIL_ADDRESS"].trigger,
    "digits": _DIGITS,
    "ip": _IP,
    "iban": BY_NAME["IBAN_CODE"].trigger,
    "crypto": BY_NAME["CRYPTO"].trigger,
    "mac": BY_NAME["MAC_ADDRESS"].trigger,
    "secret": secrets.TRIGGER,
}
BITS: Final = {group: 1 << number for number, group in enumerate(TRIGGERS)}
ALL: Final = (1 << len(TRIGGERS)) - 1

_RANK: Final = {name: rank for rank, name in enumerate((*secrets.ENTITIES, *BY_NAME, *NAMES))}
_WHOLE: Final = 800  # characters: a shorter text is one window
_MARGIN: Final = 160  # characters around a trigger that a recogniser gets to see
_IN_NUMBERS: Final = "0123456789+-\u2010\u2011\u2012\u2013\u2014\u2015\u2212 \u00a0\u3000()[].,/~x*#\t"
Cut = Callable[[str, int, int], tuple[int, int]]


def _python(pattern: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\x\{([0-9a-f]+)\}", lambda m: chr(int(m.group(1), 16)), pattern))


_COMPILED: Final = {entity.name: _python(entity.trigger) for entity in ENTITIES}
_EMAIL_LEAD: Final = re.compile(r"(?:.*[/=?&{}|`](?=[^@]*\w@))?[^\w@]*", re.DOTALL)
_SECRET_TRIGGER: Final = _python(secrets.TRIGGER)


def find(
    view: View, groups: int = ALL, *, documentation_is_real: bool = False, only_secrets: bool = False
) -> list[Span]:
    """Findings in one text, without overlaps, in order. `groups` is a bit mask of the triggers that may hold.

    Raises RecogniserFailed, naming the recogniser.
    """
    spans: list[Span] = []
    if groups & BITS["secret"] and _SECRET_TRIGGER.search(view.text):
        for start, end, name in secrets.find(view.text):
            spans.append(Span(*view.back(start, end), name, 1.0, "SecretRules"))
    if not only_secrets:
        for entity in ENTITIES:
            if groups & BITS[entity.group]:
                spans.extend(_of_entity(view, entity, documentation_is_real))
    return without_overlaps(spans)


def _of_entity(view: View, entity: Entity, documentation_is_real: bool) -> Iterable[Span]:
    seen = set()
    cut = _digit_run if entity.group == "digits" else _cut
    for low, high in _windows(view.text, _COMPILED[entity.name], cut):
        try:
            found = _raw(view, entity, low, high)
        except Exception:  # noqa: BLE001  # whatever a recogniser raises, the row cannot be called clean
            raise RecogniserFailed(entity.recogniser) from None
        for start, end, score in found:
            start, end = _trimmed(view, low + start, low + end, entity.name)
            if (start, end) in seen or end <= start:
                continue
            seen.add((start, end))
            if entity.plausible(view, start, end, view.place(start, end), documentation_is_real):
                yield Span(*view.back(start, end), entity.name, score, entity.recogniser)


def _raw(view: View, entity: Entity, low: int, high: int) -> list[tuple[int, int, float]]:
    """What the recogniser says about a window; for phones also what their neighbours call one."""
    if entity.name != "PHONE_NUMBER":
        return analyse(entity.recogniser, entity.name, view.text[low:high])
    if not plausible.may_hold_phone(view, low, high):
        return []
    wide = max(0, low - 48)
    named = named_phones(view.text[wide : high + 16])
    return analyse(entity.recogniser, entity.name, view.text[low:high]) + [
        (a + wide - low, b + wide - low, s) for a, b, s in named
    ]


def _trimmed(view: View, start: int, end: int, entity: str) -> tuple[int, int]:
    r"""Without the letter of an escape (`\\nzoe@…`) in front, blanks at either side, or the URL before an address."""
    text = view.text
    if entity == "EMAIL_ADDRESS":
        start += _EMAIL_LEAD.match(text[start:end]).end()  # type: ignore[union-attr]  # always matches
    if start and text[start - 1] == "\\" and text[start] in "nrtbf" and text[max(0, start - 2) : start - 1] != "\\":
        start += 1
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _windows(text: str, trigger: re.Pattern[str], cut: Cut) -> Iterable[tuple[int, int]]:
    """Parts of the text around the trigger's matches, joined where they touch."""
    if len(text) <= _WHOLE and cut is not _digit_run:
        if trigger.search(text):
            yield 0, len(text)
        return
    low = high = -1
    last: re.Match[str] | None = None  # inside the window: of all such matches only the last one's reach counts
    for match in trigger.finditer(text):
        if last and match.end() > high:
            high, last = max(high, cut(text, *last.span())[1]), None
        if match.end() <= high:
            last = match
            continue
        start, end = cut(text, match.start(), match.end())
        if start <= high:
            high = max(high, end)
            continue
        if high >= 0:
            yield low, high
        low, high = start, end
    if high >= 0:
        yield low, max(high, cut(text, *last.span())[1]) if last else high


def _digit_run(text: str, start: int, end: int) -> tuple[int, int]:
    """The whole run of digits and what may stand between them, which no number can leave, and what it leans on."""
    low = len(text[max(0, start - 2 * _MARGIN) : start].rstrip(_IN_NUMBERS))
    tail = text[end : end + 2 * _MARGIN]
    low += max(0, start - 2 * _MARGIN)
    high = end + len(tail) - len(tail.lstrip(_IN_NUMBERS))
    while low > 0 and start - low < 3 * _MARGIN and (text[low - 1].isalnum() or text[low - 1] == ":"):
        low -= 1
    while high < len(text) and high - end < 3 * _MARGIN and (text[high].isalnum() or text[high] == ":"):
        high += 1
    return max(0, low - 2), min(len(text), high + 8)


def _cut(text: str, start: int, end: int) -> tuple[int, int]:
    low, high = max(0, start - _MARGIN), min(len(text), end + _MARGIN)
    while low > 0 and not text[low - 1].isspace() and start - low < 2 * _MARGIN:
        low -= 1
    while high < len(text) and not text[high].isspace() and high - end < 2 * _MARGIN:
        high += 1
    return low, high


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """The spans that stay when the higher-ranked, then the longer, then the earlier one wins; in order."""
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (_RANK[s.entity], s.start - s.end, s.start)):
        at = bisect_right(kept, span.start, key=lambda other: other.start)
        if (at == 0 or kept[at - 1].end <= span.start) and (at == len(kept) or span.end <= kept[at].start):
            kept.insert(at, span)
    return kept
