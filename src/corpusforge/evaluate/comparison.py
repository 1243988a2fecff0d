"""Comparing two models: do they differ, and is the new one worse than the accepted one.

Two models are compared task by task, because the difference on the same tasks varies far less than two rates do.
`noninferiority` is the gate's rule: a model is called worse only when a one-sided test at level alpha rejects "the drop
is at most the margin", so that a model that is no worse is stopped in at most alpha of all retrainings. The reasons,
and simulated figures, are in docs/decisions/0005.

    task      accepted    candidate
    t1        3 of 4      1 of 4
    t2        4 of 4      4 of 4
    t3        2 of 4      1 of 4      drop 0.25, standard error 0.14; margin 0.05: p = 0.15, passed

Values are per task: pass fractions and 0/1 (`kind="rate"`, more is better, NaN where nothing was decided) or losses
(`kind="loss"`, less is better, always finite).
All functions are pure, seeded where they draw, and do not depend on the order of the tasks.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy import special

from corpusforge.evaluate.statistics import Floats, Rate, expect, pass_rate_interval, squares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Kind = Literal["rate", "loss"]
_Part = tuple[float, float]  # variance, degrees of freedom

ENUMERATED: Final = 12  # up to so many differences, all 2^n signs are tried
DRAWS: Final = 10_000  # else so many
BLOCK: Final = 1 << 22  # signs in memory at once: 32 MB as float64
EQUAL: Final = 1e-9  # relative: 3/3 - 2/3 and 1/3 - 0 differ by rounding alone
DIVERGED: Final = "a model whose loss is not finite has diverged: train it with a lower learning rate"
TOO_FEW: Final = "hold out more tasks, or see why attempts were undecided"
MANY: Final = 1e6  # degrees of freedom from which on t is normal


@dataclass(frozen=True)
class Paired:
    """Mean of a - b over the tasks that both have, with a t interval and a two-sided p-value."""

    difference: float
    low: float
    high: float
    p_value: float
    n: int
    method: str


@dataclass(frozen=True)
class SeedSd:
    """How much a measure moves when the same data are trained on with another seed."""

    sd: float
    upper: float
    """One-sided upper confidence bound of `sd`."""
    df: float
    """Degrees of freedom: retrainings - 1."""


@dataclass(frozen=True)
class Sensitivity:
    """What a gate can see. Before any candidate: se = sqrt(2 * (attempt_variance + seed_sd ** 2)), df = tasks - 1."""

    se: float
    """Standard error of the drop between two retrainings."""
    df: float
    margin: float
    alpha: float

    @property
    def critical(self) -> float:
        """The gate stops a model whose drop exceeds the margin by more than so many standard errors."""
        return float(special.stdtrit(self.df, 1 - self.alpha))

    def power(self, drop: float) -> float:
        """Probability that a true drop of this size is found.

        The noncentral t in closed form (Abramowitz and Stegun 26.7.10), within 0.015 from 5 tasks on.
        """
        if not self.se:
            return float(drop > self.margin)
        middle, width = self._needed
        return float(special.ndtr(((drop - self.margin) / self.se - middle) / width))

    def smallest_drop(self, power: float = 0.8) -> float:
        """The true drop that is found with this probability."""
        expect(0 < power < 1, f"power {power}", "between 0 and 1, such as 0.8")
        middle, width = self._needed
        return self.margin + self.se * (middle + width * float(special.ndtri(power)))

    @property
    def _needed(self) -> tuple[float, float]:
        """Standard errors beyond the margin that are found every second time, and the spread about them."""
        return self.critical * (1 - 1 / (4 * self.df)), math.sqrt(1 + self.critical**2 / (2 * self.df))


@dataclass(frozen=True)
class Comparison:
    """The answer of the gate's rule for one measure. A drop is positive when the candidate is worse."""

    passed: bool
    """False only when the test rejects "the drop is at most the margin"."""
    drop: float
    drop_low: float
    """Lower one-sided bound at 1 - alpha: above the margin exactly when the candidate is stopped."""
    drop_high: float
    """Upper one-sided bound at 1 - alpha: how much may have been lost all the same."""
    p_value: float
    tasks: int
    method: str
    smallest_drop: float
    """The true drop that this comparison finds with 80 % probability."""
    sensitivity: Sensitivity

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def matched(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[Floats, Floats]:
    """The values of the tasks that both mappings (task id -> value) have, in the order of their ids."""
    both = sorted(set(a) & set(b))
    return np.array([a[task] for task in both], float), np.array([b[task] for task in both], float)


def paired_test(a: npt.ArrayLike, b: npt.ArrayLike, level: float = 0.95, *, kind: Kind = "rate") -> Paired:
    """Whether two models differ on the same tasks. Values per task, in the same order; a task with a NaN is left out.

    The sign-flip permutation test of the mean difference (Fisher 1935): if the models are alike, every difference could
    as well have the other sign. It needs no normality; for 0/1 values it is McNemar's exact test and computed as such.
    Up to 12 differences other than 0, all signs are tried; beyond, 10,000 seeded draws, the observed one counted in
    (Phipson and Smyth 2010). The interval is Student's. ConfigError on fewer than two tasks, and on losses that are not
    finite.
    """
    expect(0 < level < 1, f"level {level}", "between 0 and 1, such as 0.95")
    first, second = _pairs(a, b, kind)
    differences = first - second
    mean, variance = _moments(differences, kind)
    half = float(special.stdtrit(len(differences) - 1, (1 + level) / 2)) * math.sqrt(variance)
    p_value, method = _sign_flips(differences)
    return Paired(mean, mean - half, mean + half, p_value, len(differences), method)


def noninferiority(
    candidate: npt.ArrayLike | Rate,
    baseline: npt.ArrayLike | Rate,
    margin: float,
    alpha: float = 0.05,
    *,
    kind: Kind = "rate",
    seed_sd: float | SeedSd = 0.0,
) -> Comparison:
    """Whether the candidate is worse than the baseline by more than `margin`.

    Both as values per task, in the same order (see `matched`), are compared task by task; where one is a `Rate`, as
    two independent rates, which finds less. The drop of two retrainings has the variance of its sampling plus
    2 * seed_sd^2 (each has its own seed; `seed_sd` in units of the measure). A one-sided t test against the margin
    follows, with Satterthwaite's degrees of freedom, so that a `seed_sd` measured on few retrainings is trusted less.
    A margin relative to the baseline is part of the values: `noninferiority(new, 1.05 * old, 0.0, kind="loss")`.
    ConfigError on fewer than two tasks, and on losses that are not finite.
    """
    expect(margin >= 0, f"margin {margin}", "0 or more")
    expect(0 < alpha < 0.5, f"alpha {alpha}", "between 0 and 0.5")
    if isinstance(candidate, Rate) or isinstance(baseline, Rate):
        expect(kind == "rate", "a rate with kind='loss'", "losses per row")
        drop, parts, tasks = _unpaired(candidate, baseline)
        method = "unpaired t"
    else:
        new, old = _pairs(candidate, baseline, kind)
        mean, variance = _moments(old - new if kind == "rate" else new - old, kind)
        drop, parts, tasks, method = mean, [(variance, len(new) - 1.0)], len(new), "paired t"
    seed = seed_sd if isinstance(seed_sd, SeedSd) else SeedSd(seed_sd, seed_sd, MANY)
    expect(seed.sd >= 0, f"seed_sd {seed.sd}", "0 or more")
    se, df = _satterthwaite([*parts, (2 * seed.sd**2, seed.df)])
    sees = Sensitivity(se, df, margin, alpha)
    p_value = float(special.stdtr(df, (margin - drop) / se)) if se else float(drop <= margin)
    half = sees.critical * se
    low, high = drop - half, drop + half
    return Comparison(low <= margin, drop, low, high, p_value, tasks, method, sees.smallest_drop(), sees)


def holm(p_values: Sequence[float], alpha: float = 0.05) -> npt.NDArray[np.bool_]:
    """Which hypotheses are rejected, so that one false rejection or more has probability <= alpha (Holm 1979)."""
    return holm_adjusted(p_values) < alpha


def holm_adjusted(p_values: Sequence[float]) -> Floats:
    """Holm's adjusted p-values, in the order given: each is compared with alpha itself."""
    values = np.asarray(p_values, float)
    expect(bool(np.all((values >= 0) & (values <= 1))), "a p-value outside 0 to 1", "probabilities")
    order = np.argsort(values, kind="stable")
    steps = np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1))
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


