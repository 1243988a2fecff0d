"""forget: rows of a person or a source leave the next build, with all that was made from them.

    corpusforge forget --record-id u-417 --why "request 114"
    corpusforge forget --match "Ann Example"           every record that holds the text
    corpusforge forget --source old_forum
    corpusforge forget                                  what is on record, and what waits for a person

Writes lines to forget.csv, which `ingest` obeys: ids and hashes, never a text. Says which rows go and why (named, made
from one, an exact copy of one), which others are nearly the same text, and which builds and models held them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from corpusforge import methods
from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import erasure, forgotten
from corpusforge.licences import nearest
from corpusforge.present import Block, Showable, Shown
from corpusforge.project import Project
from corpusforge.stages._forget import Entry, closure, own_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpusforge.io.erasure import Holder

_SHOWN: Final = 20  # near copies listed in text; `to_dict` has all
_WAITING: Final = ("hold", "ask")


@dataclass(repr=False)
class Forgotten(Showable):
    """What goes, what waits for a person, and who held it. Nothing is written on a dry run."""

    named: int
    descendants: int
    copies: int
    near: list[dict[str, Any]]
    holders: list[Holder] = field(default_factory=list)
    written: bool = False
    rows: list[str] = field(default_factory=list)
    without_rows: int = 0
    """Records that were asked for and are no rows now: quarantined, or only in older releases."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "holders": [one.to_dict() for one in self.holders]}

    def shown(self) -> Shown:
        """The result as tables."""
        total = self.named + self.descendants + self.copies
        says = f"{self.named:,} named, {self.descendants:,} made from them, {self.copies:,} exact copies"
        head = f"{total:,} rows {'go' if self.written else 'would go'} ({says})"
        if self.without_rows:
            head += (
                f"; of records that are no rows now, {self.without_rows:,} {'' if self.written else 'would '}stay out"
            )
        head += "" if self.written else "; nothing written"
        return Shown(head, [*self._near(), *self._held()], _NEXT if self.written else "")

    def _near(self) -> list[Block]:
        if not self.near:
            return []
        rows = [(one["row"], one["of"], one["similarity"], one["action"]) for one in self.near[:_SHOWN]]
        more = f"{len(self.near):,} in all. " if len(self.near) > _SHOWN else ""
        note = f"{more}hold: stays out, ask: stays in, until forget.csv says forget or keep in its place."
        return [Block("Near copies, for a person to decide", ("row", "nearly", "similarity", "until then"), rows, note)]

    def _held(self) -> list[Block]:
        if not self.holders:
            return []
        rows = [
            (
                *(one.place, one.build, one.rows, one.heldout, "current" if one.current else ""),
                ", ".join(f"{role} {text[:12]}".strip() for role, text in one.models.items()),
            )
            for one in self.holders
        ]
        columns = ("place", "build", "rows", "held out", "", "models trained on them")
        return [Block("Builds that hold them", columns, rows)]


_NEXT: Final = (
    "Now: commit forget.csv and dvc.yaml, `dvc repro`, `corpusforge publish`. Then delete the older releases and "
    "models that held them, take the rows out of the source files, and run `dvc gc --workspace`."
)


@dataclass(repr=False)
class OnRecord(Showable):
    """What forget.csv says."""

    entries: list[Entry]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"actions": dict(Counter(one.action for one in self.entries)), "waiting": self.waiting}

    @property
    def waiting(self) -> list[dict[str, str]]:
        """Near copies that nobody has decided on."""
        return [{"row": e.row, "because": e.because, "action": e.action} for e in self.entries if e.action in _WAITING]

    def shown(self) -> Shown:
        """The result as tables."""
        counts = Counter(one.action for one in self.entries)
        head = f"{forgotten.NAME}: " + (", ".join(f"{name} {n:,}" for name, n in sorted(counts.items())) or "no line")
        rows = [(one["row"], one["because"], one["action"]) for one in self.waiting[:_SHOWN]]
        note = "Write forget or keep in the place of hold or ask."
        blocks = [Block("Waiting for a person", ("row", "because", "until then"), rows, note)] if rows else []
        return Shown(head, blocks)


def on_record(project: Project) -> OnRecord:
    """What is to be forgotten, and what waits for a person. Raises ConfigError for a broken file."""
    return OnRecord(forgotten.read(project.root))


