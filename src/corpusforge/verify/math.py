r"""math: the final expression means the same as the gold expression. Spec: {"answer": "\\frac{3}{7}"}.

Two plain numbers are compared here, exactly. All else goes to math-verify (Hugging Face, Apache-2.0: ANTLR grammar of
LaTeX, sympy for equality) in a worker process with hard limits (`_limits`), since sympy on a hostile expression may
never end. Both sides are read by the same rule and compared in both directions, so that swapping gold and answer
changes nothing: math-verify alone takes "1" for "2x + z = 1" but not the reverse.

    gold "\frac{3}{7}"    "So \boxed{3/7}"  pass    "0.43"  fail    "7^{7^{7^{7}}}"  undecided (math.timeout)

A gold answer that is prose, or that cannot be parsed, is undecided whatever the completion says.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.verify import _limits
from corpusforge.verify._final import FinalAnswer, final
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided
from corpusforge.verify.numeric import parse_number

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTEGER: Final = re.compile(r"[-+\u2212]?(?:\d+|\d{1,3}(?:,\d{3})+)")
_WORD: Final = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_MATHS: Final = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan sec csc cot arcsin arccos arctan sinh cosh tanh log ln exp sqrt max min gcd lcm mod pi inf infty "
        "and or",
    )
)
_COMMAND: Final = re.compile(r"\\(?:text|textbf|mathrm|mbox|operatorname|begin|end)\{[^{}]*\}|\\[A-Za-z]+")
_CANDIDATES: Final = re.compile(r"\d\s*[|&;]\s*[-+\u2212]?\.?\d")  # "12|13" is no answer; the parser takes the first
_DELIMITERS: Final = ("$", "\\(", "\\[", "\\boxed")
_PROSE_WORDS: Final = 3  # a gold with more words than that is no expression
_LONGEST: Final = 4_000  # characters that go to the parser


def check(task: Task, completion: Any) -> Verdict:
    """Pass when gold and final answer are equal. Raises MissingExtra without math-verify."""
    found = _at_once(task, completion)
    return found if isinstance(found, Verdict) else _symbolic(*found)


def check_many(tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """The verdicts of `check`: plain numbers at once, the rest over all workers."""
    found = [_at_once(task, completion) for task, completion in zip(tasks, completions, strict=True)]
    hard = [number for number, one in enumerate(found) if not isinstance(one, Verdict)]
    slow = iter(_limits.spread(check, [tasks[number] for number in hard], [completions[number] for number in hard]))
    return [one if isinstance(one, Verdict) else next(slow) for one in found]


def _at_once(task: Task, completion: Any) -> Verdict | tuple[str, str]:
    """The verdict where it takes no parser; else what the parser is to compare."""
    answer = task.spec.get("answer")
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        answer = str(answer)
    gold = final(answer) if isinstance(answer, str) else None
    if gold is None or not gold.text or _is_prose(gold.text):
        return undecided("math.unparsable_gold")
    said = final(text_of(completion))
    return _plain_numbers(gold.text, said.text) or (expression(gold), expression(said))


def _plain_numbers(gold: str, said: str) -> Verdict | None:
    """The verdict on two plain numbers; None where one is none, or where rounding could make them equal."""
    if "%" in gold or "%" in said:
        return None
    wanted, given = parse_number(gold), parse_number(said)
    if wanted is not None and given is None and _CANDIDATES.search(said):
        return failed("math.several")
    if wanted is None or (given is None and said):
        return None
    if given is None:
        return failed("math.no_answer")
    if wanted == given:
        return passed("math.number")
    whole = all(_INTEGER.fullmatch(text.strip().removesuffix(".").strip("$ ")) for text in (gold, said))
    return failed("math.number") if whole else None


def _symbolic(gold: str, said: str) -> Verdict:
    _need_math_verify()
    try:
        word = _limits.call("corpusforge.verify.math:decide", gold, said)
    except _limits.Exceeded as over:
        return undecided(f"math.{over.reason}")
    return {
        "equal": passed("math.equal"),
        "unequal": failed("math.equal"),
        "no_answer": failed("math.no_answer"),
    }.get(word, undecided("math.unparsable_gold"))


@cache
def _need_math_verify() -> None:
    if find_spec("math_verify") is None:
        raise MissingExtra("math-verify is not installed", hint="pip install 'corpusforge[verify]'")


def _is_prose(gold: str) -> bool:
    if any(mark in gold for mark in ("$", "\\")):
        return False
    return sum(word.lower() not in _MATHS for word in _WORD.findall(gold)) > _PROSE_WORDS


def expression(found: FinalAnswer) -> str:
    r"""What math-verify is given: LaTeX between dollars where the text is an expression, else the text as it is.

    box "\frac{3}{7}" -> "$\frac{3}{7}$"    marker "x + 2." -> "$x + 2$"    marker "18 dollars" -> "18 dollars"
    """
    text = found.text.strip().strip("*").removesuffix(".").strip()
    if any(mark in text for mark in _DELIMITERS):
        return text[-_LONGEST:]
    if found.form == "box":
        return f"${text[:_LONGEST]}$"
    if len(text) > _LONGEST:
        return text[-_LONGEST:]
    if re.fullmatch(r"[A-Za-z]{2,}", text):
        return f"$\\text{{{text}}}$"
    words = [word for word in _WORD.findall(_COMMAND.sub(" ", text)) if word.lower() not in _MATHS]
    return text if words or not text or "%" in text else f"${text}$"


def prepare() -> None:
    """In the worker, before the first call and outside its limits: what takes long to import."""
    importlib.import_module("math_verify")


def decide(gold: str, said: str) -> str:
    """In the worker: `equal`, `unequal`, `no_answer` or `unparsable_gold`."""
    import logging

    from math_verify import parse

    logging.disable(logging.CRITICAL)
    wanted = parse(gold, parsing_timeout=None)
    if not wanted:
        return "unparsable_gold"
    given = parse(said, parsing_timeout=None)
    if not given:
        return "no_answer"
    if _equal(wanted, given) and _equal(given, wanted):
        return "equal"
    # A gold that only its own text stands for can be met, never missed.
    return "unparsable_gold" if all(isinstance(one, str) for one in wanted) else "unequal"


def _equal(wanted: list[Any], given: list[Any]) -> bool:
    from math_verify import verify

    for left in wanted:
        for right in given:
            try:
                if verify(left, right, timeout_seconds=None, allow_set_relation_comp=True, raise_on_error=True):
                    return True
            except MemoryError:
                raise
            except Exception:  # noqa: BLE001, S112 - sympy raises whatever it likes on what it cannot compare
                continue
    return False
