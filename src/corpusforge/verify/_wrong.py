r"""Right answers as their specification has them, and answers that are wrong for certain.

    numeric "72"                          right "72"             wrong "73", "71", "82"
    choice "B" of A to D                  right "B"              wrong "A", "C", "D"
    tool_call f(a=1)                      right f(a=1)           wrong f(a_x=1), f(a="…"), f(), f_other(a=1)
    assert_tests                          right the reference    wrong the reference with one small fault (`_mutants`)

All follow from the task alone. A fault in a program, or in an answer of which a puzzle may have many, may happen to be
right still: such a wrong answer is not `sure`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import _python
from corpusforge.verify._mutants import mutants
from corpusforge.verify.numeric import allowance, parse_number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from corpusforge.verify._verdict import Task

CODE: Final = ("assert_tests", "doctest", "program")
ANSWERS: Final = ("numeric", "exact", "math", "choice", "reasoning_gym")
NEED_GOLD: Final = (*ANSWERS, "tool_call")
"""Kinds whose verifier has nothing to go by without a gold answer; tests can be run without a reference solution."""
NO_CALL: Final = "None of these functions fits."
_FENCED: Final = "```python\n{}\n```"


@dataclass(frozen=True)
class Probe:
    """An answer to try. `check` is what it is for: gold, empty, refusal, noop, other_gold, mutant."""

    check: str
    completion: Any
    what: str = ""  # of a mutant: what was changed
    sure: bool = True  # whether it is wrong for certain (a gold answer is right for certain)


def gold_of(task: Task, extra: Mapping[str, Any]) -> str | None:
    """The right answer as a completion; None where the task states none. `extra` may hold a worked solution."""
    spec = task.spec
    if task.kind == "tool_call":
        calls = _accepted(spec)
        return None if calls is None else _spoken(calls)
    if task.kind in CODE:
        given = spec.get("reference") or extra.get("solution")
        return _fenced(given) if isinstance(given, str) and given.strip() else None
    given = spec.get("answer")
    if task.kind == "reasoning_gym" and isinstance(spec.get("entry"), dict):
        given = spec["entry"].get("answer")
    if isinstance(given, (int, float)) and not isinstance(given, bool):
        given = json.dumps(given)
    return given if isinstance(given, str) and given.strip() else None


def plain_wrong(task: Task, gold: str | None) -> list[Probe]:
    """The answers that no task may pay for: nothing, a refusal, and doing nothing in the form that is asked for.

    Leaves out what the task itself holds to be right: no call where no tool fits, a gold answer of these very words.
    """
    if task.kind == "tool_call" and not task.spec.get("calls"):
        return []
    noop = "The answer is"
    if task.kind in CODE:
        names = sorted(_asked(task, gold)) if task.kind != "program" else []
        noop = "\n".join(f"def {name}(*args, **kwargs):\n    return None" for name in names) or "pass"
    elif task.kind == "tool_call":
        noop = "[]"
    probes = [Probe("empty", ""), Probe("refusal", "I'm sorry, but I can't help with that."), Probe("noop", noop)]
    said = gold.strip().casefold() if gold else None
    return [probe for probe in probes if probe.completion.casefold() != said]


def mutated(task: Task, gold: str, most: int) -> list[Probe]:
    """Up to `most` wrong answers made from the right one."""
    makers = {"tool_call": _calls, "numeric": _numbers, "choice": _letters, "math": _expressions}
    if task.kind in CODE:
        code = _python.code_of(gold, []) or ""
        return [Probe("mutant", _fenced(changed), fault, sure=False) for fault, changed in mutants(code, most)]
    make = makers.get(task.kind, _texts)
    sure = task.kind != "reasoning_gym"
    made = {
        changed: what for what, changed in make(task, gold) if changed.strip().casefold() != gold.strip().casefold()
    }
    return [Probe("mutant", changed, what, sure) for changed, what in list(made.items())[:most]]


def _fenced(code: str) -> str:
    """A program in a block, or bare where it holds a fence itself."""
    return code if "```" in code else _FENCED.format(code)


def _asked(task: Task, gold: str | None) -> set[str]:
    """Names that the tests want of a solution."""
    entry, tests = task.spec.get("entry_point"), task.spec.get("tests")
    if isinstance(entry, str) and entry.isidentifier():
        return {entry}
    own = _python.defined(_python.code_of(gold, []) or "") if gold else set()
    listed = [one for one in tests if isinstance(one, str)] if isinstance(tests, list) else []
    setup = task.spec.get("setup")
    return set(_python.needed([setup if isinstance(setup, str) else "", *listed], own)[0])


def _numbers(task: Task, gold: str) -> Iterator[tuple[str, str]]:
    """Numbers near the right one that its tolerance does not allow."""
    right = parse_number(task.spec.get("answer"))
    allowed = None if right is None else allowance(task.spec, right)
    if right is None or allowed is None:
        return
    further = [("beyond tolerance", str(math.ceil(right + 2 * allowed) + 1))] if allowed else []
    plain = str(right) if right.denominator == 1 else None
    digits = [("digit", _digit(plain))] if plain else [("digit", _digit(gold))]
    steps = [("one more", str(right + 1)), ("one less", str(right - 1))]
    for what, changed in [*steps, *digits, *further, ("sign", str(-right))]:
        value = parse_number(changed)
        if value is not None and abs(value - right) > allowed:
            yield what, changed


def _letters(task: Task, gold: str) -> Iterator[tuple[str, str]]:
    offered = task.spec.get("choices")
    count = len(offered) if isinstance(offered, list) else 0
    own = isinstance(offered, list) and all(isinstance(one, str) and len(one) == 1 for one in offered)
    named = [str(one).upper() for one in offered or ()] if own else [chr(ord("A") + at) for at in range(min(count, 26))]
    right = gold.strip().strip("().").upper()
    yield from (("other letter", one) for one in named if one != right)


def _expressions(_task: Task, gold: str) -> Iterator[tuple[str, str]]:
    if re.search(r"\d", gold):
        yield "digit", _digit(gold)
    inner = gold.strip().strip("$").strip()
    yield "one more", f"\\boxed{{{inner} + 1}}"
    yield "times two and one", f"\\boxed{{2({inner}) + 1}}"


def _texts(_task: Task, gold: str) -> Iterator[tuple[str, str]]:
    if re.search(r"\d", gold):
        yield "digit", _digit(gold)
    words = gold.split()
    if len(words) > 1 and words[::-1] != words:
        yield "order", " ".join(words[::-1])
    yield "more", f"{gold} and x"
    yield "less", gold.strip()[1:] or "x"


def _digit(text: str) -> str:
    """A text with one of its digits another, which one and to what following from a hash; never a leading zero."""
    places = [at for at, sign in enumerate(text) if sign.isascii() and sign.isdigit()]
    if not places:
        return text
    seed = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big")
    at = places[seed % len(places)]
    other = "123456789".replace(text[at], "")[(seed >> 32) % 8]
    return text[:at] + other + text[at + 1 :]


def _accepted(spec: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]] | None:
    """Each call with the first accepted value of every argument that has to be there; None for no list of calls."""
    calls = spec.get("calls")
    if not isinstance(calls, list) or not all(isinstance(call, dict) and len(call) == 1 for call in calls):
        return None
    pairs = [next(iter(call.items())) for call in calls]
    good = all(isinstance(name, str) and isinstance(values, dict) for name, values in pairs)
    return [(name, _firsts(values)) for name, values in pairs] if good else None


def _firsts(values: Mapping[str, Any]) -> dict[str, Any]:
    first = {name: listed[0] if isinstance(listed, list) and listed else listed for name, listed in values.items()}
    return {name: _opened(value) for name, value in first.items() if not (isinstance(value, str) and value == "")}


def _opened(value: Any) -> Any:
    if isinstance(value, dict):
        return _firsts(value) if value and all(isinstance(one, list) for one in value.values()) else value
    return [_opened(one) for one in value] if isinstance(value, list) else value


def _spoken(calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Calls as a completion."""
    if not calls:
        return NO_CALL
    said = [json.dumps({"name": name, "arguments": values}, ensure_ascii=False) for name, values in calls]
    return "\n".join(f"<tool_call>\n{one}\n</tool_call>" for one in said)