def forget(
    project: Project,
    *,
    record_id: Sequence[str] = (),
    source: str = "",
    match: str = "",
    regex: bool = False,
    why: str = "",
    by: str = "",
    dry_run: bool = False,
) -> Forgotten:
    """Let rows be forgotten by the next build; writes forget.csv and lets dvc.yaml watch it.

    `record_id` are row ids or own ids, `match` a text that rows hold (`regex`: an RE2 expression), case aside. Raises
    ProjectError when `ingest` has not run, or when nothing is found; ConfigError when nothing is asked for.
    """
    if not (record_id or source or match):
        raise ConfigError("nothing to forget", hint="name --record-id ID, --source NAME, or --match TEXT")
    mark = {"why": why, "by": by or forgotten.who(project.root), "when": datetime.now(UTC).date().isoformat()}
    known = forgotten.read(project.root)
    asked = _asked(project, list(record_id), source, match, regex, mark)
    frames = forgotten.frames_of(project.parts("ingest"))
    gone = closure(frames, asked)
    rows = erasure.rows_of(project, gone["base"]).join(gone, on="base", how="left", maintain_order="left")
    rows = rows.with_columns(
        pl.col("detail").str.json_path_match("$.because"), of=pl.col("detail").str.json_path_match("$.of")
    )
    near = _near(project, set(gone["base"]))
    older = erasure.only_released(project, record_id)
    held = pl.concat([rows.select(older.columns), older]).unique(maintain_order=True)
    counts = Counter(rows["detail"])
    found = Forgotten(
        named=counts["named"],
        descendants=counts["descendant"],
        copies=counts["copy"],
        near=near,
        holders=erasure.holders(project, held),
        written=not dry_run,
        rows=rows["row_id"].to_list(),
        without_rows=sum(not one.row and not one.content and not one.whole_source for one in asked),
    )
    if not dry_run:
        lines = [*(one for one in asked if one.whole_source or not one.content), *_entries(rows, source, mark)]
        lines += _near_entries(project, near, mark)
        forgotten.write(project.root, [*known, *_new(lines, known)])
        methods.sync_graph(Project(project.root))
    return found


def _asked(project: Project, ids: list[str], source: str, match: str, regex: bool, mark: dict[str, str]) -> list[Entry]:
    """Entries that name what was asked for, before anything spreads."""
    asked: list[Entry] = []
    if source:
        names = [one.name for one in project.params.ingest.sources]
        if source not in names:
            raise ProjectError(f"no source is called {source!r}", hint=nearest(source, names))
        asked.append(Entry("forget", source=source, because="named", **mark))
    bases = erasure.by_id(project, ids) if ids else set()
    lost = _lost(project, ids) if ids else []
    if ids and not bases and not lost:
        raise ProjectError(f"no row and no record has {'this id' if len(ids) == 1 else 'one of these ids'}")
    asked += [_line("forget", "named", mark, source=name, own=own_hash(own)) for name, own in lost]
    if match:
        held = erasure.by_text(project, match, regex=regex)
        if not held and not ids and not source:
            raise ProjectError(
                "no row of data/ingest holds that text",
                hint="older versions, quarantined records and releases are not searched: name those by --record-id",
            )
        bases |= held
    rows = erasure.rows_of(project, bases)
    return asked + _entries(rows.with_columns(detail=pl.lit("named"), of=pl.lit("")), "", mark)


def _lost(project: Project, ids: list[str]) -> list[tuple[str, str]]:
    """Source and own id of records with these ids that are not rows now: quarantined, or in older releases alone."""
    lines = [(line["source"], line["record_id"]) for line in erasure.quarantined(project, ids)]
    released = erasure.only_released(project, ids).select("name", "own").iter_rows()
    return sorted({(name, own) for name, own in (*lines, *released) if own is not None})


def _line(action: str, because: str, mark: dict[str, str], **ids: str) -> Entry:
    return Entry(action, because=because, **ids, **mark)


def _entries(rows: pl.DataFrame, source: str, mark: dict[str, str]) -> list[Entry]:
    """A line per row; rows of a source that is forgotten as a whole need none."""
    lines = []
    for row in rows.filter(pl.col("name") != source).iter_rows(named=True):
        because = f"{row['detail']} of {row['of']}" if row["of"] else row["detail"]
        own = own_hash(row["own"]) if row["own"] is not None else ""
        ids = {
            "row": row["row_id"],
            "source": row["name"],
            "revision": row["revision"] or "",
            "content": row["content_id"],
        }
        lines.append(_line("forget", because, mark, own=own, **ids))
    return lines


def _near(project: Project, gone: set[str]) -> list[dict[str, Any]]:
    """Near copies of what goes: those that dedupe kept stay in until somebody decides, the others stay out."""
    found = erasure.near_copies(project, gone)
    kept = erasure.kept_by_dedupe(project, [row for row, _, _ in found])
    return [
        {"row": row, "of": of, "similarity": similarity, "action": "ask" if row in kept else "hold"}
        for row, of, similarity in found
    ]


def _near_entries(project: Project, near: list[dict[str, Any]], mark: dict[str, str]) -> list[Entry]:
    about = {one["row"]: one for one in near}
    bases = {row if "." not in row.rpartition("#")[2] else row.rpartition(".")[0] for row in about}
    rows = erasure.rows_of(project, bases).filter(pl.col("row_id").is_in(list(about)))
    lines = []
    for entry in _entries(rows.with_columns(detail=pl.lit(""), of=pl.lit("")), "", mark):
        one = about[entry.row]
        because = f"near copy of {one['of']} ({one['similarity']:.2f})"
        lines.append(Entry(**{**vars(entry), "action": one["action"], "because": because}))
    return lines


def _new(lines: Iterable[Entry], known: Iterable[Entry]) -> list[Entry]:
    """Lines that say something new; a near copy that is on record, decided or not, is not asked about again."""
    seen = {(_key(one), one.action == "forget") for one in known}
    fresh = []
    for one in lines:
        key, forgets = _key(one), one.action == "forget"
        if (key, forgets) not in seen and (forgets or (key, True) not in seen):
            fresh.append(one)
        seen.add((key, forgets))
    return fresh


def _key(entry: Entry) -> tuple[str, ...]:
    return entry.row, entry.source, entry.revision, entry.own, entry.content
