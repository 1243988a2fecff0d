"""Scrub: personal data and secrets become stand-ins; code and maths stay as they are.

Findings come from Presidio's pattern recognisers (e-mail, phone, card, IBAN, IP, …) and from rules for secrets, run
only on rows where a columnar test says that they can match, and only believed where the context allows: a version is
not an address, a timestamp not a card. A stand-in keeps the format, comes from a range that nobody can own (example
domains, 555-01XX, documentation networks, failing checksums), and is the same for the same value throughout a
conversation, in prose and in tool arguments. Which one it is depends on a key. Values are stored nowhere: not in the
ledger, not in figures, not in messages.

    user       Mail zoe.quill@corp.com, or call (212) 456-7890.
    assistant  send({"to":"zoe.quill@corp.com"})
    ->
    user       Mail vev.ragovya@example.org, or call (931) 555-0110.
    assistant  send({"to":"vev.ragovya@example.org"})      pii {EMAIL_ADDRESS: 2, PHONE_NUMBER: 1}

Two rows can be equal once their personal data are gone: an exact check at the end keeps one of them.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator, model_validator

from corpusforge import sample
from corpusforge.errors import MissingKey
from corpusforge.pii import keys, leaves, names, own_ids, recognisers
from corpusforge.pii import rows as _rows
from corpusforge.pii.triage import JSON_COLUMNS, MESSAGE_COLUMNS, STRUCT_TEXTS, triage
from corpusforge.result import StageResult, ledger
from corpusforge.stages._stage import Decided, Decision, Fetch, Inputs, StageConfig, configure, in_memory
from corpusforge.stages._twins import take_on, taken_on, terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Action = Literal["stand_in", "tag", "drop", "keep"]

SUMMARY: Final = pa.schema(
    [
        ("row_id", pa.string()),
        ("human", pa.bool_()),
        ("content_id", pa.string()),  # after scrubbing
        ("changed", pa.bool_()),
        ("drop", pa.string()),  # reason code, or null
        ("plan", pa.string()),  # JSON: spans and their replacements per text, counts; null where nothing was found
        *((name, pa.string()) for name in ("source", "license", "restrictions", "provenance")),  # see _twins.terms
    ]
)
FINDINGS: Final = pa.schema(
    [
        ("row_id", pa.string()),
        ("field", pa.string()),
        ("entity", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("score", pa.float32()),
        ("recogniser", pa.string()),
        ("action", pa.string()),
    ]
)
_FINDINGS_NAMES: Final = tuple(FINDINGS.names)
_SEARCHED: Final = ("row_id", "language", *MESSAGE_COLUMNS, *JSON_COLUMNS, *(name for name, _ in STRUCT_TEXTS))
_BATCH: Final = 256  # rows turned into Python objects at a time


class ScrubConfig(StageConfig):
    """Options of `scrub`."""

    key: str = Field(default="env:CORPUSFORGE_KEY", pattern=r"^(env:\w+|file:.+|public-demo)$")
    """Where the key for stand-ins is: `env:NAME`, `file:PATH` outside the project, or `public-demo`, which everyone
    has."""
    scope: Literal["conversation", "corpus"] = "conversation"
    """Within what the same value gets the same stand-in. `corpus` links a person across rows."""
    actions: dict[str, Action] = Field(default_factory=dict)
    """Action per entity: `stand_in` (default), `tag`, `drop` the row, or `keep`. `SECRET` stands for all secrets, which
    are tagged by default."""
    names: Literal["off", "spacy"] = "off"
    """The named-entity tier: `spacy` finds people, places and organisations in English prose (extra `ner`); slow."""
    unscanned_names: Literal["keep", "quarantine"] = "keep"
    """What becomes of rows in a language that the named-entity tier does not cover: `quarantine` drops them
    (`names_not_scanned`). Needs `names: spacy`. They are counted either way."""
    documentation_is_real: bool = False
    """Whether addresses of documentation networks, and of example domains inside code, count as personal data."""

    @field_validator("actions")
    @classmethod
    def _known_entities(cls, value: dict[str, Action]) -> dict[str, Action]:
        known = [*recognisers.KNOWN, recognisers.SECRET]
        for name in value:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, cutoff=0.5)
                raise ValueError(f"unknown entity {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return value

    @model_validator(mode="after")
    def _a_tier_to_scan_with(self) -> ScrubConfig:
        if self.unscanned_names == "quarantine" and self.names == "off":
            raise ValueError("unscanned_names: quarantine needs names: spacy; without it every row would go")
        return self


def scrub(
    rows: pa.Table, config: ScrubConfig | None = None, *, key: bytes | str | None = None, **options: Any
) -> StageResult:
    """Replace personal data and secrets by stand-ins.

    Args:
        rows: table in the row format.
        config: options; keyword arguments override its fields.
        key: the key itself, as bytes (io.keys.load_key), or the word `public-demo`.
        **options: fields of ScrubConfig.

    Returns:
        Kept rows with the column `pii` (entity -> findings replaced); `changes` has one line per edited row; `dropped`
        holds rows with a dropped entity (`pii_<entity>`), rows whose recogniser failed (`recogniser_failed`), rows that
        equal another one now (`equal_after_scrub`), and, where asked for, rows whose names nobody looked for
        (`names_not_scanned`).

    Raises:
        MissingKey: no key was given. MissingExtra: the named-entity tier is on and its model is not installed.

    """
    settings = configure(ScrubConfig, config, options if not isinstance(key, str) else {**options, "key": key})
    if not isinstance(key, bytes):
        key = keys.PUBLIC_DEMO_KEY if settings.key == keys.PUBLIC_DEMO else None
    return in_memory(STAGE, rows, settings, {"key": key} if key else {})


def scan(rows: pa.Table, config: ScrubConfig | None = None, **options: Any) -> pa.Table:
    """What `scrub` would find, without changing anything and without a key: a table of FINDINGS, no values.

    `start` and `end` count characters of the field's text (for JSON fields, of the string literal after `#`).
    """
    settings = configure(ScrubConfig, config, options)
    lines: list[dict[str, Any]] = []
    for _, row, mask, namer in _candidates(rows.select(_SEARCHED), settings):
        parts = leaves.leaves(row)
        try:
            found = _rows.search(parts, mask, _policy(settings, row), namer(list(enumerate(parts))) if namer else None)
        except recognisers.RecogniserFailed as error:
            lines.append(
                _finding(row["row_id"], str(error.args[-1]), "FAILED", (0, 0, 0.0), (str(error.args[0]), "drop"))
            )
            continue
        for one in found:
            span = one.span
            where = parts[one.leaf].path
            lines.append(
                _finding(
                    row["row_id"], where, span.entity, (span.start, span.end, span.score), (span.recogniser, one.action)
                )
            )
    return pa.Table.from_pylist(lines, schema=FINDINGS)


def _finding(row_id: str, where: str, entity: str, span: tuple[int, int, float], by: tuple[str, str]) -> dict[str, Any]:
    values = (row_id, where, entity, *span, *by)
    return dict(zip(_FINDINGS_NAMES, values, strict=True))


def _policy(config: ScrubConfig, row: Mapping[str, Any]) -> _rows.Policy:
    return _rows.Policy(config.actions, config.documentation_is_real, row["language"] or "")


def _summarise(table: pa.Table, config: ScrubConfig, inputs: Inputs) -> pa.Table:
    key = inputs.get("key")
    if not key:
        raise MissingKey(
            f"scrub needs a key for its stand-ins, and {config.key} gave none",
            hint="make one with `corpusforge key new`, or set `scrub.key: public-demo` for data that is public anyway",
        )
    content = table["content_id"].to_pylist()
    changed = np.zeros(table.num_rows, np.bool_)
    drops: list[str | None] = [None] * table.num_rows
    plans: list[str | None] = [None] * table.num_rows
    for index, row, mask, namer in _candidates(table, config):
        scope = _conversation(row["row_id"]) if config.scope == "conversation" else ""
        outcome = _rows.scrub_row(row, mask, _policy(config, row), key, scope, namer)
        if outcome.edits:
            leaves.replace(row, _rows.texts_after(leaves.leaves(row), outcome.edits))
            try:
                changed[index], content[index] = True, sample.content_id(row)
            except (ValueError, RecursionError):  # a column that is no JSON, or too deep: no other stage could read it
                outcome = _rows.Outcome(drop="recogniser_failed", detail={"recogniser": "ContentId"})
                changed[index] = False
        plans[index] = _plan(outcome)
        drops[index] = outcome.drop or None
    if config.unscanned_names == "quarantine":
        for index, language in enumerate(table["language"].to_pylist()):
            if language not in names.LANGUAGES and not drops[index]:
                drops[index], changed[index] = "names_not_scanned", False
                plans[index] = sample.dumps({"detail": {"language": language or "unknown"}})
    origin = pc.struct_field(table["source"], "origin")
    own = terms(table).to_arrow(compat_level=pl.CompatLevel.oldest())
    return pa.table(
        [
            *(table["row_id"], pc.fill_null(pc.equal(origin, "human"), False), content, changed, drops, plans),
            *(own[name].cast(pa.string()) for name in own.column_names),
        ],
        schema=SUMMARY,
    )


def _conversation(row_id: str) -> str:
    """The source's record: rows that came from one record share their stand-ins."""
    source, mark, number = row_id.rpartition("#")
    return source + mark + number.partition(".")[0]


