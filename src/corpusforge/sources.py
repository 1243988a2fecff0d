"""What became of every source's records: the figures of the last `ingest`, a line per source, that must add up.

    corpusforge sources                    cf.sources(".")

    source   licence  records = with rows + quarantined   rows   kinds            quarantined, by reason
    hh_rlhf  MIT        2,312       2,307             5  2,307   preference 2,307  prompts_differ 5

A line adds up when records = records with rows + records quarantined, the reasons sum to what was quarantined, and the
kinds to the rows. Benchmarks are read by `decontaminate`, not by `ingest`: `benchmarks=True` reads them here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from corpusforge.present import Block, Showable, Shown
from corpusforge.result import add_up

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpusforge.project import Project
    from corpusforge.stages.ingest import SourceConfig

_COUNTS = ("records", "with_rows", "quarantined", "rows")


@dataclass(frozen=True)
class SourceLine:
    """One source: its terms, and what became of its records."""

    name: str
    license: str
    restrictions: tuple[str, ...]
    origin: str
    records: int
    with_rows: int
    quarantined: int
    rows: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)

    @property
    def adds_up(self) -> bool:
        """Whether every record and every row is accounted for."""
        return (
            self.records == self.with_rows + self.quarantined
            and sum(self.reasons.values()) == self.quarantined
            and sum(self.kinds.values()) == self.rows
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        terms = {"name": self.name, "license": self.license, "restrictions": list(self.restrictions)}
        counts = {name: getattr(self, name) for name in _COUNTS}
        more = {"reasons": dict(self.reasons), "kinds": dict(self.kinds), "adds_up": self.adds_up}
        return {**terms, "origin": self.origin, **counts, **more}


@dataclass(frozen=True, repr=False)
class SourceTable(Showable):
    """Every source of a build, and every benchmark where they were asked for."""

    sources: list[SourceLine]
    benchmarks: list[SourceLine] = field(default_factory=list)

    @property
    def adds_up(self) -> bool:
        """Whether every line does."""
        return all(line.adds_up for line in [*self.sources, *self.benchmarks])

    def totals(self) -> dict[str, int]:
        """Records, records with rows, records quarantined and rows of all sources, without the benchmarks."""
        return {name: sum(getattr(line, name) for line in self.sources) for name in _COUNTS}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        lists = {name: [line.to_dict() for line in getattr(self, name)] for name in ("sources", "benchmarks")}
        return {**lists, "totals": self.totals(), "adds_up": self.adds_up}

    def shown(self) -> Shown:
        """A table each."""
        all_of = self.totals()
        said = f"{all_of['records']:,} records = {all_of['with_rows']:,} with rows"
        said += f" + {all_of['quarantined']:,} quarantined"
        blocks = [_block("sources", self.sources)]
        if self.benchmarks:
            blocks.append(_block("benchmarks, only compared with", self.benchmarks))
        wrong = [line.name for line in [*self.sources, *self.benchmarks] if not line.adds_up]
        verdict = f"does not add up: {', '.join(wrong)}" if wrong else "every line adds up"
        return Shown(f"{len(self.sources)} sources: {said}; {all_of['rows']:,} rows", blocks, verdict)


def _block(title: str, lines: list[SourceLine]) -> Block:
    columns = ("source", "licence", "origin", "records", "with rows", "quarantined", "rows", "kinds", "by reason")
    rows = [
        [
            line.name,
            ", ".join([line.license, *line.restrictions]),
            line.origin,
            *(getattr(line, name) for name in _COUNTS),
            _listed(line.kinds),
            _listed(line.reasons),
        ]
        for line in lines
    ]
    return Block(title, columns, rows)


def _listed(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count:,}" for name, count in ordered)


def sources(project: Project, *, benchmarks: bool = False) -> SourceTable:
    """The table of a project's last `ingest`. Raises ProjectError when it has not run, SourceError for a benchmark."""
    figures = project.metrics("ingest")["sources"]
    declared = {source.name: source for source in project.params.ingest.sources}
    lines = [_line(declared[name], figures[name]) for name in declared if name in figures]
    return SourceTable(lines, _benchmarks(project) if benchmarks else [])


def _benchmarks(project: Project) -> list[SourceLine]:
    from corpusforge.io.ingest import source_rows

    lines = []
    for source in project.params.decontaminate.benchmarks:
        results = source_rows(source, project.root, detect_language=False)
        lines.append(_line(source, add_up(result.metrics["sources"][source.name] for result in results)))
    return lines


def _line(source: SourceConfig, figures: Mapping[str, Any]) -> SourceLine:
    counts = {name: int(figures[name]) for name in _COUNTS}
    return SourceLine(
        source.name,
        source.license,
        tuple(source.restrictions),
        source.origin,
        **counts,
        reasons=figures.get("reasons", {}),
        kinds=figures.get("kinds", {}),
    )
