"""Which rows belong together: those of one cluster, and tasks with the same prompt that want different answers.

A cluster is what must not be parted between training and held-out: rows with the same prompt, and rows removed with
those that they were removed for. Its name is the smallest content id in it, removed rows included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from corpusforge.sample import dumps
from corpusforge.stages._twins import SHOWN

if TYPE_CHECKING:
    import pyarrow as pa

Positions = npt.NDArray[np.int64]


def clusters(facts: pl.DataFrame, *links: Positions) -> pa.Array:
    """Name of each row's cluster: the smallest id among rows linked (-1: to none) or of the same prompt."""
    from corpusforge.text.pairs import components

    prompt = facts["prompt"].to_numpy()
    asked = np.flatnonzero(prompt)
    _, first, group = np.unique(prompt[asked], return_index=True, return_inverse=True)
    pairs = [(asked, asked[first][group])]
    pairs += [(np.flatnonzero(link >= 0), link[link >= 0]) for link in links]
    left, right = (np.concatenate(side) for side in zip(*pairs, strict=True))
    label = pl.Series("label", components(len(facts), left, right))
    return facts.select(pl.col("cluster").min().over(label)).to_series().to_arrow()


def conflicts(facts: pl.DataFrame, partner: Positions, count: int) -> dict[int, str]:
    """Kept tasks that ask the same as one with another gold: position -> detail, naming the other rows."""
    tasks = facts.select("asked", "gold", "row_id").with_row_index("at")
    tasks = tasks.filter(pl.Series(partner < 0) & (pl.col("gold") != 0) & (pl.col("asked") != 0))
    tasks = tasks.filter(pl.col("gold").n_unique().over("asked") > 1).sort("asked", "row_id")
    details = {}
    for (_,), group in tasks.group_by("asked", maintain_order=True):
        others = group.group_by("gold", maintain_order=True).head(SHOWN)
        for at, gold in group.select("at", "gold").iter_rows():
            if at < count:
                ids = others.filter(pl.col("gold") != gold)["row_id"].sort().head(SHOWN)
                details[at] = dumps({"other_gold": ids.to_list(), "same_prompt": len(group)})
    return details