def _plan(outcome: _rows.Outcome) -> str | None:
    """What `apply` needs of an outcome, as JSON; None where nothing was found."""
    plan = {
        "edits": {str(number): spans for number, spans in outcome.edits.items()},
        "replaced": dict(sorted(outcome.replaced.items())),
        "kept": dict(sorted(outcome.kept.items())),
        "in_verifier": dict(sorted(outcome.in_verifier.items())),
        "fields": list(outcome.fields),
        "places": {place: dict(sorted(counts.items())) for place, counts in sorted(outcome.places.items())},
        "detail": outcome.detail,
    }
    plan = {name: value for name, value in plan.items() if value}
    return sample.dumps(plan) if plan else None


def _candidates(table: pa.Table, config: ScrubConfig) -> Iterator[tuple[int, dict[str, Any], int, Any]]:
    """Index, row, triggers and namer of every row that can hold something; all others are never Python objects."""
    masks = triage(table)
    scanned = _named_rows(table, config)
    wanted = np.flatnonzero((masks > 0) | scanned)
    for start in range(0, len(wanted), _BATCH):
        some = wanted[start : start + _BATCH]
        batch = table.take(pa.array(some)).to_pylist()
        namers = _namers([row for row, index in zip(batch, some, strict=True) if scanned[index]])
        for index, row in zip(some.tolist(), batch, strict=True):
            yield index, row, int(masks[index]), next(namers) if scanned[index] else None


