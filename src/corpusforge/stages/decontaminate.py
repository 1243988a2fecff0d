"""decontaminate: take out (or flag) rows that hold items of the benchmarks the model will be judged by.

Method: word n-gram coverage as Tülu 3 and OLMo 3 use it (8-grams, more than half of the item), where other pipelines
drop on any hit; whole-phrase match for questions shorter than n words, which n-grams never find; question and answer
apart; every field of a row (system, user, assistant and tool turns, tool calls, chosen, rejected, verifier), because a
leak in a tool result trains as well as one in a prompt. Entities (addresses, numbers, stand-ins) are one word on both
sides, so scrubbed rows still match. N-grams that many rows or many items share are no evidence. Every row that goes
was compared word for word, not by hash.

    gsm8k-like#7  user: "Please solve: Janet's ducks lay 16 eggs per day. …"
        -> dropped, benchmark_question {"benchmark": "gsm8k-test", "item": "1", "side": "question", "coverage": 1.0,
           "field": "messages[0].content", "span": [14, 290], "method": "exact", "answer_found": true}

What it cannot see: the same item in other words or another language. The metrics say so with every run.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from corpusforge.result import LEDGER, StageResult, ledger
from corpusforge.stages._stage import Decided, Decision, Fetch, Inputs, StageConfig, configure, in_memory
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    import polars as pl

    from corpusforge.text.overlap import BenchmarkIndex, Evidence

CHECKS: Final = (
    "exact: whole item, word for word",
    "phrase: whole question shorter than n words",
    "ngram: share of an item's word n-grams",
    "parts: an item's parts in another order",
)
NOT_CHECKED: Final = ("semantic: the same item in other words", "translation: the same item in another language")
_COLUMNS: Final = ["messages", "chosen", "rejected", "verifier"]
_FETCH: Final = 2_000  # rows compared word for word at a time


class DecontaminateConfig(StageConfig):
    """What counts as a leaked benchmark item, and what happens to the row."""

    benchmarks: list[SourceConfig] = Field(default_factory=list)
    """Benchmarks to keep out, declared like sources; their licences and restrictions do not matter, they only match."""

    n: int = Field(8, ge=2, le=64)
    """Length of the n-grams in words; 8 finds edited copies that 13 misses, at the same false-positive rate."""

    threshold: float = Field(0.5, gt=0, le=1)
    """Share of an item's n-grams, 0 to 1, from which a row holds the item."""

    thresholds: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    """Other thresholds for single benchmarks, by name: code with fixed signatures needs a higher one."""

    action: Literal["drop", "flag"] = "drop"
    """`drop` takes the row out, `flag` keeps it and notes it in `changes`."""

    min_words: int = Field(4, ge=1)
    """Words that a question needs to be matched as a whole phrase; "Yes" and "Option A" are everywhere."""

    max_df: int = Field(10, ge=1)
    """Rows (or items of one benchmark) beyond which a shared n-gram is common text and proves nothing."""


def decontaminate(
    rows: pa.Table,
    config: DecontaminateConfig | None = None,
    *,
    benchmarks: pa.Table | None = None,
    **options: Any,
) -> StageResult:
    """Match `rows` against `benchmarks` (rows of the same format, `source.name` is the benchmark's name).

    Adds `contamination`: the highest coverage of any item, 0 to 1, null when there was no benchmark. Keyword arguments
    are the fields of DecontaminateConfig. Raises ConfigError for a wrong option.
    """
    return in_memory(STAGE, rows, configure(DecontaminateConfig, config, options), {"benchmarks": benchmarks})


def _summarise(rows: pa.Table, config: DecontaminateConfig, inputs: Inputs) -> pa.Table:
    """The numbers of the benchmark n-grams that each row holds."""
    from corpusforge.text.overlap import row_grams

    index = _index(config, inputs)
    if index is None:
        return pa.table({"grams": pa.nulls(rows.num_rows, pa.list_(pa.int32()))})
    pairs = row_grams(rows, index)
    counts = np.bincount(pairs["row"].to_numpy(), minlength=rows.num_rows)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.table({"grams": pa.ListArray.from_arrays(pa.array(offsets), pairs["gram"].to_arrow().cast(pa.int32()))})


