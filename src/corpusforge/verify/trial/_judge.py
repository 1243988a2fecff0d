"""The confined process that runs the tests. No line of the solution ever runs in it.

    {"names": ["f"], "setup": "", "tests": ["assert f(1) == 2"]}  ->  asks for f, runs the tests, says "passed"

Every name that the tests take from the solution is a `Remote`. A test passes when it ran to its end, at least one
assertion was evaluated in each that holds one, and something of the solution was called, or is a plain value.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from corpusforge.verify.trial._wire import Peer, Remote, Wire

_OPEN: Final = ("tests", "_io", "collections")  # modules of classes whose instances a solution may look into


def main(plan: dict[str, Any]) -> None:
    """Judge, and say so in one frame."""
    import os

    wire = Wire()
    peer = Peer(wire, ("call", "iter", "next", "item", "len", "bool"), hear=_hear)
    peer.acts |= {"get": _get, "set": _set}
    names: dict[str, Any] = {"__name__": "tests"}
    for name in plan["modules"]:
        names[name] = __import__(name)
    for name in plan["names"]:
        try:
            names[name] = peer.ask("name", name)
        except KeyError:
            continue  # the solution does not define it; a test that needs it fails
    values = "tests" in plan and any(type(names.get(name)) not in (Remote, type(None)) for name in plan["names"])
    said = (_asserts if "tests" in plan else _examples)(plan, names)
    if said == "passed" and not (peer.calls or values):
        said = "nothing_called"
    wire.write(b"!" + peer.dump(said))
    os._exit(0)


def _get(it: Any, name: str) -> Any:
    """A public attribute of what a test handed over. Not of frames, functions and modules: they lead everywhere."""
    if name.startswith("_") or type(it).__module__ not in _OPEN:
        raise AttributeError(name)
    return getattr(it, name)


def _set(it: Any, name: str, value: Any) -> None:
    """Change a field of an instance of a class of the tests, say the next node of a linked list."""
    if name.startswith("_") or type(it).__module__ != "tests" or name not in vars(it):
        raise AttributeError(name)
    setattr(it, name, value)


def _hear(text: str) -> None:
    if text:
        sys.stdout.write(text)


def _asserts(plan: dict[str, Any], names: dict[str, Any]) -> str:
    seen: set[int] = set()
    names[plan["mark"]] = seen.add
    try:
        exec(compile(plan["setup"], "setup.py", "exec", dont_inherit=True), names)  # noqa: S102 - confined
        for number, (test, expects) in enumerate(plan["tests"]):
            exec(compile(test, f"test{number}.py", "exec", dont_inherit=True), names)  # noqa: S102 - confined
            if expects and number not in seen:
                return "unreached"
    except AssertionError:
        return "failed"
    except BaseException as error:  # noqa: BLE001 - SystemExit of a test is no pass
        return _kind(error, plan)
    return "passed"


def _kind(error: BaseException, plan: dict[str, Any]) -> str:
    """A name of the solution that is not there is told apart from other exceptions."""
    return "missing" if isinstance(error, NameError) and error.name in plan["names"] else "raised"


def _examples(plan: dict[str, Any], names: dict[str, Any]) -> str:
    import doctest

    examples = doctest.DocTestParser().get_examples(plan["examples"])
    for example, options in zip(examples, plan["options"], strict=True):
        example.options.update({doctest.OPTIONFLAGS_BY_NAME[option]: True for option in options})
    expected = sum(not example.options.get(doctest.SKIP) for example in examples)
    found: list[str] = []

    class Runner(doctest.DocTestRunner):
        def report_unexpected_exception(self, *seen: Any) -> None:
            found.append(_kind(seen[-1][1], plan))

        def report_failure(self, *_: Any) -> None:
            found.append("failed")

    test = doctest.DocTest(examples, names, "solution", None, None, None)
    ran = Runner(verbose=False, optionflags=doctest.FAIL_FAST).run(test, out=found.append, clear_globs=False)
    if found:
        return found[0]
    return "passed" if ran.attempted == expected else "unreached"
