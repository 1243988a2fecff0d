"""Shards: rows leave the pipeline in the form that the TRL trainer of their kind reads.

Only the columns that the trainer reads, plus metadata under names that TRL does not reserve. A conversation is a list
of the `arrow.json` extension type: `datasets` loads it as dicts that hold what the message has and nothing else, so
that chat templates see tool calls as objects and no column of nulls; Polars and DuckDB read it as JSON text
(docs/decisions/0004-shard-form.md). Rows with images are a kind of their own, because an `images` column of nulls makes
the trainer look for a vision model.

    sft          messages, tools                        rated   prompt, completion, label, rating, tools
    preference   prompt, chosen, rejected, tools        task    prompt, verifier_kind, verifier_spec, answer, tools

    a row        {role: assistant, content: null, tool_calls: '[{"type":"function",…}]', reasoning: null, …}
    in a shard   {"role":"assistant","content":"","tool_calls":[{"type":"function",…}]}
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from corpusforge.stages._inexact import readable
from corpusforge.stages._stage import StageConfig
from corpusforge.text.draws import draw, mix

FORMAT: Final = 1  # of the shards; raise it when a reader of the old form would misread the new one
_IMAGES: Final = "_images"
_YES_NO: Final = "yes/no"


class ShardConfig(StageConfig):
    """How large shards are and in which order rows stand in them."""

    rows_per_shard: int = Field(50_000, ge=1)
    """Rows that a shard holds on average at most; the number of shards is the next power of two, so that a corpus
    that grows changes few of them."""
    shard_mib: float = Field(256.0, gt=0)
    """MiB of text and images that a shard holds on average at most, before compression: what a loader can hold."""
    row_group_mib: float = Field(8.0, gt=0)
    """MiB of one row group at most, before compression (a row that is larger stands alone): reading one row costs
    no more memory than this."""
    seed: int = Field(0, ge=0)
    """Changes the order of rows; the same seed gives the same order whatever the order of the input."""


def folders(rows: pa.Table) -> pa.Array:
    """The folder of each row: its kind, or `<kind>_images` where it has images."""
    pictured = pc.greater(pc.fill_null(pc.list_value_length(_flat(rows["images"])), 0), 0)
    kind = _flat(rows["kind"])
    return pc.if_else(pictured, pc.binary_join_element_wise(kind, _IMAGES, ""), kind)


def kind_of(folder: str) -> str:
    """The kind of the rows in a folder of shards."""
    return folder.removesuffix(_IMAGES)


def trainer_form(rows: pa.Table, folder: str) -> pa.Table:
    """Rows of one folder (see `folders`) in the form of its trainer, in the same order.

    `rows` has the row format; added columns that are absent come out null. The column `copy` says which copy of its
    row a line is, counted from 0, when `rows` has that column, else 0.
    """
    return noted_form(rows, folder)[0]


def noted_form(rows: pa.Table, folder: str) -> tuple[pa.Table, list[dict[str, str]]]:
    """`trainer_form`, and the numbers in it that `datasets` cannot read as they stand (see `_inexact`)."""
    columns = _trainer_columns(rows, kind_of(folder))
    if folder.endswith(_IMAGES):
        columns["images"] = _flat(rows["images"])
    return readable(pa.table(columns | _metadata(rows), schema=form_schema(folder)))


def form_schema(folder: str, split: str | None = None) -> pa.Schema:
    """Columns of the shards of a folder; with `split`, also the key-value metadata that marks a shard as ours."""
    json_type, texts = pa.json_(), pa.list_(pa.json_())
    columns: dict[str, pa.DataType] = {
        "sft": {"messages": texts},
        "preference": {"prompt": texts, "chosen": texts, "rejected": texts},
        "task": {"prompt": texts, "verifier_kind": pa.string(), "verifier_spec": pa.string(), "answer": pa.string()},
        "rated": {
            "prompt": texts,
            "completion": texts,
            "label": pa.bool_(),
            "rating": pa.float64(),
            "rating_scale": pa.string(),
            "rating_by": pa.string(),
        },
    }[kind_of(folder)]
    columns = columns | {"tools": pa.string()}
    if folder.endswith(_IMAGES):
        columns["images"] = pa.list_(pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
    schema = pa.schema(columns | _METADATA)
    if split is None:
        return schema
    mark = {"format": FORMAT, "kind": kind_of(folder), "split": split}
    metadata = {"corpusforge": json.dumps(mark)}
    if folder.endswith(_IMAGES):
        metadata["huggingface"] = _features(schema, json_type)
    return schema.with_metadata(metadata)


_METADATA: Final = {
    "row_id": pa.string(),
    "content_id": pa.string(),
    "record_id": pa.string(),
    "copy": pa.int32(),
    "source": pa.string(),
    "license": pa.string(),
    "restrictions": pa.list_(pa.string()),
    "provenance": pa.string(),
    "origin": pa.string(),
    "generator": pa.string(),
    "domain": pa.string(),
    "language": pa.string(),
    "cluster": pa.string(),
    "difficulty": pa.float64(),
    "difficulty_method": pa.string(),
    "tokens": pa.int32(),
    "extra": pa.string(),
}
# Columns of few distinct values, as Parquet paths: the only ones for which a dictionary is worth its page.
DICTIONARY: Final = (
    *("verifier_kind", "rating_scale", "rating_by", "source", "license", "restrictions.list.element"),
    *("origin", "generator", "domain", "language", "difficulty_method"),
)


def _features(schema: pa.Schema, json_type: pa.DataType) -> str:
    """What `datasets` reads from a Parquet file to decode images as such, not as structs of bytes."""

    def feature(kind: pa.DataType) -> dict[str, object]:
        if kind == json_type:
            return {"_type": "Json"}
        if pa.types.is_struct(kind):
            return {"_type": "Image"}
        if pa.types.is_list(kind):
            return {"feature": feature(kind.value_type), "_type": "List"}
        names = {pa.bool_(): "bool", pa.float64(): "float64", pa.int32(): "int32"}
        return {"dtype": names.get(kind, "string"), "_type": "Value"}

    return json.dumps({"info": {"features": {field.name: feature(field.type) for field in schema}}})


def _trainer_columns(rows: pa.Table, kind: str) -> dict[str, pa.Array]:
    messages = _conversations(rows["messages"])
    tools = _flat(rows["tools"])
    # An empty list makes some templates announce tools that are not there.
    tools = {"tools": pc.if_else(pc.equal(tools, "[]"), pa.scalar(None, pa.string()), tools)}
    if kind == "sft":
        return {"messages": messages, **tools}
    if kind == "preference":
        chosen, rejected = (_conversations(rows[name]) for name in ("chosen", "rejected"))
        return {"prompt": messages, "chosen": chosen, "rejected": rejected, **tools}
    if kind == "task":
        verifier = _flat(rows["verifier"])
        spec = pc.struct_field(verifier, "spec")
        return {
            "prompt": messages,
            "verifier_kind": pc.struct_field(verifier, "kind"),
            "verifier_spec": spec,
            "answer": _answers(spec),
            **tools,
        }
    prompt, completion = _parted(rows, messages)
    rating = _flat(rows["rating"])
    value, scale = pc.struct_field(rating, "value"), pc.struct_field(rating, "scale")
    yes = pc.if_else(pc.equal(scale, _YES_NO), pc.greater_equal(value, 0.5), pa.scalar(None, pa.bool_()))
    by = pc.struct_field(rating, "by")
    return {
        "prompt": prompt,
        "completion": completion,
        "label": yes,
        "rating": value,
        "rating_scale": scale,
        "rating_by": by,
        **tools,
    }


def _metadata(rows: pa.Table) -> dict[str, pa.Array]:
    source = _flat(rows["source"])
    found = {name: pc.struct_field(source, name) for name in ("license", "origin", "generator", "record_id")}
    found |= {"source": pc.struct_field(source, "name"), "restrictions": pc.struct_field(source, "restrictions")}
    for name in ("row_id", "content_id", "domain", "language", "cluster", "extra", "tokens", "copy", "provenance"):
        found[name] = _flat(rows[name]) if name in rows.column_names else pa.nulls(rows.num_rows, _METADATA[name])
    if "copy" not in rows.column_names:
        found["copy"] = pa.array(np.zeros(rows.num_rows, np.int32))
    for name, field in (("difficulty", "value"), ("difficulty_method", "method")):
        graded = "difficulty" in rows.column_names
        found[name] = (
            pc.struct_field(_flat(rows["difficulty"]), field) if graded else pa.nulls(rows.num_rows, _METADATA[name])
        )
    return found


def _conversations(column: pa.ChunkedArray) -> pa.Array:
    """A column of message lists as lists of JSON; a null list becomes an empty one."""
    lists = _flat(column)
    texts = _message_json(lists.flatten())
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    return _lists(lengths, texts)


def _lists(lengths: npt.NDArray[np.int64], texts: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    values = pa.ExtensionArray.from_storage(pa.json_(), texts)
    return pa.ListArray.from_arrays(pa.array(offsets), values)


def _message_json(messages: pa.Array) -> pa.Array:
    """Messages as JSON objects: what a message has, nothing else. Content is "" where the source had none."""
    field = pl.col
    text = pl.when(field("parts").is_not_null()).then(field("parts")).otherwise(_encoded("content", fill=True))
    inner = field("extra").str.strip_chars().str.strip_prefix("{").str.strip_suffix("}").str.strip_chars()
    pieces = [
        pl.concat_str(pl.lit('"role":'), _encoded("role", fill=True)),
        pl.concat_str(pl.lit('"content":'), text),
        pl.concat_str(pl.lit('"reasoning_content":'), _encoded("reasoning")),
        pl.concat_str(pl.lit('"tool_calls":'), field("tool_calls")),
        pl.concat_str(pl.lit('"tool_call_id":'), _encoded("tool_call_id")),
        pl.concat_str(pl.lit('"name":'), _encoded("name")),
        pl.when(inner != "").then(inner),
    ]
    whole = pl.concat_str(pl.lit("{"), pl.concat_str(pieces, separator=",", ignore_nulls=True), pl.lit("}"))
    frame = pl.DataFrame(pl.from_arrow(pa.Table.from_struct_array(messages)))
    return _flat(frame.select(whole.alias("json")).to_arrow(compat_level=pl.CompatLevel.oldest())["json"], pa.string())


def _encoded(name: str, *, fill: bool = False) -> pl.Expr:
    """A text column as JSON string literals; null stays null unless `fill` makes it ""."""
    value = pl.col(name).fill_null("") if fill else pl.col(name)
    literal = pl.struct(value.alias("v")).struct.json_encode()  # {"v":"…"}
    return pl.when(value.is_not_null()).then(literal.str.slice(5).str.strip_suffix("}"))


def _answers(spec: pa.Array) -> pa.Array:
    """The gold answer of each verifier spec, as text; null where it has none."""
    frame = pl.DataFrame({"spec": pl.Series("spec", pl.from_arrow(spec), dtype=pl.String)})
    found = frame.select(pl.col("spec").str.json_path_match("$.answer").alias("answer"))
    return _flat(found.to_arrow(compat_level=pl.CompatLevel.oldest())["answer"], pa.string())


def _parted(rows: pa.Table, messages: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Prompt and completion of rated rows: `chosen` where there is one, else the conversation's last answer."""
    chosen = _conversations(rows["chosen"])
    lengths = pc.list_value_length(messages).to_numpy(zero_copy_only=False).astype(np.int64)
    ends = np.cumsum(lengths) - 1
    roles = np.asarray(pc.struct_field(_flat(rows["messages"]).flatten(), "role").to_pylist(), dtype=object)
    open_end = (lengths > 0) & (pc.list_value_length(chosen).to_numpy(zero_copy_only=False) == 0)
    last = np.zeros(len(lengths), bool)
    last[open_end] = roles[ends[open_end]] == "assistant"
    keep = np.ones(len(roles), bool)
    keep[ends[last]] = False
    texts = messages.flatten().storage
    prompt = _lists(lengths - last, texts.filter(pa.array(keep)))
    said = _lists(last.astype(np.int64), texts.take(pa.array(ends[last])))
    both = pa.concat_arrays([said, chosen])
    places = np.arange(len(lengths)) + np.where(last, 0, len(lengths))
    return prompt, both.take(pa.array(places))


