"""How healthy the verifiers of tasks are: no project, no DVC, no network.

    corpusforge verify tasks.jsonl more/          cf.verify_tasks("tasks.jsonl")

Reads tasks in any shape that `ingest` reads, runs the stage `health` over them in memory, and says per kind of verifier
how many tasks are unhealthy, for which check, and how often it errs: wrong answers that pass (false accepts), right
ones that fail (false rejects), with 95 % intervals. Programs of code tasks run confined. No text of a task is shown.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.errors import SourceError
from corpusforge.present import Block, Showable, Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpusforge.result import StageResult

_SHOWN: Final = 5  # ids told per check
_EXAMPLE: Final = '{"prompt": "6 x 7?", "verifier": {"kind": "numeric", "answer": "42"}}'
_REMEDIES: Final = {
    "code.no_reference": "no solution to try: put it into the verifier, as `reference`",
    "code.unconfined": "code runs confined or not at all: docs/verifiers.md, where code runs",
    "judge.not_tried": "a judge is not asked here: measure it (docs/verifiers.md, judge)",
    "missing_extra": "pip install 'corpusforge[verify]'",
}
"""What to do about a task of which nothing could be found out, by rule or by the end of one."""
_ANSWERS: Final = "possible_answer"  # where BFCL keeps the accepted calls, beside its questions


@dataclass(repr=False)
class VerifiedTasks(Showable):
    """What was found out about tasks. `healthy` is false when one is not."""

    tasks: int
    verifiers: dict[str, dict[str, Any]]
    unhealthy: dict[str, dict[str, list[str]]]
    """Check, kind of verifier, ids of the tasks."""
    undecided: dict[str, dict[str, list[str]]]
    """Rule by which nothing could be found out, kind of verifier, ids of the tasks."""
    noted: dict[str, list[str]]
    """What is questionable about tasks that stay (`weak_tests`, `guessable`, …): ids of the tasks."""
    left_out: dict[str, int]
    """Records that gave no row, by reason."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def healthy(self) -> bool:
        """Whether no task failed a check."""
        return not self.unhealthy

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "tasks": self.tasks,
            "healthy": self.healthy,
            "verifiers": self.verifiers,
            "unhealthy": self.unhealthy,
            "undecided": self.undecided,
            "noted": self.noted,
            "left_out": self.left_out,
            "seconds": self.seconds,
        }

    def shown(self) -> Shown:
        """The result as tables."""
        bad = sum(len(ids) for kinds in self.unhealthy.values() for ids in kinds.values())
        unclear = sum(len(ids) for kinds in self.undecided.values() for ids in kinds.values())
        said = f"{bad:,} unhealthy." if bad else "None unhealthy." if unclear else "All healthy."
        said += f" {unclear:,} undecided: nothing could be found out about them." if unclear else ""
        left = ", ".join(f"{reason} {count:,}" for reason, count in sorted(self.left_out.items()))
        blocks = [self._kinds(), self._found(), self._undecided(), self._noted()]
        return Shown(
            f"{self.tasks:,} tasks" + (f"; records left out: {left}" if left else ""),
            [block for block in blocks if block.rows],
            said,
        )

    def _kinds(self) -> Block:
        columns = ("verifier", "tasks", "healthy", "false accept", "false reject", "faults not noticed", "seconds")
        rows = [
            (
                kind,
                one["tasks"],
                one["healthy"],
                *(_share(one[rate]) for rate in ("false_accept", "false_reject", "mutants_survived")),
                self.seconds.get(kind, 0.0),
            )
            for kind, one in self.verifiers.items()
        ]
        return Block("verifiers", columns, rows)

    def _found(self) -> Block:
        from corpusforge.verify.health import RULES

        rows = [
            (reason, kind, len(ids), _which(ids), RULES[reason])
            for reason in RULES
            for kind, ids in self.unhealthy.get(reason, {}).items()
        ]
        return Block("unhealthy tasks", ("check", "verifier", "tasks", "which", "what it means"), rows)

    def _undecided(self) -> Block:
        rows = [
            (rule, kind, len(ids), _which(ids), _remedy(rule, kind))
            for rule, kinds in self.undecided.items()
            for kind, ids in kinds.items()
        ]
        return Block("undecided", ("rule", "verifier", "tasks", "which", "what to do"), rows)

    def _noted(self) -> Block:
        rows = [(note, len(ids), _which(ids)) for note, ids in self.noted.items()]
        return Block("questionable, but working", ("note", "tasks", "which"), rows)


def _which(ids: Sequence[str]) -> str:
    return ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")


def _remedy(rule: str, kind: str) -> str:
    """What to do about a task of which nothing could be found out."""
    from corpusforge.verify import kinds

    if rule == "verify.unknown_kind":
        near = difflib.get_close_matches(kind, kinds(), 1)
        return f"did you mean {near[0]!r}?" if near else "register it, or install its package (docs/verifiers.md)"
    return _REMEDIES.get(rule) or _REMEDIES.get(rule.rpartition(".")[2]) or "see docs/verifiers.md, rules"


def _share(rate: Mapping[str, Any]) -> str:
    """`0.0012 (0.0004-0.0031) of 3,210`."""
    if not rate["of"]:
        return "-"
    return f"{rate['rate']:.4f} ({rate['low']:.4f}-{rate['high']:.4f}) of {rate['of']:,}"