def _named_rows(table: pa.Table, config: ScrubConfig) -> npt.NDArray[np.bool_]:
    if config.names == "off":
        return np.zeros(table.num_rows, np.bool_)
    names.model()  # a missing extra is said before any work
    known = pc.is_in(table["language"], value_set=pa.array(names.LANGUAGES))
    return np.asarray(pc.fill_null(known, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _namers(batch: list[dict[str, Any]]) -> Iterator[Any]:
    """Per row a function from its leaves to the names in them; the first answer comes from one pass over the batch.

    Where that pass fails each row is asked alone, so that only the row at fault is lost.
    """
    prose = [[(n, leaf.text) for n, leaf in enumerate(leaves.leaves(row)) if _is_prose(leaf)] for row in batch]
    try:
        found = iter(list(names.find([text for row in prose for _, text in row])))
    except Exception:  # noqa: BLE001  # whatever the model raises
        found = None
    for row in prose:
        yield _namer([{number: next(found) for number, _ in row}] if found else [])


def _namer(answers: list[dict[int, list[recognisers.Span]]]) -> Any:
    """`answers` are those that are known already."""

    def ask(parts: list[tuple[int, leaves.Leaf]]) -> dict[int, list[recognisers.Span]]:
        if answers:
            return answers.pop()
        prose = [(number, leaf.text) for number, leaf in parts if _is_prose(leaf)]
        try:
            found = list(names.find([text for _, text in prose]))
        except Exception:  # noqa: BLE001  # the row cannot be called clean
            raise recognisers.RecogniserFailed(names.RECOGNISER) from None
        return dict(zip([number for number, _ in prose], found, strict=True))

    return ask


def _is_prose(leaf: leaves.Leaf) -> bool:
    return leaf.field in ("content", "reasoning")


def _decide(summary: pa.Table, _config: ScrubConfig, _inputs: Inputs, _fetch: Fetch) -> Decision:
    """Of rows that are equal now, at least one of them through a change, the human one with the lowest id stays.

    It takes on the terms of the others, as in `dedupe`.
    """
    frame = pl.DataFrame(summary).with_row_index("position")
    alive = frame.filter(pl.col("drop").is_null())
    groups = alive.filter((pl.len().over("content_id") > 1) & pl.col("changed").any().over("content_id"))
    best = (
        groups.sort(["human", "row_id"], descending=[True, False]).group_by("content_id", maintain_order=True).first()
    )
    kept = best.select("content_id", twin="row_id", kept="position")
    twins = groups.join(kept, on="content_id").filter(pl.col("twin") != pl.col("row_id"))
    partner = np.full(len(frame), -1, np.int64)
    partner[twins["position"].to_numpy()] = twins["kept"].to_numpy()
    taken = taken_on(frame, partner, np.ones(len(frame), np.bool_), len(frame)).rename({"at": "position"})
    facts = frame.select("position", "content_id", "changed", "drop", "plan")
    verdicts = facts.join(twins.select("position", "twin"), on="position", how="left")
    verdicts = verdicts.join(taken.cast({"position": pl.UInt32}), on="position", how="left").sort("position")
    table = verdicts.drop("position").to_arrow(compat_level=pl.CompatLevel.oldest())
    schema = pa.schema([(n, pa.bool_() if n == "changed" else pa.string()) for n in table.column_names])
    return Decision(table.cast(schema))


def _apply(table: pa.Table, verdicts: pa.Table, config: ScrubConfig, _inputs: Inputs) -> StageResult:
    plans = [json.loads(plan) if plan else {} for plan in verdicts["plan"].to_pylist()]
    twins, drops = verdicts["twin"].to_pylist(), verdicts["drop"].to_pylist()
    gone = [i for i in range(table.num_rows) if drops[i] or twins[i]]
    reasons = [drops[i] or "equal_after_scrub" for i in gone]
    details = [plans[i].get("detail", {}) if drops[i] else {"kept": twins[i]} for i in gone]
    stays = np.ones(table.num_rows, np.bool_)
    stays[gone] = False
    edited = [i for i in np.flatnonzero(verdicts["changed"].to_numpy()).tolist() if stays[i]]
    result = _with_edits(table, verdicts, plans, edited)
    result = take_on(_with_counts(result, [plan.get("replaced", {}) for plan in plans]), verdicts)
    stricter = {i: json.loads(note) for i, note in enumerate(verdicts["note"].to_pylist()) if note}
    notes = [*["scrubbed"] * len(edited), *["stricter_twin"] * len(stricter)]
    said = [{"entities": plans[i]["replaced"], "fields": plans[i]["fields"]} for i in edited]
    return StageResult(
        "scrub",
        result.filter(pa.array(stays)),
        ledger(table, gone, "scrub", reasons, details),
        ledger(table, [*edited, *stricter], "scrub", notes, [*said, *stricter.values()]),
        _metrics(table, plans, config),
    )


def _with_edits(table: pa.Table, verdicts: pa.Table, plans: list[dict[str, Any]], edited: list[int]) -> pa.Table:
    """The table with the edited rows in place of the old ones."""
    if not edited:
        return table
    some = table.take(pa.array(edited, pa.int64())).to_pylist()
    content = verdicts["content_id"].take(pa.array(edited, pa.int64())).to_pylist()
    for row, index, content_id in zip(some, edited, content, strict=True):
        edits = {int(number): spans for number, spans in plans[index]["edits"].items()}
        leaves.replace(row, _rows.texts_after(leaves.leaves(row), edits))
        row["content_id"] = content_id
    order = np.arange(table.num_rows)
    order[edited] = table.num_rows + np.arange(len(edited))
    return pa.concat_tables([table, pa.Table.from_pylist(some, schema=table.schema)]).take(pa.array(order))


def _with_counts(table: pa.Table, counts: list[Mapping[str, int]]) -> pa.Table:
    """The table with its column `pii`; what an earlier scrub counted is added."""
    if "pii" in table.column_names:
        before = [dict(value or ()) for value in table["pii"].to_pylist()]
        counts = [Counter(old) + Counter(new) for old, new in zip(before, counts, strict=True)]
        table = table.drop_columns(["pii"])
    column = pa.array([sorted(one.items()) for one in counts], sample.ADDED["pii"])
    position = sum(name in table.column_names for name in sample.SCHEMA.names)
    return table.add_column(position, pa.field("pii", sample.ADDED["pii"]), column)


def _metrics(table: pa.Table, plans: Sequence[Mapping[str, Any]], config: ScrubConfig) -> dict[str, Any]:
    totals: dict[str, Counter[str]] = {"replaced": Counter(), "kept": Counter(), "in_verifier": Counter()}
    places: dict[str, Counter[str]] = {}
    sources: dict[str, Counter[str]] = {}
    names_of = pc.struct_field(table["source"], "name").to_pylist()
    for source, plan in zip(names_of, plans, strict=True):
        for name, total in totals.items():
            total.update(plan.get(name, {}))
        if plan.get("replaced"):
            sources.setdefault(str(source), Counter()).update(plan["replaced"])
        for place, counts in plan.get("places", {}).items():
            places.setdefault(place, Counter()).update(counts)
    languages = Counter("unknown" if language is None else language for language in table["language"].to_pylist())
    unscanned = {lang: n for lang, n in languages.items() if config.names == "off" or lang not in names.LANGUAGES}
    return {
        "findings": dict(sorted(totals["replaced"].items())),
        "by_source_and_entity": {name: dict(sorted(counts.items())) for name, counts in sorted(sources.items())},
        "by_field": {name: dict(sorted(counts.items())) for name, counts in sorted(places.items())},
        "kept_by_config": dict(sorted(totals["kept"].items())),
        "left_in_verifier": dict(sorted(totals["in_verifier"].items())),
        "names_not_scanned": dict(sorted(unscanned.items())),
        "in_own_ids": dict(sorted(own_ids.count(pc.struct_field(table["source"], "record_id")).items())),
    }


STAGE = Decided(
    name="scrub",
    config=ScrubConfig,
    summarise=_summarise,
    decide=_decide,
    apply=_apply,
    needs=("key",),
    columns=("pii",),
)