def estimate_seed_sd(rates: Sequence[float], sampling_var: float, level: float = 0.95) -> SeedSd:
    """Standard deviation of a measure between retrainings on the same data: variance between minus `sampling_var`.

    `rates` has one value per retraining, all on the same tasks; `sampling_var` is what attempts alone would make
    (`attempt_variance`; 0 for greedy answers and losses). `upper` follows from the chi-square law of the variance
    between. ConfigError on fewer than two retrainings.
    """
    values = np.asarray(rates, float)
    expect(len(values) >= 2, f"{len(values)} retrainings", "at least two")
    expect(sampling_var >= 0, f"sampling_var {sampling_var}", "0 or more")
    df = len(values) - 1
    between = squares(values, math.fsum(values) / len(values))
    at_most = between / float(special.chdtri(df, level))
    return SeedSd(
        math.sqrt(max(between / df - sampling_var, 0.0)), math.sqrt(max(at_most - sampling_var, 0.0)), float(df)
    )


def _pairs(a: npt.ArrayLike, b: npt.ArrayLike, kind: Kind) -> tuple[Floats, Floats]:
    first, second = np.asarray(a, float), np.asarray(b, float)
    expect(first.shape == second.shape and first.ndim == 1, f"shapes {first.shape} and {second.shape}", "equal lists")
    wild = int(np.sum(~(np.isfinite(first) & np.isfinite(second))))
    expect(kind == "rate" or not wild, f"{wild} losses that are no finite number", "finite ones", DIVERGED)
    both = ~(np.isnan(first) | np.isnan(second))
    first, second = first[both], second[both]
    expect(len(first) >= 2, f"{len(first)} tasks with a value from both models", "at least two", TOO_FEW)
    low, high = min(first.min(), second.min()), max(first.max(), second.max())
    expect(kind == "loss" or (low >= 0 and high <= 1), f"values from {low:g} to {high:g}", "0 to 1, or kind='loss'")
    return first, second


