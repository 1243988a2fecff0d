"""What `check` looks for, each as a pure function: rows (or a stage's result) in, findings out.

A finding says how many rows, which, and what to do. Rows are named by their number in the file; no finding holds a
row's text or a found value.

    near_duplicates   12 rows   rows 7, 19, 311 …   worst pair: row 311 and row 7, similarity 0.981
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpusforge.result import StageResult

ADVICE: Final = {
    "nothing_readable": "is this the right file? see docs/shapes.md for the shapes that are known",
    "unknown_shape": "say which field is what: --field prompt=NAME --field completion=NAME (or text=NAME)",
    "broken_lines": "see the reasons (docs/stages/ingest.md); `ingest` puts these records aside and counts them",
    "exact_duplicates": "`dedupe` keeps one of each",
    "near_duplicates": "look at the worst pairs; `dedupe` removes what is above its threshold",
    "other_answers_same_prompt": "fine for preferences, a conflict for facts: see whether the answers agree",
    "conflicting_gold": "one task, two right answers: find out which is right, a verifier cannot",
    "secrets": "revoke them, then remove the rows or run `scrub`",
    "personal_data": "`scrub` puts consistent stand-ins in their place",
    "benchmark_hits": "remove them, or the benchmark measures memory; `decontaminate` does it",
    "empty_answer": "there is nothing to learn from: remove them; `filter` does it",
    "no_answer": "a conversation without an assistant turn trains nothing: remove or complete them",
    "equal_answers": "chosen and rejected are the same: DPO learns nothing from them; `filter` drops them",
    "trainer_drops": "no token of the answer is within max_length: raise it, or shorten the prompts",
    "trainer_cuts": "the end of the answer is cut off: raise max_length, or split the rows",
    "unknown_license": "find out the licence and declare it: a shard's licence is that of its rows",
    "restricted": "the source restricts its use: recipes must allow that by name",
}
_FILTER_ADVICE: Final = "`filter` drops them by default; docs/stages/filter.md says what the rule measures"
CHOSEN: Final = ("excluded_by_where", "over_limit")
_SAID_ELSEWHERE: Final = {"empty", "equal_answers"}  # filter rules that have a finding of their own here
_SIDES: Final = ("chosen", "rejected")
_TURN_FIELDS: Final = ("reasoning", "content", "tool_calls")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong (or worth knowing) in a file."""

    code: str
    rows: int
    where: tuple[str, ...] = ()  # the first few: row numbers, or file:line
    facts: tuple[dict[str, Any], ...] = field(default=(), repr=False)
    advice: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "code": self.code,
            "rows": self.rows,
            "where": list(self.where),
            "facts": list(self.facts),
            "advice": self.advice,
        }


def finding(code: str, places: Sequence[Any], listed: int, facts: Iterable[dict[str, Any]] = ()) -> Finding:
    """A finding at these places (one per row, in file order)."""
    shown = tuple(str(place) for place in places[:listed])
    return Finding(code, len(places), shown, tuple(facts), ADVICE.get(code, _FILTER_ADVICE))


def labels(rows: pa.Table) -> Any:
    """How each row is named: its record number in the file, or `file#record` where there are several files."""
    source = rows["source"]
    numbers = np.asarray(pc.struct_field(source, "record").combine_chunks())
    names = pc.struct_field(source, "name")
    whole = pc.equal(pc.replace_substring_regex(rows["row_id"], r"#[0-9.]+$", ""), names)
    if pc.all(whole).as_py() is not False:
        return numbers
    return np.asarray(pc.replace_substring_regex(rows["row_id"], r"^[^/]*/|[.][0-9]+$", "").combine_chunks(), object)


def _at(rows: pa.Table, positions: Any) -> list[Any]:
    """Labels of the rows at these positions, in file order, each record once."""
    return list(dict.fromkeys(labels(rows)[np.sort(positions)].tolist()))


def _positions(rows: pa.Table, ids: Any) -> Any:
    """Where the rows with these ids are."""
    ids = ids if isinstance(ids, pa.Array | pa.ChunkedArray) else pa.array(ids, pa.string())
    return np.asarray(pc.index_in(ids, rows["row_id"].combine_chunks())).astype(np.int64)


def broken(rows: pa.Table, dropped: pa.Table, listed: int) -> list[Finding]:
    """Records that no row could be made of, by reason, with file and line; those of unknown shape apart.

    Records that the source's own `where` or `limit` leaves out are no fault.
    """
    places = _lines(dropped, several=labels(rows).dtype == object)
    by_reason = defaultdict(list)
    for reason, place in zip(dropped["reason"].to_pylist(), places, strict=True):
        if reason not in CHOSEN:
            by_reason[reason].append(place)
    unknown = by_reason.pop("unknown_shape", [])
    found = [finding("unknown_shape", unknown, listed)] if unknown else []
    facts = [
        {"reason": reason, "records": len(where), "where": where[:listed]}
        for reason, where in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    ]
    if facts:
        lines = [place for where in by_reason.values() for place in where]
        found.append(finding("broken_lines", lines, listed, facts))
    return found


