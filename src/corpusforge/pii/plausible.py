"""Is this match what its recogniser says? Rules about digits and neighbours that patterns alone cannot see.

Presidio's patterns take timestamps for cards, versions for addresses, `a::b` for IPv6 and sums for phones. Each rule
here answers for one entity: given the view, the span and its place, keep the finding or not. A rule may only refuse;
what a recogniser did not find is not added.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from corpusforge.pii.context import Place, View
from corpusforge.pii.marks import is_documentation_domain, is_standin_address, is_standin_email, is_standin_phone

Rule = Callable[[View, int, int, Place, bool], bool]

_SERVICE_USERS: Final = frozenset({"git", "hg", "svn", "ssh", "gitea", "gitlab", "noreply", "no-reply"})
# Local parts that name nobody; at a documentation domain they are placeholders and stay.
_PLACEHOLDERS: Final = frozenset(
    """
    user username name yourname your.name your_name you me someone email mail test admin info foo bar root nobody
    john.doe johndoe john_doe jane.doe janedoe jane_doe hr manager assistant support sales contact hello team office
    """.split()  # noqa: SIM905
)
_VERSION: Final = re.compile(
    r"(?:\bv(?:er(?:sion)?s?)?\b|version|release|upgrad|downgrad|updat|firmware|driver|build|patch|agent|chrome|section"
    r"|chapter|clause|figure|table|appendix|oid\b|§)[^\n]{0,32}$"
)
_ADDRESS: Final = re.compile(r"\b(?:ip|ipv4|ipv6|address(?:es)?|host|server|client|ping|dns|gateway|subnet|peer)\b")
_PHONE: Final = re.compile(
    r"\b(?:phones?|telephones?|tele?|tel|mobile|cell(?:phone)?|fax|call(?:ed|ing)?|dial|whatsapp|sms|text(?:ed)?|contact"
    r"|reach(?:ed)?|ring|hotline|helpline|answering|ph|mob|telefon|téléphone|teléfono|handy|celular|номер|hotlines?)\b"
)
_PHONE_FORM: Final = re.compile(
    r"(?<![\d)] )(?<![\d)])[+\uff0b] ?\(?\d|\(\d{1,5}\)[ .\-/]{0,2}\d{2}|\d{2} ?\(\d|"
    r"\d{1,6}[ .\-\u2010-\u2015/()]{1,3}\d{1,5}[ .\-\u2010-\u2015/()]{1,3}\d{2}"
)
_RUN_BEFORE: Final = re.compile(r"[+(\d][\d ().\-]*$")
_PHONE_KEY: Final = re.compile(r"(?:phone|tel|mobile|fax|cell)\w*[\"']?\s{0,2}[:=]\s{0,2}[\"']?$")
_SUM_BEFORE: Final = re.compile(r"(?:[\d.$€£¥#%=*/^_~&?]|\d,)$|\d[.,:]?\s?[-+*/x×÷=(]\s?$|[a-z]-$")
_SUM_AFTER: Final = re.compile(r"[\w%]|[.,:/=*^]\d|\s?[=*^×]")
_DECIMAL: Final = re.compile(r"(?<!\d)(?:\d*\.\d{1,2}(?!\d)|0\.\d)")
_LOOSE_DATE: Final = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
_PHONE_AFTER: Final = re.compile(r"[ \-]{1,2}(?:office|fax|mobile|cell|home|work|phone|tel)\b")
_OTHER_NUMBER: Final = re.compile(
    r"(?:\b|_)(?:orders?|invoice|tracking|isbn(?:-1[03])?|issn|doi|epoch|timestamps?|trace|serial|model|part|sku|case|ticket"
    r"|patent|barcode|upc|ean|build|version|commit|hash|at_millis|millis|ms|arxiv|pmid|account|acct|id|ids|uid|product|item)\b"
)
_CARD: Final = re.compile(
    r"\b(?:cards?|credit|debit|visa|mastercard|amex|american express|cc|discover"
    r"|jcb|diners|maestro|pay(?:ment|ing)?|cvv|cvc)\b"
)
_SSN: Final = re.compile(r"\b(?:ssns?|social security|social|itin|tax(?:payer)?(?: id)?|tin)\b")
_SSN_FORM: Final = re.compile(r"\d{3}-\d{2}-\d{4}")
_NHS: Final = re.compile(r"\b(?:nhs|national health|health (?:service|authority))\b")
_DATE: Final = re.compile(
    r"(?:1[5-9]|20|21)\d\d[-/.](?:0?[1-9]|1[0-2])[-/.](?:0?[1-9]|[12]\d|3[01])(?:\D.*)?"
    r"|(?:0?[1-9]|[12]\d|3[01])[-/.](?:0?[1-9]|[12]\d|3[01])[-/.](?:1[5-9]|20|21)\d\d(?:\D.*)?"
    r"|(?:1[5-9]|20)\d\d ?[-–] ?(?:1[5-9]|20)\d\d"
)
_TIMESTAMP: Final = re.compile(r"(?:1[0-9]{9}|1[0-9]{12}|1[0-9]{15}|1[0-9]{18}|(?:19|20)\d{12}|(?:19|20)\d{6})")
_PUBLIC_SERVICES: Final = frozenset({"8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9", "1.2.3.4", "4.4.4.4"})
_DOCUMENTATION: Final = tuple(
    ipaddress.ip_network(net)
    for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20")
)
# Issuer prefixes and lengths in use (ISO/IEC 7812 registrations of the large networks).
_CARDS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|3(?:0[0-5]|095|[689]\d)\d{11,13}|35(?:2[89]|[3-8]\d)\d{12}|(?:2131|1800)\d{11}"
    r"|62\d{14,17}|(?:50|5[6-9]|6[0-9])\d{10,17}"
)


def email(view: View, start: int, end: int, place: Place, documentation_is_real: bool) -> bool:
    """No remote (`git@host:path`), no handle in a URL (`site.com/@ann.lee`), no stand-in, no documentation in code."""
    value = view.text[start:end]
    local, _, domain = value.lower().rpartition("@")
    if (
        is_standin_email(value)
        or not local
        or local.endswith("/")
        or not re.search(r"\.[^\W\d_][\w\-]*[^\W_]$", domain)
    ):
        return False
    if local in _PLACEHOLDERS and is_documentation_domain(domain) and not documentation_is_real:
        return False
    if local in _SERVICE_USERS or re.match(r":[\w~/.\-]+/", view.text[end : end + 80]):
        return False
    return not (place != "prose" and not documentation_is_real and is_documentation_domain(domain))


def ip_address(view: View, start: int, end: int, place: Place, documentation_is_real: bool) -> bool:
    """A global unicast address that is neither a version, nor a well-known service, nor made for documentation."""
    value = view.text[start:end].split("/")[0].split("%")[0]
    try:
        address = ipaddress.ip_address(value)
    except ValueError:
        return False
    documented = any(address in network for network in _DOCUMENTATION if network.version == address.version)
    if documented:
        return documentation_is_real and _not_version(view, start, end)
    if address.version == 6 and value.count(":") == 7 and place == "prose" and _ADDRESS.search(view.before(start)):
        return not (address.is_private or address.is_loopback)
    if not address.is_global or address.is_multicast or value in _PUBLIC_SERVICES:
        return False
    if address.version == 6:
        return (
            int(address) >> 125 == 1 and len([group for group in value.split(":") if group]) >= 4 and place != "maths"
        )
    return place != "maths" and _not_version(view, start, end)


def _not_version(view: View, start: int, end: int) -> bool:
    before = view.before(start)
    if re.search(r"(?:[\w\])]/|[=<>~^]=?\s?|\bv|[\w.]-|@|\d\.)$", before) and not re.search(
        r"(?:ip|host|addr\w*|server)\s?=\s?$|//$", before
    ):
        return False
    if re.match(r"\.\d|[-+]\w|\w", view.after(end)):
        return False
    named = _VERSION.search(before)
    return not named or bool(_ADDRESS.search(before[named.start() :]))


def may_hold_phone(view: View, low: int, high: int) -> bool:
    """Whether `phone` could accept anything between `low` and `high`: asked before the costly search for numbers."""
    if _PHONE_FORM.search(view.text, low, high):
        return True
    return bool(_PHONE.search(view.text[max(0, low - 48) : high + 16].lower() + view.lead))


def phone(view: View, start: int, end: int, place: Place, _real: bool) -> bool:
    """Seven digits or more in prose; a bare run needs a word such as `call` before it; in code, a key that says so."""
    value = view.text[start:end]
    digits = re.sub(r"\D", "", value)
    before = view.before(start)
    if place == "maths" or len(digits) < 7 or _is_ours(view, start, end) or _no_number(value, digits):
        return False
    if _SUM_BEFORE.search(before) or _SUM_AFTER.match(view.after(end)):
        return False
    if place == "code":
        return bool(_PHONE_KEY.search(before))
    named = _last(_PHONE, before)
    if _PHONE_AFTER.match(view.after(end)):
        named = len(before)
    if _last(_OTHER_NUMBER, before) > named:
        return False
    if value.startswith("+") or (named >= 0 and not _TIMESTAMP.fullmatch(digits)):
        return True
    return _grouped_like_a_phone(view, start, end)


def _is_ours(view: View, start: int, end: int) -> bool:
    """One of our stand-ins, or the last groups of one."""
    run = _RUN_BEFORE.search(view.text[max(0, start - 24) : start])
    lead = run.group() if run else ""
    return is_standin_phone(view.text[start:end]) or is_standin_phone(lead + view.text[start:end])


def _no_number(value: str, digits: str) -> bool:
    """A date, a count from 0 to 9, or one digit over and over."""
    return bool(_DATE.fullmatch(value.strip())) or digits in "01234567890123456789" or len(set(digits)) == 1


def is_no_number(value: str) -> bool:
    """Whether the value is a date, a count or one digit over and over, and so no phone number."""
    return _no_number(value, re.sub(r"\D", "", value))


def _grouped_like_a_phone(view: View, start: int, end: int) -> bool:
    value, before = view.text[start:end], view.before(start)
    groups = re.findall(r"\d+", value)
    if sum(len(group) > 1 for group in groups) < 2 or _in_table(view, start, end):
        return False
    if _DECIMAL.search(value) and (len(groups) < 5 or " " in value):
        return False
    if len(groups) == 2:
        return "(" in value
    return len(groups) > 2 and not _LOOSE_DATE.fullmatch(value) and not re.search(r"\d\s*$|\d[ ,;]{1,2}$", before)


def _in_table(view: View, start: int, end: int) -> bool:
    """A line of nothing but numbers, next to another line that begins or ends with one."""
    if re.search(r"[^\d .,]", view.line(start, end).strip()):
        return False
    text = view.text
    first, last = text.rfind("\n", 0, start), text.find("\n", end)
    above, below = first > 0 and text[first - 1].isdigit(), last >= 0 and text[last + 1 : last + 2].isdigit()
    return above or below


def _last(pattern: re.Pattern[str], text: str) -> int:
    """Where the last match starts; -1 without one."""
    return max((match.start() for match in pattern.finditer(text)), default=-1)


def credit_card(view: View, start: int, end: int, place: Place, _real: bool) -> bool:
    """Luhn holds already: an issuer's prefix and length too, and no timestamp, order or trace number."""
    value = view.text[start:end]
    digits = re.sub(r"\D", "", value)
    before = view.before(start)
    named = bool(_CARD.search(before)) or bool(_CARD.search(view.after(end)))
    if place != "prose" and not named:
        return False
    if len(set(digits)) < 2 or re.search(r"[\d.,=_\-]$", before) or re.match(r"[.\-]?\d", view.after(end)):
        return False
    if _TIMESTAMP.fullmatch(digits) and not named:
        return False
    if _OTHER_NUMBER.search(before[-24:]) and not named:
        return False
    return named or bool(_CARDS.fullmatch(digits))


