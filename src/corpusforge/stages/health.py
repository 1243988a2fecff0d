"""health: drop tasks whose verifier does not do its work, before a model is rewarded by it.

Every task is tried on answers of which it is known whether they are right (`corpusforge.verify.health`): its gold
answer has to pass; an empty answer, a refusal, doing nothing, another task's gold answer and its own with a fault in it
have to fail; the same answer has to get the same verdict, in time. A task that fails a check leaves with the check as
its reason. What is questionable but works (a gold answer that can be guessed, weak tests, …) is noted in `changes`.
Rows that are no tasks pass untouched. Tests are tried on programs with one fault each, as in mutation analysis (DeMillo
et al. 1978).

    task, math, answer "Because short waves scatter."   ->  dropped, unverifiable_gold {"kind": "math", "rule": …}
    task, assert_tests, 1 of 3 faults is not noticed    ->  stays; weak_tests {"mutants": 3, "survived": ["boundary"]}
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from corpusforge.result import StageResult, ledger
from corpusforge.sample import dumps
from corpusforge.stages._stage import Decided, Decision, Fetch, Inputs, StageConfig, configure, in_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from corpusforge.verify.health import Exam, Health

_READ: Final = ["row_id", "kind", "messages", "tools", "verifier", "extra"]
_SHOWN: Final = 5  # other rows that a conflict names
_SLICE: Final = 256  # tasks that are tried at once


class HealthConfig(StageConfig):
    """How thoroughly tasks are tried, and what happens to those of which nothing can be told."""

    repeats: int = Field(3, ge=1)
    """Runs of the gold answer, and of one wrong answer; all must get the same verdict."""

    seconds: float = Field(15.0, gt=0)
    """By the clock, for the fastest run of the gold answer; as long as code may take at most. Verifiers have limits of
    processor time besides (5 s for code, 3 s for maths), which a busy machine does not change."""

    mutants: int = Field(3, ge=0)
    """Wrong answers made from the gold answer; a task goes when none of them fails. 0 leaves the check out."""

    undecided: Literal["keep", "drop"] = "keep"
    """What happens to tasks that cannot be tried here: a kind that is not known, code without confinement or without a
    reference solution, a package that is not installed. They are counted either way."""


def health(rows: pa.Table, config: HealthConfig | None = None, **options: Any) -> StageResult:
    """Drop tasks whose verifier fails a check. Keyword arguments are the fields of HealthConfig.

    Runs the programs of code tasks, confined. Raises ConfigError for a wrong option.
    """
    return in_memory(STAGE, rows, configure(HealthConfig, config, options))


def _summarise(rows: pa.Table, _config: HealthConfig, _inputs: Inputs) -> pa.Table:
    """Per row: its kind of verifier (null for no task), and hashes of what is asked and of the gold answer."""
    from corpusforge.verify.health import prompt_of

    summary: list[tuple[str | None, str | None, str | None]] = []
    for one in map(_exam, rows.select(_READ).to_pylist()):
        if one is None:
            summary.append((None, None, None))
            continue
        kind = f"{one.task.kind}:{one.task.spec.get('dataset')}" if "dataset" in one.task.spec else one.task.kind
        asked = " ".join(prompt_of(one.task).split())
        summary.append((kind, _hash(asked) if asked else None, None if one.gold is None else _hash(one.gold)))
    names = ("group", "asked", "gold")
    columns = zip(*summary, strict=True) if summary else [[], [], []]
    hashed = {name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)}
    return pa.table({"row_id": rows["row_id"], "content_id": rows["content_id"], **hashed})


def _hash(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _exam(row: dict[str, Any]) -> Exam | None:
    from corpusforge.verify.health import exam

    if row["kind"] != "task":
        return None
    try:
        extra = json.loads(row["extra"] or "{}")
    except ValueError:
        extra = {}
    return exam(row, extra if isinstance(extra, dict) else {})


def _decide(summary: pa.Table, config: HealthConfig, _inputs: Inputs, fetch: Fetch) -> Decision:
    """Try every task, in this process: verifiers use all cores by themselves, and no more than those."""
    from corpusforge.verify.health import Checks

    checks = Checks(config.repeats, config.seconds, config.mutants)
    tasks = np.flatnonzero(np.asarray(pc.is_valid(summary["group"])))
    partner = _partners(summary)
    conflicts = _conflicts(summary)
    began = time.monotonic()
    columns: dict[str, list[str | None]] = {name: [None] * summary.num_rows for name in ("reason", "detail", "notes")}
    found: list[Health] = []
    for start in range(0, len(tasks), _SLICE):
        part = tasks[start : start + _SLICE]
        some = _examined(part, partner, fetch, checks)
        found += some
        for at, one in zip(part.tolist(), some, strict=True):
            notes = _notes(one)
            if at in conflicts:
                notes.append(("conflicting_gold", {"other_gold": conflicts[at]}))
            reason = one.reason or ("undecided" if one.undecided and config.undecided == "drop" else "")
            if reason:
                detail = {"kind": one.kind, "rule": one.rule or one.undecided, "flags": [name for name, _ in notes]}
                columns["reason"][at] = reason
                columns["detail"][at] = dumps({key: value for key, value in detail.items() if value})
            elif notes:
                columns["notes"][at] = dumps(notes)
    figures = _figures(found, sum(1 for at in conflicts if columns["reason"][at] is None))
    speed = {"speed": _speed(found, time.monotonic() - began)} if found else {}
    verdicts = pa.table({name: pa.array(column, pa.string()) for name, column in columns.items()})
    return Decision(verdicts, figures | speed)


def _partners(summary: pa.Table) -> dict[int, int]:
    """For each task another of its group with another gold answer: the next one in the order of content ids."""
    groups: dict[str, list[tuple[str, str, int]]] = {}
    keys = zip(*(summary[name].to_pylist() for name in ("group", "content_id", "row_id", "gold")), strict=True)
    golds: list[str | None] = summary["gold"].to_pylist()
    for at, (group, content, row, gold) in enumerate(keys):
        if group is not None and gold is not None:
            groups.setdefault(group, []).append((content, row, at))
    found: dict[int, int] = {}
    for members in groups.values():
        order = [at for _, _, at in sorted(members)]
        other = -1  # backwards, and round twice: the nearest one behind that has another gold answer
        for place in range(2 * len(order) - 1, -1, -1):
            at, behind = order[place % len(order)], order[(place + 1) % len(order)]
            other = behind if golds[behind] != golds[at] else other
            if other >= 0 and golds[other] != golds[at]:
                found[at] = other
    return found


def _conflicts(summary: pa.Table) -> dict[int, list[str]]:
    """Tasks that ask the same as one with another gold answer, and ids of those."""
    asked: dict[str, list[tuple[str, str, int]]] = {}
    columns = (summary[name].to_pylist() for name in ("asked", "gold", "row_id"))
    for at, (prompt, gold, row) in enumerate(zip(*columns, strict=True)):
        if prompt is not None and gold is not None:
            asked.setdefault(prompt, []).append((gold, row, at))
    found: dict[int, list[str]] = {}
    for members in asked.values():
        by_row = sorted((row, gold) for gold, row, _ in members)
        golds = {gold for _, gold in by_row}
        others = {one: list(islice((row for row, gold in by_row if gold != one), _SHOWN)) for one in golds}
        found |= {at: others[gold] for gold, _, at in members if len(golds) > 1}
    return found


def _examined(part: npt.NDArray[np.int64], partner: dict[int, int], fetch: Fetch, checks: Any) -> list[Health]:
    from corpusforge.verify.health import Exam, examine

    others = np.unique([partner[at] for at in part.tolist() if at in partner]).astype(np.int64)
    golds = dict(zip(others.tolist(), _read(others, fetch), strict=True))
    cases = []
    for at, one in zip(part.tolist(), _read(part, fetch), strict=True):
        other = golds[partner[at]] if at in partner else None
        pair = (other.task, other.gold) if other is not None and other.gold is not None else None
        cases.append(Exam(one.task, one.gold, pair))
    return examine(cases, checks)


def _read(positions: npt.NDArray[np.int64], fetch: Fetch) -> list[Exam]:
    if not len(positions):
        return []
    return [one for one in map(_exam, fetch(positions, _READ).to_pylist()) if one is not None]


def _notes(one: Health) -> list[tuple[str, dict[str, Any]]]:
    """What is questionable about a task that works."""
    from corpusforge.verify.health import CODE

    notes: list[tuple[str, dict[str, Any]]] = [(flag, {"kind": one.kind}) for flag in one.flags]
    if one.survived and one.kind in CODE:
        notes.append(("weak_tests", {"mutants": one.mutants.total(), "survived": sorted(one.survived)}))
    if one.undecided:
        notes.append(("undecided", {"kind": one.kind, "rule": one.undecided}))
    return notes


def _figures(found: Sequence[Health], conflicts: int) -> dict[str, Any]:
    """Per kind of verifier: tasks, what was wrong with them, and how often it errs, with 95 % intervals."""
    kinds = {kind: [one for one in found if one.kind == kind] for kind in sorted({one.kind for one in found})}
    flags = Counter(flag for one in found if one.healthy for flag in one.flags)
    flags["conflicting_gold"] = conflicts
    return {
        "verifiers": {kind: _of_kind(some) for kind, some in kinds.items()},
        "flags": {name: count for name, count in sorted(flags.items()) if count},
    }


def _of_kind(found: Sequence[Health]) -> dict[str, Any]:
    golds, wrong, mutants = (_total(getattr(one, what) for one in found) for what in ("golds", "wrong", "mutants"))
    return {
        "tasks": len(found),
        "healthy": sum(one.healthy and not one.undecided for one in found),
        "unhealthy": dict(sorted(Counter(one.reason for one in found if one.reason).items())),
        "undecided": dict(sorted(Counter(one.undecided for one in found if one.undecided).items())),
        "false_reject": rate(golds["fail"], golds["fail"] + golds["pass"]),
        "false_accept": rate(wrong["pass"], wrong["fail"] + wrong["pass"]),
        "mutants_survived": rate(mutants["pass"], mutants["fail"] + mutants["pass"]),
    }


def _speed(found: Sequence[Health], seconds: float) -> dict[str, Any]:
    """Seconds by the clock, and those of the verdicts of each kind, which overlap."""
    kinds = sorted({one.kind for one in found})
    spent = {kind: round(sum(one.seconds for one in found if one.kind == kind), 1) for kind in kinds}
    return {"seconds": round(seconds, 1), "seconds_by_kind": spent}


def _total(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counters:
        total.update(one)
    return total


def rate(count: int, of: int) -> dict[str, float | int | None]:
    """A share with its 95 % interval (Wilson); null where there was nothing to count."""
    from corpusforge.evaluate.statistics import wilson

    low, high = wilson(count, of)
    share = round(count / of, 4) if of else None
    return {"count": count, "of": of, "rate": share, "low": round(low, 4), "high": round(high, 4)}


def _apply(rows: pa.Table, verdicts: pa.Table, _config: HealthConfig, _inputs: Inputs) -> StageResult:
    gone = np.asarray(pc.is_valid(verdicts["reason"]))
    at = np.flatnonzero(gone)
    lines = verdicts.take(pa.array(at)).to_pylist()
    details = [json.loads(line["detail"]) for line in lines]
    dropped = ledger(rows, at, STAGE.name, [line["reason"] for line in lines], details)
    noted = np.flatnonzero(np.asarray(pc.is_valid(verdicts["notes"])))
    listed = [
        (place, reason, detail)
        for place, text in zip(noted.tolist(), verdicts["notes"].take(pa.array(noted)).to_pylist(), strict=True)
        for reason, detail in json.loads(text)
    ]
    places, reasons, told = [line[0] for line in listed], [line[1] for line in listed], [line[2] for line in listed]
    changes = ledger(rows, places, STAGE.name, reasons, told)
    return StageResult(STAGE.name, rows.filter(pa.array(~gone)), dropped, changes)


STAGE: Final = Decided("health", HealthConfig, _summarise, _decide, _apply)
