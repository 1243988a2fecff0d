"""gate_models: no trained model may be worse than the accepted one of its role.

A retrained model never scores exactly what the accepted one did, so "worse" is a test, not a subtraction: a model is
refused only when its drop is significantly above what params allow, with one error rate for all checks together (Holm
1979). The verdict states that rate, and for each check the true drop that it would find four times in five: a gate that
sees nothing must say so. docs/decisions/0005 derives the rule and has simulated figures.

    check          worse by  limit  p      passed  what
    sft.pass_rate  0.0894    0.02   0.002  NO      0.508, accepted 0.598; drop +0.042 to +0.137; finds a drop of 0.085

Where nothing was accepted, each model is compared with the one it started from: training may not make it worse at
held-out and legacy tasks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from corpusforge.evaluate.comparison import SeedSd, holm_adjusted, matched, noninferiority
from corpusforge.evaluate.profile import STARTS
from corpusforge.evaluate.results import TRAINED
from corpusforge.evaluate.statistics import pass_rate_interval
from corpusforge.present import Block, Showable, Shown
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from corpusforge.evaluate.comparison import Comparison
    from corpusforge.evaluate.results import Judged, Results
    from corpusforge.evaluate.statistics import Rate

Compared = Literal["pass_rate", "legacy", "heldout_loss", "preference_accuracy"]
SAMPLED: Final = ("pass_rate", "legacy")
"""Measures of sampled answers: the ones that a model is held to against its own start."""
LOSS: Final = "heldout_loss"
PAIRED: Final = 20  # items that two builds must share to be compared item by item, unless they share all
MAX_LOST: Final = 0.1  # share of tasks with decided attempts before and none now
NOTHING: Final = "nothing was compared: that takes tasks, held out (blend.heldout) or legacy (evaluate.legacy)"
_DIGITS: Final = 6


class GateModelsConfig(StageConfig):
    """When a model counts as worse than the accepted one."""

    alpha: float = Field(0.05, gt=0, lt=0.5)
    """False alarms: how often models that are no worse may be refused, over all checks together."""
    max_drop: float = Field(0.02, ge=0, le=1)
    """Fall of a pass rate, or of preference accuracy, that is accepted."""
    max_loss_rise: float = Field(0.05, ge=0)
    """Relative rise of the held-out loss that is accepted."""
    seed_sd: dict[Compared, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """Standard deviation of each measure between trainings that differ in their seed alone; of the held-out loss, as a
    share of it. `benchmarks/gate_models.py` measures it. One that is not here counts as 0, which a note says."""
    seed_runs: Annotated[int, Field(ge=2)] | None = None
    """Trainings that `seed_sd` was measured on: a figure from few of them is trusted less. None takes it as exact."""
    measures: list[Compared] = Field(["pass_rate", "legacy", "heldout_loss", "preference_accuracy"])
    """What is compared. One that the accepted models have and a new one lacks is a failed check; take it out here."""

    def seed(self, measure: Compared, scale: float = 1.0) -> SeedSd | float:
        """The noise of seeds of a measure as the test takes it, times `scale`: for losses the accepted one."""
        sd = self.seed_sd.get(measure, 0.0) * scale
        return SeedSd(sd, sd, self.seed_runs - 1.0) if self.seed_runs else sd


@dataclass(frozen=True)
class Check:
    """One comparison of one model, or a condition of comparing at all."""

    name: str
    """`sft.pass_rate`, `grpo.legacy`, …"""
    found: float
    """How much worse: fall of a rate, rise of the loss in nats per byte. Negative: better."""
    limit: float
    """The fall or rise that is accepted."""
    passed: bool
    says: str
    p_value: float | None = None
    """Of "no worse than the limit allows", adjusted for all checks; failed below `alpha`."""
    smallest_drop: float | None = None
    """A true fall of this size fails the check with a probability of 80 %."""
    items: int = 0
    method: str = ""


@dataclass(frozen=True, repr=False)
class ModelVerdict(Showable):
    """The answer of the gate."""

    build: str
    accepted: str | None
    """Build of the accepted models; None when nothing was accepted."""
    false_alarm_rate: float
    """Probability that models which are no worse fail one check or more."""
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What was not compared, and why; what the error rate leaves out."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """The models that were judged."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    @property
    def failed(self) -> list[Check]:
        """The checks that did not pass."""
        return [check for check in self.checks if not check.passed]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "build": self.build,
            "accepted": self.accepted,
            "passed": self.passed,
            "false_alarm_rate": self.false_alarm_rate,
            "checks": [asdict(check) for check in self.checks],
            "notes": self.notes,
            "fingerprints": dict(self.fingerprints),
        }

    def shown(self) -> Shown:
        """The checks as a table."""
        against = f"against the accepted build {self.accepted}" if self.accepted else "nothing was accepted"
        rows = [
            (c.name, _short(c.found), _short(c.limit), _short(c.p_value), "yes" if c.passed else "NO", c.says)
            for c in self.checks
        ]
        blocks = [Block("", ("check", "worse by", "limit", "p", "passed", "what"), rows)] if rows else []
        blocks += [Block("Notes", note="\n".join(self.notes))] if self.notes else []
        says = "passed" if self.passed else f"{len(self.failed)} of {len(self.checks)} checks failed"
        rate = f"models that are no worse fail in at most {self.false_alarm_rate:.0%} of all cases"
        return Shown(f"gate_models: {against}", blocks, f"{says}; {rate}")


