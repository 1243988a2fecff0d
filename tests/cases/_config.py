"""A case's `config` in the project's own options, word by word; a phrase that is not here is a failure that names it.

{"near_dup_similarity": 0.8}      dedupe(threshold=0.8)
{"filter": "keep"}                read(where={"keep": true})
{"row_group_cap_mib": 1}          write_shards(row_group_mib=1.0)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.cases._case import CaseError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.cases._case import Case

_SCORE: Final = re.compile(r"share of the item's word (?:(\d+)-grams|n-grams) found in the row")


@dataclass
class Settings:
    """Keyword arguments per stage, and what is set around them."""

    options: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    reference: str | None = None  # input whose rows are there already

    def put(self, stage: str, **options: Any) -> None:
        """Set options of a stage."""
        self.options.setdefault(stage, {}).update(options)

    def of(self, stage: str) -> dict[str, Any]:
        """Keyword arguments of a stage."""
        return self.options.get(stage, {})


def settings(case: Case, config: Mapping[str, Any]) -> Settings:
    """The settings that a config means. Raises CaseError for a phrase that nobody has mapped."""
    made = Settings()
    for phrase, value in config.items():
        setter = PHRASES.get(phrase)
        if setter is None:
            raise CaseError(f"the runner does not know the config phrase {phrase!r}")
        setter(made, value, case)
    return made


def _option(stage: str, name: str, kind: Callable[[Any], Any] = lambda value: value) -> Callable[..., None]:
    return lambda made, value, _case: made.put(stage, **{name: kind(value)})


def _prefer(made: Settings, rules: list[str], _case: Case) -> None:
    """Rules name fields of the records; the row format knows `id`, all others are in `extra`."""
    made.put("dedupe", prefer=tuple(f"{rule} asc" if rule == "id" else f"extra.{rule}" for rule in rules))


def _protect(made: Settings, name: str, case: Case) -> None:
    if name not in case.inputs:
        raise CaseError(f"config protect: {name} is no input of the case")
    made.reference = name


def _score(_made: Settings, text: str, _case: Case) -> None:
    if not _SCORE.fullmatch(text):
        raise CaseError(f"the runner does not know the score {text!r}")


def _seed(made: Settings, seed: int, _case: Case) -> None:
    for stage in ("dedupe", "blend", "shard"):
        made.put(stage, seed=seed)


PHRASES: Final[dict[str, Callable[[Settings, Any, Case], None]]] = {
    "near_dup_similarity": _option("dedupe", "threshold"),
    "exact_only": _option("dedupe", "exact_only"),
    "keep_preference": _prefer,
    "protect": _protect,
    "treat_documentation_ranges_as_real": _option("scrub", "documentation_is_real"),
    "score": _score,
    "n": _option("decontaminate", "n"),
    "threshold": _option("decontaminate", "threshold"),
    "scale": _option("judge", "scale"),
    "seed": _seed,
    "take": _option("blend", "total"),
    "eval_share": _option("blend", "heldout"),
    "row_group_cap_mib": _option("shard", "row_group_mib", float),
    "rows_per_shard": _option("shard", "rows_per_shard"),
    "filter": lambda made, name, _case: made.put("ingest", where={name: True}),
    "deny": lambda made, names, _case: made.put("ingest", policy={"deny": names}),
    "workers": lambda made, count, _case: made.environment.update(CORPUSFORGE_WORKERS=str(count)),
}
"""Every phrase that the runner knows."""