def _decide(summary: pa.Table, config: DecontaminateConfig, inputs: Inputs, fetch: Fetch) -> Decision:
    """Coverage of every item in every row, given what is common to the corpus; one verdict per row."""
    index = _index(config, inputs)
    if index is None:
        nothing = {"checks_run": [], "checks_not_run": [*CHECKS, *NOT_CHECKED], "benchmarks": {}}
        return Decision(_verdicts(summary.num_rows, None, {}), nothing)
    import polars as pl

    grams = pl.DataFrame({"row": np.arange(summary.num_rows), "gram": pl.Series(summary["grams"])})
    pairs = grams.explode("gram").drop_nulls().cast({"gram": pl.Int32})
    verified = _verify(pairs, _judge(pairs, index, config), index, fetch)
    judged = _judge(verified.pairs, index, config)
    lines = _best(judged, index, verified)
    metrics = {"checks_run": list(CHECKS), "checks_not_run": list(NOT_CHECKED), "benchmarks": _report(judged, index)}
    return Decision(_verdicts(summary.num_rows, judged, lines), metrics)


def _apply(rows: pa.Table, verdicts: pa.Table, config: DecontaminateConfig, _inputs: Inputs) -> StageResult:
    """Drop or flag the rows that hold an item, and note those that only share common text."""
    rows = rows.drop_columns([name for name in STAGE.columns if name in rows.column_names])
    rows = rows.append_column("contamination", verdicts["contamination"].cast(pa.float64()))
    reasons = np.array(verdicts["reason"].to_pylist(), object)
    details = verdicts["detail"].to_pylist()

    def lines(indices: Any) -> pa.Table:
        return ledger(rows, indices, STAGE.name, list(reasons[indices]), [json.loads(details[i]) for i in indices])

    hit = np.array([reason is not None and reason != "common_text" for reason in reasons], bool)
    noted = np.flatnonzero(reasons == "common_text")
    if config.action == "flag":
        return StageResult(
            STAGE.name, rows, LEDGER.empty_table(), lines(np.sort(np.concatenate([np.flatnonzero(hit), noted])))
        )
    kept = rows.filter(pa.array(~hit))
    return StageResult(STAGE.name, kept, lines(np.flatnonzero(hit)), lines(noted))


STAGE = Decided(
    "decontaminate", DecontaminateConfig, _summarise, _decide, _apply, needs=("benchmarks",), columns=("contamination",)
)

_CACHE: dict[bytes, BenchmarkIndex] = {}  # one index per process: partitions come one after another


def _index(config: DecontaminateConfig, inputs: Inputs) -> BenchmarkIndex | None:
    table: pa.Table | None = inputs.get("benchmarks")
    if table is None or table.num_rows == 0:
        return None
    from corpusforge.text.overlap import BenchmarkIndex

    identity = [table["row_id"].to_pylist(), table["content_id"].to_pylist(), config.n, config.min_words, config.max_df]
    key = hashlib.blake2b(json.dumps(identity).encode("utf-8", "surrogatepass")).digest()
    if key not in _CACHE:
        _CACHE.clear()
        _CACHE[key] = BenchmarkIndex(table, config.n, config.min_words, config.max_df)
    return _CACHE[key]


