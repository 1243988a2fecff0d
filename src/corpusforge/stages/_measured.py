"""Tasks that the accepted model always or never solves: what its rollouts say of the tasks in front of us.

GRPO learns from a group of answers only when some pass and some fail (DAPO, arXiv 2503.14476, drops the other groups).
A task is worth its place while a group of new answers is mixed with some probability under the posterior of its pass
rate (Beta-binomial, see evaluate/statistics.py), which is cautious where few attempts say little:

    passes 8 of 8     mixed 0.29  solved       2 of 2  mixed 0.53  worth it       (groups of 8, min_mixed 0.3)
    passes 0 of 16    mixed 0.18  unsolved     1 of 8  mixed 0.65  worth it
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from corpusforge.errors import ConfigError
from corpusforge.stages._stage import StageConfig

FACTS: Final = {"passes": pa.int64(), "attempts": pa.int64(), "mixed": pa.float64(), "reason": pa.string()}


class RolloutsConfig(StageConfig):
    """Which pass rates to go by, and which tasks they leave out."""

    path: str = Field(min_length=1)
    """Parquet file with content_id, passes, attempts: `corpusforge accept` writes `rollouts.parquet`."""
    min_mixed: float = Field(0.3, ge=0, le=1)
    """A measured task goes when a group of `group` new answers is mixed (some pass, some fail) less probably."""
    group: int = Field(8, ge=2)
    """Size of that group: `num_generations` of GRPO."""


def worth(
    passes: npt.ArrayLike, attempts: npt.ArrayLike, min_mixed: float, group: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[Any]]:
    """Per task the probability that `group` new answers are mixed, and what it is otherwise: `solved`, `unsolved`.

    `attempts` are decided ones. None where the task is worth a group. A rate of exactly one half is `solved`, which
    only a `min_mixed` near 1 can bring about.
    """
    from corpusforge.evaluate.statistics import mixed_probability

    mixed = mixed_probability(passes, attempts, group)
    reason = np.where(2 * np.asarray(passes) >= np.asarray(attempts), "solved", "unsolved").astype(object)
    reason[mixed >= min_mixed] = None
    return mixed, reason


def measured(rows: pa.Table, config: RolloutsConfig | None, known: pa.Table | None) -> pa.Table:
    """What is `known` (content_id, passes, attempts: each content once) of every row: passes, attempts, mixed, reason.

    All null for rows that are no task or have no decided attempt; reason is null where the task is worth a group.
    Raises ConfigError when there is a config and no table.
    """
    if config is None:
        return pa.table({name: pa.nulls(rows.num_rows, kind) for name, kind in FACTS.items()})
    if known is None:
        raise ConfigError("blend: `rollouts` needs the table that it names", hint="hand it over: measured=table")
    known = known.filter(pc.greater(known["attempts"], 0))
    mixed, reason = worth(known["passes"].to_numpy(), known["attempts"].to_numpy(), config.min_mixed, config.group)
    place = pc.index_in(rows["content_id"], value_set=known["content_id"].cast(pa.string()).combine_chunks())
    place = pc.if_else(pc.equal(rows["kind"], "task"), place, pa.scalar(None, pa.int32()))
    facts = {"passes": known["passes"], "attempts": known["attempts"], "mixed": mixed, "reason": reason}
    return pa.table({name: pa.array(facts[name], kind) for name, kind in FACTS.items()}).take(place)
