"""Is a task's verifier worth its reward? It is tried on answers of which it is known whether they are right.

    gold 72, numeric     "72" pass    "" fail    "I'm sorry, …" fail    "73" fail    the next task's 18 fail    healthy
    gold null, math      nothing to compare with                                                       unverifiable_gold

The right answer has to pass, and nothing, a refusal, doing nothing, another task's right answer and the right answer
with a fault in it have to fail; the same answer must get the same verdict every time, and in time. What fails first is
the task's reason; RULES says what each means. Unit tests are themselves tested by programs with one fault (`_mutants`):
one that survives may be equal to the right program, so only tests that no fault fails are at fault.

A task on which nothing can be found out here (a kind that is not known, code without confinement) is `undecided`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingExtra
from corpusforge.verify import Verdict, undecided, verify_many
from corpusforge.verify._flags import FLAGS, flags, prompt_of
from corpusforge.verify._rubric import Rubric, Unreadable
from corpusforge.verify._verdict import Task
from corpusforge.verify._wrong import CODE, NEED_GOLD, Probe, gold_of, mutated, plain_wrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "CODE",
    "FLAGS",
    "RULES",
    "Checks",
    "Exam",
    "Health",
    "Probe",
    "exam",
    "examine",
    "gold_of",
    "probes",
    "prompt_of",
]

RULES: Final = {
    "unreadable_task": "the verifier's specification cannot be read",
    "unverifiable_gold": "there is no gold answer, or none that the verifier can compare with",
    "no_tests": "the tests hold no assertion, or never call the solution",
    "gold_fails": "the gold answer does not pass",
    "too_slow": "the gold answer takes longer than the limit",
    "empty_passes": "an empty answer passes",
    "refusal_passes": "a refusal passes",
    "noop_passes": "doing nothing passes",
    "other_gold_passes": "the gold answer of another task passes",
    "mutant_passes": "no wrong answer made from the gold answer fails",
    "disagrees": "the same answer gets different verdicts",
}
"""Reason codes of unhealthy tasks, in the order in which they are looked for."""
_NO_GOLD: Final = ("unparsable_gold", "unreadable_gold", "empty_gold", "no_gold", "unknown_dataset")
_UNREADABLE: Final = (
    "verify.unreadable",
    "code.unreadable_spec",
    "numeric.unreadable_tolerance",
    "numeric.unreadable_unit",
    "regex.unreadable_pattern",
    "regex.unreadable_flags",
    "regex.unreadable_where",
    "json_schema.unreadable_schema",
    "json_schema.unresolved_ref",
    "json_schema.schema_too_deep",
    "instructions.unreadable_instructions",
    "instructions.unknown_instruction",
    "instructions.unreadable_arguments",
)
"""Rules by which a verifier says that the task is at fault, whatever the answer."""
_BY_FORM: Final = "instructions"  # a refusal may well have the form that is asked for
_COSTLY: Final = "judge"  # asks a model each time: not tried
_AGAIN: Final = 3  # times as many faults are tried where none of the first was noticed


@dataclass(frozen=True)
class Checks:
    """How thoroughly tasks are tried."""

    repeats: int = 3
    """Runs of the gold answer and of one wrong answer, which must agree."""
    seconds: float = 15.0
    """By the clock, for the fastest of the gold answer's runs."""
    mutants: int = 3
    """Wrong answers made from the gold answer."""


@dataclass(frozen=True)
class Exam:
    """A task, its right answer, and the right answer of another task with that task."""

    task: Task
    gold: str | None
    other: tuple[Task, str] | None = None


@dataclass
class Health:
    """What was found out about one task. Holds no text of it."""

    kind: str
    reason: str = ""
    """One of RULES; empty for a healthy task."""
    rule: str = ""
    """The verifier's rule that decided that."""
    undecided: str = ""
    """Why nothing could be found out: the verifier's rule, or `no_reference` for code without a solution."""
    flags: list[str] = field(default_factory=list)
    golds: Counter[str] = field(default_factory=Counter)
    """Outcomes of the gold answer (once)."""
    wrong: Counter[str] = field(default_factory=Counter)
    """Outcomes of answers that are wrong for certain."""
    mutants: Counter[str] = field(default_factory=Counter)
    """Outcomes of the gold answer with a fault in it."""
    survived: list[str] = field(default_factory=list)
    """Faults that the verifier did not notice."""
    seconds: float = 0.0

    @property
    def healthy(self) -> bool:
        """Whether the task may be rewarded, as far as could be found out."""
        return not self.reason


