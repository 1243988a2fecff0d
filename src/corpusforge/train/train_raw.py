"""The same model, trained for the same steps on the rows as they came in, to tell whether curation pays.

Starts from the very model and tokenizer that `train_sft` started from, with its options, and reads what `ingest` read:
duplicates, faults and all. Only what would make the comparison unfair is left out: rows that are held out, and rows
that `dedupe` found to be copies of held-out ones. `evaluate` prints both models side by side, whichever way they fall.

    data/ingest (1,000 conversations, 12 of them held out or copies of held-out ones) -> 988 rows, 500 steps
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.train._config import TrainConfig
from corpusforge.train.train_sft import train_sft

if TYPE_CHECKING:
    from corpusforge.train.fit import Start, Trained, Workplace
    from corpusforge.train.train_sft import TrainSftConfig


class TrainRawConfig(TrainConfig):
    """Options of the comparison; `trl` adds to those of `train_sft`, and `max_steps` should stay the same."""


def over(config: TrainRawConfig, tuned: TrainSftConfig) -> TrainRawConfig:
    """The options of `tuned`, and those of `config` on top."""
    return config.model_copy(update={"trl": {**tuned.trl, **config.trl}})


def train_raw(rows: Any, start: Start, config: TrainRawConfig, place: Workplace) -> Trained:
    """Fine-tune `start` on `rows`, as `train_sft` does."""
    return train_sft(rows, start, config, place)
