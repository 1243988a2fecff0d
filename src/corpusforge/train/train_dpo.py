"""Direct preference optimisation on the pairs of the shards, with TRL's DPOTrainer.

The tuned model learns to prefer `chosen` to `rejected`, held near its own start by an implicit reward (Rafailov et al.
2023, arXiv 2305.18290). Pairs whose prompt fills the limit, or that are equal after the cut, are found before and stand
in the ledger.

    data/shard/preference/train-*.parquet + data/train_sft/model -> data/train_dpo/model, steps.jsonl, dropped.parquet
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.train import fit
from corpusforge.train._config import TrainConfig

if TYPE_CHECKING:
    from corpusforge.train.fit import Start, Trained, Workplace


class TrainDpoConfig(TrainConfig):
    """Options of preference optimisation."""


def train_dpo(rows: Any, start: Start, config: TrainDpoConfig, place: Workplace) -> Trained:
    """Optimise `start` on `rows` (a `datasets.Dataset` with prompt, chosen, rejected, tools).

    Raises ConfigError for options that TRL refuses, TrainingError when training fails or is stopped.
    """
    from trl import DPOConfig, DPOTrainer

    args = fit.arguments(DPOConfig, config.trl, start, place)
    return fit.fit(DPOTrainer, args, start, rows, place)
