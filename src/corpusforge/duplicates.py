"""What dedupe removed, to look at: the largest groups, and how each row of one differs from the row that stays.

    corpusforge inspect data/dedupe --duplicates
    corpusforge inspect data/dedupe --cluster forum#2                  a group, word by word
    corpusforge inspect clean --cluster r17 --texts new.parquet        what `corpusforge dedupe new.parquet` wrote

A group is a row that stays and all that went for it. Texts are shown only of the group that was asked for.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from corpusforge.errors import SourceError
from corpusforge.io import duplicates as disk
from corpusforge.io import index
from corpusforge.present import Block, Showable, Shown
from corpusforge.text.worddiff import Change, word_diff

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from corpusforge.project import Project

_SOURCES: Final = 4  # sources of a group that are named


@dataclass(frozen=True)
class Originals:
    """The files that `corpusforge dedupe` was given, and their columns of text and id."""

    texts: list[Path] = field(default_factory=list)
    against: list[Path] = field(default_factory=list)
    columns: tuple[str, str | None] = ("text", None)

    @classmethod
    def of(
        cls,
        texts: str | Path | Sequence[str | Path],
        against: str | Path | Sequence[str | Path],
        columns: tuple[str, str | None],
    ) -> Originals:
        """From paths and globs; an index holds no text and is passed over. Raises SourceError."""
        from corpusforge.dedupe_files import files_of

        new, old = (files_of(paths) if paths else [] for paths in (texts, against))
        return cls(new, [path for path in old if not index.is_index(path)], columns)


@dataclass(frozen=True)
class Group:
    """A row that stays, and how many went for it."""

    kept: str
    source: str | None
    went: int
    exact: int
    near: int
    least: float
    """Similarity of the least similar row that went."""
    most: float
    sources: dict[str, int]
    """Rows that went, by source."""

    def span(self) -> str:
        """The similarities in a few words."""
        return f"{self.least:.3f}" if self.least == self.most else f"{self.least:.3f} to {self.most:.3f}"

    def named(self) -> str:
        """The sources in a few words."""
        told = ", ".join(f"{name} {rows:,}" for name, rows in list(self.sources.items())[:_SOURCES])
        return told + (f" and {len(self.sources) - _SOURCES} more" if len(self.sources) > _SOURCES else "")


@dataclass(frozen=True)
class Removed:
    """A row that went, and how its text differs from that of the row that stays."""

    row: str
    own: str | None
    source: str
    kept: str
    method: str
    similarity: float
    changes: list[Change] | None
    """None where a text is not at hand."""
    more: int = 0
    """Changes that are not listed."""

    def says(self) -> str:
        """The changes as lines."""
        if self.changes is None:
            return "its text, or that of the row that stays, is not at hand"
        lines = [str(change) for change in self.changes] or ["no word differs"]
        return "\n".join([*lines, f"… and {self.more:,} more changes"] if self.more else lines)


@dataclass(repr=False)
class Duplicates(Showable):
    """Groups of duplicates, largest first; with `removed`, the rows of those that were asked for."""

    place: str
    rows: int
    """Rows that went as duplicates."""
    of: int
    """Groups there are."""
    groups: list[Group]
    removed: list[Removed] = field(default_factory=list)
    hint: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "place": self.place,
            "rows": self.rows,
            "of": self.of,
            "groups": [asdict(one) for one in self.groups],
            "removed": [asdict(one) for one in self.removed],
        }

    def shown(self) -> Shown:
        """The groups as a table, and the differences below."""
        head = f"{self.place}: {self.rows:,} rows went for {self.of:,} others"
        columns = ("kept row", "of", "went", "exact", "near", "similarity", "went from")
        rows = [
            (
                one.kept,
                one.source or "",
                one.went,
                one.exact,
                one.near,
                one.span(),
                one.named(),
            )
            for one in self.groups
        ]
        note = "" if self.removed or not rows else "--cluster ID shows how the rows of one differ"
        blocks = [Block("Largest groups" if not self.removed else "", columns, rows, note)] if rows else []
        for one in self.removed:
            own = f" ({one.own})" if one.own and one.own != one.row else ""
            title = f"{one.row}{own} of {one.source}, {one.method} {one.similarity:.6g}, for {one.kept}"
            blocks.append(Block(title, note=one.says()))
        told = sum(one.went for one in self.groups) - len(self.removed) if self.removed else 0
        legend = "[-only in the row that stays-] {+only in the row that went+}" if self.removed else ""
        more = f"; {told:,} more rows: --top" if told > 0 else ""
        return Shown(head, blocks, "\n".join(part for part in (legend + more, self.hint) if part))


def duplicates(
    place: str | Path | Project = ".",
    *,
    top: int = 10,
    cluster: str | None = None,
    originals: Originals | None = None,
) -> Duplicates:
    """The `top` largest groups; with `cluster`, the groups it names, and the `top` least similar rows of each.

    `cluster` is the id of a row that stayed or went (ours or the user's own), or the name of a cluster. Raises
    ProjectError where dedupe has not run, SourceError where nothing has the id.
    """
    found = disk.open_place(place)
    lines = disk.removals(found)
    kept = _asked(found, lines, cluster) if cluster else None
    groups = _groups(found, lines if kept is None else lines.filter(pl.col("kept").is_in(kept)), top)
    whole = Duplicates(found.label, lines.height, lines["kept"].n_unique(), groups)
    if kept is None:
        return whole
    shown = lines.filter(pl.col("kept").is_in([group.kept for group in groups])).sort("similarity", "row_id")
    shown = shown.group_by("kept", maintain_order=True).head(top)
    whole.removed = _removed(found, lines, shown, originals or Originals())
    if any(one.changes is None for one in whole.removed):
        whole.hint = (
            "the texts are in the rows of ingest, which are not here"
            if found.rows
            else "name the files that `corpusforge dedupe` was given: --texts FILE --against FILE"
        )
    return whole


def _asked(place: disk.Place, lines: pl.DataFrame, identifier: str) -> list[str]:
    """Rows that stayed of the groups that an id stands for."""
    ids = (pl.col("row_id"), pl.col("record_id"), pl.col("source") + ":" + pl.col("record_id"))
    named = pl.any_horizontal((one == identifier).fill_null(False) for one in ids)
    kept = {identifier, *disk.keepers(place, identifier), *lines.filter(named)["kept"]}
    known = lines.filter(pl.col("kept").is_in(list(kept)))["kept"].unique().sort().to_list()
    if not known:
        raise SourceError(
            f"{place.label}: nothing went for {identifier!r}, and it did not go for another",
            hint="an id of a row that stayed or went, or a cluster: corpusforge inspect --duplicates lists some",
        )
    return known


def _groups(place: disk.Place, lines: pl.DataFrame, top: int) -> list[Group]:
    """The largest groups, ties by the id of the row that stays."""
    exact = pl.col("method") == "exact"
    whole = lines.group_by("kept").agg(
        pl.len().alias("went"),
        exact.sum().alias("exact"),
        (~exact).sum().alias("near"),
        pl.col("similarity").min().alias("least"),
        pl.col("similarity").max().alias("most"),
    )
    whole = whole.sort("went", "kept", descending=[True, False]).head(top)
    from_where = lines.join(whole.select("kept"), on="kept", how="semi").group_by("kept", "source").len()
    counts: dict[str, dict[str, int]] = {}
    for kept, source, rows in from_where.sort("len", "source", descending=[True, False]).iter_rows():
        counts.setdefault(kept, {})[source] = rows
    sources = disk.sources_of(place, whole["kept"])
    return [
        Group(**figures, source=sources.get(figures["kept"]), sources=counts[figures["kept"]])
        for figures in whole.iter_rows(named=True)
    ]


def _removed(place: disk.Place, lines: pl.DataFrame, shown: pl.DataFrame, originals: Originals) -> list[Removed]:
    """The rows with what differs in them."""
    rows, kept = set(shown["row_id"]), set(shown["kept"])
    said = disk.texts_of(place, rows | kept)
    stays = said
    if originals.texts:
        gone = set(lines["row_id"])
        said, stays = disk.original_texts(originals.texts, originals.columns, rows, kept, gone)
        if originals.against:
            left = kept - set(stays)
            old = disk.original_texts(originals.against, originals.columns, set(), left, set(), originals.texts)
            stays = {**old[1], **stays}
    made = []
    for line in shown.iter_rows(named=True):
        one, other = stays.get(line["kept"]), said.get(line["row_id"])
        changes, more = word_diff(one, other) if one is not None and other is not None else (None, 0)
        facts = {name: line[name] for name in ("source", "kept", "method", "similarity")}
        made.append(Removed(line["row_id"], line["record_id"], **facts, changes=changes, more=more))
    return made
