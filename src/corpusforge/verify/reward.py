"""The reward function of the verifiers, in the form that TRL's GRPO and RLOO trainers call.

    trl grpo --reward_funcs corpusforge.verify.reward.reward …      # with task shards as the dataset

    reward(prompts=[…], completions=["…so 72.", "…so 70."], verifier_kind=["numeric"] * 2,
           verifier_spec=['{"answer": "72"}'] * 2)                  ->  [1.0, 0.0]

A pass is 1.0, a fail 0.0, whatever partial score a kind keeps; undecided is None. TRL leaves a completion whose only
reward is None out of its group's mean and gives it the advantage 0, so that nothing is learned from it. Layers beside
the outcome are in `corpusforge.verify.layers`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import SchemaError
from corpusforge.verify import verify_many

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpusforge.verify import Verdict

_TASK: Final = ("verifier", "verifier_kind", "verifier_spec", "tools")
_REWARDS: Final = {"pass": 1.0, "fail": 0.0, "undecided": None}


def reward(prompts: Sequence[Any], completions: Sequence[Any], **columns: Any) -> list[float | None]:
    """One reward per completion: 1.0, 0.0, or None for undecided.

    `columns` are the dataset's other columns, a list each (`verifier_kind` and `verifier_spec`, or `verifier`), and
    what TRL adds. Through `log_extra` and `log_metric`, where given, rules and shares of verdicts are logged: names
    and counts, no text. Raises SchemaError when the columns say nothing about a verifier.
    """
    tasks = tasks_of(prompts, columns)
    verdicts = verify_many(tasks, completions)
    log_verdicts(columns.get("log_extra"), columns.get("log_metric"), verdicts)
    return [_REWARDS[verdict.outcome] for verdict in verdicts]


def tasks_of(prompts: Sequence[Any], columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task per prompt, from the columns that TRL hands over. Raises SchemaError where they name no verifier."""
    if "verifier" not in columns and not {"verifier_kind", "verifier_spec"} <= columns.keys():
        hint = "train on task shards (data/shard/task), which have the columns verifier_kind and verifier_spec"
        raise SchemaError("the dataset has no column `verifier_kind` or `verifier_spec`", hint=hint)
    given = [name for name in _TASK if isinstance(columns.get(name), (list, tuple))]
    return [
        {"prompt": prompt, **{name: columns[name][number] for name in given}} for number, prompt in enumerate(prompts)
    ]


def log_verdicts(
    extra: Callable[..., Any] | None, metric: Callable[..., Any] | None, verdicts: Sequence[Verdict]
) -> None:
    """Log each completion's rule, and the share of each outcome."""
    if extra is not None:
        extra("verdict_rule", [verdict.rule for verdict in verdicts])
    if metric is not None and verdicts:
        for outcome in _REWARDS:
            metric(f"verdicts/{outcome}", sum(v.outcome == outcome for v in verdicts) / len(verdicts))