def _lines(dropped: pa.Table, several: bool) -> list[str]:
    """`line 7`, or `file:7` where there are several files."""
    details = [json.loads(detail) for detail in dropped["detail"].to_pylist()]
    several = several or len({detail.get("file") for detail in details}) > 1
    return [f"{d['file']}:{d['line']}" if several else f"line {d['line']}" for d in details]


def duplicates(rows: pa.Table, result: StageResult, listed: int, pairs: int) -> list[Finding]:
    """Exact and near duplicates with the most similar pairs, and prompts whose gold answers differ."""
    lines = result.dropped.to_pylist()
    details = [json.loads(line["detail"]) for line in lines]
    gone = _positions(rows, result.dropped["row_id"])
    kept = _positions(rows, [detail["kept"] for detail in details])
    named = labels(rows)
    found = []
    for code, exact in (("exact_duplicates", True), ("near_duplicates", False)):
        chosen = [i for i, detail in enumerate(details) if (detail["method"] == "exact") is exact]
        if not chosen:
            continue
        worst = sorted(chosen, key=lambda i: (-details[i]["similarity"], gone[i]))[:pairs]
        facts = [
            {"row": _item(named, gone[i]), "like": _item(named, kept[i]), "similarity": details[i]["similarity"]}
            for i in worst
        ]
        found.append(finding(code, _at(rows, gone[chosen]), listed, facts))
    conflicts = result.changes.filter(pc.match_substring(result.changes["reason"], "gold"))
    if conflicts.num_rows:
        found.append(finding("conflicting_gold", _at(rows, _positions(rows, conflicts["row_id"])), listed))
    return found


def same_prompts(kept: pa.Table, listed: int) -> list[Finding]:
    """Rows that are left after deduplication and share their prompt, to the letter, with another row of their kind."""
    from corpusforge.text.views import prompt_text

    frame = pl.DataFrame({"kind": pl.Series(kept["kind"]), "prompt": pl.Series(prompt_text(kept))})
    mask = frame.select(shared=(pl.len().over("kind", "prompt") > 1) & (pl.col("prompt") != ""))["shared"].to_numpy()
    if not mask.any():
        return []
    places = _at(kept, np.flatnonzero(mask))
    groups = frame.filter(pl.Series(mask)).n_unique()
    return [finding("other_answers_same_prompt", places, listed, [{"prompts": groups}])]


def personal(rows: pa.Table, found: pa.Table, listed: int) -> list[Finding]:
    """Personal data and secrets by kind, from the findings of `scan`; values are never told."""
    if not found.num_rows:
        return []
    secret = np.array([name.startswith("SECRET") for name in found["entity"].to_pylist()], bool)
    result = []
    for code, mask in (("secrets", secret), ("personal_data", ~secret)):
        part = found.filter(pa.array(mask))
        if not part.num_rows:
            continue
        by_entity: dict[str, list[str]] = defaultdict(list)
        for entity, row in zip(part["entity"].to_pylist(), part["row_id"].to_pylist(), strict=True):
            by_entity[entity].append(row)
        facts = []
        for entity, ids in sorted(by_entity.items(), key=lambda item: (-len(item[1]), item[0])):
            numbers = _at(rows, _positions(rows, list(dict.fromkeys(ids))))
            facts.append({"entity": entity, "found": len(ids), "rows": len(numbers), "where": numbers[:listed]})
        places = _at(rows, _positions(rows, pc.unique(part["row_id"])))
        result.append(finding(code, places, listed, facts))
    return result


def benchmark_hits(rows: pa.Table, result: StageResult, listed: int, shown: int) -> list[Finding]:
    """Rows that hold benchmark items, with benchmark, item, side and coverage."""
    lines = result.dropped.to_pylist()
    if not lines:
        return []
    positions = _positions(rows, result.dropped["row_id"])
    facts = []
    for number, line in zip(labels(rows)[positions].tolist(), lines, strict=True):
        detail = json.loads(line["detail"])
        facts.append({"row": number, **{k: detail.get(k) for k in ("benchmark", "item", "side", "coverage", "field")}})
    facts.sort(key=lambda fact: -(fact["coverage"] or 0))
    per = Counter(fact["benchmark"] for fact in facts)
    counted = [{"benchmark": name, "rows": count} for name, count in sorted(per.items())]
    return [finding("benchmark_hits", _at(rows, positions), listed, [*counted, *facts[:shown]])]


