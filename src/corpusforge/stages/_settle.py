"""What of the rows that were read may stay: the last step of `ingest`, over whole records.

Every rule answers with the records that must go (`base`: the row id of a record's first row), a reason and a detail;
a record goes with all its rows, so that records in = records that gave rows + records quarantined still holds.

    base        reason      detail
    support#17  restricted  {"license": "MIT", "refused": ["no-train"], "restrictions": ["no-train"]}
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.licences import UNKNOWN
from corpusforge.result import LEDGER, StageResult
from corpusforge.stages._batch import GROUPED
from corpusforge.stages._policy import DENIED, RESTRICTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpusforge.stages._policy import Terms

TERMS: Final = ("source.name", "source.license", "source.restrictions")
"""Columns that `refused` reads beside `row_id`."""
STRICT: Final = (RESTRICTED, DENIED)
"""Reasons for which other copies of a row must go as well: what one of them forbids, the others cannot allow."""
NAMELESS: Final = ("forgotten",)
"""Reasons whose ledger lines do not repeat the user's own id."""
_FAN: Final = r"(#\d+)\.\d+$"
_GONE: Final = {"base": pl.String, "reason": pl.String, "detail": pl.String}


@dataclass(frozen=True)
class Settled:
    """A partition after its records that must go have gone: what stays, their ledger lines, and their rows."""

    kept: pa.Table
    lines: pa.Table
    gone: pa.Table
    strict: pa.Table  # those of `gone` that went for their terms


def base(row_id: pl.Expr) -> pl.Expr:
    """The row id of the record's first row."""
    return row_id.str.replace(_FAN, "${1}")


def none_gone() -> pl.DataFrame:
    """No record has to go."""
    return pl.DataFrame(schema=_GONE)


def refused(rows: pa.Table, terms: Terms) -> pl.DataFrame:
    """Records whose terms the build does not accept. `rows` has `row_id` and the `source` fields named in TERMS.

    Raises SourceError where rows of unknown licence are to fail.
    """
    frame = pl.DataFrame(pl.from_arrow(rows.select(["row_id", "source"]))).unnest("source")
    frame = frame.with_columns(pl.col("restrictions").list.sort().list.join(",").fill_null(""))
    found = _verdicts(frame.group_by("name", "license", "restrictions").len(), terms)
    if not len(found):
        return none_gone()
    hit = frame.join(found, on=["name", "license", "restrictions"], nulls_equal=True, maintain_order="left")
    return hit.select(base(pl.col("row_id")).alias("base"), "reason", "detail").unique("base", maintain_order=True)


def all_accepted(sources: pa.ChunkedArray, terms: Terms) -> bool:
    """Whether no row can be refused: a look at the distinct terms alone. Raises as `refused` does."""
    frame = pl.DataFrame(pl.from_arrow(pa.table({"source": sources}))).unnest("source")
    frame = frame.with_columns(pl.col("restrictions").list.sort().list.join(",").fill_null(""))
    return not len(_verdicts(frame.group_by("name", "license", "restrictions").len(), terms))


def _verdicts(combinations: pl.DataFrame, terms: Terms) -> pl.DataFrame:
    """The combinations of source, licence and restrictions that are refused, with reason and detail."""
    out: list[dict[str, Any]] = []
    for name, licence, joined, rows in combinations.sort("name", "license", "restrictions").iter_rows():
        restrictions = [one for one in joined.split(",") if one]
        said = licence or UNKNOWN
        terms.check_stated(name, said, rows)
        found = terms.refusal(name, said, restrictions)
        if found:
            detail = {"license": said, "restrictions": restrictions, "refused": list(found.because)}
            out.append(
                {
                    "name": name,
                    "license": licence,
                    "restrictions": joined,
                    "reason": found.reason,
                    "detail": json.dumps(detail, ensure_ascii=False, sort_keys=True),
                }
            )
    columns = ("name", "license", "restrictions", "reason", "detail")
    return pl.DataFrame(out, schema=dict.fromkeys(columns, pl.String))


def settle(rows: pa.Table, gone: pl.DataFrame) -> Settled:
    """Take the records in `gone` out of `rows`; a ledger line stands where a record's first row was."""
    ids = pl.DataFrame({"row_id": pl.Series(rows["row_id"], dtype=pl.String)})
    marked = ids.with_columns(base(pl.col("row_id")).alias("base")).join(
        gone, on="base", how="left", maintain_order="left"
    )
    out = marked["reason"].is_not_null()
    mask = out.to_arrow()
    first = (out & (marked["row_id"] == marked["base"])).arg_true()
    strict = marked["reason"].is_in(list(STRICT)).fill_null(False)
    return Settled(
        rows.filter(pc.invert(mask)),
        _lines(rows, marked.select("reason", "detail")[first], first),
        rows.filter(mask),
        rows.filter(strict.to_arrow()),
    )


def _lines(rows: pa.Table, why: pl.DataFrame, at: pl.Series) -> pa.Table:
    """Ledger lines of `ingest` for the rows at `at`; the detail gains where the record stands."""
    taken = rows.select(["row_id", "source", "extra"]).take(pa.array(at.to_numpy(), pa.int64()))
    places = (
        pl.DataFrame(pl.from_arrow(taken.drop(["extra"])))
        .unnest("source")
        .select("row_id", "name", "uri", "record", "record_id")
    )
    details = [
        json.dumps(json.loads(text) | {"uri": uri, "record": record}, ensure_ascii=False, sort_keys=True)
        for text, uri, record in zip(why["detail"], places["uri"], places["record"], strict=True)
    ]
    own = pl.select(pl.when(~why["reason"].is_in(list(NAMELESS))).then(places["record_id"])).to_series()
    lines = pa.table(
        {
            "row_id": taken["row_id"],
            "record_id": own.to_arrow(compat_level=pl.CompatLevel.oldest()),
            "source": places["name"].to_arrow(compat_level=pl.CompatLevel.oldest()),
            "stage": pa.repeat("ingest", len(taken)),
            "reason": pa.array(why["reason"].to_list(), pa.string()),
            "detail": pa.array(details, pa.string()),
        }
    ).cast(LEDGER)
    return _of_each_record(lines, taken["extra"])


