"""Supervised fine-tuning on the conversations of the shards, with TRL's SFTTrainer.

Each row is a conversation; the model learns the assistant's turns (the whole text where the chat template cannot tell
the turns apart). What truncation would empty or cut, and what the template would leave out, is found before and stands
in the ledger; TRL must count the same rows, or the stage fails. Method: next-token cross entropy over the tokens of the
answers (Ouyang et al. 2022, arXiv 2203.02155, step 1).

    data/shard/sft/train-*.parquet -> data/train_sft/model, steps.jsonl, dropped.parquet
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.train import fit
from corpusforge.train._config import TrainConfig
from corpusforge.train.preflight import assistant_only

if TYPE_CHECKING:
    from corpusforge.train.fit import Start, Trained, Workplace


class TrainSftConfig(TrainConfig):
    """Options of supervised fine-tuning."""


def train_sft(rows: Any, start: Start, config: TrainConfig, place: Workplace) -> Trained:
    """Fine-tune `start` on `rows` (a `datasets.Dataset` with messages and tools).

    Raises ConfigError for options that TRL refuses, TrainingError when training fails or is stopped.
    """
    from trl import SFTConfig, SFTTrainer

    given = {"assistant_only_loss": assistant_only(start.tokenizer, config.trl), **config.trl}
    args = fit.arguments(SFTConfig, given, start, place)
    return fit.fit(SFTTrainer, args, start, rows, place)
