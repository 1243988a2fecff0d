"""What a kept row takes on from the rows that went for it: the stricter licence governs, whichever copy survives.

A kept row gets the restrictions of all its copies and near copies, and all their licences (`MIT AND CC-BY-4.0`).
`provenance` then tells who stated what, the row itself included; it stays null where nothing went for a row.

    web#9 MIT went for forum#2 CC-BY-4.0, restrictions [no-train]
    -> forum#2  license "CC-BY-4.0 AND MIT", restrictions [no-train], provenance
       [{"source":"forum","license":"CC-BY-4.0","restrictions":["no-train"],"row":"forum#2","rows":1},
        {"source":"web","license":"MIT","restrictions":[],"row":"web#9","rows":1}]

`unknown` says nothing beside a licence that an exact copy states. A near copy is another text: its licence never
stands in for one that nobody stated.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from corpusforge.licences import UNKNOWN, both, implied
from corpusforge.sample import dumps
from corpusforge.stages._guard import flat

if TYPE_CHECKING:
    import numpy.typing as npt

SHOWN: Final = 8  # row ids that one ledger line lists
TAKEN: Final = ("license", "restrictions", "provenance", "note")
"""Columns of `taken_on` beside `at`."""
_WHO: Final = ("source", "license", "restrictions")
_ENTRY: Final = {"kept": pl.Int64, **dict.fromkeys(_WHO, pl.String), "row": pl.String, "rows": pl.Int64}

_LISTED: Final[dict[str, Any]] = {"license": pl.String, "implied": pl.List(pl.String)}


def terms(rows: pa.Table) -> pl.DataFrame:
    """Per row: source, license, restrictions (comma-separated, with those that the licence implies), provenance."""
    source = pl.DataFrame(pl.from_arrow(rows.select(["source"]))).unnest("source")
    said = source.select(pl.col("name").alias("source"), pl.col("license").fill_null(UNKNOWN), "restrictions")
    names = said["license"].unique().to_list()
    table = pl.DataFrame({"license": names, "implied": [implied(name) for name in names]}, schema_overrides=_LISTED)
    joined = said.join(table, on="license", how="left", maintain_order="left")
    whole = pl.col("restrictions").fill_null([]).list.concat(pl.col("implied")).list.unique().list.sort().list.join(",")
    known = pl.Series("provenance", rows["provenance"]) if "provenance" in rows.column_names else None
    return joined.select(
        "source",
        "license",
        whole.alias("restrictions"),
        (pl.lit(None, pl.String) if known is None else known.cast(pl.String)).alias("provenance"),
    )


def taken_on(
    facts: pl.DataFrame, partner: npt.NDArray[np.int64], exact: npt.NDArray[np.bool_], count: int
) -> pl.DataFrame:
    """For each row (by position `at`) for which others went: its new license and restrictions, provenance, and a note.

    `facts` has the columns of `terms` and `row_id`; `partner` is the kept row of each row that goes, -1 for the others;
    rows from `count` on are not of the corpus. The note is null where the row's own terms were as strict.
    """
    at = np.flatnonzero(partner[:count] >= 0)
    at = at[partner[at] < count]
    if not len(at):
        return pl.DataFrame(schema={"at": pl.Int64, **dict.fromkeys(TAKEN, pl.String)})
    kept = np.unique(partner[at])
    columns = ["row_id", *_WHO, "provenance"]
    gone = facts.select(columns)[at].with_columns(kept=pl.Series(partner[at]), exact=pl.Series(exact[at]))
    own = facts.select(columns)[kept].with_columns(kept=pl.Series(kept), exact=pl.lit(True))
    merged = _merged(own, gone)
    return merged.join(_provenance(pl.concat([own, gone])), on="kept", maintain_order="left").rename({"kept": "at"})


def _merged(own: pl.DataFrame, gone: pl.DataFrame) -> pl.DataFrame:
    """Per kept row: license and restrictions of all, and the note where they are stricter than its own.

    What governs is worked out once for each way in which terms meet; there are few, however many rows.
    """
    said = own.select("kept", pl.col("license").alias("own"), pl.col("restrictions").alias("had"))
    differ = (pl.col("license") != pl.col("own")) | (pl.col("restrictions") != pl.col("had"))
    other = gone.join(said, on="kept").filter(differ)
    meets = pl.concat_str("license", "restrictions", pl.col("exact").cast(pl.String), separator="\x1f")
    groups = other.group_by("kept", "own", "had").agg(meets.unique().sort().str.join("\x1e").alias("met"))
    ways = groups.select("own", "had", "met").unique().sort("own", "had", "met")
    names = ("license", "restrictions", "told")
    found = [_govern(*way) for way in ways.iter_rows()]
    ways = ways.with_columns(pl.Series(name, [one[i] for one in found], pl.String) for i, name in enumerate(names))
    governed = groups.join(ways, on=["own", "had", "met"]).select("kept", *names)
    whole = own.select("kept", "license", "restrictions").join(governed, on="kept", how="left", suffix="_new")
    whole = whole.join(_stricter(other), on="kept", how="left")
    note = pl.concat_str("told", pl.lit(',"twin":'), "twin", pl.lit("}"))  # null where one is
    return whole.select(
        "kept", *(pl.coalesce(f"{name}_new", name).alias(name) for name in names[:2]), note.alias("note")
    ).sort("kept")


def _govern(own: str, had: str, met: str) -> tuple[str, str, str | None]:
    """License and restrictions of a row whose copies have other terms, and the note on it up to the row ids."""
    others = [part.split("\x1f") for part in met.split("\x1e")]
    copies = both([own, *(name for name, _, exact in others if exact == "true")])
    licence = copies if copies == UNKNOWN else both([copies, *(name for name, _, _ in others)])
    licence = own if licence == both([own]) else licence  # as it was written
    before = _split(had)
    every = before.union(*(_split(text) for _, text, _ in others), implied(licence))
    if every == before and licence == own:
        return licence, had, None
    stricter = {name for name, text, _ in others if name != own or _split(text) - before}
    detail: dict[str, Any] = {"restrictions": sorted(every - before), "license": sorted(stricter)}
    if licence != own:
        detail["governs"] = licence
    return licence, ",".join(sorted(every)), dumps(detail)[:-1]


def _stricter(other: pl.DataFrame) -> pl.DataFrame:
    """The first ids, as JSON, of the rows under other terms than the row that they went for."""
    left = pl.col("restrictions").str.split(",").list.set_difference(pl.col("had").str.split(",")).list.len() > 0
    chosen = other.filter(left | (pl.col("license") != pl.col("own"))).sort("kept", "row_id")
    ids = chosen.group_by("kept").agg(pl.col("row_id").head(SHOWN).alias("ids"))
    encoded = pl.struct("ids").struct.json_encode().str.strip_prefix('{"ids":').str.strip_suffix("}")
    return ids.select("kept", encoded.alias("twin"))


def _split(text: str) -> set[str]:
    return {one for one in text.split(",") if one}


def _provenance(members: pl.DataFrame) -> pl.DataFrame:
    """Per kept row, who stated which terms: JSON, an entry per source, licence and restrictions."""
    plain = members.filter(pl.col("provenance").is_null())
    entries = plain.select("kept", *_WHO, pl.col("row_id").alias("row"), pl.lit(1, pl.Int64).alias("rows"))
    known = members.filter(pl.col("provenance").is_not_null())
    if len(known):  # rows that went through dedupe before
        told = [
            {**one, "kept": kept, "restrictions": ",".join(one["restrictions"])}
            for kept, text in known.select("kept", "provenance").iter_rows()
            for one in json.loads(text)
        ]
        entries = pl.concat([entries, pl.DataFrame(told, schema=_ENTRY).select(entries.columns)])
    grouped = entries.group_by("kept", *_WHO).agg(pl.col("row").min(), pl.col("rows").sum()).sort("kept", *_WHO)
    listed = pl.col("restrictions").str.split(",").list.eval(pl.element().filter(pl.element() != ""))
    one = pl.struct("source", "license", listed.alias("restrictions"), "row", "rows").struct.json_encode()
    texts = grouped.select("kept", one.alias("entry")).group_by("kept", maintain_order=True)
    return texts.agg((pl.lit("[") + pl.col("entry").str.join(",") + pl.lit("]")).alias("provenance"))


def take_on(rows: pa.Table, verdicts: pa.Table) -> pa.Table:
    """Rows with the terms that `verdicts` give them (columns license, restrictions, provenance; null: unchanged)."""
    known = rows["provenance"] if "provenance" in rows.column_names else pa.nulls(rows.num_rows, pa.string())
    told = pl.DataFrame({"new": pl.Series(verdicts["provenance"]), "old": pl.Series(known).cast(pl.String)})
    column = told.select(pl.coalesce("new", "old")).to_series().to_arrow(compat_level=pl.CompatLevel.oldest())
    rows = _put(rows, "provenance", column.cast(pa.string()))
    if verdicts["provenance"].null_count == len(verdicts):
        return rows
    source = flat(rows["source"])
    licence = pl.select(pl.coalesce(pl.Series(verdicts["license"]), pl.Series(source.field("license")))).to_series()
    own = source.field("restrictions").to_pylist()
    for place, text in enumerate(verdicts["restrictions"].to_pylist()):
        if text is not None:
            own[place] = sorted(_split(text))
    new = {
        "license": licence.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string()),
        "restrictions": pa.array(own, source.type.field("restrictions").type),
    }
    children = [new.get(field.name, source.field(field.name)) for field in source.type]
    return _put(rows, "source", pa.StructArray.from_arrays(children, fields=list(source.type), mask=source.is_null()))


def _put(rows: pa.Table, name: str, column: pa.Array) -> pa.Table:
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), name, column)
    return rows.append_column(name, column)
