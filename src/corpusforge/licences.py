"""Licences as SPDX expressions, and the restrictions that they carry.

A declared licence must be one that SPDX knows, or `LicenseRef-<name>` for one's own terms; what a record says about
itself is normalised where it can be, and is `unknown` where it cannot.

    "mit" -> MIT      "Apache 2.0" -> Apache-2.0      ["mit", "cc-by-nc-4.0"] -> MIT AND CC-BY-NC-4.0
    "other" -> unknown                                "llama3.1" -> LicenseRef-llama3.1, which implies provider-terms
    restrictions: "Not for training" -> no-train      restrictions: "ask Bob first" -> other-terms
    ["CC-BY-NC-4.0", "see README"] -> unknown, and non-commercial all the same: what is understood holds
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from corpusforge.text.jsontext import maybe_json

if TYPE_CHECKING:
    from collections.abc import Iterable

UNKNOWN: Final = "unknown"
RESTRICTIONS: Final = {
    "no-train": "the source forbids training on it",
    "provider-terms": "a model provider's terms restrict what its output may be used for",
    "non-commercial": "non-commercial use only",
    "share-alike": "works made from it carry the same licence",
    "no-derivatives": "no adapted versions",
    "research-only": "research use only",
    "consent": "given for a stated purpose",
    "other-terms": "restricted in words of its own: read them",
}
"""The restrictions that a source or a record can state, and what each means."""
NEEDS_ALLOWING: Final = ("no-train", "provider-terms", "other-terms")
"""Restrictions that a recipe has to allow by name before rows that carry them become training rows."""

_ALIASES: Final = {
    "mit license": "MIT",
    "the mit license": "MIT",
    "apache 2": "Apache-2.0",
    "apache 2.0": "Apache-2.0",
    "apache2": "Apache-2.0",
    "apache-2": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache license version 2.0": "Apache-2.0",
    "cc0": "CC0-1.0",
    "cc-0": "CC0-1.0",
    "cc zero": "CC0-1.0",
    "public domain": "LicenseRef-public-domain",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd-3": "BSD-3-Clause",
    "bsd 2-clause": "BSD-2-Clause",
    "odbl": "ODbL-1.0",
    "odc-by": "ODC-By-1.0",
    "pddl": "PDDL-1.0",
}
_DASHES: Final = dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-")
_BY: Final = r"cc[ _-]*by((?:[ _-]*(?:nc|nd|sa))*)(?![a-z])"
_CREATIVE_COMMONS: Final = re.compile(
    _BY + r"[ _-]v?(\d(?:\.\d)?)(?: (?:international|unported|generic))?(?: public)?(?: licen[sc]e)?"
)
_UNDER: Final = re.compile(_BY)
_WRITTEN_OUT: Final = (
    (re.compile(r"(?:https?://)?(?:www\.)?creativecommons\.org/publicdomain/zero/1\.0(?:/[\w.-]*)?"), "cc0"),
    (re.compile(r"(?:https?://)?(?:www\.)?creativecommons\.org/licenses/([a-z-]+)"), r"cc-\1"),
    (re.compile(r"(?<=\w)/(\d\.\d)(?:/(?:deed|legalcode)?[\w.-]*)?$"), r"-\1"),
    (re.compile(r"creative ?commons"), "cc"),
    (re.compile(r"attribution"), "by"),
    (re.compile(r"non[ -]?commercial"), "nc"),
    (re.compile(r"share[ -]?alike"), "sa"),
    (re.compile(r"no[ -]?deriv(?:ative)?s?(?: works)?"), "nd"),
)
"""Creative Commons in words and addresses, and in letters."""
_PROVIDERS: Final = re.compile(r"(?:licenseref-)?(llama-?\d(?:\.\d)?|gemma|openai-terms)", re.IGNORECASE)
_NOTHING: Final = {"", "other", "unknown", "none", "null", "n/a", "na", "?", "unspecified", "undefined"}
_OWN_TERMS: Final = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")
_PATTERN: Final = re.compile(r"[*?]")
_PIECES: Final = re.compile(r"\b(?:and|or|with)\b|[,;|/+&()\n]", re.IGNORECASE)
_SAYS: Final = ("spdx", "spdx_id", "id", "name", "license", "licence", "title", "url")
"""Fields of an object that may name a licence, the best first."""
# Restrictions as people write them, without blanks and ASCII's punctuation.
_SAID: Final = {
    "no-train": "notrain notraining donottrain nottobetrainedon notfortraining noai noaitraining notrainingallowed "
    "nottrainable evalonly evaluationonly testonly benchmarkonly notforanytrainingpurpose",
    "provider-terms": "providerterms openaiterms openaitos openaitermsofuse openaitermsofservice modelterms",
    "non-commercial": "noncommercial noncommercialonly noncommercialuse noncommercialuseonly nocommercial "
    "nocommercialuse nc",
    "share-alike": "sharealike sa copyleft",
    "no-derivatives": "noderivatives noderivs nd",
    "research-only": "researchonly research researchuseonly academiconly academicuseonly forresearchonly",
    "consent": "consent consentrequired withconsent",
    "other-terms": "otherterms",
}
_WORDS: Final = {said: name for name, listed in _SAID.items() for said in listed.split()}
_BETWEEN: Final = re.compile(r"[\s!-/:-@\[-`{-~]+")
_NO_RESTRICTION: Final = {"none", "null", "no", "na", "norestrictions", "unrestricted", "false"}


@lru_cache(maxsize=4096)
def normalise(text: str) -> str | None:
    """The SPDX expression that `text` means, `unknown` where it says nothing, None where it is not understood."""
    plain = _folded(text)
    if plain.lower() in _NOTHING:
        return UNKNOWN
    creative = _CREATIVE_COMMONS.fullmatch(_in_letters(plain))
    if creative:
        under = "".join(f"-{one.upper()}" for one in re.findall("nc|nd|sa", creative[1]))
        plain = f"CC-BY{under}-{creative[2] if '.' in creative[2] else creative[2] + '.0'}"
    elif _in_letters(plain) == "cc0":
        plain = "cc0"
    plain = _ALIASES.get(plain.lower(), plain)
    provider = _PROVIDERS.fullmatch(plain)
    if provider:
        plain = f"LicenseRef-{provider[1].lower().replace('llama-', 'llama')}"
    parsed = _parsed(plain)
    return None if parsed is None else str(parsed)


def _folded(text: str) -> str:
    """The text with one form of each letter and dash, and single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).translate(_DASHES).split())


