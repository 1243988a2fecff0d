"""Tasks stay when their verifier tells right from wrong; each fault of a verifier has its reason."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.projects import make_project
from tests.rows import row, table

from corpusforge.io import parquet
from corpusforge.shell import run_stage
from corpusforge.stages import health as stage
from corpusforge.stages._stage import Held, concat
from corpusforge.stages.health import STAGE, HealthConfig, health
from corpusforge.verify import Verdict, sandbox
from corpusforge.verify import health as tried

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.result import StageResult

confined = pytest.mark.skipif(sandbox.available() is not None, reason="programs cannot be confined here")
ADD = "def add(a, b):\n    return a + b"
ADDS = ["assert add(1, 2) == 3", "assert add(5, 5) == 10"]


def task(
    number: int, kind: str, *, prompt: str = "", extra: dict[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """A task row."""
    asked = prompt or f"Question number {number} about the harbour?"
    tools = spec.pop("tools", None)
    verifier = {"kind": kind, "spec": json.dumps(spec)}
    return row(number, asked, kind="task", verifier=verifier, tools=tools, extra=json.dumps(extra) if extra else None)


def code(number: int, reference: str | None = ADD, tests: list[str] | None = None, **more: Any) -> dict[str, Any]:
    return task(number, "assert_tests", tests=tests or ADDS, setup="", **({"reference": reference} | more))


def reasons(result: StageResult) -> dict[str, str]:
    """Reason codes by row id."""
    return dict(zip(result.dropped["row_id"].to_pylist(), result.dropped["reason"].to_pylist(), strict=True))


def notes(result: StageResult) -> list[tuple[str, str]]:
    return list(zip(result.changes["row_id"].to_pylist(), result.changes["reason"].to_pylist(), strict=True))


def reason(one: dict[str, Any], *others: dict[str, Any], **options: Any) -> str | None:
    """Why a task went; None when it stayed."""
    return reasons(health(table([one, *others]), **options)).get(one["row_id"])


SOUND = [
    task(1, "numeric", answer="72"),
    task(2, "numeric", answer="18"),
    task(3, "numeric", answer="1000", tolerance=0.01),
    task(4, "exact", answer="Paris"),
    task(5, "math", answer="\\frac{3}{7}"),
    task(6, "choice", answer="B", choices=["A", "B", "C", "D"]),
    task(7, "tool_call", calls=[{"f": {"a": [1, 2], "unit": ["m", ""]}}]),
    task(8, "tool_call", calls=[]),
]


@pytest.mark.parametrize("one", SOUND, ids=lambda one: one["verifier"]["kind"])
def test_a_sound_task_stays(one: dict[str, Any]) -> None:
    """Its own gold answer passes, and nothing else does."""
    result = health(table([one, *(other for other in SOUND if other is not one)]))
    assert reasons(result) == {}
    assert result.kept.num_rows == len(SOUND)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (task(1, "math", answer=""), "unverifiable_gold"),
        (task(1, "math", answer=None), "unverifiable_gold"),
        (task(1, "math", answer="Because short waves scatter more."), "unverifiable_gold"),
        (task(1, "numeric", answer="see above"), "unverifiable_gold"),
        (task(1, "exact"), "unverifiable_gold"),
        (task(1, "choice", answer="E", choices=["A", "B"]), "unverifiable_gold"),
        (task(1, "reasoning_gym", dataset="gcd", entry={"question": "?", "answer": None, "metadata": {}}),
         "unverifiable_gold"),
        (task(1, "reasoning_gym", dataset="gcd", answer="4", entry={"answer": "4 or 5", "metadata": {}}), None),
        (task(1, "tool_call", calls="f"), "unverifiable_gold"),
        (task(1, "numeric", answer="5", tolerance="wide"), "unreadable_task"),
        (row(1, "?", kind="task", verifier={"kind": "math", "spec": "[]"}), "unreadable_task"),
        (task(1, "numeric", answer="5", unit="blorp"), "unreadable_task"),
        (task(1, "regex", pattern="("), "unreadable_task"),
        (task(1, "regex", pattern="a", flags="q"), "unreadable_task"),
        (task(1, "regex", pattern="a", where="here"), "unreadable_task"),
        (task(1, "json_schema", schema={"type": "objekt"}), "unreadable_task"),
        (task(1, "json_schema"), "unreadable_task"),
        (task(1, "instructions", instructions=[{"id": "no:such", "kwargs": {}}]), "unreadable_task"),
        (task(1, "instructions", instructions="no commas"), "unreadable_task"),
        (task(1, "judge"), "unreadable_task"),
        (task(1, "judge", rubric=" "), "unreadable_task"),
        (task(1, "judge", rubric="Is it kind?", scale=[5, 1]), "unreadable_task"),
        (task(1, "judge", rubric="Is it kind?", pass_at=11), "unreadable_task"),
        (task(1, "judge", rubric="Is it kind?", mode="rank"), "unreadable_task"),
        (task(1, "judge", rubric="Is it kind?", mode="pair"), "unreadable_task"),
        (task(1, "judge", rubric="Is it kind?"), None),
        (task(1, "exact", answer="the answer is  A or B"), None),
        (task(1, "numeric", answer="5", tolerance=1), None),
    ],
)  # fmt: skip
def test_what_cannot_be_compared_with_goes(one: dict[str, Any], why: str | None) -> None:
    """A gold answer that is missing, prose, or not among the choices."""
    assert reason(one) == why


@confined
@pytest.mark.parametrize(
    ("one", "why"),
    [
        (code(1), None),
        (code(1, "def add(a, b):\n    return a - b"), "gold_fails"),
        (code(1, "def add(a, b) return"), "gold_fails"),
        (code(1, tests=["add(1, 2)"]), "no_tests"),
        (code(1, tests=["assert True"]), "no_tests"),
        (code(1, tests=["add(1, 2)\nassert add"]), "noop_passes"),
        (code(1, tests=["assert add(1, 2) is not None"]), None),
        (code(1, tests=["add(1, 2"]), "unreadable_task"),
        (task(1, "program", tests=[{"input": "2 3\n", "output": "5\n"}],
              extra={"solution": "a, b = map(int, input().split())\nprint(a + b)"}), None),
        (task(1, "program", tests=[{"input": "2 3\n", "output": "\n"}], extra={"solution": "print()"}), "noop_passes"),
        (task(1, "doctest", entry_point="add", extra={"solution": ADD},
              examples=[{"source": "add(1, 2)\n", "want": "3\n", "options": []}]), None),
        (task(1, "doctest", entry_point="add", extra={"solution": ADD},
              examples=[{"source": "add(1, 2)\n", "want": "", "options": []}]), "no_tests"),
    ],
)  # fmt: skip
def test_tests_have_to_test(one: dict[str, Any], why: str | None) -> None:
    """The reference passes, what does nothing fails, and something is asserted."""
    assert reason(one) == why


@confined
def test_tests_that_miss_a_fault_are_noted() -> None:
    """A task goes only when its tests notice nothing at all."""
    result = health(table([code(1, tests=["assert add(0, 0) == 0"])]))
    assert notes(result) == [("test#1", "weak_tests")]
    assert json.loads(result.changes["detail"][0].as_py()) == {"mutants": 2, "survived": ["arithmetic"]}
    assert result.metrics["verifiers"]["assert_tests"]["mutants_survived"]["count"] == 1


def judged(monkeypatch: pytest.MonkeyPatch, *said: str, **verdict: Any) -> None:
    """Let the verifier say that these answers are right and all others wrong, or, for one of them, `verdict`."""

    def verify_many(_tasks: Any, completions: list[str]) -> list[Verdict]:
        right, wrong = Verdict("pass", 1.0, "stub.right", 0.1), Verdict("fail", 0.0, "stub.wrong", 0.1)
        return [replace(right, **verdict) if one in said else wrong for one in completions]

    monkeypatch.setattr(tried, "verify_many", verify_many)


@pytest.mark.parametrize(
    ("said", "verdict", "why"),
    [
        (["Oslo"], {}, None),
        (["Oslo", ""], {}, "empty_passes"),
        (["Oslo", "I'm sorry, but I can't help with that."], {}, "refusal_passes"),
        (["Oslo", "The answer is"], {}, "noop_passes"),
        (["Oslo", "Lima"], {}, "other_gold_passes"),
        (["Oslo", "Oslo and x", "slo"], {}, "mutant_passes"),
        (["Oslo", "slo"], {}, None),
        (["Oslo"], {"seconds": 16.0}, "too_slow"),
        (["Oslo"], {"outcome": "fail", "rule": "stub.timeout"}, "too_slow"),
        ([], {}, "gold_fails"),
    ],
)  # fmt: skip
def test_the_first_check_that_fails_is_the_reason(
    monkeypatch: pytest.MonkeyPatch, said: list[str], verdict: dict[str, Any], why: str | None
) -> None:
    """Whatever the kind; here a verifier that says what it is told to."""
    judged(monkeypatch, *said, **verdict)
    capital = task(1, "exact", answer="Oslo")
    others = [task(2, "exact", answer="Lima")] if why == "other_gold_passes" else []
    monkeypatch.setattr(tried._Runs, "swapped", lambda self, found: [False] * len(found))
    assert reason(capital, *others) == why


@confined
def test_answers_that_change_are_noticed() -> None:
    """A solution that answers by the clock gets different verdicts."""
    by_clock = "import time\n\ndef add(a, b):\n    return a + b if time.time_ns() // 1000 % 2 else 0"
    many = [code(number, by_clock, tests=[f"assert add(1, {number}) == {number + 1}"]) for number in range(1, 9)]
    assert set(reasons(health(table(many), repeats=4)).values()) <= {"gold_fails", "disagrees"}


@pytest.mark.filterwarnings("ignore:code is not run")
def test_code_is_kept_and_counted_where_nothing_can_be_confined(monkeypatch: pytest.MonkeyPatch) -> None:
    """A build on such a machine does not lose its code without a word."""
    monkeypatch.setattr("corpusforge.verify.sandbox._kernel.available", lambda: "this is a test")
    result = health(table([code(1), code(2)]))
    assert notes(result) == [("test#1", "undecided"), ("test#2", "undecided")]
    assert result.metrics["verifiers"]["assert_tests"]["undecided"] == {"code.unconfined": 2}
    assert reason(code(1), undecided="drop") == "undecided"


@pytest.mark.filterwarnings("ignore:CORPUSFORGE_SANDBOX")
def test_figures_say_where_code_ran_if_it_was_not_behind_the_kernels_walls(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "code_ran" not in health(table([task(1, "numeric", answer="7")])).metrics
    monkeypatch.setenv("CORPUSFORGE_SANDBOX", "unconfined")
    assert "code_ran" not in health(table([task(1, "numeric", answer="7")])).metrics
    assert health(table([code(1)])).metrics["code_ran"] == "unconfined"


def test_a_kind_that_is_not_known_is_counted_apart() -> None:
    """No verdict on a verifier without one."""
    figures = health(table([task(1, "handwriting", answer="x")])).metrics["verifiers"]["handwriting"]
    assert (figures["healthy"], figures["unhealthy"], figures["undecided"]) == (0, {}, {"verify.unknown_kind": 1})
    assert figures["false_reject"]["rate"] is None


def test_rows_that_are_no_tasks_pass_untouched() -> None:
    """Not even a verifier is loaded for them."""
    rows = table([row(1, "Hello?", "Hello."), row(2, "Again?", "", kind="rated")])
    result = health(rows)
    assert result.kept.equals(rows)
    assert (result.metrics["verifiers"], result.changes.num_rows) == ({}, 0)


QUESTIONABLE = [
    (task(1, "math", prompt="Is 91 prime?", answer="No"), "guessable"),
    (task(1, "choice", answer="A", choices=["Yes", "No"]), "guessable"),
    (task(1, "math", prompt="Prove that 2 + 2 is 4.", answer="4"), "proof"),
    (task(1, "exact", prompt="What does f([4, 1, 3]) return?", answer="[4, 1, 3]"), "gold_appears_in_prompt"),
    (task(1, "math", prompt="A path is 30 m long and 2 m wide. Find its area.", answer="60k"), "symbol_not_in_prompt"),
]


@pytest.mark.parametrize(("one", "flag"), QUESTIONABLE, ids=[flag for _, flag in QUESTIONABLE])
def test_what_is_questionable_is_noted_and_stays(one: dict[str, Any], flag: str) -> None:
    """A flag is no reason to go."""
    result = health(table([one]))
    assert notes(result) == [("test#1", flag)]
    assert result.metrics["flags"] == {flag: 1}


@pytest.mark.parametrize(
    "one",
    [
        task(1, "math", prompt="A path is 30 m long and 3 m wide. Its area?", answer="90"),
        task(1, "math", prompt="Solve $x^2 = 2x$ for $x > 0$.", answer="$x = 2$"),
        task(1, "numeric", prompt="Of 12 boats 12 return. How many return?", answer="12"),
        task(1, "math", prompt="Integrate 1/t.", answer="\\log(t) + C"),
    ],
)
def test_what_is_fine_is_not_noted(one: dict[str, Any]) -> None:
    """Numbers recur in prompts, and letters that the prompt introduced may stand in the answer."""
    assert notes(health(table([one]))) == []


def test_tasks_that_ask_the_same_and_want_another_answer_are_noted() -> None:
    """Each names the others."""
    asked = "How many ordered results sum to 5?"
    result = health(table([task(n, "numeric", prompt=asked, answer=a) for n, a in ((1, "4"), (2, "2"), (3, "4"))]))
    told = {line["row_id"]: json.loads(line["detail"])["other_gold"] for line in result.changes.to_pylist()}
    assert told == {"test#1": ["test#2"], "test#2": ["test#1", "test#3"], "test#3": ["test#2"]}


def test_rates_come_with_intervals() -> None:
    """Wilson's, 95 %."""
    figures = health(table(SOUND[:2])).metrics["verifiers"]["numeric"]
    assert figures["false_reject"] == {"count": 0, "of": 2, "rate": 0.0, "low": 0.0, "high": 0.6576}
    assert figures["false_accept"]["of"] == 2 * (3 + 1 + 3)


