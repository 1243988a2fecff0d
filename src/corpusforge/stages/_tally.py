"""Figures of verifiers, task by task: how many are unhealthy and why, and how often each kind errs.

    numeric  tasks 3, healthy 2, unhealthy {"gold_fails": 1}, false_accept {"count": 0, "of": 6, "rate": 0.0, …}

Only counts are kept, so it does not matter how many tasks there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corpusforge.verify.health import Health


@dataclass
class _Kind:
    """Counts of one kind of verifier."""

    tasks: int = 0
    healthy: int = 0
    unhealthy: Counter[str] = field(default_factory=Counter)
    undecided: Counter[str] = field(default_factory=Counter)
    golds: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    mutants: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, one: Health) -> None:
        """Count a task."""
        self.tasks += 1
        self.healthy += one.healthy and not one.undecided
        self.unhealthy.update([one.reason] if one.reason else [])
        self.undecided.update([one.undecided] if one.undecided else [])
        for mine, its in ((self.golds, one.golds), (self.wrong, one.wrong), (self.mutants, one.mutants)):
            mine.update(its)
        self.seconds += one.seconds

    def figures(self) -> dict[str, Any]:
        """Counts, and rates with 95 % intervals."""
        return {
            "tasks": self.tasks,
            "healthy": self.healthy,
            "unhealthy": dict(sorted(self.unhealthy.items())),
            "undecided": dict(sorted(self.undecided.items())),
            "false_reject": rate(self.golds["fail"], self.golds["fail"] + self.golds["pass"]),
            "false_accept": rate(self.wrong["pass"], self.wrong["fail"] + self.wrong["pass"]),
            "mutants_survived": rate(self.mutants["pass"], self.mutants["fail"] + self.mutants["pass"]),
        }


class Tally:
    """Counts over all tasks."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._flags: Counter[str] = Counter()

    def add(self, one: Health, *, conflicting: bool) -> None:
        """Count a task; `conflicting`: it stays, and another asks the same and wants another answer."""
        self._kinds.setdefault(one.kind, _Kind()).add(one)
        self._flags.update(one.flags if one.healthy else [])
        self._flags["conflicting_gold"] += conflicting

    @property
    def kinds(self) -> list[str]:
        """Kinds of verifiers that were counted."""
        return sorted(self._kinds)

    def figures(self) -> dict[str, Any]:
        """Per kind of verifier what `_Kind` has, and how many tasks are questionable, by flag."""
        return {
            "verifiers": {kind: one.figures() for kind, one in sorted(self._kinds.items())},
            "flags": {name: count for name, count in sorted(self._flags.items()) if count},
        }

    def speed(self, seconds: float) -> dict[str, Any]:
        """Seconds by the clock, and those of the verdicts of each kind, which overlap."""
        spent = {kind: round(one.seconds, 1) for kind, one in sorted(self._kinds.items())}
        return {"seconds": round(seconds, 1), "seconds_by_kind": spent}


def rate(count: int, of: int) -> dict[str, float | int | None]:
    """A share with its 95 % interval (Wilson); null where there was nothing to count."""
    from corpusforge.evaluate.statistics import wilson

    low, high = wilson(count, of)
    share = round(count / of, 4) if of else None
    return {"count": count, "of": of, "rate": share, "low": round(low, 4), "high": round(high, 4)}
