r"""numeric: the final number of a completion is the gold number. Spec: {"answer": "1000", "tolerance"?: 0.01, …}.

Where the number stands is told in `_final`: after the last "####", in the last box, after "the answer is", else the
last number of the text. Thousands separators, signs, currency, units, `3/4`, `3 1/2`, `2 million` and \frac{3}{4} are
read; numbers are compared exactly, as fractions, unless the spec gives a tolerance: `tolerance` relative to the gold,
`atol` absolute. A percent sign is a unit like any other: 50% is 50, never 0.5. "12 or 13" is no answer, and "5 + 7" is
none before it is worked out. Units are dropped, unless the spec names one (`unit`): then 5 km is 5000 m (`_units`).

    gold "1000"    "… #### 1,000"  pass    "The answer is $1000.00."  pass    "999, no, 1000 or 1001"  fail
    gold "5000", unit "m"    "5 km"  pass    "5000"  pass    "5 kg"  fail    "5 m"  fail
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corpusforge.verify._final import final, spoken
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSIGNED: Final = (
    r"(?:(?P<whole>\d{1,9})\s+(?P<top>\d{1,9})/(?P<bottom>\d{1,9})(?![\d.,]*\d)"
    r"|(?P<digits>(?:\d{1,3}(?:[,\u00a0\u202f\u2009]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE](?P<power>[-+]?\d{1,3})(?!\w))?"
    r"(?:\s?/\s?(?P<under>\d+(?:\.\d+)?))?)"
)
_NUMBER: Final = re.compile(
    r"(?:(?<![^\W_])(?<![)\]}])(?P<sign>[-+\u2212\u2013]))?(?:[$€£¥₹₩₽]\s?)?(?P<inner>[-\u2212])?(?<![^\W_])"
    + _UNSIGNED
    + r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion)\b|(?P<kilo>k)\b)?",
    re.IGNORECASE,
)
_SCALES: Final = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_CHAIN: Final = re.compile(r"(?:[\d\s.,$()+*/×÷^\u2212\u2013-]|\\times|\\cdot|\\div)*[=≈]")
_OPERATOR: Final = re.compile(r"\s*(?:[-+*×÷^±\u2212\u2013]|\\times|\\cdot|\\div|/)\s*[$(]?\s*\.?\d")
_ANOTHER: Final = re.compile(
    r"(?:[^\w\n.;!?]*(?:[^\W\d_]+[^\w\n.;!?]+){0,3}?\b(?:or|and|to)\b[^\w\n.;!?]+"
    r"(?:(?:maybe|perhaps|possibly|even|else)\s+)?(?:[A-Za-z]\s*=\s*)?|\s*[,;|&~]\s*|[:.])"
    r"(?=[-+\u2212$€£]*\.?\d)|[ \t]+(?=[-+\u2212]?\.?\d[\d.,]*(?![\w%-]))",
    re.IGNORECASE,
)
_RANGE: Final = re.compile(
    r"(?:[≤≥≠±∓]|[^-=\s]\s*[<>]=?)[\s$({]*\Z"
)  # before a number: one end of many, or two numbers
_OR_BEFORE: Final = re.compile(
    r"(?<![^\W_])(?:[^\W\d_]+\s+){0,3}\bor\s+(?:(?:maybe|perhaps)\s+)?\W{0,3}$", re.IGNORECASE
)
_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width forms to ASCII
_LATEX: Final = (
    (re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1/\2"),
    (re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\(?:pm|mp)(?![A-Za-z])"), "±"),
    (re.compile(r"\\(?:[lg]eq?|[lg]eqslant|[lg]t|neq?)(?![A-Za-z])"), "<"),
    (re.compile(r"\\(?:lor|vee|land|wedge|q?quad|cup)(?![A-Za-z])|\\\\"), " or "),
    (re.compile(r"\\[,!;: ]|\*\*|__|\^\{?\\circ\}?|\\left|\\right"), ""),
    (re.compile(r"\\([$%#&_])"), r"\1"),
    (re.compile(r"\bnegative\s+(?=[$\d.])", re.IGNORECASE), "-"),
)
_MOST_DIGITS: Final = 1_000  # a longer literal is nobody's answer, and exact arithmetic on it is slow
_WINDOW: Final = 2_000  # characters looked at around the last digit of a text
_UNIT: Final = 50  # characters after a number in which its unit may stand


class Found(NamedTuple):
    """The final number of a text, the rule that found it or by which there is none, and what stands around it."""

    value: Fraction | None
    rule: str
    after: str = ""
    kilo: str = ""


def check(task: Task, completion: Any) -> Verdict:
    """Pass when the final number is the gold number; rules are in docs/verifiers.md."""
    if task.spec.get("unit") is not None:
        return _with_unit(task.spec, completion)
    gold = parse_number(task.spec.get("answer"))
    if gold is None:
        return undecided("numeric.unparsable_gold")
    near = allowance(task.spec, gold)
    if near is None:
        return undecided("numeric.unreadable_tolerance")
    found = _final_number(text_of(completion))
    if found.value is None:
        return failed(found.rule)
    return passed(found.rule) if abs(found.value - gold) <= near else failed(found.rule)


def _with_unit(spec: Mapping[str, Any], completion: Any) -> Verdict:
    """The verdict where units count. A number without a unit is taken in the unit of the specification."""
    from corpusforge.verify import _units

    unit = _units.parse(spec["unit"])
    if unit is None:
        return undecided("numeric.unreadable_unit")
    answer = spec.get("answer")
    gold = _converted(_gold_number(answer), unit)
    if gold is None:
        return undecided("numeric.unparsable_gold")
    near = allowance(spec, gold)
    if near is None:
        return undecided("numeric.unreadable_tolerance")
    found = _final_number(_units.raised(text_of(completion)))
    if found.value is None:
        return failed(found.rule)
    value = _converted(found, unit)
    if value is None:
        return failed("numeric.unit")
    return passed(found.rule) if abs(value - gold) <= near else failed(found.rule)


def _gold_number(answer: Any) -> Found:
    """A gold answer that may have its unit with it: "5000", "5000 m"."""
    from corpusforge.verify import _units

    number = parse_number(answer)
    if number is not None or not isinstance(answer, str):
        return Found(number, "")
    text = _plain(_units.raised(answer.strip()[: 2 * _MOST_DIGITS])).strip()
    match = _NUMBER.match(text)
    if match is None:
        return Found(None, "")
    return Found(_value(match), "", text[match.end() :], match["kilo"] or "")


def _converted(found: Found, unit: Any) -> Fraction | None:
    """The number in a unit; None where it is given in one that does not convert, or is none."""
    from corpusforge.verify import _units

    if found.value is None:
        return None
    if found.kilo and _units.is_temperature(unit):  # "300K" is no 300,000
        return _units.convert(found.value / 1000, found.kilo, unit)
    return _units.convert(found.value, found.after, unit)


def parse_number(value: Any) -> Fraction | None:
    """The number that a text is, and nothing but it (currency, percent and a final stop aside); None for no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = _plain(str(value).strip()[: 2 * _MOST_DIGITS]).strip().removesuffix(".").rstrip("% $").strip()
    match = _NUMBER.fullmatch(text)
    return _value(match) if match else None