MANY = table(
    [
        *SOUND,
        row(9, "Hello?", "Hello."),
        *(task(n, "numeric", prompt=f"What is {n % 7} and 1?", answer=str(n % 9)) for n in range(10, 30)),
        task(30, "math", answer=""),
        row(31, "Again?", "", kind="rated"),
        task(32, "handwriting", answer="x"),
        task(33, "exact", prompt="Is it yes?", answer="yes"),
        task(34, "numeric", answer="7"),
    ]
)


def whole(result: StageResult) -> list[Any]:
    """All that a run says, but how long it took."""
    figures = {key: value for key, value in result.metrics.items() if key != "speed"}
    return [result.kept.to_pylist(), result.dropped.to_pylist(), result.changes.to_pylist(), figures]


def in_parts(folder: Path, cuts: list[int], workers: int = 1) -> StageResult:
    """The stage over partitions on disk, as the shell runs it."""
    ends = [0, *cuts, MANY.num_rows]
    parts = [MANY.slice(start, end - start) for start, end in itertools.pairwise(ends)]
    files = [folder / parquet.part_name(number) for number in range(len(parts))]
    for part, file in zip(parts, files, strict=True):
        parquet.write(part, file)
    config = HealthConfig()
    summary = pa.concat_tables([STAGE.summarise(part, config, {}) for part in parts])
    decision = STAGE.decide(summary, config, {}, parquet.Gather(files, workers))
    verdicts = [decision.verdicts.slice(start, end - start) for start, end in itertools.pairwise(ends)]
    applied = [STAGE.apply(part, said, config, {}) for part, said in zip(parts, verdicts, strict=True)]
    joined = concat(STAGE.name, applied)
    return replace(joined, metrics={**joined.metrics, **decision.metrics})


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("cuts", [[], [1], [4, 4, 20], list(range(1, MANY.num_rows))])
def test_partition_cuts_and_workers_change_nothing(tmp_path: Path, cuts: list[int], workers: int) -> None:
    """Another task's gold answer is found over the whole corpus, by content."""
    assert whole(in_parts(tmp_path, cuts, workers)) == whole(health(MANY))


