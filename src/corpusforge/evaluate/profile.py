"""Figures of models: one profile each, paired tests of each against the one it started from, and the table of all.

    model  pass rate T=0        pass rate T=1        legacy               preference accuracy  held-out loss
    sft    0.615 (0.546-0.680)  0.598 (0.562-0.632)  0.614 (0.579-0.649)  0.705                2.955
    grpo   0.635 (0.566-0.699)  0.657 (0.624-0.689)  0.664 (0.631-0.696)  0.700                2.960

Pass rates are means over tasks with intervals clustered by task (`statistics.pass_rate_interval`); a measure that the
build has no items for is null, never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args

from corpusforge.errors import ConfigError
from corpusforge.evaluate.comparison import matched, paired_test
from corpusforge.evaluate.results import ROLES, Measure
from corpusforge.evaluate.statistics import pass_rate_interval
from corpusforge.present import Block, Showable, Shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpusforge.evaluate.results import Counts, Results

RAW: Final = "raw"
STARTS: Final = {"sft": "base", "dpo": "sft", "grpo": "sft"}
"""The model that each trained model started from."""
_DIGITS: Final = 6


def profile(results: Results, level: float = 0.95) -> dict[str, Any]:
    """The figures of one model: pass rates with intervals at `level`, preference accuracy, held-out loss."""
    return {
        **_rate(results.heldout, level),
        "preference_accuracy": _mean(results.values("preference_accuracy")),
        "heldout_loss": _mean(results.loss),
        "greedy": _rate(results.greedy, level),
        "legacy": {**_rate(results.legacy, level), "greedy": _rate(results.legacy_greedy, level)},
        "pairs": len(results.margin),
        "rows": len(results.loss),
        "undecided": results.undecided,
    }


def figures(models: Mapping[str, Results], level: float = 0.95) -> dict[str, Any]:
    """Profiles of all models, raw against curated where both are there, and paired tests of what follows what."""
    named = [name for name in sorted(models, key=_place) if name != RAW]
    found: dict[str, Any] = {"models": {name: profile(models[name], level) for name in named}}
    pairs = [(name, start) for name, start in STARTS.items() if name in models and start in models]
    tests = {f"{name}_vs_{start}": compared(models[name], models[start], level) for name, start in pairs}
    if RAW in models and "sft" in models:
        found["curation"] = {"raw": profile(models[RAW], level), "curated": profile(models["sft"], level)}
        tests["curated_vs_raw"] = compared(models["sft"], models[RAW], level)
    return found | {"tests": tests, "level": level}


def compared(one: Results, other: Results, level: float = 0.95) -> dict[str, Any]:
    """Paired two-sided tests of `one` against `other`: difference, its interval, p-value and items, per measure.

    Null where the two have fewer than two items in common.
    """
    return {measure: _test(one, other, measure, level) for measure in get_args(Measure)}


def _test(one: Results, other: Results, measure: Measure, level: float) -> dict[str, Any] | None:
    first, second = matched(one.values(measure), other.values(measure))
    try:
        found = paired_test(first, second, level, kind="loss" if measure == "heldout_loss" else "rate")
    except ConfigError:  # fewer than two items: nothing to test
        return None
    numbers = {name: round(getattr(found, name), _DIGITS) for name in ("difference", "low", "high", "p_value")}
    return {**numbers, "n": found.n, "method": found.method}


def _rate(counts: Mapping[str, Counts], level: float) -> dict[str, Any]:
    rate = pass_rate_interval([c[0] for c in counts.values()], [c[1] for c in counts.values()], level)
    if rate.value is None:
        return {"pass_rate": None, "low": None, "high": None, "attempts": 0, "tasks": 0}
    low, high = (round(bound, _DIGITS) for bound in (rate.low, rate.high))
    value = round(rate.value, _DIGITS)
    return {"pass_rate": value, "low": low, "high": high, "attempts": rate.attempts, "tasks": rate.tasks}


def _mean(values: Mapping[str, float]) -> float | None:
    return round(math.fsum(values.values()) / len(values), _DIGITS) if values else None


@dataclass(frozen=True, repr=False)
class Evaluation(Showable):
    """Figures of models that were judged; see `figures`."""

    figures: Mapping[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(self.figures)

    def shown(self) -> Shown:
        """The table of the models."""
        return evaluation_table(self.figures)


def evaluation_table(found: Mapping[str, Any]) -> Shown:
    """The figures of `evaluate` as tables: a row per model; raw against curated below, whichever way they fall."""
    models = found["models"]
    ordered = sorted(models, key=_place)
    columns = _columns(found)
    blocks = [Block("", columns, [_line(name, models[name]) for name in ordered], _below(found))]
    blocks += [Block("Tests against the model before", _TESTED, rows)] if (rows := _tested(found)) else []
    if found.get("curation"):
        rows = [_line(name, one) for name, one in found["curation"].items()]
        blocks.append(Block("Trained on raw rows, and on curated ones", columns, rows))
    name = f"{found['name']}: " if "name" in found else ""
    held = f"{name}{found.get('tasks', 0):,} held-out and {found.get('legacy_tasks', 0):,} legacy tasks"
    return Shown(f"{held}, {found.get('pairs', 0):,} pairs, {found.get('rows', 0):,} conversations", blocks)


def _place(name: str) -> tuple[int, str]:
    """Models in the order of training, others behind them."""
    return ROLES.index(name) if name in ROLES else len(ROLES), name


_LEAST: Final = 1e-6  # what p-values are rounded to
_TESTED: Final = ("comparison", "measure", "difference", "interval", "p", "items")


def _columns(found: Mapping[str, Any]) -> tuple[str, ...]:
    warm = found.get("conditions", {}).get("temperature", 1)
    return ("model", "pass rate T=0", f"pass rate T={warm:g}", "legacy", "preference accuracy", "held-out loss")


def _line(name: str, one: Mapping[str, Any]) -> list[str]:
    rates = [_interval(rate) for rate in (one["greedy"], one, one["legacy"])]
    return [name, *rates, _number(one["preference_accuracy"]), _number(one["heldout_loss"])]


def _interval(rate: Mapping[str, Any]) -> str:
    if rate["pass_rate"] is None:
        return "-"
    return f"{rate['pass_rate']:.3f} ({rate['low']:.3f}-{rate['high']:.3f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _tested(found: Mapping[str, Any]) -> list[list[str]]:
    """One line per test; what was not measured has none."""
    return [
        [
            pair.replace("_", " "),
            measure.replace("_", " "),
            f"{test['difference']:+.3f}",
            f"{test['low']:+.3f} to {test['high']:+.3f}",
            f"{test['p_value']:.2g}" if test["p_value"] >= _LEAST else f"<{_LEAST:g}",
            f"{test['n']:,}",
        ]
        for pair, tests in found.get("tests", {}).items()
        for measure, test in tests.items()
        if test is not None
    ]


def _below(found: Mapping[str, Any]) -> str:
    """What the brackets are; what was not judged, and why."""
    said = [f"{count:,} {why.replace('_', ' ')}" for why, count in found.get("left_out", {}).items() if count]
    level = f"In brackets: {found.get('level', 0.95):.0%} intervals."
    return f"{level} Left out: {', '.join(said)}." if said else level