def _judge(pairs: pl.DataFrame, index: BenchmarkIndex, config: DecontaminateConfig) -> pl.DataFrame:
    """Coverage of entries by rows with the verdict: `hit`, `common`, `method`, and what the entry is."""
    import polars as pl

    from corpusforge.text.overlap import PARTS, coverage

    limits = {item.benchmark: config.thresholds.get(item.benchmark, config.threshold) for item in index.items}
    known = index.entries.with_columns(limit=pl.col("benchmark").replace_strict(limits, return_dtype=pl.Float64))
    found = coverage(pairs, index, config.max_df).join(known, "entry")
    by_share, by_parts = pl.col("coverage") >= pl.col("limit"), pl.col("parts") >= PARTS
    method = (
        pl.when(pl.col("words") < config.n)
        .then(pl.lit("phrase"))
        .when(pl.col("raw") >= 1)
        .then(pl.lit("exact"))
        .when(by_share)
        .then(pl.lit("ngram"))
        .otherwise(pl.lit("parts"))
    )
    score = pl.when(~by_share & by_parts).then("parts").otherwise("coverage")
    return found.with_columns(
        hit=by_share | by_parts,
        common=(pl.col("raw") >= pl.col("limit")) & ~(by_share | by_parts),
        method=method,
        score=score,
    )


@dataclass
class _Verified:
    """N-grams of rows, word for word where a verdict rests on them, and what is known of the rows with a verdict."""

    pairs: pl.DataFrame
    places: pl.DataFrame  # row (global), gram, field, start, end
    answered: set[tuple[int, int]]  # (row, item) where the item's own short answer stands in an answer of the row


def _verify(pairs: pl.DataFrame, judged: pl.DataFrame, index: BenchmarkIndex, fetch: Fetch) -> _Verified:
    """Fetch the rows with a verdict and compare their n-grams word for word."""
    import polars as pl

    from corpusforge.text.overlap import locate

    with_verdict = judged.filter(pl.col("hit") | pl.col("common"))
    numbers = with_verdict["row"].unique().sort().to_numpy()
    items = dict(with_verdict.group_by("row").agg(pl.col("item").unique().sort()).iter_rows())
    places, answered = [], set()
    for start in range(0, len(numbers), _FETCH):
        some = numbers[start : start + _FETCH].astype(np.int64)
        evidence = locate(fetch(some, _COLUMNS), index)
        places.append(_named(evidence, some))
        for local, row in enumerate(some.tolist()):
            answered |= {(row, item) for item in items[row] if evidence.says(local, index.answers(item))}
    schema = {"row": pl.Int64, "gram": pl.Int32, "field": pl.String, "start": pl.Int64, "end": pl.Int64}
    found = pl.concat([pl.DataFrame(schema=schema), *places])
    rest = pairs.filter(~pl.col("row").is_in(numbers.tolist()))
    return _Verified(pl.concat([rest, found.select("row", "gram").unique()]).sort("row", "gram"), found, answered)


def _named(evidence: Evidence, rows: Any) -> pl.DataFrame:
    import polars as pl

    places = evidence.places
    fields = [evidence.parts.field(piece) for piece in places["piece"].to_list()]
    return places.with_columns(
        row=pl.Series(rows[places["row"].to_numpy()], dtype=pl.Int64), field=pl.Series(fields, dtype=pl.String)
    ).select("row", "gram", "field", "start", "end")


def _best(judged: pl.DataFrame, index: BenchmarkIndex, verified: _Verified) -> dict[int, tuple[str, dict[str, Any]]]:
    """Reason and detail per row with a verdict: the entry that is covered most, questions before answers."""
    import polars as pl

    verdicts = judged.filter(pl.col("hit") | pl.col("common"))
    ordered = verdicts.sort(
        "row", pl.col("hit"), "score", "side", "entry", descending=[False, True, True, False, False]
    )
    best = ordered.unique("row", keep="first", maintain_order=True)
    where = _where(best, index, verified.places)
    also = {row: count - 1 for row, count in verdicts.group_by("row").agg(pl.col("item").n_unique()).iter_rows()}
    long_answers = set(verdicts.filter(pl.col("hit") & (pl.col("side") == 1)).select("row", "item").iter_rows())
    answered = verified.answered | long_answers
    everywhere = _everywhere(verdicts, index, answered)
    lines = {}
    for line in best.iter_rows(named=True):
        item = index.items[line["item"]]
        side = "answer" if line["side"] else "question"
        detail: dict[str, Any] = {"benchmark": item.benchmark, "item": item.name, "side": side}
        detail |= {"coverage": round(line["score"], 4), "method": line["method"], **where.get(line["row"], {})}
        if side == "question" and item.answers:
            detail["answer_found"] = (line["row"], line["item"]) in answered
        if also[line["row"]]:
            detail["other_items"] = also[line["row"]]
        if not line["hit"]:
            detail |= {"coverage": round(line["raw"], 4), "specific": round(line["coverage"], 4)}
        if not line["hit"] or line["item"] in everywhere:
            detail["class"] = "common text"
        lines[line["row"]] = (f"benchmark_{side}" if line["hit"] else "common_text", detail)
    return lines


