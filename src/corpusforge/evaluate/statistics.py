"""The statistics of pass rates: what one model can do, and how sure that is.

A model is judged by k attempts on each of n held-out tasks. Attempts at one task are alike, so 4 attempts on each of
50 tasks are worth less than 200 tasks, and intervals are clustered by task (Miller 2024, arXiv:2411.00640):

    passes [3, 4, 2, 0, 4, 1] of 4 attempts each  ->  0.583 (0.230 to 0.868), worth 6 attempts and not 24

`pass_at_k` and `mixed_probability` look at single tasks; the latter chooses what GRPO trains on. How two models are
compared is in `comparison.py`.

All functions are pure and do not depend on the order of the tasks. Undecided attempts are no attempts; a task without
a decided attempt has the value NaN (`fractions`) and is left out wherever tasks are averaged or paired.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from corpusforge.errors import ConfigError

Floats = npt.NDArray[np.float64]

JEFFREYS: Final = (0.5, 0.5)  # Beta prior of a task's pass rate: most tasks are easy or hopeless for a given model


class Interval(NamedTuple):
    """A two-sided confidence interval."""

    low: float
    high: float


@dataclass(frozen=True)
class Rate:
    """The mean over tasks of the pass fraction, with its confidence interval."""

    value: float | None
    """None when no attempt was decided."""
    low: float
    high: float
    attempts: int
    """Decided attempts."""
    tasks: int
    """Tasks with a decided attempt."""
    effective: float
    """So many independent attempts would be as informative."""


def wilson(passes: float, attempts: float, level: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion (1927); (0, 1) without attempts. Counts may be effective, not whole."""
    expect(0 <= passes <= attempts, f"{passes} passes of {attempts} attempts", "0 <= passes <= attempts")
    return _score_interval(passes / attempts if attempts else 0.5, attempts, _normal(level))


def pass_rate_interval(passes: npt.ArrayLike, attempts: npt.ArrayLike, level: float = 0.95) -> Rate:
    """The mean pass fraction of tasks; `passes` and `attempts` are counts, one per task.

    Wilson's interval on the effective sample size p(1 - p) / (s^2 / n), s^2 the variance of the n tasks' fractions,
    with t in place of z (Korn and Graubard 1998; Franco et al. 2019). It lies between the tasks and the attempts. Where
    s^2 says nothing (all tasks alike, as at 0 and 1) it is the tasks; there, and for one attempt per task, this is
    Wilson's interval as it stands.
    """
    values = fractions(passes, attempts)
    values = values[~np.isnan(values)]
    tasks, decided = len(values), int(np.sum(np.asarray(attempts)))
    if not tasks:
        return Rate(None, 0.0, 1.0, 0, 0, 0.0)
    mean = math.fsum(values) / tasks
    effective = float(tasks)
    if np.ptp(values) > 0:
        variance = squares(values, mean) / (tasks - 1) / tasks
        effective = float(np.clip(mean * (1 - mean) / variance, tasks, decided))
    clustered = effective > tasks
    width = float(special.stdtrit(tasks - 1, (1 + level) / 2)) if clustered else _normal(level)
    return Rate(mean, *_score_interval(mean, effective, width), decided, tasks, effective)


def fractions(passes: npt.ArrayLike, attempts: npt.ArrayLike) -> Floats:
    """Pass fraction per task, NaN without a decided attempt. ConfigError unless 0 <= passes <= attempts."""
    won, tried = _counts(passes, attempts)
    values: Floats = np.divide(won, tried, out=np.full(len(tried), np.nan), where=tried > 0)
    return values


