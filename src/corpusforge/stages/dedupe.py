"""Dedupe: rows that say the same as another row go; each removal names the kept row and the exact similarity.

Two passes. Rows with equal `content_id` are exact duplicates: where they came from does not matter. Then MinHash with
locality-sensitive hashing (Broder 1997; Leskovec et al., Mining of Massive Datasets, ch. 3) finds candidates, and the
exact Jaccard similarity of their shingle sets decides. Rows are taken in the order of survival (`prefer`, then the
earliest record of the first source), and a row goes only when it is similar enough to a row that is *kept*: in a chain
A~B~C with A and C apart, A and C stay.

    web#9    "The ferry leaves the north pier at seven …"     synthetic
    forum#2  "The ferry leaves the north pier at seven; …"    human
    -> web#9 dropped, near_duplicate, {"kept": "forum#2", "method": "minhash", "similarity": 1.0}

What is compared (`compare_text`): a conversation without its system prompts, a trace's steps apart from what its tools
gave, a task's prompt, a pair's prompt and both answers. What must be equal besides (kind, tools, gold, numbers, …) is
in `_guard.py`. Rows without a word and without an image are noted (`empty`) and left to `filter`. Same prompt,
different gold: both tasks stay and are reported. The kept row takes on the licences and restrictions of the rows that
go for it (`_twins.py`); what repeats a row that `ingest` refused for its terms goes too.

`cluster` groups what must not be parted between training and held-out: rows with the same prompt, and rows removed
with those that they were removed for. Its name is the smallest content id among them, removed rows included.
"""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from corpusforge.result import StageResult, ledger
from corpusforge.sample import dumps
from corpusforge.stages._between import between
from corpusforge.stages._cache import known_or_made, without_prints
from corpusforge.stages._groups import clusters, conflicts
from corpusforge.stages._guard import asked_keys, flat, gold_keys, guard_keys
from corpusforge.stages._index import BAND, Indexed, band
from corpusforge.stages._overrides import OVERRIDE, Override, Ruled, marked
from corpusforge.stages._pieces import pieces
from corpusforge.stages._policy import RESTRICTED
from corpusforge.stages._prefer import Rule, parse_rule
from corpusforge.stages._search import TEXT_COLUMNS, find, leaders, sets_of
from corpusforge.stages._semantic import Read, SemanticConfig, Twins, semantic
from corpusforge.stages._stage import Decided, Decision, Fetch, Held, Inputs, StageConfig, configure, in_memory
from corpusforge.stages._twins import TAKEN, take_on, terms
from corpusforge.text.views import compare_text, prompt_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpusforge.stages._cache import Cache, Columns
    from corpusforge.stages._index import SignatureIndex
    from corpusforge.stages._semantic import Encoder
    from corpusforge.text.pairs import Sets

_REASONS: Final = {"exact": "exact_duplicate", "minhash": "near_duplicate", "cosine": "semantic_duplicate"}
_NOTES: Final = (  # and their columns
    *(("conflicting_gold", "conflict"), ("stricter_twin", "note"), ("semantic_duplicate", "meaning")),
    *(("kept_by_override", "spared"), ("empty", "empty")),
)

Positions = npt.NDArray[np.int64]


class DedupeConfig(StageConfig):
    """When two rows are the same, and which of them stays."""

    threshold: float = Field(0.8, gt=0, le=1)
    """Jaccard similarity from which a row is a near duplicate. At 0.8 a 100-word text may differ in some 2 words."""
    shingle: int = Field(5, ge=1, le=50)
    """Words per shingle (characters, in scripts without spaces). Fewer forgive more edits and find more chance hits."""
    num_perm: int = Field(128, ge=16, le=1024)
    """Upper bound on the length of a signature. Longer ones allow purer buckets at the same recall."""
    recall: float = Field(0.99, gt=0, lt=1)
    """Least probability that a pair exactly at the threshold is compared; pairs above it are found more surely."""
    exact_only: bool = False
    """Only rows with equal content go; no near duplicates, no signatures."""
    numbers_matter: bool = True
    """Tasks that differ in their numbers are different tasks, however similar the words."""
    prefer: tuple[str, ...] = ("origin in [human, synthetic, mixed]", "length desc")
    """Who stays, as rules: `FIELD asc`, `FIELD desc`, `FIELD in [A, B]`; ties go to the earliest record."""
    against: str | None = None
    """Folder of an index (`corpusforge index`), relative to the project: what repeats one of its rows goes."""
    cache: str | None = Field(None, exclude=True)
    """Folder, relative to the project, where a build leaves hashes of its rows for the next, which is faster then.
    It changes no byte of what is built, so no manifest states it; `.corpusforge/dedupe` is a good place."""
    semantic: SemanticConfig | None = None
    """Rows that say the same in other words, found by an encoder; reported unless `action` says otherwise."""
    seed: int = Field(1, ge=0, lt=2**32)
    """Changes the permutations, hence which pairs near the threshold meet. The same seed gives the same rows."""

    @field_validator("prefer")
    @classmethod
    def _rules(cls, prefer: tuple[str, ...]) -> tuple[str, ...]:
        for rule in prefer:
            parse_rule(rule)
        return prefer


