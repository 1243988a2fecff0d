"""The books of preflight: which rows are trained on, which are not and why, and the figures of both.

A row has one reason: the first of REASONS that drops it; a row that stays has the first that is noted. `cut` and
`lost_field` drop or are noted as the stage's options of the same names say; the others always drop.

    Found(length=1490, tokens=1024, trained=310, reasons=[("cut", {"tokens": 1490, …})])  ->  dropped, or a change
"""

from __future__ import annotations

import hashlib
import json
from array import array
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.result import LEDGER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from corpusforge.train._config import TrainConfig

REASONS: Final = ("template_error", "lost_field", "prompt_at_limit", "no_trained_token", "equal_after_cut", "cut")
"""Reason codes, in the order in which they are looked for."""
WHO: Final = ("row_id", "record_id", "source", "content_id")
"""Columns that say which row a line is."""


@dataclass(frozen=True)
class Seen:
    """What preflight found: positions of the rows to train on, and ledgers of the others."""

    keep: npt.NDArray[np.int64]
    dropped: pa.Table = field(default_factory=LEDGER.empty_table)
    changes: pa.Table = field(default_factory=LEDGER.empty_table)
    metrics: dict[str, Any] = field(default_factory=dict)
    digest: str = ""  # hash of the content ids that are kept, in order

    def reasons(self) -> dict[str, int]:
        """Dropped rows per reason code, most first."""
        counts = pc.value_counts(self.dropped["reason"]).to_pylist()
        return {c["values"]: c["counts"] for c in sorted(counts, key=lambda c: (-c["counts"], c["values"]))}


Reason = tuple[str, "Mapping[str, Any]"]  # code, and the facts for the ledger


class Found(NamedTuple):
    """What is known of one row: tokens before and after the cut, tokens trained on, reasons in order of REASONS."""

    length: int = 0
    tokens: int = 0
    trained: int = 0
    reasons: Sequence[Reason] = ()


@dataclass
class Tally:
    """Adds up what was found, a batch at a time. With `answers` False there are no tokens to train on, as in GRPO."""

    stage: str
    config: TrainConfig
    answers: bool = True
    keep: array[int] = field(default_factory=lambda: array("q"))
    ledgers: dict[str, list[pa.Table]] = field(default_factory=lambda: {"dropped": [], "changes": []})
    sources: dict[str, dict[str, int]] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=lambda: {"tokens": 0, "trained_tokens": 0, "longest": 0})
    count: int = 0
    hash: Any = field(default_factory=lambda: hashlib.blake2b(digest_size=16))

    def add(self, batch: Mapping[str, Sequence[Any]], found: Sequence[Found]) -> None:
        """Take in one batch: its columns, and what was found of each row."""
        lines: dict[str, list[dict[str, Any]]] = {"dropped": [], "changes": []}
        for place, one in enumerate(found):
            who = {name: batch[name][place] for name in WHO}
            dropping = next((reason for reason in one.reasons if self._drops(reason[0])), None)
            self._count(who, one, dropping is None)
            if dropping is not None:
                lines["dropped"].append(self._line(who, *dropping))
            elif one.reasons:
                lines["changes"].append(self._line(who, *one.reasons[0]))
        for name, some in lines.items():
            self.ledgers[name].append(pa.Table.from_pylist(some, LEDGER))

    def _count(self, who: Mapping[str, Any], one: Found, kept: bool) -> None:
        per_source = self.sources.setdefault(who["source"], {"in": 0, "kept": 0, "dropped": 0})
        per_source["in"] += 1
        per_source["kept" if kept else "dropped"] += 1
        self.sums["longest"] = max(self.sums["longest"], one.length)
        if kept:
            self.keep.append(self.count)
            self.hash.update(f"{who['content_id']}\n".encode())
            self.sums["tokens"] += one.tokens
            self.sums["trained_tokens"] += one.trained
        self.count += 1

    def _drops(self, reason: str) -> bool:
        return {"cut": self.config.cut, "lost_field": self.config.lost_field}.get(reason, "drop") == "drop"

    def _line(self, who: Mapping[str, Any], reason: str, detail: Mapping[str, Any]) -> dict[str, Any]:
        named = {name: who[name] for name in ("row_id", "record_id", "source")}
        return {**named, "stage": self.stage, "reason": reason, "detail": json.dumps(detail, sort_keys=True)}

    def seen(self) -> Seen:
        """All of it."""
        dropped, changes = (pa.concat_tables([LEDGER.empty_table(), *some]) for some in self.ledgers.values())
        figures = {
            "in": self.count,
            "kept": len(self.keep),
            "dropped": len(dropped),
            "changed": len(changes),
            **{name: value for name, value in self.sums.items() if self.answers or name != "trained_tokens"},
            "by_source": dict(sorted(self.sources.items())),
        }
        return Seen(np.array(self.keep, np.int64), dropped, changes, figures, self.hash.hexdigest())
