"""overrule: a person keeps or drops single rows, whatever dedupe makes of them.

    corpusforge overrule keep support:1042 --why "another year's tide table"
    corpusforge overrule drop web#9 --why "the transcription is wrong" --by "Ann Smith"
    corpusforge overrule                        what is on record, and what the last build made of it

Writes lines to overrides.csv, which `dedupe` obeys from the next build on. A row is looked up in `data/ingest`, by our
id or the user's own. It is written by its own id where no other row of its source has it, which lasts when the source
is delivered anew; else by its row id, with its content, so that the line never means another row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from corpusforge import methods
from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import forgotten, overrides
from corpusforge.present import Block, Showable, Shown
from corpusforge.project import Project
from corpusforge.stages._overrides import ACTIONS, FILE, Override

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN: Final = 50  # lines listed in text; `to_dict` has all
_SORTS: Final = {
    "stale": "no row has this id",
    "without_effect": "it would have stayed anyway",
    "restricted": "goes: it repeats a row that was refused for its terms",
}
NEXT: Final = f"Now: commit {FILE} and dvc.yaml, then `dvc repro`."


@dataclass(repr=False)
class Overruled(Showable):
    """What overrides.csv says, the lines that were added to it, and what the last build made of them."""

    overrides: list[Override]
    added: int
    made_of_it: dict[int, str]
    """Line -> why it changed nothing in the last build; lines that did, and new ones, are not in it."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        lines = [asdict(one) | {"last_build": self.made_of_it.get(one.line, "")} for one in self.overrides]
        return {"added": self.added, "lines": lines}

    def shown(self) -> Shown:
        """The lines as a table, the new ones alone where there are some."""
        counts = Counter(one.action for one in self.overrides)
        says = ", ".join(f"{name} {counts[name]:,}" for name in ACTIONS if counts[name]) or "no line"
        head = f"{FILE}: {says}" + (f"; added: {self.added:,}" if self.added else "")
        told = self.overrides[-self.added :] if self.added else self.overrides
        rows = [
            (one.line, one.action, one.row, one.name, one.reason, one.when, self.made_of_it.get(one.line, ""))
            for one in told[:_SHOWN]
        ]
        more = f"and {len(told) - _SHOWN:,} more" if len(told) > _SHOWN else ""
        columns = ("line", "action", "row", "who", "why", "when", "last build")
        return Shown(head, [Block("", columns, rows, more)] if rows else [], NEXT if self.added else "")


def overrule(project: Project, action: str = "", rows: Sequence[str] = (), *, why: str = "", by: str = "") -> Overruled:
    """Add a line for each row to overrides.csv and let dvc.yaml watch it; without an action, tell what it says.

    `rows` are row ids or own ids, `by` is who decided (else git's user.name). A line that stands already is not
    repeated. Raises ProjectError where `ingest` has not run or no row has the id, ConfigError where reason or name is
    missing or the file says otherwise of the row.
    """
    known = overrides.read(project.root)
    if not action:
        return Overruled(known, 0, _last(project, known))
    if action not in ACTIONS:
        raise ConfigError(f"action {action!r} is not one of {', '.join(ACTIONS)}")
    if not rows:
        raise ConfigError("no row is named", hint=f"corpusforge overrule {action} ID --why REASON")
    name = by.strip() or forgotten.who(project.root)
    for what, text, option in (("reason", why.strip(), "--why"), ("name", name, "--by")):
        if not text:
            raise ConfigError(f"no {what} is given", hint=f"say it: {option} TEXT")
    made = Override(action, "", name, why.strip(), datetime.now(UTC).date().isoformat())
    here = {(one.action, one.row, one.content) for one in known}
    found = {(one.row, one.content): one for one in _named(project, rows, made)}
    new = [one for one in found.values() if (one.action, one.row, one.content) not in here]
    overrides.write(project.root, [*known, *new])
    methods.sync_graph(Project(project.root))
    return Overruled(overrides.read(project.root), len(new), {})


def _named(project: Project, ids: Sequence[str], made: Override) -> list[Override]:
    """A line per row that an id stands for."""
    frames = forgotten.frames_of(project.parts("ingest"))
    if next(frames(), None) is None:
        raise ProjectError("data/ingest holds no row")
    called = [pl.col("row_id"), pl.col("own"), pl.col("name") + ":" + pl.col("own")]
    hit = pl.any_horizontal(one.is_in(list(ids)).fill_null(False) for one in called)
    rows = pl.concat([frame.filter(hit) for frame in frames()])
    for one in ids:
        if rows.filter(pl.any_horizontal((each == one).fill_null(False) for each in called)).is_empty():
            raise ProjectError(f"no row of data/ingest has the id {one[:80]!r}", hint=f"`corpusforge trace {one[:80]}`")
    owns = rows["own"].drop_nulls().unique().to_list()
    bearers = pl.concat([frame.filter(pl.col("own").is_in(owns)).select("name", "own") for frame in frames()])
    alone = bearers.group_by("name", "own").len().filter(pl.col("len") == 1).select("name", "own", alone=True)
    lines = rows.join(alone, on=["name", "own"], how="left", maintain_order="left").iter_rows(named=True)
    return [
        replace(made, row=f"{line['name']}:{line['own']}")
        if line["alone"] and line["own"] and line["own"].strip() == line["own"]
        else replace(made, row=line["row_id"], content=line["content_id"])
        for line in lines
    ]


def _last(project: Project, known: Sequence[Override]) -> dict[int, str]:
    """What the last run of `dedupe` said of the lines, where they are the same now."""
    try:
        said = project.metrics("dedupe").get("overrides", {})
    except ProjectError:
        return {}
    at = {one.line: one.row for one in known}
    return {
        one["line"]: why
        for sort, why in _SORTS.items()
        for one in said.get(sort, {}).get("first", [])
        if at.get(one["line"]) == one["row"]
    }
