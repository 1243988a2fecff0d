"""The noise of seeds: how far trainings on the same rows lie apart, in each measure that the gate for models compares.

    seed_noise([results of ten trainings])  ->  {"pass_rate": SeedSd(.041, .067, 9), "heldout_loss": SeedSd(.11, …), …}

What `gate_models.seed_sd` and `seed_runs` want to know. Without it the gate takes luck for skill: two trainings that
differ in nothing but the order of their rows do not score alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

import numpy as np

from corpusforge.evaluate.comparison import SeedSd, estimate_seed_sd
from corpusforge.evaluate.gate_models import LOSS, SAMPLED, Compared
from corpusforge.evaluate.statistics import attempt_variance, expect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpusforge.evaluate.results import Results


def seed_noise(trainings: Sequence[Results], level: float = 0.95) -> dict[Compared, SeedSd]:
    """Standard deviation of each measure between trainings that differ in their seed alone, judged on the same items.

    Of rates in their own unit, without what sampling attempts adds; of the held-out loss (per byte) as a share of its
    mean. A measure that no training has is left out. `upper` is a one-sided bound at `level`. ConfigError on fewer than
    two trainings, and where one lacks a measure that another has.
    """
    expect(len(trainings) >= 2, f"{len(trainings)} trainings", "at least two")
    found: dict[Compared, SeedSd] = {}
    for measure in cast("tuple[Compared, ...]", get_args(Compared)):
        scores = [one.values(measure, per_byte=True) for one in trainings]
        have = sum(bool(score) for score in scores)
        if have:
            expect(have == len(scores), f"{measure} of {have} of {len(scores)} trainings", "of all or of none")
            means = np.array([np.mean(list(score.values())) for score in scores])
            sampling = np.mean([_sampling(one, measure) for one in trainings]) if measure in SAMPLED else 0.0
            unit = float(means.mean()) if measure == LOSS else 1.0
            found[measure] = estimate_seed_sd((means / unit).tolist(), float(sampling), level)
    return found


def _sampling(results: Results, measure: Compared) -> float:
    """Variance that another sampling of the same model's answers alone would bring; 0 where nothing says."""
    counts = np.array([pair for pair in results.counts(measure).values() if pair[1]])
    return attempt_variance(counts[:, 0], counts[:, 1]) if (counts[:, 1] > 1).any() else 0.0