def _in_letters(plain: str) -> str:
    """Creative Commons as `cc by-nc 4.0`, in small letters, where it is written out or is an address."""
    said = plain.lower()
    if said.startswith("cc") or "creative" in said:
        for words, letters in _WRITTEN_OUT:
            said = words.sub(letters, said)
    return said


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> Any:
    """The tree of an SPDX expression; None where it is none, or names a licence that nobody knows."""
    from license_expression import ExpressionError, get_spdx_licensing

    licensing = get_spdx_licensing()
    try:
        parsed = licensing.parse(expression)
        unknown = licensing.unknown_license_keys(parsed)
    except ExpressionError:
        return None
    return parsed if parsed is not None and all(_OWN_TERMS.fullmatch(key) for key in unknown) else None


def of_record(value: Any) -> str:
    """The licence that a record states about itself; a list means that all of them apply."""
    each = [_understood(texts) for texts in _named(value)]
    if UNKNOWN in each:
        return UNKNOWN
    distinct = list(dict.fromkeys(each))
    return " AND ".join(f"({one})" if " OR " in one and len(distinct) > 1 else one for one in distinct)


def implied_by_record(value: Any) -> list[str]:
    """Restrictions that follow from what a record states as its licence, of which not all need be understood."""
    return sorted({name for texts in _named(value) for text in texts for name in _implied_by_text(text)})


def _named(value: Any) -> list[tuple[str, ...]]:
    """Texts that state licences which apply together; those in one tuple state the same one, none of them nothing."""
    value = maybe_json(value)
    if isinstance(value, list):
        return [texts for one in value for texts in _named(one)] or [()]
    if isinstance(value, dict):
        return [tuple(value[name] for name in _SAYS if isinstance(value.get(name), str))]
    return [(value,)] if isinstance(value, str) else [()]


def _understood(texts: Iterable[str]) -> str:
    return next((one for text in texts if (one := normalise(text)) not in (None, UNKNOWN)), None) or UNKNOWN


@lru_cache(maxsize=4096)
def _implied_by_text(text: str) -> frozenset[str]:
    """Restrictions of the licences that a text names, and the restriction that it is the word of."""
    plain = _folded(text)
    whole = normalise(plain)
    if whole is not None and whole != UNKNOWN:
        return frozenset(implied(whole))
    pieces = {piece.strip() for piece in (plain, *_PIECES.split(plain))}
    words = {_WORDS[word] for piece in pieces if (word := _squeezed(piece)) in _WORDS}
    named = {name for piece in pieces if (one := normalise(piece)) for name in implied(one)}
    under = {part for found in _UNDER.findall(_in_letters(plain)) for part in re.findall("nc|nd|sa", found)}
    return frozenset(words | named | {_WORDS[part] for part in under})


def restrictions_of_record(value: Any) -> list[str]:
    """The restrictions that a record states about itself: words or a text of them, or an object of yes and no.

    What is not understood is `other-terms`: a prohibition in unknown words is still one.
    """
    value = maybe_json(value)
    if value is None or value is False:
        return []
    if isinstance(value, dict):
        value = [name for name, holds in value.items() if holds not in (False, None, "")]
    words = (
        re.split(r"[,;|\u3001\uff0c\uff1b\uff5c]", value)
        if isinstance(value, str)
        else value
        if isinstance(value, list)
        else [value]
    )
    found = {_restriction(word) if isinstance(word, str) else "other-terms" for word in words if word is not None}
    return sorted(name for name in found if name)


