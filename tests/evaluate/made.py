"""Made-up results of models, for tests of what is computed from them."""

from __future__ import annotations

import numpy as np

from corpusforge.evaluate.results import Judged, Results

CONDITIONS = {"temperature": 1.0, "max_new_tokens": 8, "max_length": 64}


def results(rate: float = 0.6, *, tasks: int = 100, attempts: int = 8, loss: float = 1.0, seed: int = 0) -> Results:
    """A model of about this pass rate and loss (nats per byte), on items whose difficulty does not depend on `seed`."""
    difficulty = np.random.default_rng(7).normal(0, 1, tasks)
    rng = np.random.default_rng(seed)
    chance = 1 / (1 + np.exp(difficulty - np.log(rate / (1 - rate))))
    names = [f"{number:032x}" for number in range(tasks)]
    heldout, legacy = (
        {name: (int(c), attempts) for name, c in zip(names, rng.binomial(attempts, chance), strict=True)}
        for _ in range(2)
    )
    greedy = {name: (int(c), 1) for name, c in zip(names, rng.random(tasks) < chance, strict=True)}
    per_byte = dict(zip(names, (loss + 0.1 * difficulty + rng.normal(0, 0.01, tasks)).tolist(), strict=True))
    margin = dict(zip(names, rng.normal(1, 2, tasks).tolist(), strict=True))
    return Results(heldout, legacy, greedy, greedy, {k: 3 * v for k, v in per_byte.items()}, per_byte, margin)


def judged(build: str = "b1", **models: Results) -> Judged:
    """A build with these models."""
    return Judged(build, models, CONDITIONS, {name: f"hash-of-{name}" for name in models})