def filtered(rows: pa.Table, result: StageResult, listed: int) -> list[Finding]:
    """Rows that the quality rules would drop, a finding per rule."""
    by_reason: dict[str, list[str]] = defaultdict(list)
    for reason, row in zip(result.dropped["reason"].to_pylist(), result.dropped["row_id"].to_pylist(), strict=True):
        by_reason[reason].append(row)
    return [
        finding(reason, _at(rows, _positions(rows, ids)), listed)
        for reason, ids in sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
        if reason not in _SAID_ELSEWHERE
    ]


def answers(rows: pa.Table, listed: int) -> list[Finding]:
    """Rows from which a trainer can learn nothing: no answer, an empty one, or two equal ones."""
    frame = _frame(rows)
    assistant = pl.element().struct.field("role").eq_missing("assistant")
    said = pl.col("messages").list.eval(_said(pl.element()).filter(assistant))
    sft = pl.col("kind") == "sft"
    pair = pl.col("kind") == "preference"
    blank = [pl.col(side).list.eval(_said(pl.element())).list.any().fill_null(False).not_() for side in _SIDES]
    masks = frame.select(
        no_answer=sft & (said.list.len().fill_null(0) == 0),
        empty_answer=(sft & (said.list.len().fill_null(0) > 0) & said.list.any().not_())
        | (pair & (blank[0] | blank[1])),
        equal_answers=pair & (_text("chosen") == _text("rejected")) & blank[0].not_(),
    )
    return [
        finding(name, _at(rows, np.flatnonzero(masks[name].fill_null(False).to_numpy())), listed)
        for name in masks.columns
        if masks[name].any()
    ]


def _item(values: Any, at: int) -> Any:
    return values[at].item() if isinstance(values[at], np.generic) else values[at]


def _frame(rows: pa.Table) -> pl.DataFrame:
    return pl.DataFrame(pl.from_arrow(rows.select(["kind", "messages", "chosen", "rejected"])))


def _said(message: pl.Expr) -> pl.Expr:
    """Whether a message says anything."""
    parts = [message.struct.field(name).fill_null("").str.strip_chars() != "" for name in (*_TURN_FIELDS, "parts")]
    return pl.any_horizontal(parts)


def _text(column: str) -> pl.Expr:
    fields = [pl.element().struct.field(name).fill_null("") for name in ("role", *_TURN_FIELDS)]
    return pl.col(column).list.eval(pl.concat_str(fields, separator="\x1f")).list.join("\x1e")


def token_lengths(rows: pa.Table, counter: Any) -> pl.DataFrame:
    """Tokens of each row (`all`) and of what stands before its first answer (`before`).

    `counter` maps a column of texts to token counts. Templates add a few tokens per turn, which are not counted.
    """
    frame = _frame(rows)
    fields = [pl.element().struct.field(name) for name in _TURN_FIELDS]
    turns = pl.col("messages").list.eval(pl.concat_str(fields, separator="\n", ignore_nulls=True))
    is_answer = pl.col("messages").list.eval(pl.element().struct.field("role").eq_missing("assistant"))
    first = pl.when(is_answer.list.any()).then(is_answer.list.arg_max()).otherwise(turns.list.len())
    answered = pl.col("kind") == "sft"
    texts = frame.select(
        before=pl.when(answered).then(turns.list.head(first)).otherwise(turns).list.join("\n").fill_null(""),
        all=turns.list.join("\n").fill_null(""),
    )
    sides = frame.select(_text(side).fill_null("").alias(side) for side in _SIDES)
    counts = {name: counter(texts[name]) for name in texts.columns}
    longer = np.maximum(counter(sides["chosen"]), counter(sides["rejected"]))
    return pl.DataFrame({"all": counts["all"] + longer, "before": counts["before"]})


def lengths(rows: pa.Table, tokens: pl.DataFrame, max_length: int, listed: int) -> list[Finding]:
    """Rows that a trainer drops (nothing of the answer is within `max_length` tokens) or cuts."""
    kind = pl.Series(rows["kind"])
    trained = kind.is_in(["sft", "preference", "rated"])
    drops = trained & (tokens["before"] >= max_length)
    cuts = trained & ~drops & (tokens["all"] > max_length)
    return [
        finding(code, _at(rows, np.flatnonzero(mask.to_numpy())), listed, [{"max_length": max_length}])
        for code, mask in (("trainer_drops", drops), ("trainer_cuts", cuts))
        if mask.any()
    ]


def licences(rows: pa.Table, listed: int) -> list[Finding]:
    """Rows without a licence, and rows under restrictions."""
    license = pc.struct_field(rows["source"], "license")
    unknown = pc.fill_null(pc.is_in(license, pa.array(["unknown", ""])), True)
    held = pc.fill_null(pc.greater(pc.list_value_length(pc.struct_field(rows["source"], "restrictions")), 0), False)
    return [
        finding(code, _at(rows, np.flatnonzero(np.asarray(mask))), listed)
        for code, mask in (("unknown_license", unknown), ("restricted", held))
        if pc.any(mask).as_py()
    ]
