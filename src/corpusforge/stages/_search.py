"""Who goes for whom: rows of equal content, then those whose words are alike, in the order of survival.

The rows of the corpus come first, behind them those that are there already: a table, an index, or rows that `ingest`
refused. Of these, none goes. What is compared are summaries (dedupe.py); texts are read only of rows that share a band.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from corpusforge.stages._cache import Cached
from corpusforge.stages._guard import flat
from corpusforge.stages._index import Indexed, band
from corpusforge.stages._pieces import pieces
from corpusforge.text.views import compare_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from corpusforge.stages.dedupe import DedupeConfig
    from corpusforge.text.pairs import Sets

TEXT_COLUMNS: Final = ["kind", "messages", "chosen", "rejected", "verifier"]

Positions = npt.NDArray[np.int64]


@dataclass
class Found:
    """Per row: the row that it goes for (-1: it stays), how similar, how found, and whether it is a copy."""

    partner: Positions
    similarity: npt.NDArray[np.float64]
    method: npt.NDArray[np.str_]
    exact: npt.NDArray[np.bool_]


def find(
    order: Positions,
    leader: Positions,
    facts: pl.DataFrame,
    summary: pa.Table,
    config: DedupeConfig,
    behind: list[tuple[int, Any]],
    stay: Positions,
) -> tuple[Found, dict[str, Any]]:
    """Exact and near duplicates in the order of survival; `leader` is each row's first copy."""
    near, similarity = np.full(len(facts), -1, np.int64), np.ones(len(facts))
    figures: dict[str, Any] = {}
    if not config.exact_only:
        units = facts["units"].to_numpy()
        compared = order[(leader[order] < 0) & (units[order] > 0)]
        near, similarity, figures = _near(compared, units, summary, config, behind, stay)
    # What repeats a row that itself went is told of the row that stays: its text is the same.
    first = np.where(leader >= 0, leader, np.arange(len(facts)))
    exact = (leader >= 0) & (near[first] < 0)
    partner, alike = np.where(exact, leader, near[first]), np.where(exact, 1.0, similarity[first])
    return Found(partner, alike, np.where(exact, "exact", "minhash"), exact), figures


def _near(
    compared: Positions,
    units: npt.NDArray[np.int32],
    summary: pa.Table,
    config: DedupeConfig,
    behind: list[tuple[int, Any]],
    stay: Positions,
) -> tuple[Positions, npt.NDArray[np.float64], dict[str, Any]]:
    """For each row the kept row that it goes for (or -1), and their similarity; `compared` is in order of survival.

    Rows at `stay` are told for whom they would go, and stay.
    """
    from corpusforge.stages._near import meetings, near
    from corpusforge.text.minhash import candidate_probability, parameters

    width, height = parameters(config.threshold, config.num_perm, config.recall)
    shingles = np.maximum(units - config.shingle + 1, 1)
    met = meetings(compared, lambda i: flat(summary[band(i)]).to_numpy(), width, shingles, behind[0][1].spread)
    start = behind[1][0] if len(behind) > 1 else summary.num_rows
    protected = (np.arange(summary.num_rows) >= start).astype(np.uint8)
    protected[stay] = 2
    own = behind[0][1]
    parts = sets_of(np.sort(met.positions), config, behind)
    parts = own.keeping(parts) if isinstance(own, Cached) else parts
    partner, similarity, figures = near(met, parts, protected, config.threshold, own.store(), own.spread)
    stated = round(candidate_probability(config.threshold, width, height), 6)
    return partner, similarity, {"bands": width, "rows_per_band": height, "recall_at_threshold": stated, **figures}


def sets_of(
    positions: Positions, config: DedupeConfig, behind: list[tuple[int, Any]]
) -> Iterator[tuple[Positions, Sets]]:
    """Shingle sets of the rows at `positions` (ascending): known ones, then those whose texts are fetched by slices."""
    from corpusforge.text.pairs import sets
    from corpusforge.text.shingles import shingle

    def of(own: Positions, rows: pa.Table) -> list[tuple[Positions, Sets]]:
        found, at = [], 0
        for piece in pieces(rows, TEXT_COLUMNS):
            found.append((own[at : at + len(piece)], sets(shingle(compare_text(piece), config.shingle))))
            at += len(piece)
        return found

    ends = [start for start, _ in behind[1:]] + [int(positions[-1]) + 1 if len(positions) else 0]
    for (start, rows), end in zip(behind, ends, strict=True):
        wanted = positions[(positions >= start) & (positions < end)]
        if isinstance(rows, Indexed):
            yield wanted, rows.sets(wanted - start)
            continue
        if isinstance(rows, Cached):
            told = [np.zeros(0, np.int64)]
            for own, part in rows.sets(wanted):  # the corpus begins at 0
                yield own, part
                told.append(own)
            wanted = np.setdiff1d(wanted, np.concatenate(told), assume_unique=True)
        for found in rows.map(of, wanted - start, TEXT_COLUMNS):
            yield from ((own + start, part) for own, part in found)


def leaders(facts: pl.DataFrame, order: Positions) -> Positions:
    """For each row the first row in order with the same content; -1 where it is that row, or says nothing."""
    ranked = facts.select("content_id", "comparable")[order].with_columns(at=pl.Series(order))
    first = ranked.select(pl.when("comparable").then(pl.col("at").first().over("content_id", "comparable")))
    out = np.full(len(facts), -1, np.int64)
    found = first.to_series().fill_null(-1).to_numpy()
    out[order] = np.where(found == order, -1, found)
    return out
