r"""National numbers of people, by python-stdnum's checksums: tax, insurance and identity numbers.

A checksum alone says little: one in ten strings of digits passes. So a kind either has a form that nothing else has
(letters and a date in fixed places, groups of its own), or it is believed only next to a word that names it.

    CPF 529.982.247-25           BR_CPF          the form says enough
    my BSN is 111222333          NL_BSN          the word is needed
    order 111222333              nothing
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.pii.context import View

SCORE: Final = 1.0
_B: Final = r"(?<![\w.\-/+])"
_E: Final = r"(?![\w\-/]|\.\d)"
_REACH: Final = 48  # characters before a number, half as many behind it, in which a word may name it


@dataclass(frozen=True)
class Kind:
    """`form` is how the number is written, `words` what names it, `sure` the forms that need no word."""

    entity: str
    module: str
    form: str
    words: str
    sure: str = ""


KINDS: Final = (
    Kind(
        "IT_FISCAL_CODE",
        "it.codicefiscale",
        r"[A-Za-z]{6}\d{2}[A-Ta-t]\d{2}[A-Za-z]\d{3}[A-Za-z]",
        words=r"codice fiscale",
        sure=r"[A-Z]{6}\d{2}[A-T]\d{2}[A-Z]\d{3}[A-Z]",
    ),
    Kind("MX_CURP", "mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d", "curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d"),
    Kind(
        "CN_RESIDENT_ID",
        "cn.ric",
        r"[1-9]\d{5}(?:19|20)\d{9}[\dXx]",
        r"resident identity|chinese id|id card",
        r"[1-9]\d{5}(?:19|20)\d{9}[Xx]",
    ),
    Kind("CH_AHV", "ch.ssn", r"756\.?\d{4}\.?\d{4}\.?\d{2}", r"\bahv|\bavs\b", r"756\.\d{4}\.\d{4}\.\d{2}"),
    Kind(
        "BE_NATIONAL_NUMBER",
        "be.nn",
        r"\d{2}\.?\d{2}\.?\d{2}-?\d{3}\.?\d{2}",
        r"rijksregister|registre national|national number",
        r"\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}",
    ),
    Kind("BR_CPF", "br.cpf", r"\d{3}\.?\d{3}\.?\d{3}-?\d{2}", r"\bcpf\b", r"\d{3}\.\d{3}\.\d{3}-\d{2}"),
    Kind(
        "FI_PERSONAL_IDENTITY_CODE",
        "fi.hetu",
        r"\d{6}[\-+A-FU-Y]\d{3}[0-9A-Y]",
        r"hetu\b|henkilötunnus|personal identity code",
        r"\d{6}[\-+A]\d{3}[A-Y]",
    ),
    Kind(
        "FR_NIR",
        "fr.nir",
        r"[12] ?\d{2} ?[0-9]{2} ?\d[\dAB] ?\d{3} ?\d{3} ?\d{2}",
        r"\bnir\b|sécurité sociale|\binsee\b|social security",
        r"[12] \d{2} [01]\d \d[\dAB] \d{3} \d{3} \d{2}",
    ),
    Kind("ES_NIF", "es.nif", r"\d{8}[ \-]?[A-Za-z]", r"\b(?:nif|dni)\b|documento nacional"),
    Kind("ES_NIE", "es.nie", r"[XYZxyz][ \-]?\d{7}[ \-]?[A-Za-z]", r"\b(?:nie|nif|dni)\b|extranjero"),
    Kind("DE_TAX_ID", "de.idnr", r"\d{2} ?\d{3} ?\d{3} ?\d{3}", r"steuer-?id|steuer id|\bidnr|steuerliche id|tax id"),
    Kind("PL_PESEL", "pl.pesel", r"\d{11}", r"\bpesel"),
    Kind("SE_PERSONNUMMER", "se.personnummer", r"(?:19|20)?\d{6}[\-+]?\d{4}", r"\bpersonnummer|personal number"),
    Kind("NL_BSN", "nl.bsn", r"\d{4}[. ]?\d{2}[. ]?\d{3}", r"\bbsn\b|burgerservicenummer|sofinummer"),
    Kind("IN_AADHAAR", "in_.aadhaar", r"[2-9]\d{3}[ \-]?\d{4}[ \-]?\d{4}", r"aadhaa?r|\buidai\b"),
    Kind("AU_TFN", "au.tfn", r"\d{3}[ \-]?\d{3}[ \-]?\d{2,3}", r"\btfn\b|tax file"),
    Kind("CA_SIN", "ca.sin", r"\d{3}[ \-]?\d{3}[ \-]?\d{3}", r"social insurance|\bsin(?: number| no| is|:)"),
)
ENTITIES: Final = tuple(kind.entity for kind in KINDS)
_SURE: Final = "|".join(kind.sure.replace(r"[\d", "[0-9").replace(r"\d", "[0-9]") for kind in KINDS if kind.sure)
# What one of the kinds needs, for whole columns: its word, or a form that needs none. Searched in Rust, where `\b` is
# slow in texts that are not ASCII.
TRIGGER: Final = "(?i:{})|{}".format(
    "|".join(kind.words.replace(" ", "[ _]").replace(r"\b", "(?:^|[^a-z]|$)") for kind in KINDS),
    _SURE,
)
DIGITS: Final = 7  # of the shortest of these numbers
# What a text has to have for that anyhow, in steps; of each, one pattern: digits; and a form, or a word without its
# borders, which are slow too.
NEEDED: Final = (
    (rf"(?:\d\D*){{{DIGITS}}}",),
    ("(?i:{})".format("|".join(kind.words.replace(" ", "[ _]").replace(r"\b", "") for kind in KINDS)), _SURE),
)
_BY_NAME: Final = {kind.entity: kind for kind in KINDS}


def find(view: View) -> Iterator[tuple[int, int, str]]:
    """Start, end and entity of every number in the view whose checksum holds and whose form or neighbours name it."""
    for kind, form, words, sure in _compiled():
        lead = f"{view.text} {view.lead}"
        if not (sure and sure.search(view.text)) and not words.search(lead):
            continue
        for match in form.finditer(view.text):
            start, end = match.span()
            place = view.place(start, end)
            named = words.search(view.before(start, _REACH).replace("_", " ")) or words.search(view.after(end))
            plain = place == "prose" and sure and sure.fullmatch(match.group())
            if place != "maths" and (named or plain) and is_valid(kind.entity, match.group()):
                yield start, end, kind.entity


def is_valid(entity: str, value: str) -> bool:
    """Whether the checksum of `value` holds."""
    return bool(_module(_BY_NAME[entity].module).is_valid(value))


@cache
def _module(name: str) -> Any:
    return import_module(f"stdnum.{name}")


@cache
def _compiled() -> list[tuple[Kind, re.Pattern[str], re.Pattern[str], re.Pattern[str] | None]]:
    return [
        (
            kind,
            re.compile(rf"{_B}(?:{kind.form}){_E}"),
            re.compile(f"(?i){kind.words.replace(' ', '[ _]')}"),
            re.compile(kind.sure) if kind.sure else None,
        )
        for kind in KINDS
    ]
