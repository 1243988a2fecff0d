"""How healthy the verifiers of tasks are: no project, no DVC, no network.

    corpusforge verify tasks.jsonl more/          cf.verify_tasks("tasks.jsonl")

Reads tasks in any shape that `ingest` reads, runs the stage `health` over them, a partition at a time, and says per
kind of verifier how many tasks are unhealthy, for which check, and how often it errs: wrong answers that pass (false
accepts), right ones that fail (false rejects), with 95 % intervals. Partitions lie in a temporary folder until the end.
Programs of code tasks run confined. No text of a task is shown.
"""

from __future__ import annotations

import contextlib
import difflib
import itertools
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import SourceError
from corpusforge.present import Block, Showable, Shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from corpusforge.io.tasks import Laid
    from corpusforge.stages.health import HealthConfig

_SHOWN: Final = 5  # ids told per check
_EXAMPLE: Final = '{"prompt": "6 x 7?", "verifier": {"kind": "numeric", "answer": "42"}}'
_REMEDIES: Final = {
    "code.no_reference": "no solution to try: put it into the verifier, as `reference`",
    "code.unconfined": "code runs confined or not at all: docs/verifiers.md, where code runs",
    "judge.not_tried": "a judge is not asked here: measure it (docs/verifiers.md, judge)",
    "missing_extra": "pip install 'corpusforge[verify]'; for a kind of your own, what its package needs",
}
"""What to do about a task of which nothing could be found out, by rule or by the end of one."""
WEAK: Final = "weak_tests"
_ANSWERS: Final = "possible_answer"  # where BFCL keeps the accepted calls, beside its questions


@dataclass(repr=False)
class VerifiedTasks(Showable):
    """What was found out about tasks. `healthy` is false when one is not."""

    tasks: int
    verifiers: dict[str, dict[str, Any]]
    rules: dict[str, dict[str, dict[str, list[str]]]]
    """Check, kind of verifier, the verifier's rule that decided, ids of the tasks."""
    undecided: dict[str, dict[str, list[str]]]
    """Rule by which nothing could be found out, kind of verifier, ids of the tasks."""
    noted: dict[str, list[str]]
    """What is questionable about tasks that stay (`weak_tests`, `guessable`, …): ids of the tasks."""
    survived: dict[str, list[str]]
    """Tasks with weak tests, by id: the faults that their tests did not notice."""
    left_out: dict[str, int]
    """Records that gave no row, by reason."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def unhealthy(self) -> dict[str, dict[str, list[str]]]:
        """Check, kind of verifier, ids of the tasks."""
        return {
            check: {kind: list(itertools.chain(*rules.values())) for kind, rules in kinds.items()}
            for check, kinds in self.rules.items()
        }

    @property
    def healthy(self) -> bool:
        """Whether no task failed a check."""
        return not self.rules

    @property
    def unclear(self) -> int:
        """Tasks about which nothing could be found out."""
        return sum(len(ids) for kinds in self.undecided.values() for ids in kinds.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "tasks": self.tasks,
            "healthy": self.healthy,
            "verifiers": self.verifiers,
            "unhealthy": self.unhealthy,
            "rules": self.rules,
            "undecided": self.undecided,
            "noted": self.noted,
            "survived": self.survived,
            "left_out": self.left_out,
            "seconds": self.seconds,
        }

    def shown(self) -> Shown:
        """The result as tables."""
        bad = sum(len(ids) for kinds in self.unhealthy.values() for ids in kinds.values())
        said = f"{bad:,} unhealthy." if bad else "None unhealthy." if self.unclear else "All healthy."
        said += f" {self.unclear:,} undecided: nothing could be found out about them." if self.unclear else ""
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
            (reason, kind, rule, len(ids), _which(ids), RULES[reason])
            for reason in RULES
            for kind, rules in self.rules.get(reason, {}).items()
            for rule, ids in rules.items()
        ]
        return Block("unhealthy tasks", ("check", "verifier", "rule", "tasks", "which", "what it means"), rows)

    def _undecided(self) -> Block:
        rows = [
            (rule, kind, len(ids), _which(ids), _remedy(rule, kind))
            for rule, kinds in self.undecided.items()
            for kind, ids in kinds.items()
        ]
        return Block("undecided", ("rule", "verifier", "tasks", "which", "what to do"), rows)

    def _noted(self) -> Block:
        told = {name: f"{name} ({', '.join(dict.fromkeys(faults))})" for name, faults in self.survived.items()}
        shown = {note: [told.get(one, one) for one in ids] if note == WEAK else ids for note, ids in self.noted.items()}
        rows = [(note, len(ids), _which(ids)) for note, ids in shown.items()]
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
    from corpusforge.io.tasks import Laid
    from corpusforge.stages._stage import configure
    from corpusforge.stages.health import HealthConfig

    config = configure(HealthConfig, None, options)
    say = progress or (lambda _what: None)
    say("reading")
    with _folder() as folder:
        laid = Laid(folder, limit)
        _read(paths, source, laid)
        if not laid.tasks:
            raise _no_tasks(laid)
        say(f"trying {laid.tasks:,} tasks")
        return _tried(laid, config)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for texts of tasks, gone afterwards; what a killed process left is removed by the next."""
    from corpusforge.verify.sandbox._scratch import Scratch

    scratch = Scratch("corpusforge-verify-")
    try:
        yield scratch.path
    finally:
        scratch.remove()