def gate_models(now: Judged, accepted: Judged | None = None, config: GateModelsConfig | None = None) -> ModelVerdict:
    """Judge the models of a build. `accepted` are those of baseline.json; None while nothing was accepted."""
    config = config or GateModelsConfig()
    plan = _Plan(now, accepted, config)
    for role in TRAINED:
        if role in now.results:
            plan.add(role)
        elif accepted and role in accepted.results:
            plan.notes.append(f"{role}: accepted, and not trained in this build")
    checks = [*plan.checks, *_tested(plan.pairs, config)]
    if config.measures and not checks:  # a gate that saw nothing must not look like one that found nothing
        plan.notes.append(NOTHING)
    build = accepted.build if accepted else None
    return ModelVerdict(now.build, build, config.alpha, checks, plan.notes, dict(now.fingerprints))


def compared_by_item(
    new: Results, old: Results, measure: Compared, config: GateModelsConfig, alpha: float
) -> tuple[Comparison, float, float]:
    """The test of one measure on the items that both models have, at level `alpha`, and the means of new and old.

    Losses are per byte of text. ConfigError on fewer than two common items, and on losses that are not finite.
    """
    mine, theirs = matched(*(one.values(measure, per_byte=True) for one in (new, old)))
    usual = float(theirs.mean()) if len(theirs) else 0.0
    if measure == LOSS:
        margin, noise = config.max_loss_rise * usual, config.seed(measure, usual)
        found = noninferiority(mine, theirs, margin, alpha, kind="loss", seed_sd=noise)
    else:
        found = noninferiority(mine, theirs, config.max_drop, alpha, seed_sd=config.seed(measure))
    return found, float(mine.mean()), usual


@dataclass(frozen=True)
class _Pair:
    """Two models and a measure, before they are compared: how strictly depends on how many pairs there are."""

    name: str
    measure: Compared
    new: Results
    old: Results
    against: str
    by_item: bool

    def compare(self, config: GateModelsConfig, alpha: float) -> Check:
        """The check of this pair alone, at level `alpha`."""
        if self.by_item:
            return self._check(*compared_by_item(self.new, self.old, self.measure, config, alpha))
        new, old = _rate(self.new, self.measure), _rate(self.old, self.measure)
        found = noninferiority(new, old, config.max_drop, alpha, seed_sd=config.seed(self.measure))
        return self._check(found, new.value or 0.0, old.value or 0.0)

    def _check(self, found: Comparison, new: float, old: float) -> Check:
        worse, unit = ("rise", " nats per byte") if self.measure == LOSS else ("drop", "")
        says = (
            f"{new:.3f}{unit}, {self.against} {old:.3f}; {worse} {found.drop_low:+.3f} to {found.drop_high:+.3f}; "
            f"finds a {worse} of {found.smallest_drop:.3f}"
        )
        smallest = round(found.smallest_drop, _DIGITS)
        drop, margin = round(found.drop, _DIGITS), round(found.sensitivity.margin, _DIGITS)
        return Check(self.name, drop, margin, True, says, found.p_value, smallest, found.tasks, found.method)


