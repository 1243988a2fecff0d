"""Stand-ins: values of the same form that belong to nobody, the same for the same value within a scope.

Which stand-in a value gets is decided by HMAC-SHA256 over the scope, the entity and the value's normal form (an
address in lower case, a number's digits), so that `+1 (212) 456-7890` and `212-456-7890` agree. A postal address is
replaced part by part (street, flat, town, state and ZIP code), a person's name word by word, so that prose and the
fields of a record agree. Ranges:

    EMAIL_ADDRESS  example.com, .net, .org (RFC 2606), with a checksum that marks it as ours
    PHONE_NUMBER   North America: area code and 555-01XX; elsewhere 000 where the national number begins
    CREDIT_CARD, IBAN_CODE, CRYPTO, UK_NHS   a failing checksum, as in national numbers (ids.KINDS)
    US_SSN, US_ITIN                          area 000, never issued
    IP_ADDRESS     documentation networks (RFC 5737, RFC 3849), or benchmarking ones (RFC 2544, RFC 5180)
    ADDRESS        invented names, numbers that begin with 0
    MAC_ADDRESS    00:00:5E:00:53:XX (RFC 9542)

A candidate that occurs in the row, that another value already has, or that a recogniser would find again is refused
and the next one is taken; where none is left, the value becomes a tag such as <PHONE_NUMBER>.
"""

from __future__ import annotations

import re
from itertools import count
from typing import TYPE_CHECKING, Final

from corpusforge.pii import ids, invented
from corpusforge.pii.context import INVISIBLE
from corpusforge.pii.keys import digest
from corpusforge.pii.marks import EXAMPLE_DOMAINS, checksum_letters, is_address_word, is_standin_phone
from corpusforge.pii.occupied import Occupied
from corpusforge.pii.presidio import analyse
from corpusforge.pii.recognisers import RecogniserFailed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

ATTEMPTS: Final = 24
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_WORD: Final = re.compile(r"[^\W\d_][\w'’.\-]*|\d\w*")
_PARTS_OF_ADDRESS: Final = re.compile(r"([ ]*[,;\n]\s*|\s+(?=(?:apt|apartment|suite|ste|unit)\b))", re.IGNORECASE)
_SURE_DIGITS: Final = 9  # a number with fewer is looked for in its own form only
_BASE58: Final = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BECH32: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


class Draw:
    """Endless decisions from one digest, each in [0, n)."""

    def __init__(self, key: bytes, *parts: str) -> None:
        self._key, self._parts, self._block = key, parts, 0
        self._number = 0
        self._room = 1

    def below(self, n: int) -> int:
        """The next decision among `n`."""
        if self._room < n << 32:
            self._number = int.from_bytes(digest(self._key, *self._parts, str(self._block)), "big")
            self._room = 1 << 256
            self._block += 1
        self._number, value = divmod(self._number, n)
        self._room //= n
        return value

    def digits(self, n: int) -> str:
        """The next `n` decimal digits."""
        return "".join(str(self.below(10)) for _ in range(n))


class Standins:
    """The stand-ins of one row. `scope` is the conversation's id, or empty for the whole corpus."""

    def __init__(self, key: bytes, scope: str, occupied: str, *, documentation_is_real: bool = False) -> None:
        self._key, self._scope, self._occupied = key, scope, Occupied(occupied)
        self._real = documentation_is_real
        self._attempt: dict[tuple[str, str], int] = {}
        self._taken: dict[str, tuple[str, str]] = {}
        self._families: set[str] = set()
        self._numbers: dict[tuple[str, str], str] = {}

    def know(self, people: Iterable[str]) -> None:
        """Names of all people in the row: a word that ends one, and begins none, is a family name where it is alone."""
        names = [name.lower().split() for name in people]
        self._families = {name[-1] for name in names if len(name) > 1} - {name[0] for name in names if len(name) > 1}

    def of(self, entity: str, value: str) -> str:
        """The stand-in for `value` in its own format; a tag when the entity has no stand-ins or none is free."""
        make = _MAKERS.get(entity)
        if make is None:
            return tag(entity)
        if entity == "ADDRESS" and len(parts := _PARTS_OF_ADDRESS.split(value)) > 1:
            replaced = [not number % 2 and _is_replaced_in(part) for number, part in enumerate(parts)]
            made = [self.of(entity, part) if new else part for part, new in zip(parts, replaced, strict=True)]
            return tag(entity) if tag(entity) in made else "".join(made)
        if entity == "PERSON":
            return self._person(_INVISIBLE.sub("", value).split())
        return self._of(entity, value, make)

    def numbered(self, entity: str, value: str) -> str:
        """A tag for a key of a JSON object, another one for each value: two keys must not become one."""
        identity = (entity, normal_form(entity, value))
        if identity not in self._numbers:
            taken = self._numbers.values()
            several = (f"<{entity}{f'_{n}' if n > 1 else ''}>" for n in count(1))
            self._numbers[identity] = next(one for one in several if one not in taken and one not in self._occupied)
        return self._numbers[identity]

    def _person(self, words: Sequence[str]) -> str:
        """First and last word, each by its own stand-in."""
        if len(words) < 2:
            alone = "".join(words)
            return self._of("PERSON", alone, _family if alone.lower() in self._families else _given)
        made = [self._of("PERSON", words[0], _given), self._of("PERSON", words[-1], _family)]
        return tag("PERSON") if tag("PERSON") in made else " ".join(made)

    def _of(self, entity: str, value: str, make: Callable[[str, Draw, bool], str]) -> str:
        identity = (entity, normal_form(entity, value))
        known = self._attempt.get(identity)
        for attempt in [known] if known is not None else range(ATTEMPTS):
            draw = Draw(self._key, self._scope, *identity, str(attempt))
            made = make(value, draw, self._real)
            if made and self._free(made, identity) and not _found_again(entity, made):
                self._attempt[identity] = attempt
                self._taken[normal_form(entity, made)] = identity
                return made
        return tag(entity)

    def _free(self, made: str, identity: tuple[str, str]) -> bool:
        holder = self._taken.get(normal_form(identity[0], made))
        return holder == identity or (holder is None and made not in self._occupied)


