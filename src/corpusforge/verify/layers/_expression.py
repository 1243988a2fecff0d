r"""Arithmetic as exact fractions: a small parser of its own, nothing is ever evaluated as code.

    "3*4+2"  ->  14      "2(1/3+1/6)"  ->  1      "-2^2"  ->  -4      "1/0"  ->  ZeroDivisionError

Numbers, + - * / // ^, parentheses, percent, and a product without a sign before a parenthesis. Length, depth, exponents
and the size of every result are bounded: what goes beyond is Unreadable, whatever it is.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d*)?|\.\d+)|(?P<sign>\*\*|//|[-+*/^()%]))", re.ASCII
)
_MOST_CHARACTERS: Final = 400  # of one expression
_MOST_DIGITS: Final = 40  # of one number
_MOST_BITS: Final = 4_096  # of a numerator or denominator
_DEEPEST: Final = 20  # parentheses and signs inside one another
_LARGEST_POWER: Final = 64


class Unreadable(ValueError):
    """No expression, or one beyond the bounds."""


class Value(NamedTuple):
    """What an expression comes to, and how it was written."""

    number: Fraction
    percents: int  # percent signs in it
    numbers: tuple[Fraction, ...]  # as they stand there
    places: int | None  # decimal places where it is one plain number, else None


def tokens(text: str) -> tuple[str, ...]:
    """Numbers and signs of an expression. Raises Unreadable for any other character."""
    if len(text) > _MOST_CHARACTERS:
        raise Unreadable("too long")
    found, at, text = [], 0, text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unreadable("no arithmetic")
        found.append("^" if match["sign"] == "**" else match["sign"] or match["number"].replace(",", ""))
        at = match.end()
    return tuple(found)


def value(text: str, percent: Fraction = Fraction(1, 100)) -> Value:
    """The value of an expression; a percent sign multiplies by `percent`. Raises Unreadable or ZeroDivisionError."""
    parser = _Parser(tokens(text), percent)
    number = parser.sum(0)
    if parser.at != len(parser.tokens):
        raise Unreadable("something is left over")
    return Value(number, parser.tokens.count("%"), tuple(parser.numbers), _places(parser.tokens))


def _places(found: tuple[str, ...]) -> int | None:
    plain = [one for one in found if one != "%"]
    plain = plain[1:] if plain[:1] in (["-"], ["+"]) else plain
    return len(plain[0].partition(".")[2]) if len(plain) == 1 else None


def agrees(left: Fraction, right: Fraction, places: int | None, *, about: bool = False) -> bool:
    """Whether `right`, a number written with `places` decimal places (None: an expression), is `left`.

    Only what cannot be written with that many places may be rounded or cut off: 10/3 is 3.33, 2.5*3 is not 7.4. To
    whole numbers it may be rounded where the text says `about` (≈).
    """
    if left == right:
        return True
    if places is None or not (places or about):
        return False
    unit = Fraction(1, 10**places)
    if left % unit == 0:
        return False
    cut = abs(left) - abs(right)
    return abs(left - right) <= unit / 2 or (left * right > 0 and 0 <= cut < unit)


class _Parser:
    """Sums of products of powers, from left to right; powers from right to left, and before a sign: -2^2 is -4."""

    def __init__(self, found: tuple[str, ...], percent: Fraction) -> None:
        self.tokens, self.percent, self.at = found, percent, 0
        self.numbers: list[Fraction] = []

    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def taken(self, signs: str) -> str:
        """The next token where it is one of `signs`, which is then behind; else nothing."""
        token = self.next()
        if not token or token not in signs:
            return ""
        self.at += 1
        return token

    def sum(self, depth: int) -> Fraction:
        result = self.product(depth)
        while sign := self.taken("+-"):
            other = self.product(depth)
            result = _bounded(result + other if sign == "+" else result - other)
        return result

    def product(self, depth: int) -> Fraction:
        result = self.signed(depth)
        while True:
            sign = self.next()
            if sign in ("/", "//"):
                self.at += 1
                result = _bounded(result / self.signed(depth))
                result = Fraction(result.numerator // result.denominator) if sign == "//" else result
            elif self.taken("*") or sign == "(":
                result = _bounded(result * self.signed(depth))
            else:
                return result

    def signed(self, depth: int) -> Fraction:
        if depth > _DEEPEST:
            raise Unreadable("too deep")
        if sign := self.taken("+-"):
            number = self.signed(depth + 1)
            return -number if sign == "-" else number
        base = self.atom(depth)
        return _power(base, self.signed(depth + 1)) if self.taken("^") else base

    def atom(self, depth: int) -> Fraction:
        if self.taken("("):
            result = self.sum(depth + 1)
            if not self.taken(")"):
                raise Unreadable("not closed")
        else:
            token = self.next()
            if not token or not (token[0].isdigit() or token[0] == ".") or len(token) > _MOST_DIGITS:
                raise Unreadable("no number")
            self.at += 1
            result = Fraction(token)
            self.numbers.append(result)
        while self.taken("%"):
            result = _bounded(result * self.percent)
        return result


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    if exponent.denominator != 1 or abs(exponent) > _LARGEST_POWER:
        raise Unreadable("no small whole power")
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    if size * abs(exponent) > _MOST_BITS:
        raise Unreadable("too large")
    return base ** int(exponent)


def _bounded(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > _MOST_BITS:
        raise Unreadable("too large")
    return number