def order(rows: pa.Table, seed: int) -> npt.NDArray[np.uint64]:
    """Where each line (a row and its `copy`) stands among all: a draw of its content, so not of the input's order."""
    return mix(draw(rows["content_id"], f"shard {seed}"), rows["copy"].to_numpy().astype(np.uint64))


def row_bytes(form: pa.Table) -> npt.NDArray[np.int64]:
    """Bytes that each row takes before compression: the same wherever the table was cut."""
    total = np.zeros(form.num_rows, np.int64)
    for column in form.itercolumns():
        total += _bytes(_flat(column))
    return total


def _bytes(array: pa.Array) -> npt.NDArray[np.int64]:
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_string(array.type) or pa.types.is_binary(array.type):
        return np.asarray(pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False), np.int64) + 4
    if pa.types.is_struct(array.type):
        return np.asarray(np.sum([_bytes(child) for child in array.flatten()], axis=0), np.int64)
    if pa.types.is_list(array.type):
        inner = np.concatenate([[0], np.cumsum(_bytes(array.flatten()))])
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
        ends = np.cumsum(lengths)
        return np.asarray(inner[ends] - inner[ends - lengths] + 4, np.int64)
    return np.full(len(array), 8, np.int64)


def row_groups(sizes: npt.NDArray[np.int64], limit: int) -> list[tuple[int, int]]:
    """Start and end of row groups of at most `limit` bytes each, at least one row each."""
    ends = np.cumsum(sizes)
    cuts, start = [], 0
    while start < len(sizes):
        base = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, base + limit, side="right")), start + 1)
        cuts.append((start, stop))
        start = stop
    return cuts


def shard_count(rows: int, size: int, config: ShardConfig) -> int:
    """A power of two, so that a shard too many only halves the shards there are; 0 without rows."""
    need = max(-(-rows // config.rows_per_shard), -(-size // int(config.shard_mib * 2**20 + 1)))
    return 1 << (need - 1).bit_length() if rows else 0


def _flat(column: pa.ChunkedArray | pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """One contiguous array, cast to `kind` if given."""
    if isinstance(column, pa.ChunkedArray):
        chunks = column.chunks
        column = chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
    return column.cast(kind) if kind is not None else column
