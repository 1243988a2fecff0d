"""A source that is delivered again: of several records with one id the last one stays, and the older ones say so.

Each file of a source with a `key` is a delivery, in the order of files. `deliveries: updates` means that a delivery
holds what is new or changed; `whole` that it holds everything, so that what the last one lacks was deleted.

    support/2026-11-01.jsonl   {"ticket": 7, "text": "old"}     replaced_by_later, kept support/2026-11-08.jsonl#2
    support/2026-11-01.jsonl   {"ticket": 9, …}                 whole: deleted_by_later    updates: stays
    support/2026-11-08.jsonl   {"ticket": 7, "text": "new"}     stays

A later version that `where` leaves out replaces the earlier ones as well: nothing of the record is left.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import polars as pl

from corpusforge.errors import RecordError
from corpusforge.stages._settle import none_gone

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpusforge.stages._forget import Frames
    from corpusforge.stages._source import SourceConfig

REPLACED: Final = "replaced_by_later"
DELETED: Final = "deleted_by_later"
CONFLICT: Final = "same_id_conflict"
REPEATED: Final = "repeated_id"
UNWANTED: Final = "excluded_by_where"
_SHOWN: Final = 5  # conflicts that a message names
_RECORD: Final = {"base": pl.String, "name": pl.String, "own": pl.String, "content": pl.UInt64}


def superseded(
    frames: Frames, sources: Mapping[str, SourceConfig], ledger: pl.DataFrame | None = None, *, strict: bool = False
) -> tuple[pl.DataFrame, dict[str, dict[str, int]]]:
    """Records that a later one replaces (base, reason, detail), and figures per source that has a `key`.

    `frames` gives ids of rows (see _forget.FACTS) in the order of the corpus, `ledger` the lines of records that
    `ingest` left out. Raises RecordError when `strict` and two records of one delivery have one id and say different
    things.
    """
    keyed = {name: source for name, source in sources.items() if source.key}
    if not keyed:
        return none_gone(), {}
    records = _records(frames, list(keyed), ledger)
    marked = _marked(records, [name for name, source in keyed.items() if source.deliveries == "whole"])
    conflicts = marked.filter(pl.col("reason") == CONFLICT)
    if strict and len(conflicts):
        shown = [f"{base} and {kept}" for base, kept in conflicts.select("base", "kept").head(_SHOWN).iter_rows()]
        raise RecordError(
            f"{len(conflicts):,} records have the id of another of the same delivery: {', '.join(shown)}",
            hint="mend the source, or set ingest.strict: false to keep the later one",
        )
    figures = {name: _figures(marked.filter(pl.col("name") == name)) for name in sorted(keyed)}
    out = marked.drop_nulls("reason")
    details = [
        json.dumps({"kept": kept, "changed": changed} if kept else {})
        for kept, changed in out.select("kept", "changed").iter_rows()
    ]
    return out.select("base", "reason", pl.Series("detail", details, dtype=pl.String)), figures


def _records(frames: Frames, keyed: list[str], ledger: pl.DataFrame | None) -> pl.DataFrame:
    """One line per record of these sources, oldest first: content is a hash of its rows, null where it has none."""
    found = [pl.DataFrame(schema=_RECORD)]
    for frame in frames():
        own = frame.filter(pl.col("name").is_in(keyed))
        found.append(own.select("base", "name", "own", pl.col("content_id").hash(seed=0).alias("content")))
    rows = pl.concat(found).group_by("base", maintain_order=True)
    records = _placed(rows.agg(pl.col("name", "own").first(), pl.col("content").bitwise_xor()))
    if ledger is not None:
        lines = ledger.filter(pl.col("source").is_in(keyed) & (pl.col("reason") == UNWANTED)).drop_nulls("record_id")
        left_out = lines.select(pl.col("row_id").alias("base"), pl.col("source").alias("name"), own="record_id")
        out = _placed(left_out.with_columns(content=pl.lit(None, pl.UInt64)))
        order = _order(_distinct(records), _distinct(out))
        ranks = pl.DataFrame({"delivery": order, "rank": range(len(order))}, schema_overrides={"delivery": pl.String})
        records = pl.concat([records, out]).join(ranks, on="delivery", how="left").sort("rank", "record").drop("rank")
    return records


def _placed(records: pl.DataFrame) -> pl.DataFrame:
    """With the delivery that a record came in, and its number there."""
    return records.with_columns(
        pl.col("base").str.replace(r"#\d+$", "").alias("delivery"),
        pl.col("base").str.extract(r"#(\d+)$").cast(pl.Int64).alias("record"),
    )


def _distinct(records: pl.DataFrame) -> list[str]:
    return records["delivery"].unique(maintain_order=True).to_list()


def _order(with_rows: list[str], others: list[str]) -> list[str]:
    """Deliveries in their order: one that gave no row stands where its name would in a folder."""
    order = list(with_rows)
    for delivery in others:
        if delivery not in order:
            order.insert(next((at for at, one in enumerate(order) if one > delivery), len(order)), delivery)
    return order


def _marked(records: pl.DataFrame, whole: list[str]) -> pl.DataFrame:
    """Records that have rows, with the reason why they go, what stays in their place, and whether it says another."""
    same = ("name", "own")
    newest = pl.col("delivery").last().over("name")
    at = records.with_row_index("at").with_columns(known=pl.col("own").is_not_null())
    at = at.with_columns(
        kept=pl.when(pl.col("known") & (pl.col("at") < pl.col("at").max().over(same))).then(
            pl.col("base").last().over(same)
        ),
        changed=pl.col("content").ne_missing(pl.col("content").last().over(same)),
        same_delivery=pl.col("delivery") == pl.col("delivery").last().over(same),
        old=pl.col("name").is_in(whole) & (pl.col("delivery") != newest),
        gone=~pl.col("known") | (pl.col("delivery").last().over(same) != newest),
    )
    reason = (
        pl.when(pl.col("old") & pl.col("gone"))
        .then(pl.lit(DELETED))
        .when(pl.col("kept").is_null())
        .then(None)
        .when(~pl.col("same_delivery"))
        .then(pl.lit(REPLACED))
        .when(pl.col("changed"))
        .then(pl.lit(CONFLICT))
        .otherwise(pl.lit(REPEATED))
    )
    marked = at.with_columns(reason=reason).filter(pl.col("content").is_not_null())
    return marked.with_columns(kept=pl.when(pl.col("reason") != DELETED).then("kept"))


def _figures(records: pl.DataFrame) -> dict[str, int]:
    """What a source's deliveries did to one another."""
    reasons = dict(records.drop_nulls("reason")["reason"].value_counts().iter_rows())
    changed = int(records.filter(pl.col("reason") == REPLACED)["changed"].sum())
    return {
        "deliveries": records["delivery"].n_unique(),
        "changed": changed,
        "unchanged": reasons.get(REPLACED, 0) - changed,
        "deleted": reasons.get(DELETED, 0),
        "conflicts": reasons.get(CONFLICT, 0),
        "repeated": reasons.get(REPEATED, 0),
        "without_key": int(records["own"].null_count()),
    }