def dedupe(
    rows: pa.Table,
    config: DedupeConfig | None = None,
    *,
    reference: pa.Table | SignatureIndex | None = None,
    refused: pa.Table | None = None,
    encoder: Encoder | None = None,
    overrides: Sequence[Override] = (),
    **options: Any,
) -> StageResult:
    """Drop exact and near duplicates; set `cluster`, and on rows for which others went `provenance`.

    `reference` holds rows (of the same format, or an index of them) that are already there: they are never dropped and
    not part of the result, and a new row that repeats one of them goes. So with `refused`, rows that were left out for
    their terms: what repeats one of them is `restricted`. `encoder` is that of `semantic`, where that tier is on;
    `overrides` say of single rows that they stay or go (`_overrides.py`). `options` are fields of DedupeConfig. Raises
    ConfigError.
    """
    given = {"reference": reference, "refused": refused, "encoder": encoder}
    inputs: dict[str, Any] = {
        name: Held(rows) if isinstance(rows, pa.Table) else rows for name, rows in given.items() if rows is not None
    }
    return in_memory(STAGE, rows, configure(DedupeConfig, config, options), inputs | {"overrides": overrides})


def _summarise(rows: pa.Table, config: DedupeConfig, inputs: Inputs) -> pa.Table:
    cache = inputs.get("cache")
    summary = pa.concat_tables([_summary(piece, config, cache) for piece in pieces(rows, TEXT_COLUMNS)])
    return marked(summary, rows, inputs.get("overrides") or ())


def _summary(rows: pa.Table, config: DedupeConfig, cache: Cache | None = None) -> pa.Table:
    """One small row per row: who it is, what it may be merged with, and the hashes of its bands."""
    hashed = known_or_made(rows, cache, partial(_hashed, config=config))
    images = np.asarray(pc.fill_null(pc.list_value_length(rows["images"]), 0)) > 0
    columns: dict[str, Any] = {
        "row_id": rows["row_id"],
        "content_id": rows["content_id"],
        "cluster": pc.coalesce(rows["cluster"], rows["content_id"]),
        "comparable": (hashed["units"] > 0) | images,
        **hashed,
    }
    frame = pl.DataFrame(pl.from_arrow(rows.select(["kind", "language", "domain", "rating", "source", "extra"])))
    keys = (
        frame.with_columns(length=pl.lit(pl.Series(hashed["units"])))
        .select(
            *(rule.key().alias(f"key{i}") for i, rule in enumerate(_rules(config))),
            pl.col("source").struct.field("record").alias("record"),
        )
        .with_columns(terms(rows))
    )
    own = keys.to_arrow(compat_level=pl.CompatLevel.oldest())
    return pa.table({**columns, **{name: own[name] for name in own.column_names}})


def _hashed(rows: pa.Table, config: DedupeConfig) -> Columns:
    """What of a row's summary is made from its text, and from what else the columns `READ` of _cache.py hold."""
    from corpusforge.text.shingles import shingle, text_keys

    shingles = shingle(compare_text(rows), config.shingle)
    prompt = text_keys(prompt_text(rows))
    asked = asked_keys(rows, prompt)
    columns: Columns = {"units": shingles.units, "prompt": prompt, "asked": asked, "gold": gold_keys(rows)}
    if config.exact_only:
        return columns
    from corpusforge.text.minhash import band_hashes, parameters, signatures

    bands, height = parameters(config.threshold, config.num_perm, config.recall)
    signature = signatures(shingles.hashes, shingles.starts, bands * height, config.seed)
    guards = guard_keys(rows, shingles.numbers if config.numbers_matter else None, config.shingle)
    hashed = band_hashes(signature, bands, height, guards)
    return columns | {band(i): np.ascontiguousarray(hashed[:, i]) for i in range(bands)}


