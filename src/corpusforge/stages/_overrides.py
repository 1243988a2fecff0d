"""A person's word on single rows: `keep` and `drop`, which dedupe obeys (the file is overrides.csv, io/overrides.py).

    drop   the row goes, whatever it is like. It stands behind all others, so nothing goes for it; the terms that it
           states go on to the row that it would have repeated, as those of any copy do.
    keep   the row stays, whatever it is like. It keeps its place in the order, so what went for it before still goes,
           and the row that it would have gone for stays too: who wants that one out says `drop` of it. Among exact
           copies, which nobody can tell apart, it is the one that stays.

    overrides.csv:2  keep,web#9,Ann Smith,another year's tide table
    -> changes  web#9  kept_by_override  {"duplicate_of": "forum#2", "method": "minhash", "similarity": 0.91, …}

Licence policy comes first: a row that repeats one which `ingest` refused for its terms goes, kept or not. Several kept
copies of one content each take on the terms of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from corpusforge.errors import ConfigError
from corpusforge.sample import dumps
from corpusforge.stages._guard import flat
from corpusforge.stages._index import BAND
from corpusforge.stages._twins import taken_on

if TYPE_CHECKING:
    from corpusforge.text.pairs import Sets

FILE: Final = "overrides.csv"
ACTIONS: Final = ("keep", "drop")
OVERRIDE: Final = "override"
"""Reason of the rows that somebody dropped; the note on rows that somebody kept is `kept_by_override`."""
_RULED: Final = "ruled"  # column of a summary: which overrides name the row
_LISTED: Final = 50  # lines that the figures name, of each sort

Positions = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
SetsOf = Callable[[Positions], "Iterable[tuple[Positions, Sets]]"]


@dataclass(frozen=True)
class Override:
    """One line: what happens to a row, who says so, and why."""

    action: str
    row: str
    """A row id, the user's own id, or the own id behind the name of its source (`support:1042`)."""
    name: str
    reason: str
    when: str = ""
    content: str = ""
    """Content id that the row must have, where the line is to hold for no other; empty for any."""
    line: int = 0


def marked(summary: pa.Table, rows: pa.Table, overrides: Sequence[Override]) -> pa.Table:
    """The summary with a column that says which overrides name each row; as it was where there are none.

    Raises ConfigError where one row is to be kept and dropped.
    """
    if not overrides:
        return summary
    by_id: dict[str, list[int]] = {}
    for number, one in enumerate(overrides):
        by_id.setdefault(one.row, []).append(number)
    source = flat(rows["source"])
    ids = pl.DataFrame(
        {
            "row_id": pl.Series(rows["row_id"]),
            "content": pl.Series(rows["content_id"]),
            "name": pl.Series(source.field("name")),
            "own": pl.Series(source.field("record_id")).cast(pl.String),
        }
    ).with_columns(named=pl.col("name") + ":" + pl.col("own"))
    called = [pl.col(column).is_in(list(by_id)).fill_null(False) for column in ("row_id", "own", "named")]
    named: list[list[int] | None] = [None] * rows.num_rows
    for at, row, content, own, whole in (
        ids.with_row_index("at").filter(pl.any_horizontal(called)).select("at", "row_id", "content", "own", "named")
    ).iter_rows():
        found = sorted({number for one in (row, own, whole) for number in by_id.get(one, ())})
        held = [number for number in found if overrides[number].content in ("", content)]
        named[at] = _agreed(row, held, overrides) or None
    return summary.append_column(_RULED, pa.array(named, pa.list_(pa.int32())))


def _agreed(row: str, numbers: list[int], overrides: Sequence[Override]) -> list[int]:
    """The numbers; raises ConfigError where they want different things."""
    for number in numbers[1:]:
        first, other = overrides[numbers[0]], overrides[number]
        if other.action != first.action:
            raise disagree(first, other, row)
    return numbers


def disagree(first: Override, other: Override, row: str) -> ConfigError:
    """What to say of two lines that want different things of a row; the other may not be in the file yet."""
    place = f"{FILE}:{other.line}" if other.line else FILE
    return ConfigError(
        f"{place}: {other.action} {row}, of which line {first.line} says {first.action}",
        hint="take one of the two lines out",
    )


