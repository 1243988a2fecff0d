"""How far a judge agrees with people, measured on labelled examples; without it a judge is not believed.

    40 examples, 3 undecided, 37 decided: accuracy 0.919, false accept 0.050, false reject 0.118, kappa 0.837

A measurement holds for one model, one wording of the questions and one rubric. It is kept as counts, without texts,
in a JSON file, which may hold those of several rubrics. Kappa is Cohen's (1960): agreement beyond what the shares of
passes and fails would give by chance. Intervals are Wilson's (1927), 95 %.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from corpusforge.errors import ConfigError
from corpusforge.verify._endpoint import PREFIX, Endpoint, number
from corpusforge.verify._rubric import TEMPLATE, Rubric

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpusforge.verify._verdict import Verdict

_FORMAT: Final = 1
_COUNTS: Final = ("true_pass", "false_pass", "true_fail", "false_fail", "undecided", "flips")


@dataclass(frozen=True)
class Rate:
    """A share with its 95 % interval; `value` is None where there is nothing to take a share of."""

    value: float | None
    low: float
    high: float
    of: int

    def __str__(self) -> str:
        return "none" if self.value is None else f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f}) of {self.of}"


@dataclass(frozen=True)
class Agreement:
    """Counts of a judge's verdicts beside people's labels; all figures are of the decided ones, unless they say so."""

    model: str
    rubric: str
    """Hash of rubric, scale, threshold and mode."""
    mode: str
    replies: str
    true_pass: int
    false_pass: int
    true_fail: int
    false_fail: int
    undecided: int
    flips: int
    """Pairs that came out otherwise when the answers were swapped; they are undecided."""
    rules: Mapping[str, int] = field(default_factory=dict)
    template: str = TEMPLATE

    @classmethod
    def counted(
        cls, endpoint: Endpoint, rubric: Rubric, verdicts: Sequence[Verdict], labels: Sequence[bool]
    ) -> Agreement:
        """Count verdicts by outcome and label."""
        met = Counter((verdict.outcome, label) for verdict, label in zip(verdicts, labels, strict=True))
        rules = Counter(verdict.rule for verdict in verdicts)
        return cls(
            model=endpoint.model,
            rubric=rubric.fingerprint,
            mode=rubric.mode,
            replies=endpoint.replies,
            true_pass=met["pass", True],
            false_pass=met["pass", False],
            true_fail=met["fail", False],
            false_fail=met["fail", True],
            undecided=met["undecided", True] + met["undecided", False],
            flips=rules["judge.order"],
            rules=dict(sorted(rules.items())),
        )

    @property
    def fingerprint(self) -> str:
        """What the measurement holds for."""
        return fingerprint(self.model, self.rubric, self.replies, self.template)

    @property
    def decided(self) -> int:
        """Examples with a pass or a fail."""
        return self.true_pass + self.false_pass + self.true_fail + self.false_fail

    @property
    def accuracy(self) -> Rate:
        """Verdicts that are the label."""
        return _rate(self.true_pass + self.true_fail, self.decided)

    @property
    def false_accept(self) -> Rate:
        """Passes among the examples labelled fail."""
        return _rate(self.false_pass, self.false_pass + self.true_fail)

    @property
    def false_reject(self) -> Rate:
        """Fails among the examples labelled pass."""
        return _rate(self.false_fail, self.false_fail + self.true_pass)

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa; None where it has no value (nothing decided, or one class alone on both sides)."""
        n = self.decided
        if not n:
            return None
        said, told = self.true_pass + self.false_pass, self.true_pass + self.false_fail
        chance = (said * told + (n - said) * (n - told)) / n**2
        return None if chance == 1 else ((self.true_pass + self.true_fail) / n - chance) / (1 - chance)

    @property
    def order_flips(self) -> Rate | None:
        """Pairs whose verdict turned with the order, among those answered in both; None where nothing is paired."""
        return _rate(self.flips, self.flips + self.decided) if self.mode == "pair" else None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values: the counts, and the figures for whoever reads the file. No texts."""
        kept = {name: getattr(self, name) for name in ("model", "template", "rubric", "mode", "replies", *_COUNTS)}
        figures = {name: getattr(self, name) for name in ("accuracy", "false_accept", "false_reject", "order_flips")}
        told = {name: rate and [rate.value, rate.low, rate.high] for name, rate in figures.items()}
        return {**kept, "rules": dict(self.rules), "kappa": self.kappa, **told}

    def save(self, path: str | Path) -> None:
        """Put the measurement into a JSON file, beside those of other rubrics and models."""
        path = Path(path)
        records = _records(path) if path.exists() else {}
        records[self.fingerprint] = self.to_dict()
        told = {"format": _FORMAT, "records": dict(sorted(records.items()))}
        new = path.with_name(f"{path.name}.{os.getpid()}.new")
        new.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        new.replace(path)

    def __str__(self) -> str:
        kappa = "none" if self.kappa is None else f"{self.kappa:.3f}"
        lines = [
            f"examples      {self.decided + self.undecided}, decided {self.decided}, undecided {self.undecided}",
            f"accuracy      {self.accuracy}",
            f"false accept  {self.false_accept}",
            f"false reject  {self.false_reject}",
            f"kappa         {kappa}",
        ]
        return "\n".join([*lines, f"order flips   {self.order_flips}"] if self.mode == "pair" else lines)


def fingerprint(model: str, rubric: str, replies: str, template: str = TEMPLATE) -> str:
    """Hash of what a measurement holds for: the model's name, the wording and the form of replies, the rubric."""
    return hashlib.sha256(json.dumps([model, template, replies, rubric]).encode("utf-8", "replace")).hexdigest()[:32]


