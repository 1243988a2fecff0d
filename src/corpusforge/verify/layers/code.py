r"""code: whether the code that a code task would run is Python at all, before anything is run.

    "```python\ndef f(a): return a\n```"  ->  1 of 1     "```python\ndef f(a) return a\n```"  ->  0 of 1

One step at most: the block that the verifier would take. A block that says nothing (`pass`, `…`, a text) is wrong too,
or it would be the cheapest way to be paid. Tasks of other kinds have no such step.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import _python
from corpusforge.verify.layers._steps import Tally

if TYPE_CHECKING:
    from corpusforge.verify._verdict import Task

KINDS: Final = ("assert_tests", "doctest", "program")
_LONGEST: Final = 200_000  # characters of a completion that are looked at


def code(task: Task, completion: Any) -> Tally:
    """One right step for code that parses and does something, one wrong one for a block that does not."""
    if task.kind not in KINDS:
        return Tally(0, 0)
    entry, prompt = task.spec.get("entry_point"), task.spec.get("prompt")
    names = [entry] if isinstance(entry, str) and entry else []
    said = _python.said(completion)[:_LONGEST]
    found = _python.code_of(said, names)
    tree = _python.parsed(found) if found is not None else None
    if tree is None and names and isinstance(prompt, str) and prompt:  # the inside of a function that the prompt began
        whole = _python.completed(prompt, said, names[0])
        tree = _python.parsed(whole) if whole is not None else None
        found = found if found is not None else whole
    if found is None:
        return Tally(0, 0)
    return Tally(1, 0) if tree is not None and _does_something(tree) else Tally(0, 1)


def _does_something(tree: ast.Module) -> bool:
    """Whether there is any statement beside `pass`, texts and heads of functions and classes."""
    heads = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        for inner in getattr(node, "body", []):
            if isinstance(inner, heads):
                waiting.append(inner)
            elif not isinstance(inner, ast.Pass) and not (
                isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant)
            ):
                return True
    return False
