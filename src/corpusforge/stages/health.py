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
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from corpusforge.errors import ConfigError
from corpusforge.result import StageResult, ledger
from corpusforge.sample import dumps
from corpusforge.stages._peers import conflicting, partners
from corpusforge.stages._stage import SLICE, Decided, Decision, Fetch, Inputs, StageConfig, configure, in_memory
from corpusforge.stages._tally import Tally
from corpusforge.stages.shard import row_bytes, row_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from corpusforge.verify.health import Exam, Health

_READ: Final = ["row_id", "kind", "messages", "tools", "verifier", "extra"]
_SLICE: Final = 256  # tasks that are tried at once
_KNOWN: Final = {"group": pa.string(), "asked": pa.uint64(), "gold": pa.uint64(), "size": pa.int64()}
_LARGE: Final = 128 << 20  # bytes of texts that are in memory at once, partners' among them
_WAITING: Final = 4_096  # lines that wait to become columns
_LINE: Final = pa.schema([("at", pa.int64()), ("reason", pa.string()), ("detail", pa.string()), ("notes", pa.string())])


class HealthConfig(StageConfig):
    """How thoroughly tasks are tried, and what happens to those of which nothing can be told."""

    repeats: int = Field(3, ge=1)
    """Runs of the gold answer, and of one wrong answer; all must get the same verdict."""

    seconds: float = Field(15.0, gt=0, allow_inf_nan=False)
    """By the clock, for the fastest run of the gold answer; as long as code may take at most. Verifiers have limits of
    processor time besides (5 s for code, 3 s for maths), which a busy machine does not change."""

    mutants: int = Field(3, ge=0)
    """Wrong answers made from the gold answer; a task goes when none of them fails. 0 leaves the check out."""

    undecided: Literal["keep", "drop"] = "keep"
    """What happens to tasks that cannot be tried here: a kind that is not known, code without confinement or without a
    reference solution, a package that is not installed. They are counted either way."""


def health(rows: pa.Table, config: HealthConfig | None = None, **options: Any) -> StageResult:
    """Drop tasks whose verifier fails a check. Keyword arguments are the fields of HealthConfig.

    Runs the programs of code tasks, confined. Raises ConfigError for a wrong option, and where
    code is to run in a place of the environment's that does not work.
    """
    return in_memory(STAGE, rows, configure(HealthConfig, config, options))


def _summarise(rows: pa.Table, _config: HealthConfig, _inputs: Inputs) -> pa.Table:
    """Per row: kind of verifier (null for no task), hashes of what is asked and of the gold answer, bytes of texts."""
    tasks = np.flatnonzero(np.asarray(pc.equal(rows["kind"], "task")))
    found: list[tuple[str, int | None, int | None, int]] = []
    for start in range(0, len(tasks), _SLICE):
        part = rows.select(_READ).take(pa.array(tasks[start : start + _SLICE]))
        found += map(_known_by, _read(part), row_bytes(part).tolist())
    back = np.full(rows.num_rows, -1)
    back[tasks] = np.arange(len(tasks))
    at = pa.array(back, mask=back < 0)
    columns = zip(*found, strict=True) if found else [[] for _ in _KNOWN]
    known = {name: pa.array(one, _KNOWN[name]).take(at) for name, one in zip(_KNOWN, columns, strict=True)}
    return pa.table({"row_id": rows["row_id"], "content_id": rows["content_id"], **known})


def _known_by(one: Exam, size: int) -> tuple[str, int | None, int | None, int]:
    from corpusforge.verify.health import prompt_of

    kind = f"{one.task.kind}:{one.task.spec.get('dataset')}" if "dataset" in one.task.spec else one.task.kind
    asked = " ".join(prompt_of(one.task).split())
    return kind, _hash(asked) if asked else None, None if one.gold is None else _hash(one.gold), size


def _hash(text: str) -> int:
    found = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "big")


def _read(rows: pa.Table) -> list[Exam]:
    """The tasks of rows that are all tasks."""
    return [_exam(row) for row in rows.to_pylist()]


def _exam(row: dict[str, Any]) -> Exam:
    from corpusforge.verify.health import exam

    try:
        extra = json.loads(row["extra"] or "{}")
    except ValueError:
        extra = {}
    return exam(row, extra if isinstance(extra, dict) else {})


def _decide(summary: pa.Table, config: HealthConfig, _inputs: Inputs, fetch: Fetch) -> Decision:
    """Try every task, in this process: verifiers use all cores by themselves, and no more than those.

    Of the whole corpus only hashes, ids and counts are held; texts are there for a batch of tasks at a time.
    """
    from corpusforge.verify.health import Checks, examine

    _stop_in_vain(_kinds(summary))
    checks = Checks(config.repeats, config.seconds, config.mutants)
    tasks = np.flatnonzero(np.asarray(pc.is_valid(summary["group"])))
    known = summary.take(pa.array(tasks))
    partner, conflicts = partners(known), conflicting(known)
    began = time.monotonic()
    tally, lines = Tally(), _Lines()
    for first, end in _batches(known, partner):
        for start, cases in _cases(tasks, partner, slice(first, end), fetch):
            for number, one in enumerate(examine(cases, checks), start):
                reason = one.reason or ("undecided" if one.undecided and config.undecided == "drop" else "")
                other = conflicts.get(number)
                tally.add(one, conflicting=other is not None and not reason)
                lines.add(int(tasks[number]), one, reason, _notes(one, other))
    speed = {"speed": tally.speed(time.monotonic() - began)} if len(tasks) else {}
    return Decision(lines.verdicts(summary.num_rows), tally.figures() | _elsewhere(tally) | speed)