def final_number(text: str) -> tuple[Fraction | None, str]:
    """The final number and the rule that found it, or None and the rule by which there is none."""
    found = _final_number(text)
    return found.value, found.rule


def _final_number(text: str) -> Found:
    marked = final(text)
    if marked.form in ("whole", "tag"):
        return _last_number(marked.text)
    found = _first_number(_plain(marked.text[:_WINDOW]), marked.form)
    if found.rule == "numeric.no_number" and marked.form == "marker":
        return _last_number(spoken(text)[0])  # "The answer is easy to see: …" marks nothing
    return found


def _first_number(text: str, form: str) -> Found:
    """The number that a marked answer starts with; or the rule why not: no_number, several, expression, too_long."""
    match = _NUMBER.search(text)
    if match is None:
        return Found(None, "numeric.no_number")
    chain = _CHAIN.match(text, match.start())  # "5 + 7 = 12": what stands after the last equals sign
    if chain:
        match = _NUMBER.match(text, chain.end() + _blank(text, chain.end()))
        if match is None:
            return Found(None, "numeric.no_number")
    if _OPERATOR.match(text, match.end()):
        return Found(None, "numeric.expression")
    if _RANGE.search(text, max(0, match.start() - 10), match.start()):
        return Found(None, "numeric.several")
    value = _value(match)
    if value is None:
        return Found(None, "numeric.too_long")
    if any(other != value for other in _others(text, match.end())):
        return Found(None, "numeric.several")
    return _found(match, f"numeric.{form}")


