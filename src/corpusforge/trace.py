"""trace: the whole life of a row, from the file it came from to the shard it is in, or the reason why it is in none.

$ corpusforge trace r1042
forum#17 (your id: r1042)
  source         forum, raw/forum.jsonl, record 17, CC-BY-4.0, human
  ingest         kept
  dedupe         dropped: near_duplicate (kept forum#3, method minhash, similarity 0.914286)
    forum#3
      …
      shard      sft/train-00000-of-00001.parquet
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final

from corpusforge.io import lookup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from corpusforge.project import Project

_FOLLOWED: Final = 5  # kept rows that were themselves dropped later, and whose kept row is then told, and so on
_WIDTH: Final = 14


@dataclass(frozen=True)
class Step:
    """What one stage did with a row. `status` is `kept`, `changed`, `dropped`, `quarantined` or `written`."""

    stage: str
    status: str
    reason: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        facts = ", ".join(f"{key} {value}" for key, value in self.detail.items())
        said = self.status + (f": {self.reason}" if self.reason else "")
        return f"{self.stage:<{_WIDTH}} {said}" + (f" ({facts})" if facts else "")


def _plain(value: Any) -> str:
    return " by ".join(str(inner) for inner in value.values()) if isinstance(value, dict) else str(value)


@dataclass(frozen=True)
class Life:
    """One row: where it came from, what every stage did, where it ended, and the row that was kept in its place."""

    row_id: str
    source: Mapping[str, Any]
    steps: list[Step]
    status: str  # in shards, dropped, quarantined, or unfinished: the build has not come to the shards
    shards: Mapping[str, int] = field(default_factory=dict)  # file -> how often it holds the row
    figures: Mapping[str, Any] = field(default_factory=dict)  # split, copies, difficulty, …
    kept_row: Life | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "row_id": self.row_id,
            "record_id": self.source.get("record_id"),
            "source": {key: value for key, value in self.source.items() if value not in (None, [])},
            "status": self.status,
            "steps": [
                {"stage": s.stage, "status": s.status, "reason": s.reason, "detail": dict(s.detail)} for s in self.steps
            ],
            "figures": dict(self.figures),
            "shards": dict(self.shards),
            "kept_row": self.kept_row.to_dict() if self.kept_row else None,
        }

    def lines(self) -> Iterator[str]:
        """The life as text, a line per stage."""
        own = self.source.get("record_id")
        yield self.row_id + (f" (your id: {own})" if own else "")
        origin = [str(self.source[key]) for key in ("name", "uri", "license", "origin") if self.source.get(key)]
        if self.source.get("record"):
            origin.insert(2 if self.source.get("uri") else 1, f"record {self.source['record']}")
        if origin:
            yield f"  {'source':<{_WIDTH}} {', '.join(origin)}"
        for step in self.steps:
            yield f"  {step}"
        for name, copies in self.shards.items():
            yield f"  {'shard':<{_WIDTH}} {name}" + (f", {copies} times" if copies > 1 else "")
        if self.figures:
            figures = ", ".join(f"{key} {_plain(value)}" for key, value in self.figures.items())
            yield f"  {'figures':<{_WIDTH}} {figures}"
        if self.kept_row:
            yield "  kept in its place:"
            yield from (f"    {line}" for line in self.kept_row.lines())


@dataclass(frozen=True)
class Trace:
    """Every row that an id stands for. False when there is none."""

    identifier: str
    lives: list[Life]

    def __bool__(self) -> bool:
        return bool(self.lives)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"identifier": self.identifier, "rows": [life.to_dict() for life in self.lives]}

    def __str__(self) -> str:
        if not self.lives:
            return f"{self.identifier}: no row and no quarantined record has this id"
        return "\n".join("\n".join(life.lines()) for life in self.lives)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def trace(identifier: str, project: Path | str | Project = ".") -> Trace:
    """Tell the life of a row by its row id or the user's own id (which several rows may share: all are told).

    `project` is a project, a folder in it, or a release folder. Raises ProjectError when nothing has run there.
    """
    build = lookup.open_build(project)
    found = lookup.identify(build, identifier)
    return Trace(identifier, [_life(build, row_id, source, _FOLLOWED) for row_id, source in found.items()])


def _life(build: lookup.Build, row_id: str, source: Mapping[str, Any], follow: int) -> Life:
    steps: list[Step] = []
    for stage in build.stages():
        dropped = lookup.ledger_lines(build, stage, "dropped", [row_id])
        steps += [Step(stage, "changed", x["reason"], x["detail"]) for x in _notes(build, stage, row_id)]
        if dropped:
            status = "quarantined" if stage == "ingest" else "dropped"
            steps.append(Step(stage, status, dropped[0]["reason"], dropped[0]["detail"]))
            kept = str(dropped[0]["detail"].get("kept", ""))
            return Life(row_id, source, steps, status, kept_row=_follow(build, kept, row_id, follow))
        if not steps or steps[-1].stage != stage:
            steps.append(Step(stage, "kept"))
    shards = lookup.in_shards(build, [row_id]).get(row_id, {})
    figures = lookup.rows_after(build, "blend", [row_id]).get(row_id, {})
    return Life(row_id, source, steps, "in shards" if shards else "unfinished", shards, figures)


def _notes(build: lookup.Build, stage: str, row_id: str) -> list[dict[str, Any]]:
    return lookup.ledger_lines(build, stage, "changes", [row_id])


def _follow(build: lookup.Build, kept: str, row_id: str, follow: int) -> Life | None:
    """The life of the row that was kept in the place of `row_id`."""
    if not kept or kept == row_id or follow == 0:
        return None
    source = lookup.identify(build, kept).get(kept)
    return _life(build, kept, source, follow - 1) if source is not None else None
