"""What scrub found, where, and what it may have left: the figures of a project's last scrub, and an estimate.

    corpusforge scrub-report                    cf.scrub_report(".")

    entity         replaced   source  field                          entity         findings  rows  share of rows
    EMAIL_ADDRESS        12   desk    messages.content 10, extra 2   PHONE_NUMBER          3     2  0.2 % to 2.5 %

The estimate searches a fixed sample of the rows that came out with every recogniser at its lowest threshold. It is
counted what would be found, never shown; what no recogniser knows is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from corpusforge.errors import ConfigError, ProjectError
from corpusforge.present import Block, Showable, Shown

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from corpusforge.project import Project

_FIGURES = (
    *("findings", "by_source_and_entity", "by_field", "kept_by_config", "left_in_verifier", "names_not_scanned"),
    "in_own_ids",
)
_AGAIN = "`dvc checkout` brings it back; else `dvc repro --force scrub`"
ROWS = 500  # rows looked at again unless told otherwise
_OWN_IDS = "ids that hold personal data, in ledgers, shards and releases: docs/stages/scrub.md, own ids"
_NAMES = "rows in which nobody looked for names; `scrub: {names: spacy}` does in English ones"


@dataclass(frozen=True, repr=False)
class ScrubReport(Showable):
    """Counts of the last scrub; `leaks` as io.leaks.estimate gives it."""

    figures: Mapping[str, Any]
    leaks: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {name: dict(self.figures.get(name, {})) for name in _FIGURES} | {"leaks": dict(self.leaks)}

    def shown(self) -> Shown:
        """One table per question."""
        data = self.to_dict()
        blocks = [
            Block("replaced", ("entity", "findings"), list(data["findings"].items())),
            Block("by source", ("source", "entity", "findings"), _flat(data["by_source_and_entity"])),
            Block("by field", ("field", "entity", "findings"), _flat(data["by_field"])),
            Block("names not scanned", ("language", "rows"), list(data["names_not_scanned"].items()), _NAMES),
        ]
        blocks.append(Block("own ids left as they are", ("entity", "rows"), list(data["in_own_ids"].items()), _OWN_IDS))
        lines = [
            (name, one["findings"], one["rows"], f"{one['low']:.2%} to {one['high']:.2%}")
            for name, one in self.leaks["entities"].items()
        ]
        note = "share of rows: 95 % interval; what our rules take for harmless is in it"
        blocks.append(Block("what may be left", ("entity", "findings", "rows", "share of rows"), lines, note))
        looked = f"{self.leaks['sampled']:,} of {self.leaks['rows']:,} rows were searched again"
        left = sum(self.leaks["by_rules"].values())
        return Shown(
            f"scrub: {sum(data['findings'].values()):,} findings replaced; {looked}",
            [block for block in blocks if block.rows],
            f"scrub itself would still replace {left:,}" if left else "Scrub itself would replace nothing more.",
        )


def _flat(table: Mapping[str, Mapping[str, int]]) -> list[tuple[str, str, int]]:
    return [(name, entity, count) for name, inner in table.items() for entity, count in inner.items()]


def scrub_report(project: str | Path | Project = ".", *, rows: int = ROWS) -> ScrubReport:
    """Tell what the last scrub of a project replaced, and look again at `rows` of its rows.

    Raises ProjectError where scrub has not run or its output is damaged, ConfigError for a negative `rows`.
    """
    from corpusforge.io import leaks
    from corpusforge.project import Project

    here = project if isinstance(project, Project) else Project.find(project)
    if rows < 0:
        raise ConfigError(f"rows: {rows}; expected 0 or more")
    if not here.figures_path("scrub").is_file():
        raise ProjectError("scrub has not run here: data/scrub is absent", hint="dvc repro scrub")
    figures = here.metrics("scrub")
    if not all(isinstance(figures.get(name, {}), dict) and _counts(figures.get(name, {})) for name in _FIGURES):
        raise ProjectError("data/scrub/figures.json holds no figures of scrub", hint=_AGAIN)
    if not here.parts("scrub"):
        raise ProjectError("data/scrub has figures and no rows", hint=_AGAIN)
    return ScrubReport(figures, leaks.estimate(here, rows))


def _counts(value: Any) -> bool:
    return all(map(_counts, value.values())) if isinstance(value, dict) else isinstance(value, int)