def may_hold_ssn(view: View) -> bool:
    """Whether `ssn` could accept anything in the text."""
    return bool(_SSN_FORM.search(view.text) or _SSN.search(view.low))


def ssn(view: View, start: int, end: int, place: Place, _real: bool) -> bool:
    """Hyphenated in prose, or in any other form next to a word that names it."""
    value = view.text[start:end]
    before = view.before(start)
    named = bool(_SSN.search(before)) or bool(_SSN.search(view.after(end)))
    if place == "maths" or re.search(r"[\d.\-/]$", before) or re.match(r"[.\-/]?\d", view.after(end)):
        return False
    if named:
        return True
    return place == "prose" and bool(_SSN_FORM.fullmatch(value)) and not _OTHER_NUMBER.search(before)


def may_hold_nhs(view: View) -> bool:
    """Whether `nhs` could accept anything in the text."""
    return bool(_NHS.search(view.low))


def nhs(view: View, start: int, _end: int, place: Place, _real: bool) -> bool:
    """One ten-digit number in eleven passes the checksum: only next to a word that names it."""
    return place == "prose" and bool(_NHS.search(view.before(start)))


def mac_address(view: View, start: int, end: int, place: Place, _real: bool) -> bool:
    """In prose, and not from the documentation range 00:00:5E:00:53."""
    digits = re.sub(r"[^0-9A-Fa-f]", "", view.text[start:end]).lower()
    return place == "prose" and not digits.startswith(("00005e0053", "00005e9053"))


def address(view: View, start: int, end: int, place: Place, _real: bool) -> bool:
    """In prose, or behind a key that says so; not one of our stand-ins."""
    value = view.text[start:end]
    if is_standin_address(value):
        return False
    return place == "prose" or (place == "code" and bool(_ADDRESS_KEY.search(view.before(start))))


_ADDRESS_KEY: Final = re.compile(r"(?:address|street|location|city|zip|postcode)\w*[\"']?\s{0,2}[:=]\s{0,2}[\"']?$")


def anywhere(_view: View, _start: int, _end: int, _place: Place, _real: bool) -> bool:
    """The checksum says enough."""
    return True
