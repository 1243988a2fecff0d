"""Rollouts: the tuned model tries every task k times; how often it passed says which tasks GRPO can learn from.

GRPO learns from a group of answers only when some pass and some fail: all advantages of a uniform group are zero (Shao
et al. 2024, arXiv 2402.03300; DAPO, arXiv 2503.14476, drops such groups as they come). So a task is chosen by the
probability that a group of new answers is mixed, under the Beta posterior of its pass rate (Jeffreys' prior; see
evaluate/statistics.py), and not by the rate itself: 2 of 2 is no proof that a task is solved, 16 of 16 is.

    8 tries, groups of 8    passes 0: mixed 0.29    1: 0.65    4: 0.96    8: 0.29    -> with min_mixed 0.3: 1 to 7
    4 tries                 passes 0: mixed 0.41    1: 0.81    2: 0.91    4: 0.41    -> all: 4 tries say too little

An undecided try is no try: it counts neither as a pass nor as a fail, and is counted apart.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import pyarrow as pa
from pydantic import Field

from corpusforge.errors import CountError
from corpusforge.stages._measured import worth
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

OUTCOMES: Final = ("pass", "fail", "undecided")
REASONS: Final = ("solved", "unsolved", "undecided", "not_tried")
ATTEMPTS: Final = pa.schema(
    [
        ("row_id", pa.string()),
        ("content_id", pa.string()),
        ("record_id", pa.string()),
        ("source", pa.string()),
        ("verifier_kind", pa.string()),
        ("passes", pa.int32()),
        ("attempts", pa.int32()),
        ("undecided", pa.int32()),
        ("mixed", pa.float64()),
        ("chosen", pa.bool_()),
        ("reason", pa.string()),
        ("model", pa.string()),
        ("sampling", pa.string()),
    ]
)
"""A line per task. `attempts` are the decided ones: attempts + undecided = tries. `reason`: why it is not chosen."""


class RolloutConfig(StageConfig):
    """How often tasks are tried, and which of them GRPO sees."""

    attempts: int = Field(8, ge=1)
    """Answers per task."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature; the one that GRPO samples with says most."""
    top_p: float = Field(1.0, gt=0, le=1)
    """Nucleus sampling: share of the probability that is sampled from."""
    max_new_tokens: int = Field(256, ge=1)
    """Tokens of an answer at most."""
    min_mixed: float = Field(0.3, ge=0, le=1)
    """A task is chosen when a group of `group` new answers is mixed (some pass, some fail) with this probability."""
    group: int = Field(8, ge=2)
    """Size of that group: `num_generations` of GRPO."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Try at most this many tasks, drawn by their content."""
    batch_tokens: int = Field(16_384, ge=1)
    """Tokens generated together at most; smaller needs less memory. Does not change greedy answers."""


def rollout(
    tasks: pa.Table,
    tries: Sequence[Sequence[str]],
    config: RolloutConfig,
    *,
    model: str = "",
    sampling: Mapping[str, Any] | None = None,
) -> pa.Table:
    """What became of every task, and whether GRPO sees it: a table of ATTEMPTS, in the order of `tasks`.

    `tasks` has the first five columns of ATTEMPTS; `tries` the outcomes of each task's tries ("pass", "fail",
    "undecided"), none where it was not tried. `model` (a fingerprint) and `sampling` are written down beside them.
    Raises CountError when there are not as many lists as tasks, or outcomes of another name.
    """
    if len(tries) != tasks.num_rows:
        raise CountError(f"rollout: {len(tries)} lists of outcomes for {tasks.num_rows} tasks")
    counts = np.array([[list(one).count(outcome) for outcome in OUTCOMES] for one in tries], np.int32).reshape(-1, 3)
    passes, fails, undecided = counts.T
    total = np.array([len(one) for one in tries], np.int32)
    if int(counts.sum()) != int(total.sum()):
        raise CountError("rollout: outcomes that are none of pass, fail, undecided", hint="please report this")
    mixed, reason = judge(passes, passes + fails, undecided, config.min_mixed, config.group)
    chosen = np.array([one is None for one in reason], bool)
    said = {
        "passes": passes,
        "attempts": passes + fails,
        "undecided": undecided,
        "mixed": mixed,
        "chosen": chosen,
        "reason": pa.array(reason, pa.string()),
        "model": pa.repeat(model, len(tries)),
        "sampling": pa.repeat(json.dumps(dict(sampling or {}), sort_keys=True), len(tries)),
    }
    named = {name: tasks[name] for name in ATTEMPTS.names if name not in said}
    return pa.table({**named, **said}, schema=ATTEMPTS)


def judge(
    passes: npt.NDArray[Any], attempts: npt.NDArray[Any], undecided: npt.NDArray[Any], min_mixed: float, group: int
) -> tuple[npt.NDArray[np.float64], list[str | None]]:
    """Per task: the probability that `group` new answers are mixed, and why it is not worth a group (None: it is).

    `attempts` are decided ones. Undecided: fewer than half of the tries could be decided, and GRPO would learn from
    few answers at most. See `worth` for the rest.
    """
    mixed, reason = worth(passes, attempts, min_mixed, group)
    reason[undecided > attempts] = "undecided"
    reason[attempts + undecided == 0] = "not_tried"
    return mixed, reason.tolist()


def figures(attempts: pa.Table) -> dict[str, Any]:
    """The figures of a table of ATTEMPTS, of the whole and by source; the pass rate with its 95 % interval."""
    from corpusforge.evaluate.statistics import pass_rate_interval

    rate = pass_rate_interval(attempts["passes"].to_numpy(), attempts["attempts"].to_numpy())
    sources = np.array(attempts["source"].to_pylist(), object)
    reasons = attempts["reason"].to_pylist()
    return {
        **_counts(attempts),
        "pass_rate": rate.value,
        "low": rate.low,
        "high": rate.high,
        "reasons": {name: reasons.count(name) for name in REASONS if name in reasons},
        "by_source": {
            str(name): _counts(attempts.filter(pa.array(sources == name)))
            for name in sorted(set(sources.tolist()), key=str)
        },
    }


def _counts(attempts: pa.Table) -> dict[str, int]:
    columns = {name: attempts[name].to_numpy() for name in ("passes", "attempts", "undecided", "chosen")}
    return {
        "tasks": attempts.num_rows,
        "tried": int((columns["attempts"] + columns["undecided"] > 0).sum()),
        "attempts": int(columns["attempts"].sum()),
        "passes": int(columns["passes"].sum()),
        "undecided": int(columns["undecided"].sum()),
        "chosen": int(columns["chosen"].sum()),
    }
