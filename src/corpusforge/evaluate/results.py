"""What models scored, item by item: the form in which they are compared with one another and with the accepted ones.

Items go by content id, so that two builds that hold out the same task are compared on it. `evaluate` writes two tables
(TASKS, ROWS); the accepted build keeps a short form of them in baseline.json, in which each item's score stands at its
id's place in a list:

    "ids": {"heldout": "04c1… 9f0c…"}, "results": {"sft": {"heldout": "3/8 8/8"}}      passes / decided attempts

Nothing here holds a text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Measure = Literal["pass_rate", "greedy", "legacy", "heldout_loss", "preference_accuracy"]
Counts = tuple[int, int]
"""Passes, decided attempts."""

ROLES: Final = ("base", "sft", "dpo", "grpo")
"""Models of the graph in the order of training; `raw`, the model trained on raw rows, stands apart."""
TRAINED: Final = ROLES[1:]

TASKS: Final = pa.schema(
    {
        "model": pa.string(),
        "set": pa.string(),  # heldout or legacy
        "source": pa.string(),
        "row_id": pa.string(),
        "content_id": pa.string(),
        "passes": pa.int32(),
        "attempts": pa.int32(),  # decided ones
        "undecided": pa.int32(),
        "greedy": pa.bool_(),  # null: undecided
    }
)
ROWS: Final = pa.schema(
    {
        "model": pa.string(),
        "measure": pa.string(),  # loss (nats per token) or margin (nats)
        "source": pa.string(),
        "row_id": pa.string(),
        "content_id": pa.string(),
        "value": pa.float64(),
        "tokens": pa.int32(),  # of the assistant; losses only
        "bytes": pa.int32(),  # of their text in UTF-8; losses only
    }
)


@dataclass(frozen=True)
class Results:
    """What one model scored, by content id. An item that gave no score (no decided attempt, cut away) is not in it."""

    heldout: Mapping[str, Counts] = field(default_factory=dict)
    """Sampled answers to held-out tasks; a task without a decided attempt is here, with (0, 0)."""
    legacy: Mapping[str, Counts] = field(default_factory=dict)
    """Sampled answers to legacy tasks."""
    greedy: Mapping[str, Counts] = field(default_factory=dict)
    """The greedy answers to held-out tasks."""
    legacy_greedy: Mapping[str, Counts] = field(default_factory=dict)
    """The greedy answers to legacy tasks."""
    loss: Mapping[str, float] = field(default_factory=dict)
    """Nats per token of held-out conversations."""
    per_byte: Mapping[str, float] = field(default_factory=dict)
    """The same per byte of text: comparable between builds whose tokenizers differ."""
    margin: Mapping[str, float] = field(default_factory=dict)
    """Log-likelihood of chosen less that of rejected, of held-out pairs."""
    undecided: int = 0
    """Sampled attempts that no verifier could decide."""

    def values(self, measure: Measure, *, per_byte: bool = False) -> dict[str, float]:
        """One value per item: the pass fraction, the loss, or 1, 0.5 (a tie), 0 for a pair."""
        if measure == "heldout_loss":
            return dict(self.per_byte if per_byte else self.loss)
        if measure == "preference_accuracy":
            return {name: (1.0 if margin > 0 else 0.0) if margin else 0.5 for name, margin in self.margin.items()}
        return {name: passes / tried for name, (passes, tried) in self.counts(measure).items() if tried}

    def counts(self, measure: Measure) -> Mapping[str, Counts]:
        """Passes and decided attempts per task, of a measure that has them."""
        return {"pass_rate": self.heldout, "greedy": self.greedy, "legacy": self.legacy}[measure]


@dataclass(frozen=True)
class Judged:
    """The models of one build, and how they were judged."""

    build: str
    results: Mapping[str, Results]
    conditions: Mapping[str, Any] = field(default_factory=dict)
    """What scores depend on besides the model: temperature, max_new_tokens, max_length."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """Hash of each model's files."""

    def pack(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        """The short form for baseline.json: trained models only. `figures` are the profiles, by model."""
        trained = {role: self.results[role] for role in TRAINED if role in self.results}
        ids = {
            name: sorted(set().union(*(getattr(one, attribute) for one in trained.values())))
            for name, (attribute, _, _) in _PACKED.items()
        }
        return {
            "build": self.build,
            "conditions": dict(self.conditions),
            "fingerprints": {role: self.fingerprints[role] for role in trained if role in self.fingerprints},
            "figures": {role: figures[role] for role in trained if role in figures},
            "ids": {name: " ".join(listed) for name, listed in ids.items()},
            "results": {role: _packed(one, ids) for role, one in trained.items()},
        }

    @classmethod
    def unpack(cls, packed: Mapping[str, Any]) -> Judged:
        """The models of a short form. Raises KeyError or ValueError when it is none."""
        ids = {name: listed.split() for name, listed in packed["ids"].items()}
        results = {role: _unpacked(one, ids) for role, one in packed["results"].items()}
        return cls(str(packed["build"]), results, dict(packed["conditions"]), dict(packed["fingerprints"]))


def read(tasks: pa.Table, rows: pa.Table) -> dict[str, Results]:
    """The models of two tables (TASKS, ROWS), by name."""
    names = sorted({*tasks["model"].to_pylist(), *rows["model"].to_pylist()})
    return {name: _of_one(*(table.filter(pc.equal(table["model"], name)) for table in (tasks, rows))) for name in names}


def _of_one(tasks: pa.Table, rows: pa.Table) -> Results:
    sampled: dict[str, dict[str, Counts]] = {"heldout": {}, "legacy": {}}
    greedy: dict[str, dict[str, Counts]] = {"heldout": {}, "legacy": {}}
    for task in tasks.to_pylist():
        sampled[task["set"]][task["content_id"]] = (task["passes"], task["attempts"])
        if task["greedy"] is not None:
            greedy[task["set"]][task["content_id"]] = (int(task["greedy"]), 1)
    losses = [row for row in rows.to_pylist() if row["measure"] == "loss"]
    return Results(
        heldout=sampled["heldout"],
        legacy=sampled["legacy"],
        greedy=greedy["heldout"],
        legacy_greedy=greedy["legacy"],
        loss={row["content_id"]: row["value"] for row in losses},
        per_byte={row["content_id"]: _rounded(row["value"] * row["tokens"] / row["bytes"]) for row in losses},
        margin={row["content_id"]: row["value"] for row in rows.to_pylist() if row["measure"] == "margin"},
        undecided=pc.sum(tasks["undecided"]).as_py() or 0,
    )


def _counts_text(counts: Counts) -> str:
    return f"{counts[0]}/{counts[1]}"


def _counts_of(text: str) -> Counts:
    passes, attempts = text.split("/")
    return int(passes), int(attempts)


def _number_text(value: float) -> str:
    return f"{value:.5g}"


def _rounded(value: float) -> float:
    """As it will be read back, so that a build that did not change is not compared with its own rounding."""
    return float(_number_text(value))


_Form = tuple[str, "Callable[[Any], str]", "Callable[[str], Any]"]
# name in baseline.json -> attribute, its text, and back
_PACKED: Final[dict[str, _Form]] = {
    "heldout": ("heldout", _counts_text, _counts_of),
    "legacy": ("legacy", _counts_text, _counts_of),
    "loss_per_byte": ("per_byte", _number_text, float),
    "margin": ("margin", _number_text, float),
}
_NONE: Final = "-"


def _packed(one: Results, ids: Mapping[str, list[str]]) -> dict[str, str]:
    found = {}
    for name, (attribute, text, _) in _PACKED.items():
        scores = getattr(one, attribute)
        found[name] = " ".join(text(scores[item]) if item in scores else _NONE for item in ids[name])
    return found


def _unpacked(packed: Mapping[str, str], ids: Mapping[str, list[str]]) -> Results:
    found: dict[str, Any] = {}
    for name, (attribute, _, value) in _PACKED.items():
        scores = packed[name].split()
        pairs = zip(ids[name], scores, strict=True)
        found[attribute] = {item: value(score) for item, score in pairs if score != _NONE}
    return Results(**found)