def _tried(laid: Laid, config: HealthConfig) -> VerifiedTasks:
    """The stage over the partitions, and what its ledger lines say."""
    import pyarrow as pa

    from corpusforge.io import parquet
    from corpusforge.io.stored import read_table
    from corpusforge.stages.health import STAGE

    summaries = [STAGE.summarise(read_table(part), config, {}) for part in laid.parts]
    decision = STAGE.decide(pa.concat_tables(summaries), config, {}, parquet.Gather(laid.parts))
    found, start = _Found(), 0
    for part in laid.parts:
        rows = read_table(part)
        result = STAGE.apply(rows, decision.verdicts.slice(start, rows.num_rows), config, {})
        start += rows.num_rows
        for line in [*result.changes.to_pylist(), *result.dropped.to_pylist()]:
            found.add(line["reason"], json.loads(line["detail"]), line["record_id"] or line["row_id"])
    return VerifiedTasks(
        tasks=laid.tasks,
        verifiers=dict(decision.metrics["verifiers"]),
        rules=found.rules,
        undecided=dict(sorted(found.undecided.items())),
        noted=dict(sorted(found.noted.items())),
        survived=found.survived,
        left_out=dict(sorted(laid.left_out.items(), key=lambda one: (-one[1], one[0]))),
        seconds=dict(decision.metrics["speed"]["seconds_by_kind"]),
    )


@dataclass
class _Found:
    """Ledger lines, sorted by what they say; ids are the user's own where there are some."""

    rules: dict[str, dict[str, dict[str, list[str]]]] = field(default_factory=dict)
    undecided: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    noted: dict[str, list[str]] = field(default_factory=dict)
    survived: dict[str, list[str]] = field(default_factory=dict)

    def add(self, reason: str, detail: Mapping[str, Any], name: str) -> None:
        """Enter a line. A task that nothing could be found out about is undecided, whether it stays or goes."""
        from corpusforge.verify.health import RULES

        if reason == "undecided":
            self.undecided.setdefault(detail["rule"], {}).setdefault(detail["kind"], []).append(name)
        elif reason in RULES:
            kinds = self.rules.setdefault(reason, {}).setdefault(detail["kind"], {})
            kinds.setdefault(detail.get("rule", ""), []).append(name)
        else:
            self.noted.setdefault(reason, []).append(name)
            if reason == WEAK:
                self.survived[name] = detail["survived"]


def _no_tasks(laid: Laid) -> SourceError:
    """What was found instead, and what a task looks like."""
    rows = ", ".join(f"{kind} {count:,}" for kind, count in sorted(laid.kinds.items()))
    left = ", ".join(f"{reason} {count:,}" for reason, count in sorted(laid.left_out.items()))
    found = (f"; rows of other kinds: {rows}" if rows else "") + (f"; records left out: {left}" if left else "")
    hint = f"a task is a line such as {_EXAMPLE}; docs/shapes.md has other shapes, `corpusforge check` says more"
    return SourceError("no tasks found" + (found or "; no records either"), hint=hint)


def _read(paths: Any, source: Mapping[str, Any] | None, laid: Laid) -> None:
    """Lay down the tasks of everything that was named, and what gave none."""
    from corpusforge.io import memory

    if not memory.are_paths(paths):
        with memory.as_file(paths) as place:
            laid.add(place.name, source or {}, place.parent)
        return
    listed = list(paths) if isinstance(paths, (list, tuple)) else [paths]
    for at, path in enumerate(listed):
        _read_one(Path(path), source, listed[:at], laid)


def _read_one(place: Path, source: Mapping[str, Any] | None, before: Sequence[Any], laid: Laid) -> None:
    from corpusforge.check import data_of

    name = _name(place)
    same = sum(_name(Path(other)) == name for other in before)
    declared = {"name": f"{name}-{same + 1}" if same else name, **(source or {})}
    if (place / _ANSWERS).is_dir() and "options" not in declared:
        declared["options"] = {"answers": str(place / _ANSWERS)}
        laid.add(str(place / "*.json"), declared, Path.cwd())
    else:
        laid.add(data_of(place), declared, Path.cwd())


def _name(place: Path) -> str:
    """A source's name for a file, folder or glob, whatever characters its own has."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", place.stem).strip("-") or "rows"
