"""Rewards in layers as the reward function of TRL's GRPO and RLOO trainers.

    # my_rewards.py                                              trl grpo --reward_funcs my_rewards.reward …
    from corpusforge.verify.layers.trl import reward_function
    reward = reward_function(process={"weight": 0.2}, format={"weight": 0.1})

Every layer's value is logged for each completion (`layer_process`, beside `verdict_rule`, in TRL's table of
completions), and as its mean over the completions where it had something to say (`layers/process`), with the share of
the others (`layers/process/none`) and of faults. Numbers and names, no text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.stages._stage import configure
from corpusforge.verify.layers import Reward, RewardsConfig, measure, score_many
from corpusforge.verify.reward import log_verdicts, tasks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def reward_function(
    config: RewardsConfig | None = None, *, keep: Callable[..., None] | None = None, **layers: Any
) -> Callable[..., list[float | None]]:
    """A reward function of the layers that a config, or its fields as keyword arguments, turn on.

    `keep`, where given, gets each batch's rewards and what TRL said with them (`trainer_state`, the columns). Raises
    ConfigError for unknown layers or options.
    """
    chosen = configure(RewardsConfig, config, layers)
    for name, block in chosen.blocks().items():
        measure(name, block)  # what cannot be found or called is told now, not after the first batch

    def reward(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
        ids = columns.get("completion_ids")
        tokens = [len(one) for one in ids] if ids is not None else None
        rewards = score_many(tasks_of(prompts, columns), completions, chosen, tokens)
        log_verdicts(columns.get("log_extra"), columns.get("log_metric"), [one.verdict for one in rewards])
        _log(columns.get("log_extra"), columns.get("log_metric"), rewards)
        if keep is not None:
            keep(rewards, columns)
        return [one.total for one in rewards]

    return reward


def _log(extra: Callable[..., Any] | None, metric: Callable[..., Any] | None, rewards: Sequence[Reward]) -> None:
    for name in rewards[0].values if rewards else ():
        values = [one.values[name] for one in rewards]
        told = [value for value in values if value is not None]
        if extra is not None:
            extra(f"layer_{name}", values)
        if metric is not None:
            if told:
                metric(f"layers/{name}", sum(told) / len(told))
            metric(f"layers/{name}/none", 1 - len(told) / len(values))
            faults = sum(name in one.faults for one in rewards)
            if faults:
                metric(f"layers/{name}/faults", faults / len(values))