def pass_at_k(passes: npt.ArrayLike, attempts: npt.ArrayLike, k: int) -> Floats:
    """Unbiased probability per task that one of k attempts passes (Chen et al. 2021): 1 - C(n - c, k) / C(n, k).

    NaN for tasks with fewer than k decided attempts, which say nothing unbiased about k.
    """
    expect(k >= 1, f"k = {k}", "k of at least 1")
    won, tried = _counts(passes, attempts)
    none = np.where(tried >= k, 1.0, np.nan)
    for i in range(k):
        none *= np.clip(tried - won - i, 0, None) / np.maximum(tried - i, 1)
    result: Floats = 1 - none
    return result


def mixed_probability(
    passes: npt.ArrayLike, attempts: npt.ArrayLike, group: int, prior: tuple[float, float] = JEFFREYS
) -> Floats:
    """Probability per task that `group` new attempts hold a pass and a fail: only such a group teaches GRPO anything.

    The task's pass rate p has the posterior Beta(a, b), a = prior[0] + passes, b = prior[1] + fails, and so
    1 - E[p^g] - E[(1 - p)^g] = 1 - B(a + g, b) / B(a, b) - B(a, b + g) / B(a, b). Without attempts: the prior's.
    """
    expect(group >= 1, f"a group of {group}", "at least 1")
    expect(min(prior) > 0, f"prior {prior}", "two positive numbers")
    won, tried = _counts(passes, attempts)
    a, b = prior[0] + won, prior[1] + tried - won
    base = special.betaln(a, b)
    alike = np.exp(special.betaln(a + group, b) - base) + np.exp(special.betaln(a, b + group) - base)
    result: Floats = np.clip(1 - alike, 0.0, 1.0)
    return result


def attempt_variance(passes: npt.ArrayLike, attempts: npt.ArrayLike) -> float:
    """Variance of the mean pass fraction when the same model tries the same tasks again: mean of p(1 - p) / k, over n.

    Unbiased: c(k - c) / (k(k - 1)) estimates p(1 - p). Tasks with one attempt get the mean of the others; ConfigError
    where no task has two.
    """
    won, tried = _counts(passes, attempts)
    won, tried = won[tried > 0], tried[tried > 0]
    twice = tried > 1
    expect(bool(twice.any()), "no task with two decided attempts", "at least one")
    spread = won[twice] * (tried[twice] - won[twice]) / (tried[twice] * (tried[twice] - 1))
    known = spread / tried[twice]
    guessed = np.mean(spread) / tried[~twice]
    return float((math.fsum(known) + math.fsum(guessed)) / len(tried) ** 2)


def expect(right: bool, found: str, expected: str, hint: str = "") -> None:
    """ConfigError unless `right`."""
    if not right:
        raise ConfigError(f"found {found}; expected {expected}", hint=hint)


def _normal(level: float) -> float:
    """The z of a two-sided interval."""
    expect(0 < level < 1, f"level {level}", "between 0 and 1, such as 0.95")
    return float(special.ndtri((1 + level) / 2))


def _score_interval(rate: float, attempts: float, z: float) -> Interval:
    if not attempts:
        return Interval(0.0, 1.0)
    scale = 1 + z * z / attempts
    middle = (rate + z * z / (2 * attempts)) / scale
    half = z / scale * math.sqrt(rate * (1 - rate) / attempts + z * z / (4 * attempts * attempts))
    return Interval(0.0 if rate == 0 else max(middle - half, 0.0), 1.0 if rate == 1 else min(middle + half, 1.0))


def _counts(passes: npt.ArrayLike, attempts: npt.ArrayLike) -> tuple[Floats, Floats]:
    won, tried = np.asarray(passes, float), np.asarray(attempts, float)
    expect(won.shape == tried.shape and won.ndim == 1, f"shapes {won.shape} and {tried.shape}", "two equal lists")
    wrong = int(np.sum(~((won >= 0) & (won <= tried))))
    expect(not wrong, f"{wrong} tasks without 0 <= passes <= attempts", "counts of decided attempts")
    return won, tried


def squares(values: Floats, mean: float) -> float:
    """Sum of squares about the mean, the same in any order."""
    return math.fsum((values - mean) ** 2)
