"""Group relative policy optimisation on the tasks of the shards, with TRL's GRPOTrainer.

The model answers each prompt several times; an answer's advantage is its reward against the mean of its group (Shao et
al. 2024, arXiv 2402.03300). Rewards come from `corpusforge.verify`: 1 for a pass, 0 for a fail, nothing where the
verifier cannot tell; `rewards` adds layers for steps and form (`corpusforge.verify.layers`). Only tasks that `rollout`
chose are seen: a group whose answers all pass, or all fail, teaches nothing. Checkpoints fall where a batch of
generated answers is used up, because TRL does not save that batch.

    data/shard/task/train-*.parquet + data/rollout -> data/train_grpo/model, steps.jsonl, dropped.parquet
                                                      and, where there are layers, rewards.jsonl
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.errors import ConfigError
from corpusforge.train import _kept, fit
from corpusforge.train._config import TrainConfig
from corpusforge.verify.layers._config import RewardsConfig

if TYPE_CHECKING:
    from corpusforge.train.fit import Start, Trained, Workplace


class TrainGrpoConfig(TrainConfig):
    """Options of policy optimisation."""

    rewards: RewardsConfig = RewardsConfig()
    """Layers of the reward (docs/rewards.md); without any, a pass is 1, a fail 0, and undecided nothing."""

    @property
    def layered(self) -> bool:
        """Whether there is more than the outcome as it is."""
        return bool(self.rewards.blocks()) or self.rewards.outcome != RewardsConfig().outcome


def train_grpo(rows: Any, start: Start, config: TrainGrpoConfig, place: Workplace) -> Trained:
    """Optimise `start` on `rows` (a `datasets.Dataset` with prompt, verifier_kind, verifier_spec, tools, and row_id).

    Raises ConfigError for options that TRL refuses, TrainingError when training fails or is stopped.
    """
    from trl import GRPOConfig, GRPOTrainer

    from corpusforge.verify.layers.trl import reward_function
    from corpusforge.verify.reward import reward

    args = fit.arguments(GRPOConfig, config.trl, start, place)
    every = args.steps_per_generation * args.num_iterations // args.gradient_accumulation_steps or 1
    if args.save_steps % every:
        raise ConfigError(
            f"trl.save_steps: {args.save_steps:g} is no multiple of {every}, the steps that one batch of answers lasts",
            hint=f"TRL can only resume exactly between batches: write {every * max(1, int(args.save_steps // every))}",
        )
    if config.layered:
        reward = reward_function(config.rewards, keep=_kept.Kept(place.checkpoints / _kept.NAME))
    return fit.fit(GRPOTrainer, args, start, rows, place, reward_funcs=[reward])
