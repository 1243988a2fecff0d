"""assert_tests: code is right when its assertions hold, in a process that the code cannot touch."""

from __future__ import annotations

import gzip
import json
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.shapes.code import humaneval, mbpp
from corpusforge.verify import sandbox, trial, verify, verify_many
from corpusforge.verify._verdict import Task
from corpusforge.verify.assert_tests import check, check_many
from corpusforge.verify.sandbox._place import SAID

if TYPE_CHECKING:
    from pathlib import Path

confined = pytest.mark.skipif(sandbox.available() is not None, reason=str(sandbox.available()))


def task(*tests: str, setup: str = "", **more: Any) -> Task:
    return Task("assert_tests", {"tests": list(tests), "setup": setup, **more})


def fenced(code: str) -> str:
    return f"Here it is:\n```python\n{code}\n```\nIt works."


def rule(code: str, *tests: str, **more: Any) -> str:
    verdict = check(task(*tests, **more), fenced(code))
    return f"{verdict.outcome} {verdict.rule}"


@confined
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def add(a, b): return a + b", "pass code.tests"),
        ("def add(a, b): return a - b", "fail code.tests"),
        ("def add(a, b): raise ValueError", "fail code.raised"),
        ("def plus(a, b): return a + b", "fail code.missing"),
        ("def add(a, b) return a", "fail code.raised"),
        ("import nothing_of_this_name", "fail code.raised"),
        ("import os; os._exit(0)", "fail code.exited"),
        ("def add(a, b): return 'x' * 10**6", "fail code.output"),
        ("def add(a, b): return [0] * 10**9", "fail code.raised"),
    ],
)
def test_the_rule_says_what_decided(code: str, expected: str) -> None:
    assert rule(code, "assert add(2, 3) == 5") == expected


@pytest.mark.parametrize("tests", [[], ["x = 1"], ["print(add(1, 2))"]])
def test_without_an_assertion_nothing_is_decided(tests: list[str]) -> None:
    verdict = check(task(*tests), fenced("def add(a, b): return a + b"))
    assert (verdict.outcome, verdict.score, verdict.rule) == ("undecided", None, "code.no_tests")


@confined
def test_tests_that_never_use_the_solution_decide_nothing() -> None:
    assert rule("def add(a, b): return a + b", "assert add") == "undecided code.no_tests"


@confined
@pytest.mark.parametrize(
    "test",
    [
        "for x in find(3):\n    assert x == 1",
        "if find(3):\n    assert find(3)[0] == 1",
        "try:\n    assert 0\nexcept: find(1)",
    ],
)
def test_an_assertion_that_is_never_reached_is_no_pass(test: str) -> None:
    assert rule("def find(n): return []", test) == "fail code.unreached"


@pytest.mark.parametrize(
    "spec",
    [{}, {"tests": "assert 1"}, {"tests": [1]}, {"tests": ["assert ("]}, {"tests": ["assert 1"], "setup": "def"}],
)
def test_a_specification_that_cannot_be_read_decides_nothing(spec: dict[str, Any]) -> None:
    assert check(Task("assert_tests", spec), fenced("x = 1")).rule == "code.unreadable_spec"


def test_without_code_there_is_nothing_to_run() -> None:
    assert check(task("assert f(1) == 1"), "I would rather not.").rule == "code.none"


def test_where_nothing_can_be_confined_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("corpusforge.verify.sandbox._kernel.available", lambda: "no Landlock")
    SAID.clear()
    with pytest.warns(RuntimeWarning, match="code is not run: no Landlock"):
        verdict = check(task("assert f() == 1"), fenced(f"open({str(tmp_path / 'ran')!r}, 'w')\ndef f(): return 1"))
    assert (verdict.outcome, verdict.rule, list(tmp_path.iterdir())) == ("undecided", "code.unconfined", [])


