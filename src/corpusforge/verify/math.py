r"""math: the final expression means the same as the gold expression. Spec: {"answer": "\\frac{3}{7}"}.

Two plain numbers are compared here, exactly. All else goes to math-verify (Hugging Face, Apache-2.0: ANTLR grammar of
LaTeX, sympy for equality) in a worker process with hard limits (`_limits`), since sympy on a hostile expression may
never end. Both sides are read by the same rule and compared in both directions, so that swapping gold and answer
changes nothing: math-verify alone takes "1" for "2x + z = 1" but not the reverse.

    gold "\frac{3}{7}"    "So \boxed{3/7}"  pass    "0.43"  fail    "7^{7^{7^{7}}}"  fail (math.expression)
    gold "7"              "3 + 4 = 7"      pass    "3 + 4"  fail (math.expression)

A plain number has to be worked out; where gold is an expression, any form of it will do. A gold answer that is prose or
that cannot be parsed, is undecided whatever the completion says.
"""

from __future__ import annotations

import importlib
import re
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.verify import _hedges, _limits
from corpusforge.verify._final import FinalAnswer, final
from corpusforge.verify._notation import powers
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided
from corpusforge.verify.numeric import doubt, parse_number, worked_out

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
_DENIED: Final = re.compile(
    r"(?:\b(?:not|never|cannot\s+be)|\w{2,7}n['’]t(?:\s+be)?)\s+(?:equal\s+to\s+)?"
    r"(?:\$[^$\n]{1,200}\$|\\\([^\n]{1,200}?\\\)|(?=\S{0,200}[\d\\^=<>+])\S{1,200})[\s.!*]{0,9}\Z",
    re.IGNORECASE,
)
_WORK: Final = re.compile(
    r"(?<=[\d)}\]])\s*(?:[-+*×·÷\u2212]|\\(?:times|cdot|div|pm)(?![A-Za-z])|\^(?!\s*\{?\s*\\(?:circ|prime)))\s*[\[({\\\d.+\u2212-]"
)  # between two operands: something to be worked out
_FUNCTION: Final = re.compile(
    r"\\(?:sqrt|log|ln|lg|exp|sin|cos|tan|sec|csc|cot|arc[a-z]+|[dt]?binom|sum|prod|int|lim|gcd|lcm|max|min|det|lfloor|lceil"
    r"|pi|infty|operatorname)(?![A-Za-z])|\b(?:sqrt|log|ln|exp|sin|cos|tan|gcd|lcm|pi|choose)\b|[√!π|]"
)
_SUM: Final = re.compile(
    r"(?:[\d\s.,+\-\u2212*/^(){}\[\]!_=×·÷]|\\(?:[dt]?frac|times|cdot|div|left|right|sqrt|log|ln|lg|exp|[dt]?binom)(?![A-Za-z]))+"
)  # numbers and what is done with them, and nothing that a parser may read in several ways
_EQUALS: Final = re.compile(r"=|≈|\\approx(?![A-Za-z])")
_DELIMITERS: Final = ("$", "\\(", "\\[", "\\boxed")
_ANOTHER: Final = "$17$"  # a gold that cannot be compared with this in time is at fault itself; with itself, texts are
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


def _at_once(task: Task, completion: Any) -> Verdict | tuple[str, str, bool]:
    """The verdict where it takes no parser; else what the parser is to compare."""
    answer = task.spec.get("answer")
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        answer = str(answer)
    gold = final(answer) if isinstance(answer, str) else None
    if gold is None or not gold.text or _is_prose(gold.text):
        return undecided("math.unparsable_gold")
    said = final(text_of(completion))
    plain = parse_number(gold.text) is not None
    found = (None if _DENIED.search(gold.text) else _taken_back(said, plain)) or _plain_numbers(gold.text, said.text)
    text = expression(said)
    if found is None and plain and unworked(gold.text, text):
        return failed("math.expression")
    return found or (expression(gold), text, plain)


def unworked(gold: str, said: str) -> bool:
    r"""Whether an answer to a plain number is numbers and operations alone, not worked out: equal or not, it fails.

    "$3+4$"  ->  True    "$7^{7^{7}}$"  ->  True    "$3+4=7$"  ->  False    "$2x$"  ->  False: the parser decides
    """
    inner = said.strip().removeprefix("$").removesuffix("$")
    return _SUM.fullmatch(inner) is not None and not worked(gold, inner)


def _taken_back(said: FinalAnswer, plain: bool) -> Verdict | None:
    """A fail where words deny the answer, or offer another beside a number."""
    if plain and (word := doubt(said)):
        return failed(f"math.{word}")
    denied = (not plain and _DENIED.search(said.text[-_LONGEST:])) or _hedges.before(said.lead) == "negated"
    return failed("math.negated") if denied else None


def _plain_numbers(gold: str, said: str) -> Verdict | None:
    """The verdict on two plain numbers; None where one is none, or where rounding could make them equal."""
    if "%" in gold or "%" in said:
        return None
    wanted, given = parse_number(gold), parse_number(said)
    if wanted is not None and given is None:
        given = worked_out(said)
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


def _symbolic(gold: str, said: str, plain: bool) -> Verdict:
    _need_math_verify()
    try:
        word = _limits.hold("corpusforge.verify.math:decide", (gold, said, plain), (gold, _ANOTHER, False))
    except _limits.Exceeded as over:
        return (failed if over.own else undecided)(f"math.{over.reason}")
    return {
        "equal": passed("math.equal"),
        "unequal": failed("math.equal"),
        "unworked": failed("math.expression"),
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
    text = powers(found.text).strip().strip("*").removesuffix(".").strip()
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


def decide(gold: str, said: str, plain: bool) -> str:
    """In the worker: `equal`, `unequal`, `no_answer`, `unparsable_gold`; `unworked` for a number."""
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
        return "unworked" if plain and not worked(gold.strip("$"), str(given[-1])) else "equal"
    # A gold that only its own text stands for can be met, never missed.
    return "unparsable_gold" if all(isinstance(one, str) for one in wanted) else "unequal"


def worked(gold: str, said: str) -> bool:
    r"""Whether an answer that is equal to a plain number says it, and does not leave it to be worked out.

    "7"  "3+4"  ->  False    "7"  "3+4=7"  ->  True    "1024"  "2^{10}"  ->  False    "12"  "\\sqrt{144}"  ->  False
    A decimal may be a rounded root:      "1.414214"  "\\sqrt{2}"  ->  True      "1.5"  "1+0.5"  ->  False
    """
    parts = [part.strip() for part in _EQUALS.split(said)]
    if any(parse_number(part) is not None for part in parts):
        return True
    wanted = parse_number(gold)
    rounded = wanted is not None and wanted.denominator > 1 and "." in gold
    has_function = _FUNCTION.search(parts[-1]) is not None
    return rounded if has_function else _WORK.search(parts[-1]) is None


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
