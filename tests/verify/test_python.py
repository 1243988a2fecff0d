"""_python: code is found where completions put it, and tests say what they need of it."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify._python import code_of, completed, defined, imports, marked, needed, parsed


@pytest.mark.parametrize(
    ("completion", "code"),
    [
        ("```python\nf = 1\n```", "f = 1\n"),
        ("one\n```python\nf = 1\n```\ntwo\n```python\nprint(f)\n```", "f = 1\n"),
        ("```python\nf = 1\n```\n```py\nf = 2\n```", "f = 2\n"),
        ("```python\ng = 1\n```\n```\ng = 2\n```", "g = 2\n"),
        ("```python\nf = 1\n```\nRun it:\n```bash\nf=1\n```", "f = 1\n"),
        ("~~~python\nf = '''\n```\n'''\n~~~", "f = '''\n```\n'''\n"),
        ("  ```python\n  f = 1\n  ```", "  f = 1\n"),
        ("```python\nf = 1", "f = 1"),
        ("f = 1", "f = 1"),
        ("Sorry, no.", None),
        ("", None),
        ("# only a comment", None),
        ("```json\n{}\n```", None),
    ],
)
def test_the_code_of_a_completion(completion: str, code: str | None) -> None:
    assert code_of(completion, ["f"]) == code


@given(st.text(max_size=200) | st.text("`~ \npython\t", max_size=60))
def test_any_text_has_code_or_none(completion: str) -> None:
    assert code_of(completion, ["f"]) is None or code_of(completion, ["f"]) in completion


@pytest.mark.parametrize(
    "text", ["(" * 5000, "-" * 100_000 + "1", "\0", "\ud800", "x = 1\n" + " " * 200 + "y", "'\\d'"]
)
def test_no_text_breaks_the_parser_or_warns(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (parsed(text) is None) == (text != "'\\d'")
        assert defined(text) == set()


def test_names_bound_at_the_top_are_defined() -> None:
    text = "import a.b, c as d\nfrom e import f\ng: int = 1\ndef h(x): y = x\nclass I: j = 1\nfor k in []: pass"
    assert defined(text) == {"a", "d", "f", "g", "h", "I", "k"}


@pytest.mark.parametrize(
    ("tests", "own", "names", "modules"),
    [
        (["assert f(1) == g"], [], ["f", "g"], []),
        (["x = 1\nassert f(x) == x"], [], ["f"], []),
        (["def check(c): assert c(y)", "check(f)"], [], ["f", "y"], []),
        (["assert abs(f(1)) < 1"], [], ["f"], []),
        (["assert sum(1, 2) == 3"], ["sum"], ["sum"], []),
        (["assert math.isclose(f(1), bisect(2))"], [], ["bisect", "f"], ["math"]),
        (["assert [i for i in f()] == (lambda z: z)(1)"], [], ["f"], []),
    ],
)
def test_what_tests_need_of_a_solution(tests: list[str], own: list[str], names: list[str], modules: list[str]) -> None:
    assert needed(tests, own) == (names, modules)


def test_a_marked_test_says_when_an_assertion_held() -> None:
    ready = marked("for x in [1, 2]:\n    assert x < 2", "mark", 7)
    assert ready is not None
    seen: list[int] = []
    with pytest.raises(AssertionError):
        exec(ready[0], {"mark": seen.append})
    assert (seen, ready[1]) == ([7], True)
    assert marked("f(1)", "mark", 0) == ("f(1)", False)
    assert marked("assert (", "mark", 0) is None


@pytest.mark.parametrize(
    "body", ["    return 1", "return 1", "x = 1\n    return x", "\n    return 1\n\n", "def f():\n    return 1"]
)
def test_a_prompt_is_completed_to_a_program(body: str) -> None:
    names: dict[str, object] = {}
    exec(completed('def f():\n    """One."""\n', body, "f") or "", names)
    assert names["f"]() == 1  # type: ignore[operator]


@pytest.mark.parametrize("body", ["", " \n", "No, thanks."])
def test_nothing_completes_a_prompt_but_code(body: str) -> None:
    assert completed("def f():\n", body, "f") is None


def test_imports_are_found_at_the_top() -> None:
    assert imports("import a\nx = 1\nfrom b import c") == ["import a", "from b import c"]
