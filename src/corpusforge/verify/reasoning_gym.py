"""reasoning_gym: the dataset's own scorer. Spec: {"dataset": "countdown", "entry": {…}}.

`entry` is the generated item: question, answer and metadata.

Reasoning Gym (Stojanovski et al. 2025, Apache-2.0) has over a hundred generators, each with a `score_answer` from 0
to 1. A score of 1 is a pass; anything less is a fail that keeps its score: partial credit trains nothing. The answer
is what stands in the last <answer>…</answer>, else after the last marker (see `_final`), else the whole text, trimmed.

    dataset "countdown", numbers 40, 7, 5, target 75    "<answer>40 + 7*5</answer>"  ->  pass, score 1.0

Some scorers hand the answer to `eval` or to sympy's parser, which is `eval` too: a model would run code in its
trainer. Here both see arithmetic and literals alone, and the scorer runs in a worker with hard limits (`_limits`).
"""

from __future__ import annotations

import ast
import importlib
import math
import re
import sys
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.verify import _limits
from corpusforge.verify._final import final
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided
from corpusforge.verify.numeric import parse_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_LONGEST: Final = 100_000  # characters of an answer that a scorer is given
_NONSENSE: Final = "this is no answer"  # some scorers read whatever is not "True" as "False"
_NO_NUMBER: Final = re.compile(r"\b(?:nan|inf|infinity)[ij]?\b", re.IGNORECASE)  # min(1, nan) is 1
_HIGHEST: Final = 1e6  # exponents of one answer, multiplied
_BY_PREFIX: Final = frozenset({"coin_flip"})  # give 1 to "0" where the answer is 0.234
_TUPLES: Final = frozenset({"arc_agi", "rearc"})  # compare with tuples of tuples, which JSON turned into lists
_FUNCTIONS: Final = frozenset(
    re.findall(
        r"\w+",
        "sin cos tan sec csc cot asin acos atan sinh cosh tanh asinh acosh atanh sqrt cbrt exp log ln abs Abs "
        "Rational Integer Float Integral Derivative factorial gamma erf sign floor ceiling Min Max",
    )
)
_ARITHMETIC: Final = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Constant, ast.Load)
_LITERALS: Final = (*_ARITHMETIC, ast.List, ast.Tuple, ast.Set, ast.Dict)
_FORMULAS: Final = (*_ARITHMETIC, ast.Name, ast.Call)


def check(task: Task, completion: Any) -> Verdict:
    """Pass when the scorer says 1. Raises MissingExtra without reasoning-gym."""
    dataset, entry = task.spec.get("dataset"), task.spec.get("entry")
    if not isinstance(dataset, str) or not isinstance(entry, dict):
        return undecided("reasoning_gym.unreadable_gold")
    _need_reasoning_gym()
    answer = final(text_of(completion)).text
    if not answer or len(answer) > _LONGEST:
        return failed("reasoning_gym.no_answer" if not answer else "reasoning_gym.too_long")
    gold = entry.get("answer")
    own = gold.strip() if isinstance(gold, str) else ""
    try:
        found = _limits.hold("corpusforge.verify.reasoning_gym:score", (dataset, entry, answer), (dataset, entry, own))
    except _limits.Exceeded as over:
        return (failed if over.own and own else undecided)(f"reasoning_gym.{over.reason}")
    if not isinstance(found, (int, float)):
        return undecided(f"reasoning_gym.{found}")
    if found >= 1 or math.isclose(found, 1, rel_tol=1e-9):
        return passed("reasoning_gym.score")
    return failed("reasoning_gym.score", max(0.0, float(found)))