@dataclass(frozen=True)
class Ruled:
    """Which rows somebody has decided on; positions are those of the corpus, in input order."""

    overrides: Sequence[Override] = ()
    said: Mapping[int, list[int]] = field(default_factory=dict)
    """Position -> overrides that name it."""
    keep: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    drop: Positions = field(default_factory=lambda: np.zeros(0, np.int64))
    barred: frozenset[int] = frozenset()
    """Rows to be kept that repeat a row refused for its terms: they are judged as any other."""

    @classmethod
    def of(cls, facts: pl.DataFrame, count: int, overrides: Sequence[Override] | None) -> Ruled:
        """What the overrides say of the first `count` rows of a marked summary."""
        if not overrides:
            return cls()
        named = facts.head(count).select(_RULED).with_row_index("at").drop_nulls(_RULED)
        said = {int(at): numbers for at, numbers in named.iter_rows()}
        keep, drop = (
            np.array([at for at, numbers in said.items() if overrides[numbers[0]].action == action], np.int64)
            for action in ACTIONS
        )
        return cls(overrides, said, keep, drop)

    def within_terms(self, summary: pa.Table, start: int, threshold: float, sets_of: SetsOf) -> Ruled:
        """Without the rows to be kept that are exact or near copies of the rows from `start` on."""
        if not len(self.keep) or start >= summary.num_rows:
            return self
        rows = np.concatenate([self.keep, np.arange(start, summary.num_rows)])
        content, comparable = (
            flat(summary[name]).take(pa.array(rows)).to_numpy(zero_copy_only=False)
            for name in ("content_id", "comparable")
        )
        mine, theirs = (np.arange(len(rows)) < len(self.keep), np.arange(len(rows)) >= len(self.keep))
        known = set(content[theirs & comparable])
        copies = {
            int(at)
            for at, text in zip(rows[mine & comparable], content[mine & comparable], strict=True)
            if text in known
        }
        pairs = _meet(summary, self.keep, start)
        held = dict(_each(sets_of(np.unique(np.array(sorted(pairs), np.int64)))) if pairs else ())
        from corpusforge.text.pairs import jaccard

        copies |= {a for a, b in pairs if a not in copies and jaccard(*held[a], *held[b]) >= threshold}
        keep = np.array([at for at in self.keep if int(at) not in copies], np.int64)
        return replace(self, keep=keep, barred=frozenset(copies))

    def behind(self, order: Positions) -> Positions:
        """The order of survival with the rows to be dropped at its end."""
        last = np.isin(order, self.drop)
        return np.concatenate([order[~last], order[last]]) if len(self.drop) else order

    def ahead(self, order: Positions, leader: Positions, count: int) -> Positions:
        """The order with each row to be kept in front of its exact copies; `leader` is each row's first copy."""
        if not len(self.keep):
            return order
        rank = np.empty(len(order), np.float64)
        rank[order] = np.arange(len(order))
        place = rank.copy()
        head = np.where(leader >= 0, leader, np.arange(len(order)))
        for at in self.keep:
            copies = np.flatnonzero(head[:count] == head[at])
            place[at] = rank[copies].min() - 0.5
        return np.lexsort((rank, place)).astype(np.int64)

    def judged(self, leader: Positions) -> Positions:
        """Each row's first copy, none for rows to be kept: they are held against the others by themselves."""
        leader[self.keep] = -1
        return leader

    def out(self, partner: Positions) -> Positions:
        """Partners without those of the rows to be dropped."""
        left = partner.copy()
        left[self.drop] = -1
        return left

    def gone(self, partner: Positions) -> Positions:
        """Partners with each row to be dropped its own: it goes by itself."""
        left = partner.copy()
        left[self.drop] = self.drop
        return left

    def spare(
        self, partner: Positions, similarity: npt.NDArray[np.float64], leader: Positions
    ) -> tuple[Positions, dict[int, tuple[int, str, float]]]:
        """Partners without those of the rows to be kept; and of these the row that each would have gone for.

        `leader` is each row's first copy in the order without overrides.
        """
        would = {}
        for at in map(int, self.keep):
            if leader[at] >= 0:
                would[at] = (int(leader[at]), "exact", 1.0)
            elif partner[at] >= 0:
                would[at] = (int(partner[at]), "minhash", round(float(similarity[at]), 6))
        spared = partner.copy()
        spared[self.keep] = -1
        return spared, would

    def terms(self, facts: pl.DataFrame, partner: Positions, exact: Bools, count: int) -> pl.DataFrame:
        """`taken_on` as if no row had been decided on: dropped rows state their terms, kept copies share theirs."""
        told, copy = partner.copy(), exact.copy()
        told[np.isin(told, self.drop)] = -1
        alike: dict[str, list[int]] = {}
        for at in map(int, self.keep):
            alike.setdefault(facts["content_id"][at], []).append(at)
        several = [places for places in alike.values() if len(places) > 1]
        for first, *others in several:
            told[others], copy[[first, *others]] = first, True
        taken = [taken_on(facts, told, copy, count)]
        for first, *others in several:
            went = told == first
            for one in others:
                turned = np.where(went, one, -1)
                turned[one], turned[first] = -1, one
                taken.append(taken_on(facts, turned, copy, count))
        return pl.concat(taken) if len(taken) > 1 else taken[0]

    def verdicts(self, facts: pl.DataFrame, would: Mapping[int, tuple[int, str, float]], count: int) -> dict[str, Any]:
        """Columns `override` (why a row goes) and `spared` (what a row would have gone for), JSON or null."""
        dropped: list[str | None] = [None] * count
        spared: list[str | None] = [None] * count
        for at in map(int, self.drop):
            dropped[at] = dumps(self._who(at))
        for at, (other, method, similarity) in would.items():
            like = {"duplicate_of": facts["row_id"][other], "method": method, "similarity": similarity}
            spared[at] = dumps({**self._who(at), **like})
        return {"override": pa.array(dropped, pa.string()), "spared": pa.array(spared, pa.string())}

    def _who(self, at: int) -> dict[str, str]:
        one = self.overrides[self.said[at][0]]
        return {"name": one.name, "reason": one.reason}

    def figures(self, would: Mapping[int, tuple[int, str, float]]) -> dict[str, Any]:
        """Rows kept and dropped, and the lines that name no row, change nothing, or are against the terms."""
        if not self.overrides:
            return {}
        named = {number for numbers in self.said.values() for number in numbers}
        effect = {number for at in (*would, *map(int, self.drop)) for number in self.said[at]}
        against = {number for at in self.barred for number in self.said[at]} - effect
        every = set(range(len(self.overrides)))
        sorts = {"stale": every - named, "without_effect": named - effect - against, "restricted": against}
        told = {
            name: {"lines": len(numbers), "first": [self._where(number) for number in sorted(numbers)[:_LISTED]]}
            for name, numbers in sorts.items()
        }
        return {"overrides": {"lines": len(every), "kept": len(would), "dropped": len(self.drop), **told}}

    def _where(self, number: int) -> dict[str, Any]:
        return {"line": self.overrides[number].line, "row": self.overrides[number].row}


def _meet(summary: pa.Table, mine: Positions, start: int) -> set[tuple[int, int]]:
    """Rows of `mine` and rows from `start` on that share a band, both with words."""
    units = flat(summary["units"]).to_numpy()
    mine = mine[units[mine] > 0]
    pairs: set[tuple[int, int]] = set()
    for name in (name for name in summary.column_names if name.startswith(BAND)):
        values = flat(summary[name]).to_numpy()
        theirs = start + np.flatnonzero(np.isin(values[start:], values[mine]) & (units[start:] > 0))
        for other in theirs:
            pairs |= {(int(one), int(other)) for one in mine[values[mine] == values[other]]}
    return pairs


def _each(parts: Iterable[tuple[Positions, Sets]]) -> Iterable[tuple[int, tuple[Sets, int]]]:
    """Where each row's set is."""
    for positions, found in parts:
        yield from ((int(at), (found, place)) for place, at in enumerate(positions))