def verify_tasks(
    paths: Any,
    *,
    source: Mapping[str, Any] | None = None,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> VerifiedTasks:
    """Try the verifiers of tasks in files, folders or globs, or of rows in memory.

    `limit` tries the first so many tasks of each kind. Keyword arguments are the fields of HealthConfig. Raises
    SourceError where there is no task, ConfigError for a wrong option.
    """
    from corpusforge.stages._stage import configure
    from corpusforge.stages.health import HealthConfig
    from corpusforge.stages.health import health as stage

    config = configure(HealthConfig, None, options)
    say = progress or (lambda _what: None)
    say("reading")
    read = _read(paths, source)
    tasks = read.kept.filter(pc.equal(read.kept["kind"], "task"))
    if not tasks.num_rows:
        raise _no_tasks(read)
    tasks = _first(tasks, limit) if limit else tasks
    say(f"trying {tasks.num_rows:,} tasks")
    tried = stage(tasks, config)
    return VerifiedTasks(
        tasks=tasks.num_rows,
        verifiers=dict(tried.metrics["verifiers"]),
        unhealthy=_unhealthy(tried),
        undecided=_undecided(tried),
        noted=_noted(tried),
        left_out=read.reasons(),
        seconds=dict(tried.metrics["speed"]["seconds_by_kind"]),
    )


def _no_tasks(read: StageResult) -> SourceError:
    """What was found instead, and what a task looks like."""
    rows = ", ".join(f"{kind} {count:,}" for kind, count in sorted(Counter(read.kept["kind"].to_pylist()).items()))
    left = ", ".join(f"{reason} {count:,}" for reason, count in read.reasons().items())
    found = (f"; rows of other kinds: {rows}" if rows else "") + (f"; records left out: {left}" if left else "")
    hint = f"a task is a line such as {_EXAMPLE}; docs/shapes.md has other shapes, `corpusforge check` says more"
    return SourceError("no tasks found" + (found or "; no records either"), hint=hint)


def _unhealthy(tried: StageResult) -> dict[str, dict[str, list[str]]]:
    """Check -> kind -> ids: the user's own where there is one."""
    import json

    from corpusforge.verify.health import RULES

    found: dict[str, dict[str, list[str]]] = {}
    for line in tried.dropped.to_pylist():
        if line["reason"] in RULES:
            kind = json.loads(line["detail"])["kind"]
            found.setdefault(line["reason"], {}).setdefault(kind, []).append(line["record_id"] or line["row_id"])
    return found


def _undecided(tried: StageResult) -> dict[str, dict[str, list[str]]]:
    """Rule -> kind -> ids, whether such tasks stay or go."""
    import json

    found: dict[str, dict[str, list[str]]] = {}
    for line in [*tried.changes.to_pylist(), *tried.dropped.to_pylist()]:
        if line["reason"] == "undecided":
            detail = json.loads(line["detail"])
            ids = found.setdefault(detail["rule"], {}).setdefault(detail["kind"], [])
            ids.append(line["record_id"] or line["row_id"])
    return dict(sorted(found.items()))


def _noted(tried: StageResult) -> dict[str, list[str]]:
    """Note -> ids, by name of the note."""
    found: dict[str, list[str]] = {}
    for line in tried.changes.to_pylist():
        if line["reason"] != "undecided":
            found.setdefault(line["reason"], []).append(line["record_id"] or line["row_id"])
    return dict(sorted(found.items()))


def _first(rows: pa.Table, limit: int) -> pa.Table:
    """The first rows of each kind of verifier."""
    seen: dict[str, int] = {}
    chosen = []
    for at, kind in enumerate(pc.struct_field(rows["verifier"].combine_chunks(), "kind").to_pylist()):
        seen[kind] = seen.get(kind, 0) + 1
        if seen[kind] <= limit:
            chosen.append(at)
    return rows.take(pa.array(chosen, pa.int64()))


def _read(paths: Any, source: Mapping[str, Any] | None) -> StageResult:
    """The rows of everything that was named, and what gave none."""
    from corpusforge.io import memory
    from corpusforge.stages._stage import concat

    if not memory.are_paths(paths):
        return memory.read_records(paths, source)
    listed = list(paths) if isinstance(paths, (list, tuple)) else [paths]
    return concat("ingest", [_read_one(Path(path), source, listed[:at]) for at, path in enumerate(listed)])


def _read_one(place: Path, source: Mapping[str, Any] | None, before: Sequence[Any]) -> StageResult:
    from corpusforge.check import data_of
    from corpusforge.io.ingest import read_with_ledger

    name = _name(place)
    same = sum(_name(Path(other)) == name for other in before)
    declared = {"name": f"{name}-{same + 1}" if same else name, **(source or {})}
    if (place / _ANSWERS).is_dir() and "options" not in declared:
        declared["options"] = {"answers": str(place / _ANSWERS)}
        return read_with_ledger(str(place / "*.json"), declared, detect_language=False)
    return read_with_ledger(data_of(place), declared, detect_language=False)


def _name(place: Path) -> str:
    """A source's name for a file, folder or glob, whatever characters its own has."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", place.stem).strip("-") or "rows"