def _moments(differences: Floats, kind: Kind) -> tuple[float, float]:
    """Mean and variance of the mean. Equal differences say nothing of the variance: then one task counts as deviating.

    It deviates by the difference seen, or, for rates of which none differs, by a whole task. Equal losses in every row
    are the same model: no variance.
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    if np.ptp(differences) <= EQUAL * np.max(np.abs(differences)):
        total = float(differences[0]) ** 2 or float(kind == "rate")
    else:
        total = squares(differences, mean)
    return mean, total / (n - 1) / n


def _sign_flips(differences: Floats) -> tuple[float, str]:
    """Two-sided p-value: how often random signs give a sum as far from 0. Sorted, so the order of tasks is nothing."""
    sizes = np.sort(np.abs(differences[differences != 0]))
    n, total = len(sizes), math.fsum(sizes)
    if not n:
        return 1.0, "no difference"
    least = abs(math.fsum(differences)) - EQUAL * total
    if sizes[-1] - sizes[0] <= EQUAL * sizes[-1]:
        fewer = min(int(np.sum(differences > 0)), int(np.sum(differences < 0)))
        return min(1.0, 2 * float(special.bdtr(fewer, n, 0.5))), "McNemar exact"
    if n <= ENUMERATED:
        plus = np.arange(1 << n)[:, None] >> np.arange(n) & 1
        return float(np.mean(np.abs(2 * (plus @ sizes) - total) >= least)), "sign-flip exact"
    rng, rows, extreme = np.random.default_rng(0), max(BLOCK // n, 1), 0
    for start in range(0, DRAWS, rows):
        count = min(rows, DRAWS - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count * n // 8)), np.uint8), count=count * n)
        sums = 2 * (bits.reshape(count, n).astype(float) @ sizes) - total
        extreme += int(np.sum(np.abs(sums) >= least))
    return (extreme + 1) / (DRAWS + 1), "sign-flip, 10,000 draws"


def _unpaired(candidate: npt.ArrayLike | Rate, baseline: npt.ArrayLike | Rate) -> tuple[float, list[_Part], int]:
    """Drop between two rates, its parts of variance with their degrees of freedom, and the fewer tasks.

    The variance of each is that of its effective attempts with one pass and one fail added (Agresti and Caffo 2000).
    """
    new, old = _as_rate(candidate), _as_rate(baseline)
    tasks = min(new.tasks, old.tasks)
    expect(tasks >= 2, f"a rate of {tasks} tasks", "at least two", TOO_FEW)
    values, parts = [], []
    for rate in (new, old):
        value = rate.value or 0.0  # never None: there are tasks
        smoothed = (value * rate.effective + 1) / (rate.effective + 2)
        parts.append((smoothed * (1 - smoothed) / (rate.effective + 2), rate.tasks - 1.0))
        values.append(value)
    return values[1] - values[0], parts, tasks


def _as_rate(values: npt.ArrayLike | Rate) -> Rate:
    """Values per task as a rate, each task one attempt."""
    if isinstance(values, Rate):
        return values
    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    return pass_rate_interval(known, np.ones(len(known)))


def _satterthwaite(parts: Sequence[_Part]) -> tuple[float, float]:
    """Standard error of a sum of independent parts (variance, degrees of freedom), and its degrees of freedom."""
    variance = math.fsum(part for part, _ in parts)
    if not variance:
        return 0.0, parts[0][1]
    return math.sqrt(variance), min(variance**2 / math.fsum(part**2 / df for part, df in parts), MANY)