def test_row_order_changes_no_verdict() -> None:
    turned = health(MANY.take(pa.array(range(MANY.num_rows - 1, -1, -1))))
    assert turned.metrics["verifiers"] == health(MANY).metrics["verifiers"]
    assert reasons(turned) == reasons(health(MANY)) == {"test#30": "unverifiable_gold"}
    assert sorted(notes(turned)) == sorted(notes(health(MANY)))


class Counting(Held):
    """Rows in memory; notes how many were asked for at once."""

    most = 0

    def __call__(self, positions: Any, columns: list[str]) -> pa.Table:
        self.most = max(self.most, len(positions))
        return super().__call__(positions, columns)


@pytest.mark.parametrize(("limit", "value", "most"), [("SLICE", 4, 4), ("_LARGE", 1, 1), ("_SLICE", 3, MANY.num_rows)])
def test_texts_are_in_memory_for_a_batch_of_tasks(
    limit: str, value: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many tasks, or so many bytes of them, whatever the size of the corpus; and batches change nothing."""
    expected = whole(health(MANY))
    monkeypatch.setattr(stage, limit, value)
    summary, fetch = STAGE.summarise(MANY, HealthConfig(), {}), Counting(MANY)
    decision = STAGE.decide(summary, HealthConfig(), {}, fetch)
    assert fetch.most <= most
    result = STAGE.apply(MANY, decision.verdicts, HealthConfig(), {})
    assert whole(replace(result, metrics=decision.metrics)) == expected


@pytest.mark.parametrize("workers", ["1", "2"])
def test_workers_of_a_project_change_nothing(tmp_path: Path, workers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the shell, over partitions on disk."""
    monkeypatch.setenv("CORPUSFORGE_WORKERS", workers)
    project = make_project(tmp_path, {"chats": []})
    rows = project.data("scrub") / "rows"
    rows.mkdir(parents=True)
    for number, start in enumerate(range(0, MANY.num_rows, 6 + int(workers))):
        parquet.write(MANY.slice(start, 6 + int(workers)), rows / parquet.part_name(number))
    figures = run_stage(project, "health")
    expected = health(MANY)
    assert project.rows("health").to_pylist() == expected.kept.to_pylist()
    assert project.ledger("health", "dropped").to_pylist() == expected.dropped.to_pylist()
    assert project.ledger("health", "changes").to_pylist() == expected.changes.to_pylist()
    assert (figures["verifiers"], figures["flags"]) == (expected.metrics["verifiers"], expected.metrics["flags"])


def test_what_is_known_of_a_task_does_not_grow_with_its_texts() -> None:
    """A kind, two hashes, two ids and its size."""
    short, long = (task(1, "exact", prompt="?" * size, answer="x" * size) for size in (9, 90_000))
    sizes = [STAGE.summarise(table([one]), HealthConfig(), {}).nbytes for one in (short, long)]
    assert sizes[0] == sizes[1]


def test_the_ledger_holds_no_text() -> None:
    """Kind and rule of the verifier, and flags."""
    result = health(table([task(1, "math", answer="Because short waves scatter more.")]))
    assert json.loads(result.dropped["detail"][0].as_py()) == {"kind": "math", "rule": "math.unparsable_gold"}