def tag(entity: str) -> str:
    """`<ENTITY>`."""
    return f"<{entity}>"


def variants(entity: str, value: str) -> dict[str, bool]:
    """What stands for the same value elsewhere: itself, a street of an address, a number's digits.

    True for digits, which may stand in other groups.
    """
    found = {value: False}
    if entity == "ADDRESS":
        parts = _PARTS_OF_ADDRESS.split(value)[::2]
        found |= {part: False for part in parts if re.match(r"\d+\w? +\S", part)}
    if entity == "PHONE_NUMBER":
        digits = re.sub(r"[^0-9]", "", _split_extension(_INVISIBLE.sub("", value))[0])
        if len(digits) >= _SURE_DIGITS:
            found[digits] = True
    return found


def normal_form(entity: str, value: str) -> str:
    """What two spellings of one value have in common."""
    value = _INVISIBLE.sub("", value)
    if entity == "PHONE_NUMBER":
        digits = re.sub(r"\D", "", re.split(r"(?i)\s?(?:x|ext)", value)[0])
        return digits.lstrip("0")[-9:] if len(digits) > 9 else digits
    if entity in ("CREDIT_CARD", "US_SSN", "US_ITIN", "UK_NHS"):
        return re.sub(r"\D", "", value)
    if entity in ("IBAN_CODE", "MAC_ADDRESS", *ids.ENTITIES):
        return re.sub(r"[^0-9A-Za-z]", "", value).upper()
    return value if entity == "CRYPTO" else " ".join(value.lower().split())


