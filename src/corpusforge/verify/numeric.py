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

import itertools
import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corpusforge.verify import _hedges
from corpusforge.verify._final import FinalAnswer, final, spoken, unquoted
from corpusforge.verify._notation import plain
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_UNSIGNED: Final = (
    r"(?:(?P<whole>\d{1,9})\s+(?P<top>\d{1,9})/(?P<bottom>\d{1,9})(?![\d.,]*\d)"
    r"|(?P<digits>(?:\d{1,3}(?:[,\u00a0\u202f\u2009]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:[eE](?P<power>[-+]?\d{1,3})(?!\w))?"
    r"(?:\s?/\s?(?P<under>\d+(?:\.\d+)?))?)"
)
_NUMBER: Final = re.compile(
    r"(?:(?<![^\W_])(?<![)\]}])(?P<sign>[-+\u2212\u2013]))?(?:[$€£¥₹₩₽]\s?(?P<inner>[-\u2212])?)?(?<![^\W_])"
    + _UNSIGNED
    + r"(?:\s?(?P<scale>hundred|thousand|million|billion|trillion)\b|(?P<kilo>k)\b)?",
    re.IGNORECASE,
)
_SCALES: Final = {"hundred": 10**2, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_CHAIN: Final = re.compile(r"(?:[\d\s.,$(){}+*/×÷^\u2212\u2013-]|(?<=\d)e(?=[-+\d])|\\times|\\cdot|\\div)*[=≈]")
_OPERATOR: Final = re.compile(
    r"\s*(?:[-+*×÷^±\u2212\u2013]|\\times|\\cdot|\\div|/)\s*[$({]*\s*[-\u2212]?\.?\d"
    r"|\s?(?:\\(?:sqrt|pi|ln|log|sin|cos|tan|binom|frac|infty)(?![A-Za-z])|[√π∞]|!(?=[\s$})]*[-+*/^×÷]))"
)  # behind a number: it is the first part of an expression
_PART: Final = re.compile(
    r"(?:\\(?:sqrt|ln|log|exp|sin|cos|tan|binom|sum|prod|int|lim)(?![A-Za-z])|√|\blog|\bsqrt|\bln)[\s\d_^{([\]]*\Z|\^[\s{(]*\Z"
)  # before a number: it is an argument of something, or an exponent
_OPERATED: Final = re.compile(r"[\s$)}]*(?:[+*×÷·^]|\\times|\\cdot|\\div)[\s$({]*")  # between two numbers
_ANOTHER: Final = re.compile(
    r"(?:[^\w\n.;!?]*(?:[^\W\d_]+[^\w\n.;!?]+){0,3}?\b(?:or|and|to)\b[^\w\n.;!?]+"
    r"(?:(?:maybe|perhaps|possibly|even|else)\s+)?(?:[A-Za-z]\s*=\s*)?|\s*[,;|&~?]\s*|[:.])"
    r"(?=[-+\u2212$€£]*\.?\d)|[ \t]+(?=[-+\u2212]?\.?\d[\d.,]*(?![\w%-]))",
    re.IGNORECASE,
)
_RANGE: Final = re.compile(
    r"(?:[≤≥≠±∓]|(?<![-=<>|])[<>]=?|!=)[\s$({]*\Z"
)  # before a number: one end of many, or two numbers
_OR_BEFORE: Final = re.compile(
    r"(?<![^\W_])(?:[^\W\d_]+\s+){0,3}\bor\s+(?:(?:maybe|perhaps)\s+)?\W{0,3}$", re.IGNORECASE
)
_MINUS: Final = re.compile(r"\A([\s$({]*[-\u2212])\s+(?=[\d.$\\])")
_DIGIT: Final = re.compile(r"[\d¼½¾⅐-⅞]")
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
    text = plain(_units.raised(answer.strip()[: 2 * _MOST_DIGITS])).strip()
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
    return _parsed(str(value).strip()[: 2 * _MOST_DIGITS])


@lru_cache(maxsize=4096)  # a gold answer is read for every completion
def _parsed(text: str) -> Fraction | None:
    text = plain(text).strip().removesuffix(".").rstrip("% $").strip()
    match = _NUMBER.fullmatch(_MINUS.sub(r"\1", text))
    return _value(match) if match else None


def worked_out(text: str) -> Fraction | None:
    """The number at the end of a worked sum and nothing else: "5 + 7 = 12"; None where a text is no such thing."""
    read = plain(text.strip()[: 2 * _MOST_DIGITS])
    chain = _CHAIN.match(read)
    return parse_number(read[chain.end() :].strip(" $")) if chain else None


def final_number(text: str) -> tuple[Fraction | None, str]:
    """The final number and the rule that found it, or None and the rule by which there is none."""
    found = _final_number(text)
    return found.value, found.rule


def _final_number(text: str) -> Found:
    marked = final(text)
    if marked.form in ("whole", "tag"):
        return _last_number(marked.text)
    found = _first_number(marked)
    if found.rule == "numeric.no_number" and marked.form == "marker":
        return _last_number(spoken(text)[0])  # "The answer is easy to see: …" marks nothing
    return found


def _first_number(marked: FinalAnswer) -> Found:
    """The number that a marked answer starts with; or the rule by which there is none."""
    text = _marked(marked)
    match = _NUMBER.search(text)
    if match is None:
        return Found(None, "numeric.no_number")
    chain = _CHAIN.match(text, match.start())  # "5 + 7 = 12": what stands after the last equals sign
    if chain:
        match = _NUMBER.match(text, chain.end() + _blank(text, chain.end()))
        if match is None:
            return Found(None, "numeric.no_number")
    factorial = marked.form == "box" and text[match.end() :].lstrip(" $})").startswith("!")
    if factorial or _OPERATOR.match(text, match.end()) or _PART.search(text, max(0, match.start() - 20), match.start()):
        return Found(None, "numeric.expression")
    if _RANGE.search(text, max(0, match.start() - 10), match.start()):
        return Found(None, "numeric.several")
    value = _value(match)
    if value is None:
        return Found(None, "numeric.too_long")
    if any(other != value for other in _others(text, match.end())):
        return Found(None, "numeric.several")
    doubt = _doubt(marked, match, value)
    return Found(None, f"numeric.{doubt}") if doubt else _found(match, f"numeric.{marked.form}")


def _marked(marked: FinalAnswer) -> str:
    """The text of a marked answer, as the pattern reads it; a minus with a blank behind it is one: "- 3"."""
    text = plain(marked.text[:_WINDOW])
    return text if marked.form == "marker" else _MINUS.sub(r"\1", text)


def _doubt(marked: FinalAnswer, match: re.Match[str], value: Fraction | None) -> str:
    """What takes a marked number back: `negated`, `several`, or nothing."""
    behind = match.string[match.end() :]
    found = _hedges.before(match.string[: match.start()]) or _hedges.after(behind)
    if not found and _hedges.before(marked.lead) == "negated":
        return "negated"
    behind = f"{behind}{'' if marked.form == 'box' else ' '}{plain(marked.rest)}"
    candidates = (_NUMBER.match(behind, at) for at in _hedges.others(behind))
    return found or ("several" if any(one is None or _value(one) != value for one in candidates) else "")


def doubt(marked: FinalAnswer) -> str:
    """Which words take an answer back, whatever its number: `negated`, `several` for bounds and ranges, or nothing.

    "at least 72" -> "several"    "not 72" -> "negated"    "72, but it could be 73" -> "several"    "72 of 96" -> ""
    """
    if marked.form in ("whole", "tag"):
        matches, _ = _last_numbers(marked.text)
        if not matches:
            return ""
        number = matches[-1]
        found = _doubt_of_last(matches, dashes=False)
    else:
        text = _marked(marked)
        matches = list(itertools.islice(_NUMBER.finditer(text), 2))
        if not matches:
            return ""
        number = matches[0]
        found = _doubt(marked, number, _value(number)) or ("several" if _is_range(matches, dashes=False) else "")
    return found or ("several" if _RANGE.search(number.string, max(0, number.start() - 10), number.start()) else "")


def _is_range(matches: list[re.Match[str]], *, dashes: bool = True) -> bool:
    """Whether the last two numbers are the two ends of a range; a dash between them may be one, or a minus."""
    if len(matches) < 2 or _value(matches[-2]) == _value(matches[-1]):
        return False
    text, start, end = matches[-1].string, matches[-2], matches[-1]
    between = text[start.end() : end.start()]
    if not dashes and not re.search(r"[^\W\d_]", between):
        return False
    signed = bool(end["sign"]) and between and not between.strip(" ")  # "70 -72"
    return bool(signed) or _hedges.spans(text[: start.start()], between, text[end.end() :])


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
    matches, cut = _last_numbers(text)
    if not matches:
        return Found(None, "numeric.no_number")
    last = matches[-1]
    value = _value(last)
    if value is None or (cut and last.start() == 0):
        return Found(None, "numeric.too_long")
    near = max(0, last.start() - 20)
    if _PART.search(last.string, near, last.start()):
        return Found(None, "numeric.expression")
    if _RANGE.search(last.string, near, last.start()):
        return Found(None, "numeric.several")
    if len(matches) > 1 and _OPERATED.fullmatch(last.string, matches[-2].end(), last.start()):
        return Found(None, "numeric.expression")
    doubted = _doubt_of_last(matches)
    return Found(None, f"numeric.{doubted}") if doubted else _found(last, "numeric.last_number")


def _last_numbers(text: str) -> tuple[list[re.Match[str]], bool]:
    """The numbers at the end of a text, and whether there is more text before them."""
    backwards = _DIGIT.search(text[::-1])
    if backwards is None:
        return [], False
    at = len(text) - backwards.start()
    start = max(0, at - _WINDOW)
    return list(_NUMBER.finditer(plain(unquoted(text[start : at + _UNIT])))), start > 0


def _doubt_of_last(matches: list[re.Match[str]], *, dashes: bool = True) -> str:
    """What takes the last of some numbers back: `negated`, `several`, or nothing."""
    last = matches[-1]
    text = last.string
    found = _hedges.before(text[: last.start()]) or _hedges.after(text[last.end() :])
    if found or len(matches) < 2 or _value(matches[-2]) == _value(last):
        return found
    between = text[matches[-2].end() : last.start()]
    joined = _OR_BEFORE.fullmatch(f"{between.strip(' ,;$*')} ") or _hedges.doubted(between)
    return "several" if joined or _is_range(matches, dashes=dashes) else ""


def _value(match: re.Match[str]) -> Fraction | None:
    if match.end() - match.start() > _MOST_DIGITS:
        return None
    if match[0].isdecimal():  # most are; the rest of this takes ten times as long
        return Fraction(int(match[0]))
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