def _calls(task: Task, _gold: str) -> Iterator[tuple[str, str]]:
    """Another call, one too many, an argument renamed, left out, of another type."""
    calls = _accepted(task.spec) or []
    if not calls:
        yield "call where none fits", _spoken([(_offered(task), {})])
        return
    (name, values), rest = calls[0], calls[1:]
    accepted = next(iter(task.spec["calls"][0].values()))
    yield "other function", _spoken([(f"{name}_other", values), *rest])
    yield "extra call", _spoken([*calls, calls[-1]])
    if not values:
        return
    first = next(iter(values))
    renamed = {f"{key}_x" if key == first else key: value for key, value in values.items()}
    yield "renamed argument", _spoken([(name, renamed), *rest])
    wrong: Any = 7919 if isinstance(values[first], str) else "no such value"
    yield "wrong type", _spoken([(name, {**values, first: wrong}), *rest])
    needed = [key for key in values if "" not in (accepted[key] if isinstance(accepted[key], list) else [])]
    if needed:
        yield "argument left out", _spoken([(name, {key: values[key] for key in values if key != needed[0]}), *rest])


def _offered(task: Task) -> str:
    """The name of a tool that the prompt offers."""
    for tool in task.tools if isinstance(task.tools, (list, tuple)) else ():
        function = tool.get("function", tool) if isinstance(tool, dict) else {}
        if isinstance(function, dict) and isinstance(function.get("name"), str):
            return str(function["name"])
    return "do_something"