@dataclass
class _Plan:
    """What is to be compared, what can be said without a test, and what cannot be compared."""

    now: Judged
    accepted: Judged | None
    config: GateModelsConfig
    pairs: list[_Pair] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.accepted is None:
            self.notes.append("nothing was accepted: models are compared with the ones they started from")
        elif self.config.measures:
            self.checks.append(self._conditions(self.accepted))
        unknown = [measure for measure in self.config.measures if measure not in self.config.seed_sd]
        if self.accepted and unknown:
            names = ", ".join(unknown)
            self.notes.append(f"no seed_sd of {names}: what retraining alone moves is not in the rate of false alarms")

    def add(self, role: str) -> None:
        """Plan the comparisons of one trained model."""
        new, start = self.now.results[role], STARTS[role]
        if self.accepted and role in self.accepted.results:
            for measure in self.config.measures:
                self._measure(f"{role}.{measure}", measure, new, self.accepted.results[role], "accepted")
        elif start in self.now.results:
            for measure in (one for one in self.config.measures if one in SAMPLED):
                self._measure(f"{role}.{measure}", measure, new, self.now.results[start], start)
        else:
            self.notes.append(f"{role}: there is no model to compare it with")

    def _conditions(self, accepted: Judged) -> Check:
        """Answers of other lengths or temperatures are other answers."""
        names = sorted({*self.now.conditions, *accepted.conditions})
        other = [name for name in names if self.now.conditions.get(name) != accepted.conditions.get(name)]
        says = "judged as the accepted models were"
        if other:
            says = f"judged under another {', '.join(other)}; where that is meant, accept once with `measures: []`"
        return Check("conditions", len(other), 0, not other, says)

    def _measure(self, name: str, measure: Compared, new: Results, old: Results, against: str) -> None:
        mine, theirs = (one.values(measure, per_byte=True) for one in (new, old))
        common = len(mine.keys() & theirs.keys())
        by_item = common >= max(2, min(PAIRED, len(theirs)))
        if not theirs:
            self.notes.extend([f"{name}: {against} has none"] if mine else [])
            return
        if not mine:
            says = f"{against} was judged on {len(theirs):,} items, this model on none of any kind"
            self.checks.append(Check(name, len(theirs), 0, False, says))
            return
        self._undecided(name, measure, new, theirs)
        if by_item or (measure != LOSS and min(len(mine), len(theirs)) > 1):
            self.pairs.append(_Pair(name, measure, new, old, against, by_item))
        else:
            self.notes.append(f"{name}: too few items in common with {against}: {common} of {len(theirs):,}")

    def _undecided(self, name: str, measure: Compared, new: Results, theirs: Mapping[str, float]) -> None:
        """Tasks on which the new model's answers could not be decided are not compared: few may be."""
        if measure not in SAMPLED:
            return
        asked = [new.counts(measure)[task] for task in theirs if task in new.counts(measure)]
        lost = sum(not decided for _, decided in asked)
        if lost:
            share, says = lost / len(asked), f"no answer to {lost:,} of {len(asked):,} tasks could be decided"
            self.checks.append(Check(f"{name}.undecided", round(share, _DIGITS), MAX_LOST, share <= MAX_LOST, says))


def _tested(pairs: list[_Pair], config: GateModelsConfig) -> Iterator[Check]:
    """The checks of all pairs, at one error rate together. The power stated is that of the strictest step of Holm's."""
    checks = [pair.compare(config, config.alpha / len(pairs)) for pair in pairs]
    adjusted = holm_adjusted([check.p_value or 0.0 for check in checks])
    for check, p_value in zip(checks, adjusted.tolist(), strict=True):
        yield replace(check, p_value=round(p_value, _DIGITS), passed=not p_value < config.alpha)


def _rate(results: Results, measure: Compared) -> Rate:
    if measure in SAMPLED:
        counts = results.counts(measure).values()
        return pass_rate_interval([passes for passes, _ in counts], [decided for _, decided in counts])
    values = list(results.values(measure).values())
    return pass_rate_interval(values, [1] * len(values))


def _short(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
