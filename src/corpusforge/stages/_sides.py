"""Which rows belong together, and which of the groups are held out.

Two rows belong together when they share a near-duplicate cluster, a content, a prompt, a record of a source, a parent
(or one is the other's parent), or a value of one of the fields that the user names. A parent is named by its row id, or
by the user's own id: of a record of the same source, or of another one where the own source has no such record.

Groups are the connected components of that. A prompt is held out when its draw is below the share, and a group when
any of its prompts is: so a group that was held out stays held out however many rows are added to it, and only a
training row that turns out to belong to a held-out group changes sides. The draw is the prompt's and not the cluster's,
because a cluster is named after its members and may get another name with a new one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text.draws import draw
from corpusforge.text.views import prompt_text

# Never a parameter: another key would move rows between training and evaluation.
_KEY: Final = "corpusforge held-out split 1"
KEYS: Final = ("cluster", "content_id", "prompt", "record", "together")


def keys_of(rows: pa.Table, fields: list[str]) -> pa.Table:
    """The strings by which rows belong together, a column per key (null: none), and the names of rows and parents."""
    source = pl.col("source").struct.field("name").fill_null("")
    # Record numbers start anew in each file of a source; a row id names source, file and record, then the fan-out.
    record = pl.col("row_id").str.replace(r"(#\d+)\.\d+$", "${1}")
    frame = pl.DataFrame(pl.from_arrow(rows.select(["row_id", "content_id", "cluster", "source", "extra"])))
    asked = pl.Series("asked", prompt_text(rows), dtype=pl.String).str.to_lowercase()
    asked = asked.str.replace_all(r"\s+", " ").str.strip_chars()
    shared = [_field_value(source, field) for field in fields]
    columns = frame.select(
        "row_id",
        "cluster",
        pl.coalesce("content_id", "row_id").alias("content_id"),
        record.alias("record"),
        pl.concat_list(shared or [pl.lit(None, pl.String)]).alias("together"),
        pl.col("source").struct.field("parents").alias("parents"),
        source.alias("name"),
        pl.col("source").struct.field("record_id").alias("own"),
    ).to_arrow(compat_level=pl.CompatLevel.oldest())
    texts = asked.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())
    prompt = pc.cast(pa.array(draw(texts, "prompt")), pa.string())
    blank = pc.equal(pc.fill_null(texts, ""), "")
    return columns.append_column("prompt", pc.if_else(blank, pa.scalar(None, pa.string()), prompt))


def _field_value(source: pl.Expr, field: str) -> pl.Expr:
    value = pl.col("extra").str.json_path_match(f'$["{field}"]')
    return pl.concat_str(source, pl.lit("\0" + field + "\0"), value)


def groups(keys: pa.Table) -> npt.NDArray[np.int64]:
    """A group number per row of `keys_of`'s table: the connected components over shared keys and lineage."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    count = keys.num_rows
    frame = pl.DataFrame(pl.from_arrow(keys)).with_row_index("row")
    edges = [
        frame.select("row", pl.concat_str(pl.lit(f"{name}\0"), pl.col(name)).alias("key"))
        for name in KEYS
        if name != "together"
    ]
    for name, kind in (("together", "together"), ("parents", "row_id")):
        listed = frame.select("row", pl.col(name).cast(pl.List(pl.String)).alias("key")).explode("key")
        edges.append(listed.select("row", pl.concat_str(pl.lit(f"{kind}\0"), pl.col("key")).alias("key")))
    edges.append(frame.select("row", pl.concat_str(pl.lit("row_id\0"), pl.col("row_id")).alias("key")))
    edges.append(_by_own_id(frame))
    pairs = pl.concat(edges).drop_nulls("key")
    ends = pairs["key"].rank("dense").to_numpy().astype(np.int64) - 1 + count
    starts = pairs["row"].to_numpy().astype(np.int64)
    size = int(ends.max(initial=count - 1)) + 1
    graph = coo_array((np.ones(len(ends), np.int8), (starts, ends)), shape=(size, size))
    labels: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1][:count].astype(np.int64)
    return labels


def _by_own_id(frame: pl.DataFrame) -> pl.DataFrame:
    """Edges from rows to those that their parents name by the user's own ids."""
    owners = frame.select("name", "own", of="row_id").drop_nulls("own")
    parents = frame.select("row", "name", pl.col("parents").cast(pl.List(pl.String)).alias("own")).explode("own")
    parents = parents.drop_nulls("own")
    near = parents.join(owners, on=["name", "own"])
    far = parents.join(near, on=["row", "own"], how="anti").join(owners.drop("name"), on="own")
    both = pl.concat([near.select("row", "of"), far.select("row", "of")])
    return both.select("row", pl.concat_str(pl.lit("row_id\0"), pl.col("of")).alias("key"))


def held_out(keys: pa.Table, share: float) -> npt.NDArray[np.bool_]:
    """True for the rows of held-out groups; about `share` of the prompts (a row without one counts by its content)."""
    if not keys.num_rows or share <= 0:
        return np.zeros(keys.num_rows, bool)
    below = draw(pc.coalesce(keys["prompt"], keys["content_id"]), _KEY) < np.uint64(share * 2.0**64)
    labels = groups(keys)
    out = np.zeros(int(labels.max()) + 1, bool)
    np.logical_or.at(out, labels, below)
    return out[labels]