@confined
@pytest.mark.parametrize(
    ("code", "test"),
    [
        ("def f(xs): xs.sort()", "xs = [3, 1]\nf(xs)\nassert xs == [1, 3]"),
        ("def f(d): d['a'] = {1, 2}", "d = {}\nf(d)\nassert d == {'a': {1, 2}}"),
        ("def f(g, xs): return [g(x) for x in xs]", "assert f(lambda x: x + 1, [1, 2]) == [2, 3]"),
        ("def f(n): yield from range(n)", "assert list(f(3)) == [0, 1, 2] and 2 in f(3) and 3 not in f(3)"),
        (
            "def f(): raise KeyError('k')",
            "try:\n    f()\n    assert False\nexcept KeyError as e:\n    assert e.args == ('k',)",
        ),
        (
            "class E(ValueError): pass\ndef f(): raise E('no')",
            "try:\n    f()\nexcept ValueError as e:\n    assert str(e) == 'no'",
        ),
        (
            "from collections import *\nP = namedtuple('P', 'a b')\ndef f(): return P(1, 2)",
            "assert f() == (1, 2) and f().b == 2",
        ),
        ("from collections import *\ndef f(s): return Counter(s)", "assert f('aab') == {'a': 2, 'b': 1}"),
        (
            "import decimal\ndef f(): return decimal.Decimal('0.1')",
            "from decimal import Decimal\nassert f() == Decimal('0.1')",
        ),
        (
            "def f(): return 1e400, -0.0, 10**5000, b'\\xff', None, ...",
            "a = f()\nassert a[0] > 1 and a[2] == 10**5000 and a[3:5] == (b'\\xff', None)",
        ),
        ("def sum(a, b): return a + b", "assert sum(1, 2) == 3"),
        ("def f(x): return x", "assert math.isclose(f(0.1) + 0.2, 0.3)"),
        ("def f(x, kind): return isinstance(x, kind)", "assert f(1, int) and not f(1, str)"),
        (
            "class S:\n    def __init__(self): self.d = []\n    def push(self, x): self.d.append(x)",
            "s = S()\ns.push((1, [2]))\nassert s.d == [(1, [2])]",
        ),
        ("print('noise')\ndef f(): print('more'); return 1", "assert f() == 1"),
        (
            "from __future__ import annotations\nfrom dataclasses import *\n@dataclass\nclass D:\n    x: int",
            "assert D(2).x == 2",
        ),
        ("limit = 3", "assert limit == 3"),
        ("if __name__ == '__main__': raise ValueError\ndef f(): return 1", "assert f() == 1"),
    ],
)
def test_values_cross_to_the_tests_as_they_are(code: str, test: str) -> None:
    reference = code if "def sum" in code else None
    assert rule(code, test, reference=reference) == "pass code.tests"


@confined
def test_objects_of_the_tests_can_be_walked_and_linked() -> None:
    setup = "class Node:\n    def __init__(self, value, next=None): self.value, self.next = value, next"
    code = "def flip(n):\n    last = None\n    while n: n.next, last, n = last, n, n.next\n    return last"
    tests = ["n = flip(Node(1, Node(2)))\nassert (n.value, n.next.value, n.next.next) == (2, 1, None)"]
    assert rule(code, *tests, setup=setup) == "pass code.tests"


@confined
@pytest.mark.parametrize(
    "completion",
    [
        "    return a + b\n",
        "    c = a + b\n    return c",
        "```python\n    return a + b\n```",
        "```\nreturn a + b\n```",
        "def add(a, b):\n    return a + b",
        "Use it:\n```python\ndef add(a: List[int], b):\n    return same(a) + b\n```",
        "<think>```python\ndef add(a, b): return 0\n```</think>\n```python\ndef add(a, b): return a + b\n```",
    ],
)
def test_a_prompt_may_be_completed_by_a_body_or_a_whole_function(completion: str) -> None:
    prompt = 'from typing import List\ndef same(x):\n    return x\n\ndef add(a, b):\n    """Sum."""\n'
    asked = task("def check(f):\n    assert f(1, 2) == 3\n\ncheck(add)", prompt=prompt, entry_point="add")
    assert check(asked, completion).outcome == "pass"


CYCLE = '''def turn(s):
    """Letters, the first put last."""
    return s[1:] + s[:1]

def back(s):
    """Take a turned text and give the text."""
'''


@confined
@pytest.mark.parametrize(
    ("completion", "expected"),
    [
        ("    return s[-1:] + s[:-1]", "pass code.tests"),
        (fenced("def back(s): return s[-1:] + s[:-1]"), "pass code.tests"),
        (fenced("def turn(s): return s\n\ndef back(s): return s"), "fail code.tests"),
        (fenced("def back(s): return s\n\nglobals()['turn'] = back"), "fail code.tests"),
        (fenced("import builtins\nbuiltins.turn = lambda s: s\ndef back(s): return s"), "fail code.tests"),
    ],
)
def test_a_helper_of_the_prompt_is_the_prompts_own(completion: str, expected: str) -> None:
    """HumanEval 32, 38 and 50 hold the prompt's helper against the solution."""
    asked = task("def check(f):\n    assert f(turn('abc')) == 'abc'\n\ncheck(back)", prompt=CYCLE, entry_point="back")
    verdict = check(asked, completion)
    assert f"{verdict.outcome} {verdict.rule}" == expected


