"""How our stand-ins are recognised: values that nobody can own, in forms that need no key to tell.

    e-mail      the last two letters of the local part are a checksum of the rest, at example.com, .net or .org
    phone       a North American number with exchange 555 and line 0100 to 0199; elsewhere 000 where a national number
                begins, which no numbering plan assigns
    address     names from the list of invented ones, numbers that begin with 0
    tags        <EMAIL_ADDRESS>, <SECRET_AWS_KEY>, …

One invented address in 676 at an example domain would be taken for ours; it can belong to nobody either.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from corpusforge.pii import invented

EXAMPLE_DOMAINS: Final = ("example.com", "example.net", "example.org")
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_EXTENSION: Final = re.compile(r"(?i)\s?(?:x|ext)\.?\s?\d+$")
TAG: Final = re.compile(r"<[A-Z][A-Z0-9_]{2,40}>")


def checksum_letters(text: str) -> str:
    """Two letters that depend on all of `text`."""
    value = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4, person=b"cf-standin").digest(), "big") % 676
    return _LETTERS[value // 26] + _LETTERS[value % 26]


def is_documentation_domain(domain: str) -> bool:
    """A domain that RFC 2606 or RFC 6761 reserves, or a name below one."""
    domain = domain.lower().rstrip(".")
    if domain.rpartition(".")[2] in ("example", "test", "invalid", "localhost"):
        return True
    return any(domain == name or domain.endswith("." + name) for name in EXAMPLE_DOMAINS)


def is_standin_email(value: str) -> bool:
    """Whether `value` is an address that stand-ins are made of."""
    local, _, domain = value.lower().rpartition("@")
    return (
        domain in EXAMPLE_DOMAINS and len(local) > 4 and local.isascii() and local[-2:] == checksum_letters(local[:-2])
    )


def is_standin_phone(value: str) -> bool:
    """Whether `value` is a number that stand-ins are made of: 555-01XX in North America, 000… elsewhere."""
    digits = re.sub(r"\D", "", _EXTENSION.sub("", value))
    if re.fullmatch(r"(?:00)?1?\d{3}55501\d\d", digits):
        return True
    international = value.lstrip(" (").startswith("+")
    return bool(
        re.fullmatch(r"[1-9]\d{0,2}000\d{2,10}" if international else r"(?:00[1-9]\d{0,2})?000\d{3,12}", digits)
    )


def is_standin_address(value: str) -> bool:
    """Whether `value` is an address of ours: every number begins with 0, every name is an invented one."""
    words = re.findall(r"[^\W\d_][\w'’.\-]*|\d[\w]*", value)
    kept = [word for word in words if word[:1].isdigit() or (word[:1].isupper() and not is_address_word(word))]
    return all(word[0] == "0" if word[0].isdigit() else word.rstrip(".") in invented.ALL for word in kept)


def is_address_word(word: str) -> bool:
    """A word that an address has besides names: `Street`, `Apt.`, `OH`; it stays in a stand-in."""
    return word.rstrip(".") in _ADDRESS_WORDS or (len(word) == 2 and word.isascii() and word.isupper())


_ADDRESS_WORDS: Final = frozenset(
    (
        *invented.STREET_TYPES,
        *("Apt", "Apartment", "Suite", "Ste", "Unit", "Box", "PO", "P.O", "PSC", "APO", "FPO", "DPO"),
    )
)