def index_parts(rows: pa.Table, config: DedupeConfig) -> tuple[pa.Table, Any, dict[str, Any], list[Sets]]:
    """What an index of rows is made of: facts, bands (bands, rows), values to look up by (0: none), shingle sets."""
    from corpusforge.text.pairs import sets
    from corpusforge.text.shingles import byte_keys, shingle

    summary = _summarise(rows, config, {})
    names = [name for name in summary.column_names if name.startswith(BAND)]
    none = np.uint64(0)
    read = summary["units"].to_numpy() > 0
    bands = np.stack([np.where(read, summary[name].to_numpy(), none) for name in names])
    content = np.where(summary["comparable"].to_numpy(), byte_keys(flat(summary["content_id"])), none)
    lookups = {"content": content, "prompt": summary["prompt"].to_numpy()}
    every = [sets(shingle(compare_text(piece), config.shingle)) for piece in pieces(rows, TEXT_COLUMNS)]
    return summary.drop_columns(names), bands, lookups, every


def _rules(config: DedupeConfig) -> list[Rule]:
    return [parse_rule(rule) for rule in config.prefer]


def _decide(summary: pa.Table, config: DedupeConfig, inputs: Inputs, fetch: Fetch) -> Decision:
    count = summary.num_rows
    summary, fetch = without_prints(summary, fetch, inputs.get("cache"))
    summary, behind, barred = _with_others(summary, config, inputs, fetch)
    facts = pl.DataFrame(pl.from_arrow(summary.drop_columns([n for n in summary.column_names if n.startswith(BAND)])))
    ruled = Ruled.of(facts, count, inputs.get("overrides"))
    ruled = ruled.within_terms(summary, barred, config.threshold, partial(sets_of, config=config, behind=behind))
    order = ruled.behind(_order(facts, count, config))
    copies = leaders(facts, order)
    order = ruled.ahead(order, copies, count)
    found, figures = find(order, ruled.judged(leaders(facts, order)), facts, summary, config, behind, ruled.keep)
    linked = found.partner
    found.partner, would = ruled.spare(linked, found.similarity, copies)
    told = Twins.none(count)
    if config.semantic:
        read = Read(fetch, facts["units"].to_numpy(), config.shingle, config.numbers_matter)
        told = semantic(order, ruled.gone(found.partner), count, config.semantic, inputs.get("encoder"), read)
        told.goes[ruled.keep] = False
        told.settle(found.partner, found.similarity, found.method)
    cluster = clusters(facts, linked, copies, told.twin)
    judged = ruled.out(found.partner)
    taken = ruled.terms(facts, found.partner, found.exact, count)
    partner = ruled.gone(found.partner)
    conflict = conflicts(facts, partner, count)
    gone = partner[:count] >= 0
    whole = pl.DataFrame({"at": np.arange(count)}).join(taken, on="at", how="left", maintain_order="left")
    verdicts = pa.table(
        {
            "kept": summary["row_id"].take(pa.array(partner[:count], mask=~gone)),
            "similarity": pa.array(np.round(found.similarity[:count], 6), mask=~gone),
            "method": pa.array(found.method[:count], pa.string(), mask=~gone),
            "cluster": cluster[:count].cast(pa.string()),
            "conflict": pa.array([conflict.get(i) for i in range(count)], pa.string()),
            "refused": _refused(facts, partner[:count], barred),
            "meaning": told.notes(summary["row_id"]),
            "empty": pa.array(["{}"] * count, mask=facts["comparable"].to_numpy()[:count] | gone),
            **ruled.verdicts(facts, would, count),
            **{name: whole[name].to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string()) for name in TAKEN},
        }
    )
    by_words = (judged[:count] >= 0) & (found.method[:count] != "cosine")
    figures |= {
        "duplicates": between(facts["source"], judged, found.exact, (count, barred)),
        "clusters": len(pc.unique(verdicts["cluster"])),
        "similarity": _histogram(found.similarity[:count][by_words]),
        **ruled.figures(would),
        **told.figures,
    }
    return Decision(verdicts, figures)