def _everywhere(verdicts: pl.DataFrame, index: BenchmarkIndex, answered: set[tuple[int, int]]) -> set[int]:
    """Items whose question stands in many rows but never with its answer: a saying or a quotation, most likely."""
    import polars as pl

    asked = verdicts.filter(pl.col("hit") & (pl.col("side") == 0))
    rows = asked.group_by("item").agg(pl.col("row").n_unique()).filter(pl.col("row") > index.max_df)["item"].to_list()
    with_answer = {item for _, item in answered}
    return {item for item in rows if index.items[item].answers and item not in with_answer}


def _where(best: pl.DataFrame, index: BenchmarkIndex, places: pl.DataFrame) -> dict[int, dict[str, Any]]:
    """Field and span per row: the field that holds most of the entry, from its first matched word to its last."""
    import polars as pl

    own = best.select("row", "entry").join(index.occurrences.select("entry", "gram").unique(), "entry")
    spans = (
        own.join(places, ["row", "gram"])
        .group_by("row", "field")
        .agg(held=pl.col("gram").n_unique(), start=pl.col("start").min(), end=pl.col("end").max())
        .sort("row", "held", "field", descending=[False, True, False])
        .unique("row", keep="first", maintain_order=True)
    )
    return {
        line["row"]: {"field": line["field"], "span": [line["start"], line["end"]]}
        for line in spans.iter_rows(named=True)
    }


def _verdicts(count: int, judged: pl.DataFrame | None, lines: dict[int, tuple[str, dict[str, Any]]]) -> pa.Table:
    reasons: list[str | None] = [None] * count
    details: list[str | None] = [None] * count
    for row, (reason, detail) in lines.items():
        reasons[row], details[row] = reason, json.dumps(detail, sort_keys=True)
    if judged is None:
        highest = pa.nulls(count, pa.float64())
    else:
        import polars as pl

        most = judged.group_by("row").agg(pl.col("score").max())
        values = np.zeros(count)
        values[most["row"].to_numpy()] = most["score"].to_numpy()
        highest = pa.array(values)
    return pa.table(
        {"contamination": highest, "reason": pa.array(reasons, pa.string()), "detail": pa.array(details, pa.string())}
    )


def _report(judged: pl.DataFrame, index: BenchmarkIndex) -> dict[str, dict[str, int]]:
    """Per benchmark: items, items too short to look for, items and rows hit, by question and by answer."""
    import polars as pl

    hits = judged.filter(pl.col("hit"))
    report = {}
    for name in sorted(index.too_short):
        own = hits.filter(pl.col("benchmark") == name)
        question, answer = own.filter(pl.col("side") == 0), own.filter(pl.col("side") == 1)
        report[name] = {
            "items": sum(item.benchmark == name for item in index.items),
            "items_too_short": index.too_short[name],
            "items_hit": own["item"].n_unique(),
            "rows_hit": own["row"].n_unique(),
            "question_rows": question["row"].n_unique(),
            "answer_rows": answer["row"].n_unique(),
        }
    return report