def _found(match: re.Match[str], rule: str) -> Found:
    after = match.string[match.end() : match.end() + _UNIT]
    return Found(_value(match), rule, after, match["kilo"] or "")


def _blank(text: str, at: int) -> int:
    return len(text[at : at + 10]) - len(text[at : at + 10].lstrip(" $(\t"))


def _others(text: str, at: int) -> Iterator[Fraction | None]:
    """Further candidates, joined to the first by "or", "and", "to" or a comma."""
    while joined := _ANOTHER.match(text, at):
        match = _NUMBER.match(text, joined.end())
        yield _value(match) if match else None
        if match is None:
            return
        at = match.end()


def _last_number(text: str) -> Found:
    """The last number of a text of any length."""
    backwards = re.search(r"\d", text[::-1])
    if backwards is None:
        return Found(None, "numeric.no_number")
    at = len(text) - backwards.start()
    start = max(0, at - _WINDOW)
    window = _plain(text[start : at + _UNIT])
    matches = list(_NUMBER.finditer(window))
    if not matches:
        return Found(None, "numeric.no_number")
    value = _value(matches[-1])
    if value is None or (start and matches[-1].start() == 0):
        return Found(None, "numeric.too_long")
    if len(matches) > 1 and _value(matches[-2]) != value:
        between = window[matches[-2].end() : matches[-1].start()].strip(" ,;$*")
        if _OR_BEFORE.fullmatch(f"{between} "):
            return Found(None, "numeric.several")
    return _found(matches[-1], "numeric.last_number")


def _plain(text: str) -> str:
    """LaTeX, full-width forms and markdown reduced to what the pattern reads."""
    text = text.translate(_WIDE)
    for pattern, instead in _LATEX:
        text = pattern.sub(instead, text)
    return text


def _value(match: re.Match[str]) -> Fraction | None:
    if match.end() - match.start() > _MOST_DIGITS:
        return None
    if match["whole"]:
        top, bottom = int(match["top"]), int(match["bottom"])
        size = int(match["whole"]) + Fraction(top, bottom) if bottom else None
    else:
        size = Fraction(re.sub(r"[,\u00a0\u202f\u2009]", "", match["digits"]))
        size *= Fraction(10) ** int(match["power"] or 0)
        under = Fraction(match["under"]) if match["under"] else Fraction(1)
        size = size / under if under else None
    if size is None:
        return None
    size *= _SCALES.get((match["scale"] or "").lower(), 1) * (1000 if match["kilo"] else 1)
    negative = (match["sign"] or "+") not in "+" or match["inner"]
    return -size if negative else size


def allowance(spec: Mapping[str, Any], gold: Fraction) -> Fraction | None:
    """How far from the gold a number may be: the larger of the two tolerances. None where one cannot be read."""
    relative, absolute = spec.get("tolerance", 0), spec.get("atol", 0)
    if not (_is_number(relative) and 0 <= relative <= 1 and _is_number(absolute) and 0 <= absolute < math.inf):
        return None
    return max(Fraction(str(relative)) * abs(gold), Fraction(str(absolute)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