def exam(row: Task | Mapping[str, Any], extra: Mapping[str, Any] | None = None) -> Exam:
    """A task and its gold answer. `row` is what `verify` takes; `extra` may hold a worked `solution`."""
    try:
        task = Task.of(row)
    except Exception:  # noqa: BLE001 - as in `verify`: nothing can be decided on what cannot be read
        task = Task("unreadable", {})
    return Exam(task, gold_of(task, extra or {}))


def probes(case: Exam, mutants: int = Checks.mutants) -> list[Probe]:
    """The answers that a task is tried on, in the order of RULES."""
    task, gold = case.task, case.gold
    if task.kind in (_COSTLY, "unreadable"):
        return []
    right = [] if gold is None else [Probe("gold", gold)]
    wrong = plain_wrong(task, gold)
    if task.kind == _BY_FORM:
        return [*right, *(probe for probe in wrong if probe.check == "empty")]
    other = [] if case.other is None else [Probe("other_gold", case.other[1])]
    return [*right, *wrong, *other, *(mutated(task, gold, mutants) if gold is not None else [])]


def examine(cases: Sequence[Exam], checks: Checks | None = None) -> list[Health]:
    """Try tasks, all at once: first what is cheap and often decides, then the rest on those that still stand."""
    checks = checks or Checks()
    found = [Health(case.task.kind, flags=flags(case.task, case.gold)) for case in cases]
    tried = [probes(case, checks.mutants) for case in cases]
    first = ("gold", "empty", "refusal", "noop")
    runs = _Runs(cases, tried)
    runs.run([[probe for probe in listed if probe.check in first] for listed in tried])
    for number in range(len(cases)):
        _first_look(found[number], cases[number].task, runs.of[number])
    standing = [not health.reason and not health.undecided for health in found]
    later = [
        [probe for probe in listed if probe.check not in first] if stands else []
        for listed, stands in zip(tried, standing, strict=True)
    ]
    runs.run(later)
    runs.run(
        [
            mutated(case.task, case.gold, _AGAIN * checks.mutants)[checks.mutants :]
            if stands and case.gold is not None and _none_noticed(runs.of[number])
            else []
            for number, (case, stands) in enumerate(zip(cases, standing, strict=True))
        ]
    )
    for _ in range(checks.repeats - 1):
        runs.run([_repeated(listed) if stands else [] for listed, stands in zip(tried, standing, strict=True)])
    fair = runs.swapped(found)
    for number, health in enumerate(found):
        _second_look(health, runs.of[number], fair[number], checks)
        health.seconds = sum(verdict.seconds for _, verdict in runs.of[number])
    return found


class _Runs:
    """Verdicts on the probes of many tasks, in the order in which they came."""

    def __init__(self, cases: Sequence[Exam], tried: Sequence[list[Probe]]) -> None:
        self.cases = cases
        self.of: list[list[tuple[Probe, Verdict]]] = [[] for _ in tried]

    def run(self, listed: Sequence[list[Probe]]) -> None:
        """Try these, for each task."""
        asked = [(number, probe) for number, some in enumerate(listed) for probe in some]
        tasks = [self.cases[number].task for number, _ in asked]
        for (number, probe), verdict in zip(asked, _verdicts(tasks, [p.completion for _, p in asked]), strict=True):
            self.of[number].append((probe, verdict))

    def swapped(self, found: Sequence[Health]) -> list[bool]:
        """Where another task's gold passes: whether that is fair, because this one's gold passes there as well."""
        fair = [False] * len(found)
        asked = [
            number
            for number, runs in enumerate(self.of)
            if any(probe.check == "other_gold" and verdict.outcome == "pass" for probe, verdict in runs)
        ]
        others = [self.cases[number].other for number in asked]
        tasks = [other[0] for other in others if other is not None]
        for number, verdict in zip(asked, _verdicts(tasks, [self.cases[n].gold for n in asked]), strict=True):
            fair[number] = verdict.outcome == "pass"
        return fair


