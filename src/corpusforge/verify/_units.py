"""Units of measurement beside a number: 5 km is 5000 m, exactly. Definitions are those of pint (BSD-3-Clause).

    convert(5, " km from here", parse("m"))  ->  5000      convert(5, " kg", parse("m"))  ->  None
    convert(5, "", parse("m"))  ->  5                      convert(5, " steps", parse("m"))  ->  5

What follows a number is its unit as far as pint knows the words: names and symbols, products, quotients, powers of one
digit. What pint does not know is prose, and the number is bare. No expression is worked out: pint's parser is given
names and small exponents alone, so that a completion cannot make it compute.
"""

from __future__ import annotations

import os
import re
import threading
from fractions import Fraction
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any, Final

from corpusforge.errors import MissingExtra

_NAME: Final = r"[^\W\d_]{1,30}|[%°]\s?[^\W\d_]{0,12}"
_POWER: Final = (
    r"(?:\s?(?:\^|\*\*)\s?\{?\(?[-+\u2212]?\d\)?\}?(?!\d)"
    r"|[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070-\u2079]"
    r"|[-+\u2212]?[1-9](?![\d.]))?"
)
_JOINT: Final = r"\s?[*/·⋅×\u2022]\s?|\s"
_EXPRESSION: Final = re.compile(
    rf"\s{{0,3}}(?P<over>(?:1\s?)?/\s?|per\s)?(?P<unit>(?:{_NAME}){_POWER}(?:(?:{_JOINT})(?:{_NAME}){_POWER}){{0,5}})"
)
_FACTOR: Final = re.compile(rf"(?P<joint>{_JOINT})?(?P<name>{_NAME})(?P<power>{_POWER})")
_SUPERSCRIPTS: Final = str.maketrans("⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹−", "+-0123456789-")
_RAISED: Final = str.maketrans("+-0123456789−", "⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "^*{}() ")
_EXPONENT: Final = re.compile(
    r"(?<=[^\W\d_])(?<![\d.][eE])"
    r"(?:\s?(?:\^|\*\*)\s?(?:\{\s?[-+\u2212]?\d\s?\}|\([-+\u2212]?\d\)|[-+\u2212]?\d)|[-\u2212][1-9])(?![\w.]*\w)"
)
_REWRITTEN: Final = (
    (re.compile(r"(?<=\d)\s?(?:×|\\times|\\cdot|[x*])\s?10\s?(?:\^|\*\*)\s?[{(]?([-+]?\d{1,3})[})]?"), r"e\1"),
    (re.compile(r"\^\s?\{?\s?\\circ\s?\}?|\\degree\b|\\circ\b"), "°"),
    (re.compile(r"\bdegrees?\s(?=celsius|fahrenheit)|\bdeg\s(?=[CF]\b)", re.IGNORECASE), "deg"),
    (re.compile(r"\\mu(?![A-Za-z])\s?"), "µ"),
    (re.compile(r"\\Omega(?![A-Za-z])"), "Ω"),
    (re.compile(r"\\(?:cdot|times)(?![A-Za-z])"), "·"),
    (re.compile(r"\\[,;: ]|~"), " "),
)
_ONE_OVER: Final = re.compile(
    r"(?<=\d)\s?(?:\s1\s?/\s?|\\[dt]?frac\s?\{1\}\s?\{\s?)(?=[^\W\d_])"
)  # "6 1/mol", in which 1 is no number of its own
_WRAPPED: Final = re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s?\{([^{}]*)\}")
_DEGREES: Final = re.compile(r"\s?°?\s?([CF])(?!\w)|\s?deg(celsius|fahrenheit|[CF])(?!\w)", re.IGNORECASE)
_WORDS: Final = "a am are as at he in me per us"
_PROSE: Final = frozenset(_WORDS.split())
"""Words that are units too (inches, technical atmospheres, years): a unit only where no word follows."""
_LONGEST: Final = 100  # characters of a unit in a specification

_lock = threading.Lock()  # a registry of pint keeps caches that threads must not write at once


def _after_fork() -> None:
    """A lock that a thread of the parent held while it forked would be held for ever in the child."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def parse(text: Any) -> Any:
    """A unit of pint; None for what names none. Raises MissingExtra without pint."""
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST:
        return None
    match = _EXPRESSION.fullmatch(text.strip())
    return _unit(_over(match) + match["unit"]) if match else None


def _over(match: re.Match[str]) -> str:
    """The quotient that a unit begins with: "1/mol", "per mol"."""
    return "1/" if match["over"] else ""


def raised(text: str) -> str:
    r"""A text in which no exponent of a unit can be taken for a number.

    "6 1/mol" -> "6 /mol"
    "10 m s^{-1}" -> "10 m s⁻¹"    "5\,\mu\text{m}" -> "5 µm"    "5 × 10^{-6} m" -> "5e-6 m"
    """
    for pattern, instead in _REWRITTEN:
        text = pattern.sub(instead, text)
    for _ in range(2):  # an exponent inside of \text{…}, and one behind it
        text = _WRAPPED.sub(r"\1", _EXPONENT.sub(lambda match: match[0].translate(_RAISED), text))
    return _ONE_OVER.sub(" /", text)


def is_temperature(unit: Any) -> bool:
    """Whether a unit is one of temperature alone."""
    return dict(unit.dimensionality) == {"[temperature]": 1}


def convert(value: Fraction, after: str, unit: Any) -> Fraction | None:
    """A number with what follows it, in a unit: as it is where none follows, None where another kind of unit does."""
    degrees = _DEGREES.match(after) if is_temperature(unit) else None  # else 25 C would be coulombs
    given = _unit(f"deg{(degrees[1] or degrees[2])[0].upper()}") if degrees else _leading(after)
    if given is None or given == unit:
        return value
    with _lock:
        try:
            found = _registry().Quantity(value, given).to(unit).magnitude
        except Exception:  # noqa: BLE001 - another dimension, or a product with degrees: pint raises many kinds
            return None
    return Fraction(found)


def _leading(after: str) -> Any:
    """The unit that a text begins with: the longest that pint knows; None where it begins with none."""
    match = _EXPRESSION.match(after)
    if match is None:
        return None
    factors = list(_FACTOR.finditer(match["unit"]))
    for count in range(len(factors), 0, -1):
        end = factors[count - 1].end()
        if count == 1 and factors[0]["name"] in _PROSE and re.match(r"\s+\w", after[match.start("unit") + end :]):
            return None
        unit = _unit(_over(match) + match["unit"][:end])
        if unit is not None:
            return unit
    return None


@lru_cache(maxsize=4096)
def _unit(text: str) -> Any:
    """What pint makes of a unit; of a name in capitals that it does not know, in small letters. None for no unit."""
    over = "1/" if text.startswith("1/") else ""
    written = over + _written(text.removeprefix(over))
    with _lock:
        for one in dict.fromkeys((written, written.lower())):
            try:
                return _registry().parse_units(one)
            except MissingExtra:
                raise
            except Exception:  # noqa: BLE001, S112 - whatever a text that is no unit makes pint raise
                continue
    return None


def _written(text: str) -> str:
    """Products, quotients and powers as pint reads them; "miles per hour" and "square metres" as they are.

    "kg·m²" -> "kg*m**2"    "m s^{-1}" -> "m s**-1"    "m/s2" -> "m/s**2"
    """
    pieces = []
    for factor in _FACTOR.finditer(text):
        power = re.sub(r"[^\d-]", "", factor["power"].translate(_SUPERSCRIPTS))
        joint = (factor["joint"] or "").strip() or (" " if factor["joint"] else "")
        pieces.append(("*" if joint in "·⋅×\u2022" and joint else joint) + factor["name"].replace(" ", ""))
        pieces.append(f"**{power}" if power else "")
    return "".join(pieces)


@cache
def _registry() -> Any:
    if find_spec("pint") is None:
        raise MissingExtra("pint is not installed", hint="pip install 'corpusforge[verify]'")
    import pint

    return pint.UnitRegistry(non_int_type=Fraction)
