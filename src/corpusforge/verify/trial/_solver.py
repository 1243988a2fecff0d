"""The confined process that holds a solution: it loads it, and does what the judge asks with what it defines.

    {"code": "def f(x): …", "before": ["import math"], "module": "", "name": "f"}   ->  ready; then calls of f

It knows no test and no expected value. Whatever the solution does to this process, patching, exiting, threads, writing
to every open file, it can only change what its own functions seem to return.
"""

from __future__ import annotations

import sys
from typing import Any

from corpusforge.verify.trial._wire import ACTS, Peer, Wire, printed_text


def main(plan: dict[str, Any]) -> None:
    """Load the solution and serve. Never returns: the process ends with its input."""
    wire = Wire()
    solution = type(sys)("solution")
    sys.modules["solution"] = solution
    peer = Peer(wire, ACTS, said=printed_text())
    peer.acts["name"] = lambda name: vars(solution)[name]
    trouble = _load(plan, vars(solution))
    wire.write(b"!" + peer.dump(trouble))
    while not trouble:
        peer.answer(wire.read())


def _load(plan: dict[str, Any], names: dict[str, Any]) -> str:
    """Run the solution's text. The name of what it raised, or nothing."""
    if plan["module"]:
        _move_in(plan["module"], names)
        names.pop(plan["name"], None)
    for line in plan["before"]:
        try:
            exec(line, names)  # noqa: S102 - confined
        except Exception:  # noqa: BLE001, S112 - what the tests import need not be there for the solution
            continue
    try:
        exec(compile(plan["code"], "solution.py", "exec", dont_inherit=True), names)  # noqa: S102 - confined
    except BaseException as error:  # noqa: BLE001 - whatever it raises, it did not load
        return type(error).__name__
    return ""


def _move_in(module: str, names: dict[str, Any]) -> None:
    """Give a solution the surroundings of the function that it replaces: the names of its module."""
    import importlib

    try:
        home = importlib.import_module(module)
    except BaseException:  # noqa: BLE001 - a module that only exists elsewhere: the solution stands alone
        return
    names.update((name, value) for name, value in vars(home).items() if not name.startswith("__"))