def _found_again(entity: str, made: str) -> bool:
    if entity in ids.ENTITIES:
        return ids.is_valid(entity, made)
    if entity in ("PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "CRYPTO", "UK_NHS", "US_SSN"):
        try:
            return not is_standin_phone(made) and bool(analyse(_CHECKED_BY[entity], entity, made))
        except Exception:  # noqa: BLE001  # whatever it raises, what it would find in the row is not known
            raise RecogniserFailed(_CHECKED_BY[entity]) from None
    return False


_CHECKED_BY: Final = {
    "PHONE_NUMBER": "PhoneRecognizer",
    "CREDIT_CARD": "CreditCardRecognizer",
    "IBAN_CODE": "IbanRecognizer",
    "CRYPTO": "CryptoRecognizer",
    "UK_NHS": "NhsRecognizer",
    "US_SSN": "UsSsnRecognizer",
}


def _fill(value: str, digits: str) -> str:
    """The value with its digits replaced in order (`digits` has one for each)."""
    supply = iter(digits)
    return "".join(next(supply) if character.isdecimal() else character for character in _INVISIBLE.sub("", value))


def _count(value: str) -> int:
    return sum(character.isdecimal() for character in value)


def _email(value: str, draw: Draw, _real: bool) -> str:
    local, _, domain = _INVISIBLE.sub("", value).rpartition("@")
    parts = [part for part in re.split(r"([._+\-])", local)[:5] if part]
    words = [
        part if part in "._+-" else draw.digits(len(part)) if part.isdecimal() else invented.word(draw.below, len(part))
        for part in parts
    ]
    body = "".join(words).strip("._+-") or "user"
    body = body if len(body) > 2 else body + invented.word(draw.below, 4)
    body += checksum_letters(body)
    domains = [name for name in EXAMPLE_DOMAINS if name != domain.lower()]
    made = f"{body}@{domains[draw.below(len(domains))]}"
    return made.upper() if local.isupper() and len(local) > 1 else made


def _phone(value: str, draw: Draw, _real: bool) -> str:
    number, extension = _split_extension(_INVISIBLE.sub("", value))
    plain = re.sub(r"\D", "", number)
    american = re.fullmatch(r"(001|1|)[2-9]\d{9}", plain)
    if american and (american.group(1) or not number.startswith("+")):
        area = "23456789"[draw.below(8)] + "02345678"[draw.below(8)] + str(draw.below(10))
        digits = american.group(1) + area + "55501" + draw.digits(2)
    else:
        size = len(plain)
        abroad = 2 if number.lstrip(" (").startswith("+") else 4 if plain.startswith("00") and plain[2:3] != "0" else 0
        kept = plain[: abroad if size > abroad + 6 else 0]
        digits = (kept + "000" + draw.digits(size))[:size]
    return _fill(number, digits) + _fill(extension, draw.digits(_count(extension)))


def _kept_digits(value: str, count: int) -> str:
    return re.sub(r"\D", "", value)[: max(0, count)]


def _split_extension(value: str) -> tuple[str, str]:
    match = re.search(r"(?i)\s?(?:x|ext)\.?\s?\d+$", value)
    return (value[: match.start()], match.group()) if match else (value, "")


def _card(value: str, draw: Draw, _real: bool) -> str:
    size = _count(value)
    head = _kept_digits(value, 1) + draw.digits(size - 2)
    right = (10 - _luhn_sum(head + "0")) % 10
    return _fill(value, head + str((right + 1 + draw.below(9)) % 10))


def _luhn_sum(digits: str) -> int:
    total = 0
    for place, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (2 if place % 2 else 1)
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10


def _iban(value: str, draw: Draw, _real: bool) -> str:
    made = [
        str(draw.below(10)) if c.isdecimal() else invented.letter(draw.below, c) if c.isalpha() else c
        for c in _INVISIBLE.sub("", value)
    ]
    made[:4] = [value[0], value[1], "0", "0"]
    return "".join(made)


def _national(value: str, draw: Draw, _real: bool) -> str:
    """Other digits and letters in the same places; one whose checksum holds is refused and drawn again."""
    return "".join(
        str(draw.below(10)) if c.isdecimal() else invented.letter(draw.below, c) if c.isalpha() else c
        for c in _INVISIBLE.sub("", value)
    )


def _crypto(value: str, draw: Draw, _real: bool) -> str:
    if value[:3].lower() == "bc1":
        return value[:3] + "".join(_BECH32[draw.below(32)] for _ in value[3:])
    return value[0] + "".join(_BASE58[draw.below(58)] for _ in value[1:])


def _area_zero(value: str, draw: Draw, _real: bool) -> str:
    return _fill(value, f"000{draw.below(99) + 1:02d}{draw.below(9999) + 1:04d}")


def _nhs(value: str, draw: Draw, _real: bool) -> str:
    return _fill(value, draw.digits(10))


def _ip(value: str, draw: Draw, real: bool) -> str:
    address, slash, size = value.partition("/")
    if ":" in address:
        head = "2001:2:0:" if real else "2001:db8:"
        made = head + ":".join(f"{draw.below(65535) + 1:x}" for _ in range(5 if real else 6))
    elif real:
        made = f"198.{18 + draw.below(2)}.{draw.below(256)}.{draw.below(254) + 1}"
    else:
        made = ("192.0.2.", "198.51.100.", "203.0.113.")[draw.below(3)] + str(draw.below(254) + 1)
    return made + slash + size


def _mac(value: str, draw: Draw, _real: bool) -> str:
    digits = iter(f"00005e0053{draw.below(256):02x}")
    made = "".join(next(digits) if character.isalnum() else character for character in value)
    return made.upper() if value == value.upper() else made


def _given(_value: str, draw: Draw, _real: bool) -> str:
    return invented.GIVEN[draw.below(len(invented.GIVEN))]


def _family(_value: str, draw: Draw, _real: bool) -> str:
    return invented.FAMILY[draw.below(len(invented.FAMILY))]


def _location(_value: str, draw: Draw, _real: bool) -> str:
    return invented.PLACES[draw.below(len(invented.PLACES))]


def _address(value: str, draw: Draw, _real: bool) -> str:
    """Names and numbers are replaced one by one, in the form of the address; words such as Street stay."""

    def new(match: re.Match[str]) -> str:
        word = match.group()
        if not _is_replaced(word):
            return word
        if word[0].isdigit():
            return "0" + draw.digits(len(word) - 1) if len(word) > 1 else "0"
        return invented.PLACES[draw.below(len(invented.PLACES))]

    return _WORD.sub(new, _INVISIBLE.sub("", value))


def _is_replaced_in(part: str) -> bool:
    return any(map(_is_replaced, _WORD.findall(part)))


def _is_replaced(word: str) -> bool:
    return word[0].isdigit() or (word[0].isupper() and not is_address_word(word))


def _organization(_value: str, draw: Draw, _real: bool) -> str:
    return invented.COMPANIES[draw.below(len(invented.COMPANIES))]


_MAKERS: Final[dict[str, Callable[[str, Draw, bool], str]]] = {
    "EMAIL_ADDRESS": _email,
    "PHONE_NUMBER": _phone,
    "CREDIT_CARD": _card,
    "IBAN_CODE": _iban,
    "CRYPTO": _crypto,
    "US_SSN": _area_zero,
    "US_ITIN": _area_zero,
    "UK_NHS": _nhs,
    "IP_ADDRESS": _ip,
    "MAC_ADDRESS": _mac,
    "ADDRESS": _address,
    "PERSON": _given,
    "LOCATION": _location,
    "ORGANIZATION": _organization,
    **dict.fromkeys(ids.ENTITIES, _national),
}
