"""Which entities are looked for, by whom, and where: the table that detection walks.

One line per entity: the Presidio recogniser that finds it, the trigger without which it cannot be there (a regular
expression that both Python and Polars read), and the rule that refuses implausible matches. `find` answers for one
text; `triage` answers the trigger question for whole columns.

    find("Mail zoe@corp.com", {"EMAIL_ADDRESS"})  ->  [Span(5, 17, "EMAIL_ADDRESS", 1.0, "EmailRecognizer")]
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from corpusforge.pii import addresses, ids, phones, plausible, secrets
from corpusforge.pii.numbers import named_phones
from corpusforge.pii.presidio import MODULES, analyse
from corpusforge.pii.windows import windows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from corpusforge.pii.context import View

_IP: Final = r"\d\.\d{1,3}\.\d{1,3}\.\d|::|(?:[0-9A-Fa-f]{1,4}:){6}"
_LETTER: Final = r"A-Za-z\x{17f}\x{212a}"  # with those that a pattern which ignores case takes for s and k
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
    named: Callable[[View], bool] | None = (
        None  # asked before the search: whether the rule could accept anything in the text
    )


@dataclass(frozen=True, order=True)
class Span:
    """A finding inside one text, in the text's own positions."""

    start: int
    end: int
    entity: str
    score: float
    recogniser: str