def _with_others(
    summary: pa.Table, config: DedupeConfig, inputs: Inputs, fetch: Fetch
) -> tuple[pa.Table, list[tuple[int, Any]], int]:
    """Behind the rows of the corpus those that are there already, and those that ingest refused for their terms.

    Gives the summary of all, where each part begins and its rows, and where the refused ones begin.
    """
    new, barred, plain = summary, summary.num_rows, {**inputs, "cache": None}
    behind: list[tuple[int, Any]] = [(0, fetch)]
    for name in ("reference", "refused"):
        barred, given = summary.num_rows, inputs.get(name)
        if given is None:
            continue
        known = Indexed.of(given, new, config)
        behind.append((barred, known or given))
        parts = [known.summary] if known else [_summarise(part, config, plain) for part in given.tables()]
        summary = pa.concat_tables([summary, *(_without_keys(part) for part in parts)])
    return summary, behind, barred if inputs.get("refused") is not None else summary.num_rows


def _order(facts: pl.DataFrame, count: int, config: DedupeConfig) -> Positions:
    """Positions in the order of survival: reference rows, then by the rules, then the earliest record."""
    rules = _rules(config)
    keys = [f"key{i}" for i in range(len(rules))]
    falling = [False, *(rule.descending for rule in rules), False, False, False]
    ranked = facts.select(*keys, "source", "record", "row_id").with_row_index("at")
    ranked = ranked.with_columns(new=pl.col("at") < count)
    by = ["new", *keys, "source", "record", "row_id"]
    return ranked.sort(by, descending=falling, nulls_last=True, maintain_order=True)["at"].to_numpy().astype(np.int64)


def _without_keys(summary: pa.Table) -> pa.Table:
    """The summary of rows that are there already: among them, none is preferred."""
    for at, field in enumerate(summary.schema):
        if field.name.startswith("key"):
            summary = summary.set_column(at, field, pa.nulls(summary.num_rows, field.type))
    return summary


def _refused(facts: pl.DataFrame, partner: Positions, barred: int) -> pa.Array:
    """For each row that repeats one that ingest refused: what that one stated, as JSON."""
    told: list[str | None] = [None] * len(partner)
    for at in np.flatnonzero(partner >= barred):
        said = facts.row(int(partner[at]), named=True)
        told[at] = dumps({"license": said["license"], "restrictions": said["restrictions"].split(",")})
    return pa.array(told, pa.string())


def _histogram(similarity: npt.NDArray[np.float64]) -> dict[str, int]:
    """Count removals by similarity, in steps of a twentieth; 1.00 stands for equal sets alone."""
    steps, counts = np.unique(np.floor(similarity * 20 + 1e-9) / 20, return_counts=True)
    return {f"{step:.2f}": int(number) for step, number in zip(steps, counts, strict=True)}


def _apply(rows: pa.Table, verdicts: pa.Table, _config: DedupeConfig, _inputs: Inputs) -> StageResult:
    gone = np.asarray(pc.is_valid(verdicts["kept"]))
    at = np.flatnonzero(gone)
    reasons, details = [], []
    columns = ["kept", "similarity", "method", "refused", "override"]
    for line in verdicts.select(columns).take(pa.array(at)).to_pylist():
        refused, override = line.pop("refused"), line.pop("override")
        if override is not None:
            reasons.append(OVERRIDE)
            line = json.loads(override)
        elif refused is None:
            reasons.append(_REASONS[line["method"]])
        else:
            reasons.append(RESTRICTED)
            line = {"twin": line.pop("kept"), **line, **json.loads(refused)}
        details.append(line)
    rows = rows.set_column(rows.schema.get_field_index("cluster"), "cluster", verdicts["cluster"])
    notes = []
    for reason, column in _NOTES:
        found = dict(_noted(verdicts[column]))
        notes.append(ledger(rows, list(found), "dedupe", [reason] * len(found), list(found.values())))
    metrics = {reason: table.num_rows for (reason, _), table in zip(_NOTES, notes, strict=True)}
    kept = take_on(rows, verdicts).filter(pa.array(~gone))
    return StageResult("dedupe", kept, ledger(rows, at, "dedupe", reasons, details), pa.concat_tables(notes), metrics)


def _noted(column: pa.ChunkedArray) -> list[tuple[int, dict[str, Any]]]:
    """Positions and details of the rows of which there is something to note."""
    at = np.flatnonzero(np.asarray(pc.is_valid(column)))
    return [(int(i), json.loads(text)) for i, text in zip(at, column.take(pa.array(at)).to_pylist(), strict=True)]


STAGE: Final = Decided(
    "dedupe",
    DedupeConfig,
    _summarise,
    _decide,
    _apply,
    needs=("reference", "refused", "encoder", "overrides", "cache"),
    columns=("provenance",),
)
