r"""arithmetic: the share of right steps in worked maths. Steps are equations between numbers, wherever they stand.

    "16-3-4 = <<16-3-4=9>>9 eggs, and 9 * 2 = $19"   ->  right: 16-3-4=9   wrong: 9*2=19   ->  1 of 2

Read are the calculator's annotations of GSM8K (`<<48/2=24>>`, Cobbe et al. 2021) and plain equations with units, money,
percent and LaTeX (`_equations`); compared are exact fractions (`_expression`). A result with decimal places may be
rounded or cut off where it has to be: 10/3 = 3.33.

So that nobody is paid for saying what is true anyway, a right step counts once, whatever the order of its numbers; not
if it is an identity (5 = 5); and not if none of its numbers stands in the prompt or came out of an earlier step, where
the prompt holds any. A wrong step always counts, once.
"""

from __future__ import annotations

import re
from fractions import Fraction
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corpusforge.verify.layers._equations import equations, plain
from corpusforge.verify.layers._expression import Unreadable, Value, agrees, value
from corpusforge.verify.layers._steps import Tally, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.verify._verdict import Task

_LONGEST: Final = 100_000  # characters of a completion that are looked at
_MOST: Final = 4_000  # equations of a completion that are looked at
_ANNOTATION: Final = re.compile(r"<<([^<>\n]{0,400})>>")
_HUNDRED: Final = re.compile(r"\*\s*100\s*%\s*$")
_NUMBER: Final = re.compile(r"(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,40})(?:\.\d{1,40})?|\.\d{1,40}", re.ASCII)
_WORDS: Final = {
    word: int(number)
    for number, words in re.findall(
        r"(\d+) ([a-z ]+)",
        "0 zero 1 one once single 2 two half twice double pair couple both 3 three third triple thrice"
        " 4 four fourth quarter 5 five fifth 6 six sixth 7 seven seventh 8 eight eighth 9 nine ninth 10 ten tenth"
        " 11 eleven 12 twelve dozen 13 thirteen 14 fourteen 15 fifteen 16 sixteen 17 seventeen 18 eighteen 19 nineteen"
        " 20 twenty 30 thirty 40 forty 50 fifty 60 sixty 70 seventy 80 eighty 90 ninety 100 hundred 1000 thousand"
        " 1000000 million",
    )
    for word in words.split()
}


class Step(NamedTuple):
    """One equation, and what is held of it: right, wrong, or why it does not count."""

    left: str
    right: str
    state: str  # right, wrong, identity, repeated, ungrounded


def arithmetic(task: Task, completion: Any) -> Tally:
    """Right and wrong steps of everything that a completion says, its reasoning included."""
    prompt = "\n".join(content for message in task.prompt if isinstance(content := message.get("content"), str))
    states = [step.state for step in steps(said(completion), prompt)]
    return Tally(states.count("right"), states.count("wrong"))


def steps(text: str, prompt: str = "") -> list[Step]:
    """Every step of a text, in order. `prompt` says with which numbers a step may work; without any, with all."""
    known = _numbers_of(prompt[:_LONGEST])
    grounded, seen = bool(known), set()
    found: list[Step] = []
    for left, right, state, used, result, key in _judged(text[:_LONGEST]):
        if state in ("right", "wrong"):
            if key in seen:
                state = "repeated"
            elif state == "right" and grounded and not any(one in known or one * 100 in known for one in used):
                state = "ungrounded"
            else:
                known.add(result)
            seen.add(key)
        found.append(Step(left, right, state))
    return found


def _judged(text: str) -> Iterator[tuple[str, str, str, tuple[Fraction, ...], Fraction, Any]]:
    """Both sides, right, wrong or identity, the numbers worked with, the result, and what equal steps share."""
    cache: dict[Any, Any] = {}
    for left, right, about, converts, asserted in islice(_pairs(text), _MOST):
        case = (left, right, about, converts, asserted)
        if case not in cache:
            cache[case] = judge(left, right, about=about, converts=converts, asserted=asserted)
        if cache[case] is not None:
            yield (left, right, *cache[case])


def _pairs(text: str) -> Iterator[tuple[str, str, bool, bool, bool]]:
    """Annotations first of their line, then what the line says in plain."""
    for line in text.splitlines():
        for annotation in _ANNOTATION.finditer(line) if "<<" in line else ():
            sides = annotation[1].split("=")
            yield from ((one, other, False, False, True) for one, other in pairwise(sides))
    if "=" in text or "≈" in text or "＝" in text or "\\approx" in text:
        for found in equations(plain(_ANNOTATION.sub("", text))):
            yield found.left, found.right, found.about, found.converts, False


def judge(
    left: str, right: str, *, about: bool = False, converts: bool = False, asserted: bool = False
) -> tuple[str, tuple[Fraction, ...], Fraction, Any] | None:
    """What is held of two sides; None where nothing can be held.

    `about`: the text says ≈; `converts`: units stand there that may need converting, so that unequal is not wrong;
    `asserted`: two plain numbers were said to be equal, so that they are wrong if they are not.
    """
    try:
        one, other = value(left), value(right)
    except Unreadable:
        return None
    except ZeroDivisionError:
        return "wrong", (), Fraction(0), (left, right)
    if one.places is not None and other.places is not None:
        equal = one.number == other.number
        if not (equal or asserted):
            return None
        state = "identity" if equal else "wrong"
    elif left == right:
        state = "identity"
    else:
        held = _equal(left, right, one, other, about)
        if held is None or (not held and converts):
            return None
        state = "right" if held else "wrong"
    worked, result = (other, one.number) if one.places is not None else (one, other.number)
    signs = tuple(sorted(sign for sign in f"{left}{right}" if sign in "+-*/^%"))
    return state, worked.numbers, result, (tuple(sorted(worked.numbers)), signs, result, state)


def _equal(left: str, right: str, one: Value, other: Value, about: bool) -> bool | None:
    """Whether the sides agree under any meaning of a percent sign; None where roundings of both sides hide it."""
    if one.places is not None:
        left, right, one, other = right, left, other, one
    if agrees(one.number, other.number, None if other.percents else other.places, about=about):
        return True
    if one.percents or other.percents:
        whole = value(right, Fraction(1))
        if agrees(one.number * 100, whole.number, other.places, about=about) and other.percents:
            return True  # 2/3 = 66.7%
        if agrees(one.number, whole.number, other.places, about=about) and other.percents:
            return True  # 3/4*100 = 75%
        as_units = other.percents or not set(left) & set("*/") or _HUNDRED.search(left)  # 9/21*100% = 42.86
        if as_units and agrees(value(left, Fraction(1)).number, whole.number, other.places, about=about):
            return True  # 40% + 10 = 50%
    close = abs(one.number - other.number) * 100 <= abs(one.number)
    rounded = other.places is None and ("." in left or "." in right or about)
    return None if close and (rounded or (about and other.places is None)) else False


def _numbers_of(prompt: str) -> set[Fraction]:
    """Numbers that a prompt holds, in digits or as a word."""
    found = {Fraction(number.replace(",", "")) for number in _NUMBER.findall(prompt)}
    words = re.findall(r"[a-z]+", prompt.lower())
    singular = (_WORDS.get(word, _WORDS.get(word.removesuffix("s"))) for word in words)
    return found | {Fraction(number) for number in singular if number is not None}