@confined
def test_a_module_that_only_the_reference_imports_is_the_standard_librarys() -> None:
    """MBPP 596: `sys.getsizeof` is among what the answer is held against."""
    reference = "import sys\nfrom math import floor\ndef size(x): return sys.getsizeof(x) + floor(0.5)"
    test = "assert size('a') == sys.getsizeof('a') + floor(0.5)"
    forged = "class sys: getsizeof = staticmethod(len)\nfloor = int\ndef size(x): return 1"
    assert rule(reference, test, reference=reference) == "pass code.tests"
    assert rule(forged, test, reference=reference) == "fail code.tests"


@confined
def test_where_tests_take_several_names_from_the_solution_the_verdict_says_so() -> None:
    """They could be made for each other."""
    code = "def encode(s): return s\ndef decode(s): return s"
    assert rule(code, "assert decode(encode('abc')) == 'abc'") == "pass code.tests_shared"
    assert rule(code, "assert decode(encode('abc')) == 'abd'") == "fail code.tests"


@confined
def test_many_get_their_own_verdicts_in_order() -> None:
    codes = [f"def f(): return {i % 3}" for i in range(7)]
    verdicts = check_many([task(f"assert f() == {i % 2}") for i in range(7)], [fenced(code) for code in codes])
    wanted = ["pass" if i % 3 == i % 2 else "fail" for i in range(7)]
    assert [v.outcome for v in verdicts] == wanted, [v.rule for v in verdicts]


@confined
def test_a_verdict_is_the_same_every_time_where_a_solution_throws_dice() -> None:
    code = "import random\ndef f(): return random.random()"
    assert len({rule(code, "assert f() < 0.5") for _ in range(3)}) == 1


def public(shared: Path, name: str) -> list[tuple[Task, str]]:
    """Tasks with their own solutions."""
    if name == "mbpp":
        lines = (shared / "data/mbpp/mbpp.jsonl").read_text().splitlines()
        records, shape, code = map(json.loads, lines), mbpp, "code"
    else:
        with gzip.open(shared / "data/humaneval/HumanEval.jsonl.gz", "rt") as file:
            records, shape, code = iter([json.loads(line) for line in file]), humaneval, "canonical_solution"
    found = [(shape(record)[0].verifier, record[code]) for record in records]
    return [(Task(verifier[0], json.loads(verifier[1])), text) for verifier, text in found if verifier]


@confined
@pytest.mark.parametrize("name", ["mbpp", "humaneval"])
def test_solutions_of_public_benchmarks_pass_and_others_do_not(shared: Path, name: str) -> None:
    sample = public(shared, name)[::32]
    tasks, codes = [task for task, _ in sample], [code for _, code in sample]
    assert {v.outcome for v in verify_many(tasks, codes)} == {"pass"}
    assert {v.outcome for v in verify_many(tasks[:5], codes[1:6])} == {"fail"}


def test_messages_of_a_chat_are_a_completion_too() -> None:
    said = [{"role": "assistant", "content": "no code"}]
    assert verify(task("assert f(1) == 1"), said).rule == "code.none"


@confined
def test_a_solution_that_force_ended_is_held_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once: what ends by force again has failed."""

    said = {"good": ["killed", "passed"], "bad": ["killed", "killed", "passed"]}
    monkeypatch.setattr(trial, "settle", lambda held, *_: said[held.solver["name"]].pop(0))
    tasks = [Task("assert_tests", {"name": name}) for name in said]
    verdicts = trial.verdicts(lambda spec, _: trial.Trial(dict(spec), {}), tasks, ["", ""])
    assert [verdict.rule for verdict in verdicts] == ["code.tests", "code.killed"]


@pytest.mark.usefixtures("interruptible")
@confined
def test_ctrl_c_ends_what_runs_and_begins_nothing_more() -> None:
    slow, adds = fenced("import time\ndef add(a, b): time.sleep(60)"), task("assert add(1, 2) == 3")
    timer = threading.Timer(1.5, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        check_many([adds] * 12, [slow] * 12)
    assert time.perf_counter() - began < 25  # twelve to their ends: ninety
    assert check(adds, fenced("def add(a, b): return a + b")).outcome == "pass"
