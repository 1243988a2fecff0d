"""licences: under which terms a corpus stands, who stated them, and what a build refuses.

    corpusforge licences             the project: what was read, what is shipped
    corpusforge licences releases/current        a release, or a folder of shards: what is shipped

Rows and tokens are counted per source, licence and restrictions. A licence is found in params, in the records, or in
neither; what files beside the data say (a LICENSE, a README, a card) is shown and taken over by nobody. The licence of
the repository that carries the data is told apart from that of the data.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.io import beside, manifest, terms
from corpusforge.io.lookup import Build
from corpusforge.licences import NEEDS_ALLOWING, UNKNOWN, implied
from corpusforge.present import Block, Showable, Shown
from corpusforge.project import Project
from corpusforge.stages._policy import Terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from corpusforge.io.beside import Beside
    from corpusforge.io.terms import Count
    from corpusforge.stages.ingest import SourceConfig

HOW: Final = (
    "To use a source on purpose that is under no-train, provider-terms or other-terms, or rows stricter than their "
    "source says, add to it in params.yaml:  allow: [no-train]  (naming the restriction). no-train asks for a second "
    "word: take it out of gate_data.licences.forbid."
)

_ROLES: Final = {"source": "Sources, as declared", "benchmark": "Benchmarks: compared with, never trained on"}


@dataclass(frozen=True)
class Line:
    """Rows under the same terms. `stated` tells by whom: params, records, both, or nobody."""

    source: str
    license: str
    restrictions: list[str]
    rows: int
    tokens: int | None
    stated: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


@dataclass(frozen=True)
class Declared:
    """A source or benchmark as params declare it, and what files beside it say."""

    name: str
    role: str  # source or benchmark
    license: str
    restrictions: list[str]
    allowed: list[str]
    carrier_license: str
    refused: list[str]
    beside: list[Beside] = field(default_factory=list)
    items: int | None = None  # of a benchmark, once it was looked for

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**vars(self), "beside": [one.to_dict() for one in self.beside]}

    @property
    def unstated(self) -> list[Beside]:
        """What files beside the data say of it and params do not."""
        said = {self.license, *self.restrictions, *implied(self.license)}
        return [one for one in self.beside if one.of == "data" and one.says not in {*said, UNKNOWN}]


@dataclass(repr=False)
class Licences(Showable):
    """The terms of a corpus. `corpus` is what was read, `shipped` what the shards hold (copies count)."""

    place: str
    declared: list[Declared] = field(default_factory=list)
    corpus: list[Line] = field(default_factory=list)
    shipped: list[Line] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "place": self.place,
            "declared": [one.to_dict() for one in self.declared],
            "corpus": [line.to_dict() for line in self.corpus],
            "shipped": [line.to_dict() for line in self.shipped],
            "refused": self.refused,
            "how_to_allow": HOW,
        }

    def shown(self) -> Shown:
        """The result as tables."""
        blocks = [
            _block("What was read", self.corpus, stated=True),
            _block("What is shipped", self.shipped, stated=False),
            *_declared_blocks(self.declared),
            *_refused_block(self.refused),
        ]
        rows = sum(line.rows for line in self.corpus or self.shipped)
        names = {line.license for line in self.corpus or self.shipped}
        headline = f"{self.place}: {rows:,} rows under {len(names)} licence{'' if len(names) == 1 else 's'}"
        headline = headline if names else f"{self.place}: nothing has been read yet"
        return Shown(headline, [block for block in blocks if block], HOW if self._strict else "")

    @property
    def _strict(self) -> bool:
        """Whether anything here needs or needed allowing."""
        stated = {word for one in self.declared for word in one.restrictions}
        return bool(self.refused or any(one.refused for one in self.declared) or stated & set(NEEDS_ALLOWING))


def licences(place: str | Path | Project | pa.Table = ".") -> Licences:
    """The terms of a project, a release, a folder of shards, or a table of rows.

    A project shows what `ingest` read and what `shard` wrote, as far as they have run; before that, what params
    declare. Raises ProjectError for anything else.
    """
    if not isinstance(place, (str, Path, Project)):
        from corpusforge.io.memory import as_rows

        return Licences("rows", corpus=_lines(terms.of_rows([as_rows(place, "licences")], "chars/4", Path())))
    if not isinstance(place, Project):
        shards = _shards_at(Path(place))
        if shards is not None:
            return Licences(Path(place).resolve().name, shipped=_lines(terms.shipped(shards)))
        place = Project.find(place)
    return _of_project(place)


def _shards_at(path: Path) -> Path | None:
    """The folder of shards that `path` is, or has as a release; None for a project."""
    if (path / "params.yaml").is_file() and (path / "dvc.yaml").is_file():
        return None
    if (path / manifest.NAME).is_file():
        return path
    inside = Build(path, release=True).shards
    return inside if (inside / manifest.NAME).is_file() else None


def _of_project(project: Project) -> Licences:
    params = project.params
    sources = {source.name: source for source in params.ingest.sources}
    accepted = Terms(sources, tuple(params.ingest.allow), params.ingest.policy)
    declared = [_declared(source, "source", project, accepted) for source in sources.values()]
    items = _items(project)
    declared += [
        replace(_declared(source, "benchmark", project, None), items=items.get(source.name))
        for source in params.decontaminate.benchmarks
    ]
    read = (project.data("ingest") / "rows").is_dir()
    shards = project.data("shard")
    said = project.metrics("ingest").get("stated_by_records", {}) if read else {}
    return Licences(
        project.root.name,
        declared,
        _lines(terms.ingested(project), {one.name: one for one in declared}, said) if read else [],
        _lines(terms.shipped(shards)) if (shards / manifest.NAME).is_file() else [],
        terms.refused(project) if read else [],
    )


def _items(project: Project) -> dict[str, int]:
    """Items of each benchmark, as `decontaminate` counted them; none before it has run."""
    if not project.figures_path("decontaminate").exists():
        return {}
    found = project.metrics("decontaminate").get("benchmarks", {})
    return {name: one["items"] + one["items_too_short"] for name, one in found.items()}


def _declared(source: SourceConfig, role: str, project: Project, accepted: Terms | None) -> Declared:
    restrictions = sorted({*source.restrictions, *implied(source.license)})
    found = accepted.refusal(source.name, source.license, restrictions) if accepted else None
    near = beside.beside(source, project.root)
    carriers = [f"{one.says} ({one.file})" for one in near if one.of == "carrier"]
    return Declared(
        source.name,
        role,
        source.license,
        restrictions,
        sorted({*source.allow, *(accepted.allow if accepted else ())}),
        f"{source.carrier_license} (params)" if source.carrier_license else ", ".join(dict.fromkeys(carriers)),
        list(found.because) if found else [],
        near,
    )


def _lines(
    counts: Iterable[Count],
    sources: dict[str, Declared] | None = None,
    said: dict[str, dict[str, int]] | None = None,
) -> list[Line]:
    return [
        Line(
            one.source,
            one.license,
            list(one.restrictions),
            one.rows,
            one.tokens,
            _stated(one, sources, (said or {}).get(one.source, {})) if sources is not None else "",
        )
        for one in counts
    ]


def _stated(one: Count, sources: dict[str, Declared], said: dict[str, int]) -> str:
    """Who says so: params, the records, files beside the data."""
    declared = sources.get(one.source)
    by_params = declared is not None and declared.license == one.license != UNKNOWN
    where = [name for name, holds in (("params", by_params), ("records", one.license in said)) if holds]
    terms_here = {one.license, *one.restrictions}
    near = declared.beside if declared else []
    where += [f"{found.file}:{found.line}" for found in near if found.of == "data" and found.says in terms_here]
    return ", ".join(where) or "nobody"


def _block(title: str, lines: list[Line], *, stated: bool) -> Block | None:
    if not lines:
        return None
    columns = ("source", "licence", "restrictions", "rows", "tokens", *(("stated in",) if stated else ()))
    rows = [
        (one.source, one.license, ", ".join(one.restrictions), one.rows, one.tokens, *((one.stated,) if stated else ()))
        for one in lines
    ]
    return Block(title, columns, rows)


def _declared_blocks(declared: list[Declared]) -> list[Block]:
    blocks = []
    for role, title in _ROLES.items():
        chosen = [one for one in declared if one.role == role]
        last = "items" if role == "benchmark" else "build"
        rows = [
            (
                *(one.name, one.license, ", ".join(one.restrictions), ", ".join(one.allowed), one.carrier_license),
                one.items if role == "benchmark" else f"refuses {', '.join(one.refused)}" if one.refused else "accepts",
            )
            for one in chosen
        ]
        if rows:
            blocks.append(
                Block(title, ("name", "licence of the data", "restrictions", "allowed", "carrier", last), rows)
            )
    found = [(one.name, near.says, f"{near.file}:{near.line}") for one in declared for near in one.unstated]
    if found:
        note = "A file beside the data may speak of other data: read it, then state in params what holds."
        blocks.append(Block("Said beside the data, not in params", ("name", "says", "where"), found, note))
    return blocks


def _refused_block(refused: list[dict[str, Any]]) -> list[Block]:
    rows = [(one["stage"], one["source"], one["reason"], ", ".join(one["refused"]), one["rows"]) for one in refused]
    return [Block("Rows refused for their terms", ("stage", "source", "reason", "what", "rows"), rows)] if rows else []


__all__ = ["HOW", "Declared", "Licences", "Line", "licences"]
