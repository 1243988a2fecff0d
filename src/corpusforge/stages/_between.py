"""Who repeats whom: duplicates removed per source, and between each pair of sources.

    pairs    web -> forum    exact 12, near 3      rows of web that went for rows of forum
    sources  web             in 900, removed 21, share 0.0233, within 0.2857: six of the 21 repeat web itself

Rows that somebody dropped (`override`) are no duplicates and not counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

if TYPE_CHECKING:
    import numpy.typing as npt

LISTED: Final = 50  # sources and pairs that are told one by one, those with most removals first
WHERE: Final = ("corpus", "reference", "refused")
"""Where a row is that others go for: among the rows themselves, there already, or refused for its terms."""


def between(
    sources: pl.Series,
    partner: npt.NDArray[np.int64],
    exact: npt.NDArray[np.bool_],
    starts: tuple[int, int],
) -> dict[str, Any]:
    """Figures of removals; `sources` is each row's, `partner` the row that each of the corpus goes for (-1: stays).

    `starts` says where the rows that are there already begin (the length of the corpus), and those that were refused.
    """
    count, barred = starts
    at = np.flatnonzero(partner[:count] >= 0)
    kept = partner[at]
    gone = pl.DataFrame(
        {
            "removed": sources.gather(at),
            "kept": sources.gather(kept),
            "where": pl.Series(np.digitize(kept, [count, barred])).replace_strict(
                dict(enumerate(WHERE)), return_dtype=pl.String
            ),
            "exact": exact[at],
        }
    )
    pairs = gone.group_by("removed", "kept", "where").agg(
        pl.col("exact").sum().cast(pl.Int64), near=(~pl.col("exact")).sum().cast(pl.Int64)
    )
    pairs = pairs.sort(pl.col("exact") + pl.col("near"), "removed", "kept", "where", descending=[True, *[False] * 3])
    rest = pairs.slice(LISTED)
    return {
        "sources": _sources(sources.head(count), gone),
        "pairs": pairs.head(LISTED).to_dicts(),
        "other_pairs": {"pairs": rest.height, "exact": int(rest["exact"].sum()), "near": int(rest["near"].sum())},
    }


def _sources(sources: pl.Series, gone: pl.DataFrame) -> dict[str, dict[str, Any]]:
    """Per source its rows, how many were removed, their share, and the share of these that repeat the source itself."""
    came = pl.DataFrame({"source": sources}).group_by("source").agg(pl.len().alias("in"))
    inside = (pl.col("kept") == pl.col("removed")) & (pl.col("where") == WHERE[0])
    left = gone.group_by(pl.col("removed").alias("source")).agg(pl.len().alias("removed"), inside.sum().alias("same"))
    whole = came.join(left, on="source", how="left").fill_null(0)
    whole = whole.sort("removed", "in", "source", descending=[True, True, False]).head(LISTED)
    return {
        name: {
            "in": rows,
            "removed": removed,
            "share": round(removed / rows, 6),
            "within": round(same / removed, 6) if removed else None,
        }
        for name, rows, removed, same in whole.sort("source").select("source", "in", "removed", "same").iter_rows()
    }
