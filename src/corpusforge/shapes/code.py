"""Code tasks, whose answer is a program that tests can run.

    mbpp        {"text", "code", "test_list"}                            assert_tests; the prompt shows the first test
    humaneval   {"prompt", "test", "entry_point"}                        assert_tests, through its check function
    apps        {"question", "input_output": {"inputs", "outputs"}}      program: what is printed for each input
                … with "fn_name"                                         assert_tests: what the function returns
    doctest     what the doctest harvester finds                         doctest, and an SFT row that documents it

A worked solution stays in `extra.solution`: it is what a model learns from, and never the gold answer itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import Draft, Unrepresentable, assistant, maybe_json, string, user, verifier

if TYPE_CHECKING:
    from collections.abc import Mapping


MBPP_TESTS: Final = ("challenge_test_list", "test_setup_code", "test_imports")


def mbpp(record: Mapping[str, Any]) -> list[Draft]:
    """A programming task with assertions; the prompt shows the first of them, because it names the function."""
    tests = _texts(record["test_list"], "test_list") + _texts(
        record.get("challenge_test_list") or [], "challenge_test_list"
    )
    if not tests:
        raise Unrepresentable("no_tests")
    field, setup = ("text" if "text" in record else "prompt"), record.get("test_setup_code") or ""
    imports = _texts(record.get("test_imports") or [], "test_imports")
    checker = verifier(
        "assert_tests",
        tests=tests,
        setup="\n".join([*imports, *([setup] if isinstance(setup, str) and setup else [])]),
        reference=record.get("code"),
    )
    prompt = f"{string(record, field)}\n\nYour code should pass this test:\n\n{tests[0]}"
    named = {field, "code", "test_list", *MBPP_TESTS}
    return [Draft("task", [user(prompt)], frozenset(named & record.keys()), verifier=checker, domain="code")]


def _texts(value: Any, field: str) -> list[str]:
    value = maybe_json(value)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise Unrepresentable("field_not_texts", field=field)
    return value


def humaneval(record: Mapping[str, Any]) -> list[Draft]:
    """A function to complete, with a check function."""
    prompt, entry = string(record, "prompt"), string(record, "entry_point")
    solution = record.get("canonical_solution")
    checker = verifier(
        "assert_tests",
        tests=[f"{string(record, 'test')}\n\ncheck({entry})"],
        setup="",
        reference=prompt + solution if isinstance(solution, str) else None,
        prompt=prompt,
        entry_point=entry,
    )
    used = frozenset({"prompt", "entry_point", "canonical_solution", "test"} & record.keys())
    extra = {"solution": solution} if isinstance(solution, str) else {}
    return [Draft("task", [user(prompt)], used, verifier=checker, domain="code", extra=extra)]


_ALIKE: Final = """\
def plain(value):
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
def alike(found, wanted):
    found = plain(found)
    return found == wanted or (isinstance(wanted, list) and len(wanted) == 1 and found == wanted[0])
"""


def apps(record: Mapping[str, Any]) -> list[Draft]:
    """A problem with inputs and outputs: of a program, or of a function that is named."""
    given = maybe_json(record["input_output"])
    inputs, outputs = (given.get(name) for name in ("inputs", "outputs")) if isinstance(given, dict) else (None, None)
    if not isinstance(inputs, list) or not isinstance(outputs, list) or len(inputs) != len(outputs):
        raise Unrepresentable("no_tests" if given in (None, "", [], {}) else "tests_not_understood")
    if not inputs:
        raise Unrepresentable("no_tests")
    starter = record.get("starter_code") or ""
    name = given.get("fn_name") if isinstance(given, dict) else None
    solutions = maybe_json(record.get("solutions"))
    first = solutions[0] if isinstance(solutions, list) and solutions and isinstance(solutions[0], str) else None
    if isinstance(name, str) and name:
        checker = _function(name, inputs, outputs, starter, first)
    else:
        pairs = zip(inputs, outputs, strict=True)
        checker = verifier("program", tests=[{"input": _text(a), "output": _text(b)} for a, b in pairs])
    prompt = string(record, "question").rstrip()
    prompt += f"\n\n```python\n{starter.rstrip()}\n```" if isinstance(starter, str) and starter.strip() else ""
    prompt += "" if name else "\n\nRead from standard input and print to standard output."
    used = frozenset({"question", "input_output", "starter_code"})
    extra = {"solution": first} if first is not None else {}
    return [Draft("task", [user(prompt)], used, verifier=checker, domain="code", extra=extra)]


def _function(name: str, inputs: list[Any], outputs: list[Any], starter: Any, reference: str | None) -> tuple[str, str]:
    """Assertions on what a function, or a method of `Solution`, returns."""
    if not name.isidentifier() or not all(isinstance(one, list) for one in inputs):
        raise Unrepresentable("tests_not_understood")
    called = f"Solution().{name}" if "class Solution" in f"{starter}\n{reference or ''}" else name
    tests = [
        f"assert alike({called}({', '.join(map(repr, arguments))}), {wanted!r})"
        for arguments, wanted in zip(inputs, outputs, strict=True)
    ]
    return verifier("assert_tests", tests=tests, setup=_ALIKE, reference=reference)


def _text(value: Any) -> str:
    """An input or output of a program: a text, or its lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    if not isinstance(value, str):
        raise Unrepresentable("tests_not_understood")
    return value


def doctest(record: Mapping[str, Any]) -> list[Draft]:
    """A harvested function: write it so that its doctests pass, and document it."""
    name, code, story = (string(record, key) for key in ("name", "code", "docstring"))
    used = frozenset({"module", "name", "signature", "docstring", "code", "bare_code", "examples"})
    drafts = []
    if record.get("examples"):
        checker = verifier("doctest", entry_point=name, module=record.get("module"), examples=record["examples"])
        asked = f"Write the Python function `{name}`.\n\n```python\n{record['signature']}\n```\n\n{story}"
        drafts.append(Draft("task", [user(asked)], used, verifier=checker, domain="code", extra={"solution": code}))
    asked = f"Write the docstring of this Python function.\n\n```python\n{record['bare_code']}\n```"
    drafts.append(Draft("sft", [user(asked), assistant(story)], used, domain="code"))
    return drafts