def _of_each_record(lines: pa.Table, extra: pa.ChunkedArray) -> pa.Table:
    """A line for every record of a row that was made of several (`group`): they all gave that row."""
    if not pc.any(pc.match_substring(extra, f'"{GROUPED}":')).as_py():
        return lines
    whole: list[dict[str, Any]] = []
    for line, text in zip(lines.to_pylist(), extra.to_pylist(), strict=True):
        records = json.loads(text or "{}").get(GROUPED) or [None]
        first = line["row_id"].rpartition("#")[0]
        whole += [line if record is None else {**line, "row_id": f"{first}#{record}"} for record in records]
    return pa.Table.from_pylist(whole, schema=LEDGER)


def adjusted(figures: Mapping[str, Any], settled: Settled) -> dict[str, Any]:
    """The figures of `ingest` after records went: they gave no rows, they are quarantined."""
    records, rows = settled.lines.num_rows, settled.gone.num_rows
    moved = _moved(figures, records, rows)
    went = pc.struct_field(settled.gone["source"], "name")
    sources = {
        name: _moved_of_source(
            inner,
            _counts(settled.lines.filter(pc.equal(settled.lines["source"], name))["reason"]),
            _counts(settled.gone.filter(pc.equal(went, name))["kind"]),
        )
        for name, inner in figures["sources"].items()
    }
    quarantine = dict(figures.get("quarantine", {}))
    for reason, count in _counts(settled.lines["reason"]).items():
        quarantine[reason] = quarantine.get(reason, 0) + count
    unknown = _counts(pc.struct_field(settled.gone["source"], "license")).get(UNKNOWN, 0)
    return {
        **moved,
        "sources": sources,
        "quarantine": dict(sorted(quarantine.items())),
        "unknown_license": figures.get("unknown_license", 0) - unknown,
        "languages": _less(figures.get("languages", {}), _counts(pc.fill_null(settled.gone["language"], "und"))),
        "domains": _less(figures.get("domains", {}), _counts(settled.gone["domain"])),
    }


def _moved(figures: Mapping[str, Any], records: int, rows: int) -> dict[str, Any]:
    change = {"with_rows": -records, "quarantined": records, "rows": -rows}
    return {**figures, **{key: figures[key] + by for key, by in change.items()}}


def _moved_of_source(
    figures: Mapping[str, Any], reasons: Mapping[str, int], kinds: Mapping[str, int]
) -> dict[str, Any]:
    moved = _moved(figures, sum(reasons.values()), sum(kinds.values()))
    more = {name: moved["reasons"].get(name, 0) + reasons.get(name, 0) for name in {*moved["reasons"], *reasons}}
    return {**moved, "reasons": dict(sorted(more.items())), "kinds": _less(moved["kinds"], kinds)}


def _less(counts: Mapping[str, int], by: Mapping[str, int]) -> dict[str, int]:
    left = {key: number - by.get(key, 0) for key, number in counts.items()}
    return {key: number for key, number in left.items() if number}


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {item["values"]: item["counts"] for item in pc.value_counts(column).to_pylist()}


def settle_result(result: StageResult, terms: Terms, *, strict: bool = False) -> StageResult:
    """The same for rows in memory: what `read` gives. Raises as `superseded` and `refused` do."""
    from corpusforge.stages._redelivery import superseded  # it builds on this module

    rows = result.kept
    if not rows.num_rows:
        return result
    ledger = pl.DataFrame(pl.from_arrow(result.dropped.select(["row_id", "record_id", "source", "reason"])))
    gone, figures = superseded(lambda: iter([facts(rows)]), terms.sources, ledger, strict=strict)
    if not all_accepted(_terms_of(rows), terms):
        found = refused(rows, terms)
        gone = pl.concat([gone, found.join(gone, on="base", how="anti", maintain_order="left")])
    settled = settle(rows, gone)
    told = adjusted(result.metrics, settled) if len(gone) else dict(result.metrics)
    dropped = pa.concat_tables([result.dropped, settled.lines])
    return StageResult(
        result.stage, settled.kept, dropped, result.changes, told | ({"redelivered": figures} if figures else {})
    )


def facts(rows: pa.Table) -> pl.DataFrame:
    """Ids of rows and of their records: base, row_id, content_id, name, revision, own, parents."""
    frame = pl.DataFrame(pl.from_arrow(rows.select(["row_id", "content_id", "source"]))).unnest("source")
    return frame.select(
        base(pl.col("row_id")).alias("base"),
        *("row_id", "content_id", "name", pl.col("revision").fill_null("")),
        *(pl.col("record_id").alias("own"), "parents"),
    )


def _terms_of(rows: pa.Table) -> pa.ChunkedArray:
    """The `source` column with the fields that terms are made of."""
    names = [column.partition(".")[2] for column in TERMS]
    chunks = [
        pa.StructArray.from_arrays([chunk.field(name) for name in names], names) for chunk in rows["source"].chunks
    ]
    return pa.chunked_array(chunks)
