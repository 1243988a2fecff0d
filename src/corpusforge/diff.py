"""diff: what changed between two builds, row by row.

Rows are matched by their identity: the row id; the user's own id where the source has a `key` (shown as `support:1042`)
and in a foreign file. A row under a new identity that
says the same as one that went is counted as moved, not as added and removed. Where the newer build has ledgers, every
removed row comes with the stage and the reason.

    $ corpusforge diff releases/3f9c… .
    rows      12,040 -> 11,892   64 added, 212 removed, 3 changed, 0 moved
    removed   dedupe near_duplicate 150, filter repetition 62
    params    dedupe.threshold: 0.8 -> 0.7
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from corpusforge.io import sides

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

_SHOWN: Final = 10  # row ids listed per group in text; `to_dict` has all
NOT_IN_A_LEDGER: Final = "not in a ledger"


@dataclass(frozen=True)
class Group:
    """Counts of one source or kind on both sides."""

    a: int
    b: int
    added: int
    removed: int
    changed: int


@dataclass(frozen=True)
class Diff:
    """The difference from `a` to `b`. Row ids are listed whole; rows without an id are only counted."""

    a: str
    b: str
    rows: Group
    moved: int
    added: list[str] = field(repr=False)
    removed: list[str] = field(repr=False)
    changed: list[str] = field(repr=False)
    sources: dict[str, Group] = field(default_factory=dict)
    kinds: dict[str, Group] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    params: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """Whether both sides hold the same rows (params may differ)."""
        return not (self.rows.added or self.rows.removed or self.rows.changed or self.moved)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"same": self.same, **asdict(self)} | {"params": {k: list(v) for k, v in self.params.items()}}

    def __str__(self) -> str:
        total = self.rows
        lines = [
            f"{self.a} -> {self.b}",
            f"rows      {total.a:,} -> {total.b:,}   {total.added:,} added, {total.removed:,} removed, "
            f"{total.changed:,} changed, {self.moved:,} moved",
        ]
        for title, groups in (("source", self.sources), ("kind", self.kinds)):
            lines += [
                f"{title:<9} {name or '-'}: {g.a:,} -> {g.b:,}   +{g.added:,} -{g.removed:,} ~{g.changed:,}"
                for name, g in groups.items()
                if g.added or g.removed or g.changed
            ]
        if self.reasons:
            lines.append("removed   " + ", ".join(f"{reason} {rows:,}" for reason, rows in self.reasons.items()))
        lines += [f"params    {key}: {old} -> {new}" for key, (old, new) in self.params.items()]
        for title, ids in (("added", self.added), ("removed", self.removed), ("changed", self.changed)):
            if ids:
                lines.append(f"{title:<9} {', '.join(ids[:_SHOWN])}" + (" …" if len(ids) > _SHOWN else ""))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def diff(a: Path | str | Project, b: Path | str | Project) -> Diff:
    """Compare two projects, releases, shard folders or files.

    Raises SourceError or ProjectError when a side has no rows to compare.
    """
    keyed = sides.keyed_sources(a) | sides.keyed_sources(b)
    old, new = sides.load_side(a, keyed), sides.load_side(b, keyed)
    marked, moved = _compare(old.rows, new.rows)
    ids = {
        what: marked.filter(pl.col(what) > 0)["row_id"].drop_nulls().unique().sort().to_list()
        for what in ("added", "removed", "changed")
    }
    why = sides.reasons(new, set(ids["removed"]), keyed)
    return Diff(
        a=_label(old),
        b=_label(new),
        rows=_total(marked),
        moved=moved,
        **ids,
        sources=_groups(marked, "source"),
        kinds=_groups(marked, "kind"),
        reasons=_reasons(ids["removed"], why) if new.build else {},
        params=_params(old.params, new.params) if old.params and new.params else {},
    )


def _label(side: sides.Side) -> str:
    """The name of a side's folder, with its build id where there is one."""
    return f"{side.label} ({side.build_id[:12]})" if side.build_id and side.build_id != side.label else side.label


def _compare(a: pl.DataFrame, b: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """One line per identity with how often it was on each side and what became of it, and the number of moved rows.

    Rows without an id are their content.
    """
    key = pl.coalesce("row_id", pl.concat_str(pl.lit("\x00"), pl.col("content").cast(pl.String))).alias("key")
    left, right = (_by_key(side.with_columns(key), name) for side, name in ((a, "a"), (b, "b")))
    both = left.join(right, on="key", how="full", coalesce=True).with_columns(
        pl.coalesce("row_id_a", "row_id_b").alias("row_id"),
        pl.coalesce("source_b", "source_a").alias("source"),
        pl.coalesce("kind_b", "kind_a").alias("kind"),
        pl.col("a", "b").fill_null(0),
    )
    more, fewer = pl.col("b") - pl.col("a"), pl.col("a") - pl.col("b")
    same = pl.col("content_a") == pl.col("content_b")
    marked = both.with_columns(
        more.clip(lower_bound=0).alias("added"),
        fewer.clip(lower_bound=0).alias("removed"),
        pl.when(same.is_null() | same).then(0).otherwise(pl.min_horizontal("a", "b")).alias("changed"),
    )
    return _take_moved(marked)


def _by_key(side: pl.DataFrame, name: str) -> pl.DataFrame:
    """Rows of one side per identity; copies of one row are one identity."""
    return side.group_by("key").agg(
        pl.len().cast(pl.Int64).alias(name),
        pl.col("content").min().alias(f"content_{name}"),
        *(pl.col(column).min().alias(f"{column}_{name}") for column in ("row_id", "source", "kind")),
    )


def _take_moved(marked: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Pair identities that went with identities that came and say the same, one to one, and unmark them."""
    went = marked.filter(pl.col("content_b").is_null()).sort("key")
    came = marked.filter(pl.col("content_a").is_null()).sort("key")
    numbered = [
        frame.select("key", pl.col(content).alias("content"), pl.int_range(pl.len()).over(content).alias("nth"))
        for frame, content in ((went, "content_a"), (came, "content_b"))
    ]
    pairs = numbered[0].join(numbered[1], on=["content", "nth"], suffix="_b")
    gone = pl.concat([pairs["key"], pairs["key_b"]])
    if not len(gone):
        return marked, 0
    moved = pl.col("key").is_in(gone.implode())
    counts = pl.when(moved).then(0).otherwise(pl.col("added", "removed"))
    return marked.with_columns(counts.name.keep()), len(pairs)


def _total(marked: pl.DataFrame) -> Group:
    return Group(*(int(marked[name].sum()) for name in ("a", "b", "added", "removed", "changed")))


def _groups(marked: pl.DataFrame, by: str) -> dict[str, Group]:
    names = sorted(name or "" for name in marked[by].unique())
    return {name: _total(marked.filter(pl.col(by).fill_null("") == name)) for name in names}


def _reasons(removed: list[str], why: dict[str, tuple[str, str]]) -> dict[str, int]:
    counts = Counter(" ".join(why[row_id]) if row_id in why else NOT_IN_A_LEDGER for row_id in removed)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _params(a: dict[str, Any], b: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Leaves of params.yaml that differ, by their dotted path; None where a side has none."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted({*a, *b}, key=str):
        old, new = _by_name(a.get(key)), _by_name(b.get(key))
        if isinstance(old, dict) and isinstance(new, dict):
            found |= _params(old, new, f"{prefix}{key}.")
        elif old != new:
            found[f"{prefix}{key}"] = (old, new)
    return found


def _by_name(value: Any) -> Any:
    """A list of named things (sources, benchmarks) as a mapping, so that one changed source is one line."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {item["name"]: item for item in value}
    return value