def check_many(tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """The verdicts of `check`, over all workers."""
    return _limits.spread(check, tasks, completions)


@cache
def _need_reasoning_gym() -> None:
    if find_spec("reasoning_gym") is None:
        raise MissingExtra("reasoning-gym is not installed", hint="pip install 'corpusforge[verify]'")


class _Entry(dict[str, Any]):
    """An entry that remembers whether its answer was looked at."""

    asked = False

    def __getitem__(self, key: str) -> Any:
        self.asked = self.asked or key == "answer"
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As of a dict."""
        self.asked = self.asked or key == "answer"
        return super().get(key, default)


def prepare() -> None:
    """In the worker, before the first call and outside its limits: what takes long to import."""
    importlib.import_module("reasoning_gym")


def score(dataset: str, entry: dict[str, Any], answer: str) -> float | str:
    """In the worker: the scorer's number, or why there is none: `unknown_dataset`, `no_gold`."""
    scorer = _scorer(dataset)
    if scorer is None:
        return "unknown_dataset"
    seen, gold = _Entry(entry), entry.get("answer")
    metadata = entry.get("metadata")
    if dataset in _TUPLES and isinstance(metadata, dict):
        seen["metadata"] = {**metadata, "output": tuple(map(tuple, metadata["output"]))}
    try:
        found = float(scorer(answer, seen))
    except Exception:  # noqa: BLE001 - whatever a scorer raises on an odd answer
        if gold is not None or not seen.asked:
            scorer(gold if isinstance(gold, str) else "", seen)  # raises again where the entry is at fault
        found = 0.0
    if gold is None and seen.asked:
        return "no_gold"  # the answer was compared with nothing
    if found >= 1 and answer.casefold() != str(gold).strip().casefold():
        odd = _NO_NUMBER.search(answer) and not _NO_NUMBER.search(str(gold))
        odd = odd or (dataset in _BY_PREFIX and not _close(answer, str(gold)))
        return 0.0 if odd or scorer(_NONSENSE, seen) >= 1 else found
    return found


def _close(answer: str, gold: str) -> bool:
    """Whether two numbers agree within the scorer's own 1e-4."""
    wanted, given = parse_number(gold), parse_number(answer)
    return wanted is not None and given is not None and abs(wanted - given) <= Fraction(1, 10_000)


@cache
def _scorer(dataset: str) -> Callable[[str, dict[str, Any]], float] | None:
    """The scorer of a dataset with its default settings; None for a name that is not registered."""
    import reasoning_gym
    from reasoning_gym.factory import DATASETS

    if dataset not in DATASETS:
        return None
    _guard_sympy()
    made = reasoning_gym.create_dataset(dataset, seed=0)
    vars(sys.modules[type(made).__module__])["eval"] = _literal
    scorer: Callable[[str, dict[str, Any]], float] = made.score_answer
    return scorer


def _literal(text: Any, *_: Any) -> Any:
    """`eval` for literals and arithmetic on them. Raises ValueError for anything else."""
    tree = ast.parse(str(text).strip(), mode="eval")
    if not all(isinstance(node, _LITERALS) for node in ast.walk(tree)):
        raise ValueError("not a literal")
    _demand_small(tree)
    return eval(compile(tree, "<answer>", "eval"), {"__builtins__": {}})  # noqa: S307 - only the nodes named above


@cache
def _guard_sympy() -> None:
    """Give every module of this process a sympy parser that refuses all but formulas."""
    from sympy.parsing import sympy_parser

    unguarded = sympy_parser.parse_expr

    def parse_expr(text: str, *arguments: Any, **options: Any) -> Any:
        _demand_formula(text)
        return unguarded(text, *arguments, **options)

    for module in list(sys.modules.values()):
        if module is not None and getattr(module, "parse_expr", None) is unguarded:
            module.parse_expr = parse_expr  # type: ignore[attr-defined]


def _demand_small(tree: ast.AST) -> None:
    """Raises ValueError for a tower of powers: nobody's answer, and worked out for hours (`9**9**9**9`)."""
    powers = [one for one in ast.walk(tree) if isinstance(one, ast.BinOp) and isinstance(one.op, ast.Pow)]
    highest = 1.0
    for power in powers:
        if any(isinstance(one, ast.Pow) for one in ast.walk(power.right)):
            raise ValueError("a tower of powers")
        numbers = [one.value for one in ast.walk(power.right) if isinstance(one, ast.Constant)]
        highest *= max(1.0, math.prod(float(abs(number)) for number in numbers if isinstance(number, (int, float))))
    if highest > _HIGHEST:
        raise ValueError("too high a power")


def _demand_formula(text: str) -> None:
    """Raises ValueError unless a text is a formula: numbers, names, operators and calls of known functions."""
    tree = ast.parse(text.strip().replace("!", "").replace("^", "**"), mode="eval")  # 4! and x^2 are sympy's own
    _demand_small(tree)
    for node in ast.walk(tree):
        known = isinstance(node, _FORMULAS) and not isinstance(getattr(node, "value", 0), (str, bytes))
        if isinstance(node, ast.Call):
            known = isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and not node.keywords
        if isinstance(node, ast.Name):
            known = "__" not in node.id
        if not known:
            raise ValueError("not a formula")
