r"""Equations in prose, as pairs of expressions that `_expression` can read.

    "She makes 9 * 2 eggs = $18 a day"       ->  ("9*2", "18")
    "3*4 = 12, so 20% of 50 + 12 = 22"        ->  ("3*4", "12"), ("20%*50+12", "22")
    "x + 3 = 7", "f(3) = 9", "17/5 = 3 R 2"   ->  nothing: no sum of numbers alone

An equals sign has an expression to its left and to its right, or it is no step. Words after a number are its unit and
are left out. What cannot be read for certain is not read: a step that is not seen costs nothing, one that is misread
costs a right solution its reward. Linear in the length of the text.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WINDOW: Final = 240  # characters on each side of an equals sign that are looked at
_EQUALS: Final = re.compile(r"(?<![=<>!:~≈])=(?![=>])|≈")
_BULLET: Final = re.compile(r"\s*(?:[-*+•>]+\s+)*(?:\(?\d{1,3}[.)]\s+)?")
_LEXER: Final = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<mixed>\d{1,6}[ ]\d{1,4}/\d{1,4}(?![\d.,/]))"
    r"|(?P<odd>\d{1,4}:\d|\d*\.?\d+(?:\.{3}|…))"
    r"|(?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)"
    r"|(?P<word>[^\W\d_]+(?:['’-][^\W\d_]+)*)"
    r"|(?P<sign>\*\*|//|[-+*/^])|(?P<open>\()|(?P<close>\))|(?P<percent>%)|(?P<money>[$€£¥₹¢])"
    r"|(?P<stop>[.,;:!?\"'|<>…—•#\[\]{}])|(?P<bad>.)",
    re.ASCII,
)
_WORDS: Final = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")  # letters of any alphabet
_TIMES: Final = {"x": "*", "X": "*", "times": "*", "of": "*", "plus": "+", "minus": "-"}
_SIGN_WORDS: Final = {"divided by": "/", "multiplied by": "*"}
_FUNCTIONS: Final = _words("sin cos tan log ln lg exp sqrt root lim max min mod gcd lcm floor ceil abs")
_OTHERWISE: Final = _words("remainder rem r mod modulo hundred thousand million billion trillion dozen k")
_COUNTERS: Final = _words("step day week month year part problem question case option item number equation")
_LEADS: Final = _words("and because hence is or since so then therefore thus was")  # in no unit
_MEASURES: Final = _words(
    "inch feet foot ft yard mile km kilometer meter metre cm centimeter mm second sec minute min hour hr day week month"
    " year decade ounce oz pound lb kg kilogram gram mg ton cup pint quart gallon liter litre ml milliliter cent dollar"
    " penny pennies nickel dime quarter score pair"
)
_WORKED: Final = re.compile(r"[-+*/^()]|[^\W\d_]")  # a sign, or a word that may be one
_BARE: Final = re.compile(r"[\s$€£\d.,%()-]*")
_LONGEST_UNIT: Final = 4  # words
_SAID: Final = "said"  # of a sign that is a word
_ARITHMETIC: Final = ("number", "sign", "open", "close", "percent")


class Equation(NamedTuple):
    """The two sides; whether they are said to be about equal; whether there are units that may need converting."""

    left: str
    right: str
    about: bool
    converts: bool


class _Token(NamedTuple):
    kind: str  # number, sign, open, close, percent, word, stop, bad
    text: str
    glued: bool  # to what stands before it
    measure: str = ""


def equations(text: str) -> Iterator[Equation]:
    """The equations of a plain text, in order; `plain` makes one."""
    for line in text.splitlines():
        if "=" not in line and "≈" not in line:
            continue
        line = line[_BULLET.match(line).end() :]  # type: ignore[union-attr]
        signs = list(_EQUALS.finditer(line))
        starts = [0, *(sign.end() for sign in signs)]
        ends = [*(sign.start() for sign in signs), len(line)]
        for number, sign in enumerate(signs):
            said = line[max(starts[number], ends[number] - _WINDOW) : ends[number]]
            follows = line[sign.end() : min(ends[number + 1], sign.end() + _WINDOW)]
            if not (_WORKED.search(said) or _WORKED.search(follows)):
                continue  # "x = 5 = 5": nothing is worked out
            left = _before(said)
            right = _after(follows) if left else None
            if left and right and (len(left) > 1 or len(right) == 1 or _BARE.fullmatch(said)):
                measures = {token.measure for token in (*left, *right)} - {"", _SAID}
                yield Equation(_joined(left), _joined(right), sign[0] == "≈", len(measures) > 1)


def _joined(found: list[_Token]) -> str:
    return " ".join(token.text for token in found)


def _tokens(text: str) -> list[_Token]:
    """The tokens of one side, units left out of it."""
    found: list[_Token] = []
    at, glued = 0, False
    while at < len(text):
        match = _LEXER.match(text, at) if text[at].isascii() else _WORDS.match(text, at) or _LEXER.match(text, at)
        if match is None:
            return [_Token("bad", "", False)]
        kind = match.lastgroup or "word"
        if kind != "space":
            found.append(
                _token(kind, match[0], glued, found[-1] if found else None, text[match.end() : match.end() + 1])
            )
        glued, at = kind != "space", match.end()
    return _without_units(found)


def _token(kind: str, text: str, glued: bool, before: _Token | None, after: str) -> _Token:
    last = before.kind if before and glued else ""
    if kind == "mixed":
        whole, _, part = text.partition(" ")
        return _Token("bad" if last == "word" else "number", f"({whole}+{part})", glued)
    if kind == "number":
        return _Token("bad" if last == "word" else kind, text.replace(",", ""), glued)
    if kind == "word":
        lower = text.lower()
        if last == "number" and text in "xX" and after.isdigit():
            return _Token("sign", "*", glued)  # 3x4
        if last == "number" and lower.rstrip("s") not in _MEASURES:
            return _Token("bad", text, glued)  # 2x, 5k, 1st
        return _Token("bad" if lower in _FUNCTIONS or after == "(" else kind, text, glued)
    if kind == "stop" and text == "," and last == "number" and after.isdigit():
        return _Token("bad", text, glued)  # 1,5
    if kind == "sign" and text == "**":
        return _Token(kind, "^", glued)
    return _Token("bad" if kind == "odd" else kind, text, glued)


def _without_units(found: list[_Token]) -> list[_Token]:
    """Words between a number and what follows it are its unit; words that mean a sign become it."""
    kept: list[_Token] = []
    measure, at = "", 0
    while at < len(found):
        token = found[at]
        if token.kind == "money":
            measure = "cent" if token.text == "¢" else "dollar"
        elif token.kind == "number" and _is_divisor(found, at):
            kept.append(_Token("number", f"({token.text}/{found[at + 2].text})", token.glued, measure))
            measure, at = "", at + 2
        elif token.kind == "word" and kept and kept[-1].kind in ("number", "close", "percent"):
            sign, after = _as_sign(found, at, kept)
            if sign is None:
                after, unit, kinds = _unit(found, at)
                kept[-1] = kept[-1]._replace(measure=unit or kept[-1].measure)
                kept += kinds
            else:
                kept.append(sign)
            at = after
            continue
        else:
            kept.append(token._replace(measure=measure) if token.kind == "number" else token)
            measure = ""
        at += 1
    return kept


def _is_divisor(found: list[_Token], at: int) -> bool:
    """Whether a fraction is divided by: 2 / 1/5 is 10."""
    if not (at and found[at - 1].text == "/") or found[at].glued:
        return False
    return _is_fraction(found, at) and found[at + 1].glued and found[at + 2].glued


def _is_fraction(found: list[_Token], at: int) -> bool:
    return len(found) > at + 2 and found[at + 1].text == "/" and found[at].kind == found[at + 2].kind == "number"


def _as_sign(found: list[_Token], at: int, kept: list[_Token]) -> tuple[_Token | None, int]:
    """A sign that is written as a word, and the place behind it."""
    operand = ("number", "open", "money")
    one, two = found[at].text, " ".join(token.text for token in found[at : at + 2])
    for sign, length in ((_TIMES.get(one), 1), (_SIGN_WORDS.get(two), 2)):
        follows = found[at + length].kind if at + length < len(found) else ""
        part = kept[-1].kind == "percent" or (len(kept) > 1 and kept[-2].text == "/")
        if sign and follows in operand and (one != "of" or part):
            return _Token("sign", sign, False, "" if one in "xX" else _SAID), at + length
    return None, at


def _unit(found: list[_Token], at: int) -> tuple[int, str, list[_Token]]:
    """Where a unit ends, what it measures, and what remains of it: nothing, a word, or something that is not read."""
    end, measure = at, ""
    while end < len(found) and end - at < 2 * _LONGEST_UNIT:
        token, before = found[end], found[end - 1]
        follows = found[end + 1].kind if end + 1 < len(found) else ""
        slash = token.text == "/" and follows == "word" and before.kind == "word"
        if not (token.kind == "word" or slash):
            break
        if token.text in _TIMES and token.text != "of" and follows in ("number", "open", "money") and end > at:
            break  # 3 apples x 4
        if token.text.lower() in _OTHERWISE or (len(token.text) == 1 and token.kind == "word" and token.text != "a"):
            return end + 1, measure, [_Token("bad", token.text, False)]
        lower = token.text.lower()
        singular = next((w for w in (lower, lower.removesuffix("s"), lower.removesuffix("es")) if w in _MEASURES), "")
        measure = measure or singular
        end += 1
        power = [token.kind for token in found[end : end + 2]] == ["sign", "number"] and found[end].text == "^"
        end += 2 if power and found[end].glued else 0  # cm^2
    after = found[end] if end < len(found) else None
    leads = any(token.text.lower() in _LEADS for token in found[at:end])
    if leads or not (after is None or after.kind in ("sign", "close") or after.text in _TIMES):
        return end, measure, [_Token("word", found[end - 1].text.lower(), False)]
    part = any(token.text == "of" for token in found[at:end])
    return end, measure, [_Token("bad", "of", False)] if part else []


def _before(text: str) -> list[_Token] | None:
    """The expression that a text ends with; None for none, or for one that cannot be read for certain."""
    found = _tokens(text)
    start, depth = len(found), 0
    while start and found[start - 1].kind in _ARITHMETIC:
        depth += {"close": 1, "open": -1}.get(found[start - 1].kind, 0)
        if depth < 0:
            break
        start -= 1
    if (start and found[start - 1].kind == "bad") or _goes_on(found, start) or _apart(found[start:]):
        return None
    word = found[start - 1].text.lower() if start and found[start - 1].kind == "word" else ""
    if word and found[start:] and found[start].kind == "sign" and not _is_negative(found[start:]):
        return None  # "the price - 3 = …", "x+3 = …": not of numbers alone
    if word == "and" and start > 1 and found[start - 2].kind == "number" and _is_fraction(found, start):
        return None  # 1 and 1/4
    if word.removesuffix("s") in _COUNTERS and len(found) > start + 2 and found[start + 1].text == "-":
        start += 2  # "Day 1 - 3*4 = 12"
    return found[start:] or None


def _is_negative(found: list[_Token]) -> bool:
    """Whether a sign belongs to the number behind it: "is -3 + 5"."""
    return len(found) > 1 and found[1].glued and not found[0].glued


def _goes_on(found: list[_Token], start: int) -> bool:
    """Whether a sign stands before the words that an expression stops at: "5 + his 1 + 1" is more than 1 + 1."""
    at = start - 1
    while at >= 0 and found[at].kind in ("word", "open"):
        at -= 1
    return 0 <= at < start - 1 and found[at].kind == "sign"


def _apart(found: list[_Token]) -> bool:
    """Whether a parenthesis follows a number at a distance: "in 2 (3 + 4)" is no product."""
    operand = ("number", "close", "percent")
    return any(b.kind == "open" and not b.glued and a.kind in operand for a, b in pairwise(found))


def _after(text: str) -> list[_Token] | None:
    """The expression that a text begins with; None as in `_before`."""
    found = _tokens(text)
    end = _end(found)
    follows = found[end] if end < len(found) else _Token("stop", "", False)
    if end and found[end - 1].kind == "sign":
        if found[end - 1].text != "-" or follows.kind != "word" or len(follows.text) == 1:
            return None
        end -= 1  # "= 12 - so that …"
    if follows.kind == "bad" or (follows.text == "and" and _is_fraction(found, end + 1)):
        return None  # 1 and 1/3
    return found[:end] or None


def _end(found: list[_Token]) -> int:
    """Where the expression at the beginning ends."""
    depth = 0
    for at, token in enumerate(found):
        if token.kind not in _ARITHMETIC or token.measure == _SAID:
            return at  # "= 1/3 of 150", "= 360 divided by 5"
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        if depth < 0 or _apart(found[max(at - 1, 0) : at + 1]):
            return at
    return len(found)


_NARROW: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width forms to ASCII
_ALIKE: Final = {
    **dict.fromkeys(map(ord, "×⋅∙∗✕✖·"), "*"), **dict.fromkeys(map(ord, "÷∕⁄"), "/"),
    **dict.fromkeys(map(ord, "−–‒﹣"), "-"), **dict.fromkeys(map(ord, "\u00a0\u202f\u2009\u2007"), " "),
    ord("＝"): "=", ord("≅"): "≈", ord("`"): " ", ord("²"): "^2", ord("³"): "^3",
}  # fmt: skip
_LATEX: Final = (
    (re.compile(r"\\[dt]?frac\s{0,9}\{([^{}]*)\}\s{0,9}\{([^{}]*)\}"), r"((\1)/(\2))"),
    (re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox|boxed|fbox)\s{0,9}\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"\^\{([^{}]*)\}"), r"^(\1)"),
    (re.compile(r"\{,\}"), ","),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "*"),
    (re.compile(r"\\div(?![A-Za-z])"), "/"),
    (re.compile(r"\\approx(?![A-Za-z])"), "≈"),
    (re.compile(r"\\(?:left|right)(?![A-Za-z])|\\[,!;: ()\[\]]"), " "),
    (re.compile(r"\\([$%#&_])"), r"\1"),
    (re.compile(r"(?<![\d)])\*\*|\*\*(?![\d(])|__"), " "),
    (re.compile(r"½"), " 1/2"), (re.compile(r"¼"), " 1/4"), (re.compile(r"¾"), " 3/4"),
)  # fmt: skip
_CODE: Final = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)


def plain(text: str) -> str:
    """A text without code blocks, LaTeX, markdown and signs that look like others."""
    text = _CODE.sub("\n", text).translate(_NARROW).translate(_ALIKE)
    for pattern, instead in _LATEX:
        text = pattern.sub(instead, text)
    return text