_ssn: Final = plausible.may_hold_ssn
# In order of precedence where spans overlap.
ENTITIES: Final = (
    Entity("EMAIL_ADDRESS", "EmailRecognizer", r"@[^\s@]+\.[^\s@]", plausible.email, "at"),
    Entity(
        "IBAN_CODE",
        "IbanRecognizer",
        rf"[{_LETTER}]{{2}}\d{{2}}[ \-]?[{_LETTER}0-9]{{4}}[ \-]?[{_LETTER}0-9]{{4}}",
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
    Entity(
        "US_ITIN", "UsItinRecognizer", r"9\d{2}[\- ]?\d{2}[\- ]?\d{4}", plausible.ssn, "digits", plausible.may_hold_ssn
    ),
    Entity(
        "US_SSN", "UsSsnRecognizer", r"\d{3}[\- .]?\d{2}[\- .]?\d{4}", plausible.ssn, "digits", plausible.may_hold_ssn
    ),
    Entity("UK_NHS", "NhsRecognizer", r"\d{3}[\- ]?\d{3}[\- ]?\d{4}", plausible.nhs, "digits", plausible.may_hold_nhs),
    Entity("IP_ADDRESS", "IpRecognizer", _IP, plausible.ip_address, "ip"),
    Entity(
        "MAC_ADDRESS",
        "MacAddressRecognizer",
        r"[0-9A-Fa-f]{2}[:\-][0-9A-Fa-f]{2}[:\-][0-9A-Fa-f]{2}[:\-]|[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}\.[0-9A-Fa-f]{4}",
        plausible.mac_address,
        "mac",
    ),
    Entity("PHONE_NUMBER", "PhoneRecognizer", phones.SEVEN_DIGITS, plausible.phone, "digits"),
    Entity("ADDRESS", "AddressRules", addresses.TRIGGER, plausible.address, "address"),
)
BY_NAME: Final = {entity.name: entity for entity in ENTITIES}
PRESIDIO: Final = tuple(entity.name for entity in ENTITIES if entity.recogniser in MODULES)
NAMES: Final = ("PERSON", "LOCATION", "ORGANIZATION")
KNOWN: Final = (*BY_NAME, *ids.ENTITIES, *secrets.ENTITIES, *NAMES)
# Columnar triggers, one bit each: the digits trigger stands for five entities.
TRIGGERS: Final = {
    "at": BY_NAME["EMAIL_ADDRESS"].trigger,
    "digits": phones.SEVEN_DIGITS,
    "ip": _IP,
    "iban": BY_NAME["IBAN_CODE"].trigger,
    "crypto": BY_NAME["CRYPTO"].trigger,
    "mac": BY_NAME["MAC_ADDRESS"].trigger,
    "secret": secrets.TRIGGER,
    "address": addresses.TRIGGER,
    "ids": ids.TRIGGER,
}
BITS: Final = {group: 1 << number for number, group in enumerate(TRIGGERS)}
ALL: Final = (1 << len(TRIGGERS)) - 1

_RANK: Final = {name: rank for rank, name in enumerate((*secrets.ENTITIES, *ids.ENTITIES, *BY_NAME, *NAMES))}
_COMPILED: Final = {entity.name: phones.python(entity.trigger) for entity in ENTITIES}
_EMAIL_LEAD: Final = re.compile(r"(?:.*[/=?&{}|`](?=[^@]*\w@))?[^\w@]*", re.DOTALL)
_SECRET_TRIGGER: Final = phones.python(secrets.TRIGGER)
_IDS_TRIGGER: Final = phones.python(ids.TRIGGER)


def raw(text: str, entity: str) -> list[tuple[int, int, float]]:
    """Start, end and score of what AnalyzerEngine finds of one kind in a text, before any rule of ours.

    Of phone numbers those that have seven digits with nothing but separators between them. Raises what a recogniser
    raises.
    """
    if entity == "PHONE_NUMBER":
        return phones.find(text)
    if entity not in PRESIDIO:
        raise KeyError(entity)
    return list(_presidio(text, BY_NAME[entity]))


def find(
    view: View, groups: int = ALL, *, documentation_is_real: bool = False, only_secrets: bool = False
) -> list[Span]:
    """Findings in one text, without overlaps, in order. `groups` is a bit mask of the triggers that may hold.

    Raises RecogniserFailed, naming the recogniser.
    """
    spans: list[_Placed] = []
    if groups & BITS["secret"]:
        spans.extend(_secrets(view))
    if not only_secrets:
        if groups & BITS["ids"] and _IDS_TRIGGER.search(f"{view.text} {view.lead}"):
            spans.extend(_ids(view))
        for entity in _of_groups(groups):
            # The test for addresses is dear in Python: where a column was asked, its answer will do.
            asked = entity.group == "address" and groups != ALL and not view.text.islower()
            if (asked or _COMPILED[entity.name].search(view.text)) and (not entity.named or entity.named(view)):
                spans.extend(_of_entity(view, entity, documentation_is_real, spans))
    return without_overlaps(placed.span for placed in spans)


@cache
def _of_groups(groups: int) -> tuple[Entity, ...]:
    return tuple(entity for entity in ENTITIES if groups & BITS[entity.group])


@dataclass(frozen=True)
class _Placed:
    """A finding, and where it stands in the view."""

    span: Span
    low: int
    high: int


def _secrets(view: View) -> list[_Placed]:
    """Secrets in the text, and the text itself where the key before it names it: `{"password": "…"}`."""
    try:
        found = secrets.find(view.text) if _SECRET_TRIGGER.search(view.text) else []
        found += secrets.named(view.label, view.text)
    except Exception:  # noqa: BLE001  # as below
        raise RecogniserFailed("SecretRules") from None
    places = dict.fromkeys(found)
    return [_Placed(Span(*view.back(start, end), name, 1.0, "SecretRules"), start, end) for start, end, name in places]


def _ids(view: View) -> list[_Placed]:
    try:
        found = list(ids.find(view))
    except Exception:  # noqa: BLE001  # as below
        raise RecogniserFailed("NationalIds") from None
    return [
        _Placed(Span(*view.back(low, high), name, ids.SCORE, "NationalIds"), low, high) for low, high, name in found
    ]


def _of_entity(view: View, entity: Entity, documentation_is_real: bool, before: Sequence[_Placed]) -> list[_Placed]:
    try:
        return list(_believed(view, entity, documentation_is_real, before))
    except Exception:  # noqa: BLE001  # whatever a recogniser or a rule raises, the row cannot be called clean
        raise RecogniserFailed(entity.recogniser) from None


def _believed(view: View, entity: Entity, documentation_is_real: bool, before: Sequence[_Placed]) -> Iterator[_Placed]:
    seen = set()
    for start, end, score in _search(view, entity, before):
        start, end = _trimmed(view, start, end, entity.name)
        if (start, end) in seen or end <= start:
            continue
        seen.add((start, end))
        if entity.plausible(view, start, end, view.place(start, end), documentation_is_real):
            yield _Placed(Span(*view.back(start, end), entity.name, score, entity.recogniser), start, end)


def _search(view: View, entity: Entity, before: Sequence[_Placed]) -> list[tuple[int, int, float]]:
    if entity.name == "PHONE_NUMBER":
        return _phones(view, before)
    return list(_presidio(view.text, entity)) if entity.name in PRESIDIO else addresses.find(view.text)


def _presidio(text: str, entity: Entity) -> Iterable[tuple[int, int, float]]:
    """What the recogniser says about the text, asked only about the parts that matter."""
    for low, high in windows(text, _COMPILED[entity.name], entity.group):
        for start, end, score in analyse(entity.recogniser, entity.name, text[low:high]):
            yield low + start, low + end, score


def _phones(view: View, before: Sequence[_Placed]) -> list[tuple[int, int, float]]:
    """What the recogniser says, and what the text itself calls a phone number.

    Not asked for where the rule would refuse whatever it said, and inside findings of a higher rank that stay.
    """
    stay = without_overlaps(placed.span for placed in before)
    covered = sorted((placed.low, placed.high) for placed in before if placed.span in stay)

    def wanted(low: int, high: int) -> bool:
        at = bisect_right(covered, low, key=itemgetter(0))
        return (at == 0 or covered[at - 1][1] < high) and plausible.may_hold_phone(view, low, high)

    return phones.find(view.text, wanted) + named_phones(view.text)


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


def without_overlaps(spans: Iterable[Span]) -> list[Span]:
    """The spans that stay when the higher-ranked, then the longer, then the earlier one wins; in order."""
    spans = list(spans)
    if len(spans) < 2:
        return spans
    kept: list[Span] = []
    for span in sorted(spans, key=lambda s: (_RANK[s.entity], s.start - s.end, s.start)):
        at = bisect_right(kept, span.start, key=lambda other: other.start)
        if (at == 0 or kept[at - 1].end <= span.start) and (at == len(kept) or span.end <= kept[at].start):
            kept.insert(at, span)
    return kept