def _rate(part: int, of: int) -> Rate:
    from corpusforge.evaluate.statistics import wilson

    return Rate(part / of if of else None, *wilson(part, of), of)


@dataclass(frozen=True)
class Trust:
    """When a judge is believed."""

    agreement: str | Path | None = None
    """File of measurements that `Agreement.save` wrote."""
    unmeasured: Literal["refuse", "allow"] = "refuse"
    min_kappa: float = 0.6
    """Landis and Koch (1977) call 0.61 and above substantial."""
    max_false_accept: float = 0.2
    """Bound on the upper end of the interval; without any false accept, 16 examples labelled fail reach 0.2."""

    def __post_init__(self) -> None:
        if self.unmeasured not in ("refuse", "allow"):
            raise ConfigError("`unmeasured` of the judge is neither refuse nor allow", hint="refuse is the default")
        if not -1 <= self.min_kappa <= 1 or not 0 <= self.max_false_accept <= 1:
            raise ConfigError("a threshold of the judge is out of bounds", hint="kappa -1 to 1, false accepts 0 to 1")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Trust:
        """What `CORPUSFORGE_JUDGE_AGREEMENT`, `_UNMEASURED`, `_MIN_KAPPA` and `_MAX_FALSE_ACCEPT` say."""
        given: dict[str, Any] = {}
        for name in ("min_kappa", "max_false_accept"):
            given |= number(environment, name, float)
        for name in ("agreement", "unmeasured"):
            if told := environment.get(PREFIX + name.upper(), "").strip():
                given[name] = told
        return cls(**given)

    def measured(self) -> dict[str, Agreement]:
        """The measurements of the file, by fingerprint. Raises ConfigError for a file that is none."""
        if self.agreement is None:
            return {}
        try:
            return {key: _agreement(told) for key, told in _records(Path(self.agreement)).items()}
        except (KeyError, TypeError, ValueError):
            raise _no_file(Path(self.agreement)) from None

    def doubt(self, found: Agreement | None) -> str | None:
        """Why a judge with this measurement is not believed, as the last part of a rule; None when it is."""
        if self.unmeasured == "allow":
            return None
        if found is None:
            return "unmeasured"
        kappa, accepts = found.kappa, found.false_accept
        good = (
            kappa is not None and kappa >= self.min_kappa and accepts.of > 0 and accepts.high <= self.max_false_accept
        )
        return None if good else "disagrees"


def _agreement(told: Mapping[str, Any]) -> Agreement:
    counts = {name: told[name] for name in _COUNTS}
    if not all(type(count) is int and count >= 0 for count in counts.values()):
        raise ValueError
    names = ("model", "rubric", "mode", "replies", "template")
    model, rubric, mode, replies, template = (str(told[name]) for name in names)
    return Agreement(model, rubric, mode, replies, **counts, rules=dict(told.get("rules", {})), template=template)


def _records(path: Path) -> dict[str, Any]:
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        records = told["records"] if told["format"] == _FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        raise _no_file(path) from None
    if not isinstance(records, dict):
        raise _no_file(path)
    return records


def _no_file(path: Path) -> ConfigError:
    hint = "make one with `agreement(…).save(PATH)`, see docs/verifiers.md"
    return ConfigError(f"{path} is no file of measurements of judges", hint=hint)