def _verdicts(tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """Those of `verify_many`; undecided for kinds whose package is not installed."""
    verdicts: list[Verdict] = [undecided("verify.unreadable")] * len(tasks)
    for kind in dict.fromkeys(task.kind for task in tasks):
        at = [number for number, task in enumerate(tasks) if task.kind == kind]
        try:
            some = verify_many([tasks[number] for number in at], [completions[number] for number in at])
        except MissingExtra:
            some = [undecided(f"{kind}.missing_extra")] * len(at)
        for number, verdict in zip(at, some, strict=True):
            verdicts[number] = verdict
    return verdicts


def _none_noticed(runs: list[tuple[Probe, Verdict]]) -> bool:
    found = [verdict.outcome for probe, verdict in runs if probe.check == "mutant"]
    return bool(found) and all(outcome == "pass" for outcome in found)


def _repeated(listed: list[Probe]) -> list[Probe]:
    """The gold answer, and the wrong one that comes nearest to an answer."""
    gold = [probe for probe in listed if probe.check == "gold"]
    return [*gold, *[probe for probe in listed if probe.check in ("refusal", "noop")][-1:]]


def _first_look(health: Health, task: Task, runs: list[tuple[Probe, Verdict]]) -> None:
    """What the first run of the gold answer and of the plainly wrong ones says."""
    for probe, verdict in runs:
        (health.golds if probe.check == "gold" else health.wrong)[verdict.outcome] += 1
    health.reason, health.rule = _unreadable(task) or _found_first(health.kind, runs)
    gold = next((verdict for probe, verdict in runs if probe.check == "gold"), None)
    if health.reason:
        return
    if gold is not None and gold.outcome == "undecided":
        health.undecided = gold.rule
    elif not runs:
        health.undecided = f"{health.kind}.not_tried"
    elif all(verdict.outcome == "undecided" for _, verdict in runs):
        health.undecided = runs[0][1].rule
    elif gold is None and health.kind in CODE:
        health.undecided = "code.no_reference"


def _unreadable(task: Task) -> tuple[str, str] | None:
    """What can be told of a specification without trying it: that it is none, or that no judge could be asked by it."""
    if task.kind == "unreadable":
        return "unreadable_task", "verify.unreadable"
    if task.kind == _COSTLY:
        try:
            Rubric.of(task.spec)
        except Unreadable as what:
            return "unreadable_task", f"{task.kind}.{what}"
    return None


def _found_first(kind: str, runs: list[tuple[Probe, Verdict]]) -> tuple[str, str]:
    """The first of RULES that a first run breaks, and the verifier's rule; empty for none."""
    for _, verdict in runs:
        if any(fault := _fault(verdict)):
            return fault
    gold = next((verdict for probe, verdict in runs if probe.check == "gold"), None)
    if gold is None and kind in NEED_GOLD:
        return "unverifiable_gold", f"{kind}.no_gold"
    if gold is not None and any(fault := _of_gold(gold)):
        return fault
    passing = (
        (f"{probe.check}_passes", verdict.rule)
        for probe, verdict in runs
        if probe.check != "gold" and verdict.outcome == "pass"
    )
    return next(passing, ("", ""))


def _of_gold(gold: Verdict) -> tuple[str, str]:
    if gold.rule.endswith(".timeout"):
        return "too_slow", gold.rule
    if gold.outcome == "fail":
        return "gold_fails", gold.rule
    return "", ""


def _fault(verdict: Verdict) -> tuple[str, str]:
    """Whether an undecided verdict is the task's own fault."""
    end = verdict.rule.rpartition(".")[2]
    if verdict.outcome != "undecided":
        return "", ""
    if verdict.rule in _UNREADABLE:
        return "unreadable_task", verdict.rule
    if end in _NO_GOLD:
        return "unverifiable_gold", verdict.rule
    return ("no_tests", verdict.rule) if end == "no_tests" else ("", "")


def _second_look(health: Health, runs: list[tuple[Probe, Verdict]], fair: bool, checks: Checks) -> None:
    """What the other probes and the repeated runs say about a task that stood until now."""
    later = [(probe, verdict) for probe, verdict in runs if probe.check in ("other_gold", "mutant")]
    for probe, verdict in later:
        if probe.check == "mutant":
            health.mutants[verdict.outcome] += 1
            health.survived += [probe.what] * (verdict.outcome == "pass")
        if probe.sure and not (probe.check == "other_gold" and fair):
            health.wrong[verdict.outcome] += 1
    if health.reason or health.undecided:
        return
    golds = [verdict for probe, verdict in runs if probe.check == "gold"]
    other = next((v for p, v in later if p.check == "other_gold" and v.outcome == "pass"), None)
    outcomes: dict[str, set[str]] = {}
    for probe, verdict in runs:
        outcomes.setdefault(probe.check if probe.check != "mutant" else probe.completion, set()).add(verdict.outcome)
    if golds and min(verdict.seconds for verdict in golds) > checks.seconds:
        health.reason, health.rule = "too_slow", golds[0].rule
    elif other is not None and not fair:
        health.reason, health.rule = "other_gold_passes", other.rule
    elif health.mutants["pass"] and health.mutants["pass"] == health.mutants.total():
        health.reason, health.rule = "mutant_passes", next(v.rule for p, v in later if p.check == "mutant")
    elif any(len(found) > 1 for found in outcomes.values()):
        health.reason, health.rule = "disagrees", golds[0].rule if golds else ""