def _restriction(word: str) -> str:
    """The restriction that a word means; empty where it is empty, or says in so many words that there is none."""
    plain = _folded(word)
    squeezed = _squeezed(plain)
    return "" if not plain or squeezed in _NO_RESTRICTION else _WORDS.get(squeezed, "other-terms")


def _squeezed(plain: str) -> str:
    return _BETWEEN.sub("", plain.casefold())


def components(expression: str) -> list[str]:
    """The licences that apply together, sorted: the sides of `AND`; a choice (`A OR B`) is one of them."""
    tree = _parsed(expression)
    sides = tree.args if _is(tree, "AND") else [expression if tree is None else tree]
    return sorted({part for side in sides for part in ([str(side)] if not _is(side, "AND") else components(str(side)))})


def both(expressions: Iterable[str]) -> str:
    """The licence of what came under all of `expressions`, in whatever order; `unknown` says nothing beside others."""
    parts = sorted({part for one in expressions if one != UNKNOWN for part in components(one)})
    if len(parts) < 2:
        return parts[0] if parts else UNKNOWN
    return " AND ".join(f"({part})" if " OR " in part else part for part in parts)


def implied(expression: str) -> list[str]:
    """Restrictions that follow from the licence itself.

    NC, SA and ND of Creative Commons, share-alike data licences, the terms of model providers. Of a choice (`A OR B`)
    only what both sides imply: the other side can be taken.
    """
    return list(_implied_of(expression))


@lru_cache(maxsize=4096)
def _implied_of(expression: str) -> tuple[str, ...]:
    return tuple(sorted(_implied(_parsed(expression)))) if expression != UNKNOWN else ()


def _implied(tree: Any) -> set[str]:
    if tree is None:
        return set()
    if _is(tree, "AND") or _is(tree, "OR"):
        sides = [_implied(side) for side in tree.args]
        return set.union(*sides) if _is(tree, "AND") else set.intersection(*sides)
    name = str(tree).upper()
    parts = name.split("-")
    found = {"NC": "non-commercial", "SA": "share-alike", "ND": "no-derivatives"} if name.startswith("CC-BY") else {}
    said = {word for part, word in found.items() if part in parts}
    if name.startswith(("ODBL-", "CDLA-SHARING-")):
        said.add("share-alike")
    return said | ({"provider-terms"} if _PROVIDERS.fullmatch(name) else set())


def denied_by(expression: str, deny: Iterable[str], allow: Iterable[str] = ()) -> str | None:
    """What refuses a licence: the pattern of `deny` that it matches, or "not allowed" where no pattern of `allow` does.

    None where it is accepted. Of `A AND B` both must be accepted, of `A OR B` one. `*` and `?` stand for anything,
    case does not matter. `unknown` is refused by its name alone.
    """
    return _denied(expression, tuple(deny), tuple(allow))


@lru_cache(maxsize=4096)
def _denied(expression: str, deny: tuple[str, ...], allow: tuple[str, ...]) -> str | None:
    if expression == UNKNOWN:
        return UNKNOWN if UNKNOWN in deny else None
    tree = _parsed(expression)
    if not (_is(tree, "AND") or _is(tree, "OR")):
        hit = next((pattern for pattern in deny if _matches(expression, pattern)), None)
        return hit or (None if not allow or any(_matches(expression, one) for one in allow) else "not allowed")
    found = [_denied(str(side), deny, allow) for side in tree.args]
    refused = next((one for one in found if one), None)
    return refused if _is(tree, "AND") or all(found) else None


def _matches(licence: str, pattern: str) -> bool:
    return fnmatchcase(licence.lower(), pattern.lower())


def _is(tree: Any, operator: str) -> bool:
    return type(tree).__name__ == operator


def check_pattern(pattern: str) -> str:
    """`pattern` itself, if it can match a licence. Raises ValueError: a misspelt prohibition would prohibit nothing."""
    if not _PATTERN.search(pattern):
        found = normalise(pattern)
        if found is None:
            raise ValueError(f"{pattern!r} is no SPDX licence; write LicenseRef-<name> for terms of your own")
        return found
    from license_expression import get_spdx_licensing

    if pattern.lower().startswith("licenseref-"):
        return pattern
    if not any(_matches(name, pattern) for name in get_spdx_licensing().known_symbols):
        raise ValueError(f"{pattern!r} matches no licence that SPDX knows")
    return pattern


def nearest(name: str, known: list[str]) -> str:
    """A sentence that names the closest known word, or all of them."""
    near = difflib.get_close_matches(name.lower().replace("_", "-"), known, 1, 0.6)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
