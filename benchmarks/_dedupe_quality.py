"""How right a removal was, for any tool: against the planted pairs, and by exact similarity to the rows that stayed.

Recall: of the planted pairs at the threshold or above, how many lost a row. False removals: rows that went although no
row that stays is as similar as the threshold. Each removed row is held against the kept ones of its planted family (its
original, its copies, other copies of the same original) and against the row that the ledger names; those that none of
them excuses are held against every kept row, by counting the pieces they share. Where more than 5,000 are left for
that, 5,000 of them stand for all.

    original "a b c …" stays, its copy at 0.85 went     found, and a true removal
    its other copy at 0.6 went                          false, unless some kept row is similar enough
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import repeat
from pathlib import Path

import polars as pl
from dedupe_check import CHUNK, Pieces, kept_files, lost, pieces_at, planted, removed, similarities, spool, spread

LOOKED = 5_000  # removed rows, at most, that are held against every kept row


@dataclass(frozen=True)
class Quality:
    """Of one result."""

    removed: int
    pairs: int
    found: int
    false: float
    """Rows that went without a kept row as similar as the threshold: a count, estimated where it is a sample's."""

    @property
    def recall(self) -> float:
        """Of the planted pairs, the share that lost a row."""
        return self.found / self.pairs if self.pairs else 1.0

    @property
    def precision(self) -> float:
        """Of the removed rows, the share that has a similar row that stays."""
        return 1 - self.false / self.removed if self.removed else 1.0


def judge(corpus: Path, truth: Path, out: Path, threshold: float, workers: int) -> Quality:
    """Judge the result that a tool left in `out`."""
    with tempfile.TemporaryDirectory(dir=out) as folder:
        return _judge(spool(corpus, Path(folder)), _named(corpus), (truth, out), threshold, workers)


def _named(corpus: Path) -> pl.DataFrame:
    return pl.scan_parquet(corpus).select("id").with_row_index("at").collect()


def _judge(texts: Path, rows: pl.DataFrame, files: tuple[Path, Path], threshold: float, workers: int) -> Quality:
    truth, out = files
    gone = removed(out).select("id", "twin")
    kept = pl.scan_parquet(kept_files(out)).select("id").collect().join(rows, on="id")
    pairs = planted(truth, rows, threshold)
    near = pl.concat([gone.filter(pl.col("twin").is_not_null()), _relatives(gone, truth)]).unique()
    near = near.join(kept.rename({"at": "right"}), left_on="twin", right_on="id")
    near = near.join(rows.rename({"at": "left"}), on="id")
    exact = pl.Series(similarities(texts, near, workers))
    open_ = gone.join(near.filter(exact >= threshold), on="id", how="anti").join(rows, on="id").sort("at")
    looked = open_.sample(min(LOOKED, len(open_)), seed=1)["at"].to_list()
    excused = len(_with_twin(texts, looked, kept["at"].to_list(), threshold, workers)) if looked else 0
    false = len(open_) * (1 - excused / len(looked)) if looked else 0.0
    return Quality(len(gone), len(pairs), len(lost(pairs, gone["id"])), false)


def _relatives(gone: pl.DataFrame, truth: Path) -> pl.DataFrame:
    """Each removed row with every other of its planted family, as `id`, `twin`."""
    pairs = pl.read_parquet(truth, columns=["id", "original_id"])
    own = pairs.select(pl.col("original_id").alias("id"), "original_id").unique()
    family = pl.concat([pairs, own])
    met = gone.select("id").join(family, on="id").join(family.rename({"id": "twin"}), on="original_id")
    return met.filter(pl.col("id") != pl.col("twin")).select("id", "twin")


def _with_twin(texts: Path, wanted: list[int], among: list[int], threshold: float, workers: int) -> set[int]:
    """Those of the `wanted` rows that reach the threshold with one of the rows `among`."""
    chunks = [among[at : at + CHUNK] for at in range(0, len(among), CHUNK)]
    same = (repeat(value, len(chunks)) for value in (texts, tuple(wanted), threshold))
    return set(spread(_twins, min(workers, len(chunks)), *same, chunks))


@lru_cache(maxsize=1)
def _index(texts: Path, wanted: tuple[int, ...]) -> tuple[dict[tuple[str, ...], list[int]], dict[int, int]]:
    """Which of the rows have a piece, and how many pieces each row has."""
    holders: dict[tuple[str, ...], list[int]] = {}
    sizes = {}
    for at in wanted:
        own: Pieces = pieces_at(texts, at)
        sizes[at] = len(own)
        for piece in own:
            holders.setdefault(piece, []).append(at)
    return holders, sizes


def _twins(texts: Path, wanted: tuple[int, ...], threshold: float, among: list[int]) -> list[int]:
    holders, sizes = _index(texts, wanted)
    found = []
    for at in among:
        own = pieces_at(texts, at)
        shared = Counter(row for piece in own for row in holders.get(piece, ()))
        found += [row for row, count in shared.items() if count / (len(own) + sizes[row] - count) >= threshold]
    return found