def _kinds(summary: pa.Table) -> set[str]:
    """Kinds of verifiers in a corpus."""
    return {kind.partition(":")[0] for kind in pc.unique(summary["group"]).to_pylist() if kind}


def _stop_in_vain(kinds: set[str]) -> None:
    """Raise ConfigError where code is to run somewhere that was named, and cannot: all of it would be undecided."""
    from corpusforge.verify.health import CODE
    from corpusforge.verify.sandbox import in_vain

    if kinds & set(CODE) and (reason := in_vain()):
        hint = "mend it, or name another place: docs/verifiers.md, where code runs"
        raise ConfigError(f"code of tasks cannot run where CORPUSFORGE_SANDBOX says: {reason}", hint=hint)


def _elsewhere(tally: Tally) -> dict[str, str]:
    """Where code ran, if there was any and it was not behind the kernel's walls: what a pass proves depends on it."""
    from corpusforge.verify.health import CODE
    from corpusforge.verify.sandbox import where

    ran = where() if any(kind in CODE for kind in tally.kinds) else "confined"
    return {} if ran == "confined" else {"code_ran": ran}


def _batches(known: pa.Table, partner: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Start and end of the tasks whose texts, and whose partners', are in memory at once."""
    size = np.asarray(known["size"])
    for start, end in row_groups(size + np.where(partner >= 0, size[partner], 0), _LARGE) if len(size) else []:
        for first in range(start, end, SLICE):
            yield first, min(first + SLICE, end)


def _cases(
    tasks: npt.NDArray[np.int64], partner: npt.NDArray[np.int64], batch: slice, fetch: Fetch
) -> Iterator[tuple[int, list[Exam]]]:
    """Tasks of a batch that are tried at once, each with its partner's task and gold answer; and which is the first."""
    from corpusforge.verify.health import Exam

    mine, rows = partner[batch], fetch(tasks[batch], _READ)
    wanted = np.unique(mine[mine >= 0])
    others = fetch(tasks[wanted], _READ) if len(wanted) else rows.slice(0, 0)
    for start in range(0, rows.num_rows, _SLICE):
        some, theirs = _read(rows.slice(start, _SLICE)), mine[start : start + _SLICE]
        at = np.flatnonzero(theirs >= 0)
        read = _read(others.take(pa.array(np.searchsorted(wanted, theirs[at]))))
        for place, other in zip(at.tolist(), read, strict=True):
            if other.gold is not None:
                some[place] = Exam(some[place].task, some[place].gold, (other.task, other.gold))
        yield batch.start + start, some


class _Lines:
    """What is to be said of some of the rows: kept as columns, because it may be of many."""

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []
        self._waiting: list[tuple[int, str | None, str | None, str | None]] = []

    def add(self, at: int, one: Health, reason: str, notes: list[tuple[str, dict[str, Any]]]) -> None:
        """Note what was found out about the task in row `at`."""
        if reason:
            detail = {"kind": one.kind, "rule": one.rule or one.undecided, "flags": [name for name, _ in notes]}
            said = dumps({key: value for key, value in detail.items() if value})
            self._waiting.append((at, reason, said, None))
        elif notes:
            self._waiting.append((at, None, None, dumps(notes)))
        if len(self._waiting) >= _WAITING:
            self._close()

    def _close(self) -> None:
        columns = zip(*self._waiting, strict=True) if self._waiting else [[], [], [], []]
        self._parts.append(pa.table([pa.array(c, k.type) for c, k in zip(columns, _LINE, strict=True)], schema=_LINE))
        self._waiting = []

    def verdicts(self, rows: int) -> pa.Table:
        """A line per row of the corpus, null where nothing is to be said."""
        self._close()
        lines = pa.concat_tables(self._parts)
        back = np.full(rows, -1)
        back[np.asarray(lines["at"])] = np.arange(lines.num_rows)
        return lines.drop(["at"]).take(pa.array(back, mask=back < 0))


def _notes(one: Health, other_gold: list[str] | None) -> list[tuple[str, dict[str, Any]]]:
    """What is questionable about a task that works."""
    from corpusforge.verify.health import CODE

    notes: list[tuple[str, dict[str, Any]]] = [(flag, {"kind": one.kind}) for flag in one.flags]
    if one.survived and one.kind in CODE:
        notes.append(("weak_tests", {"mutants": one.mutants.total(), "survived": sorted(one.survived)}))
    if one.undecided:
        notes.append(("undecided", {"kind": one.kind, "rule": one.undecided}))
    return [*notes, ("conflicting_gold", {"other_gold": other_gold})] if other_gold else notes


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
