"""Records on their way to rows and ledger lines: one batch of one source."""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.errors import RecordError
from corpusforge.licences import UNKNOWN, implied, implied_by_record, of_record, restrictions_of_record
from corpusforge.result import LEDGER, StageResult, add_up
from corpusforge.sample import row_id
from corpusforge.shapes import Draft, Unrepresentable, drafts
from corpusforge.stages import _plain, _stated
from corpusforge.stages._record import Record, json_record
from corpusforge.stages._rows import Provenance, RowBuffer, beside, depth_of
from corpusforge.stages._source import SourceConfig, holds, lookup
from corpusforge.text.jsonlines import BLANK, LOOK, cut
from corpusforge.text.jsontext import has_surrogate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from corpusforge.text.chatlines import Columns

GROUP: Final = "group"
"""The field under which records that were read as one stand in it."""
GROUPED: Final = "group_records"
"""Field of `extra` that names the records of which a row was made, where they are several."""
_SPEAKS: Final = frozenset({"license", "licence", "restrictions", "parents"})  # fields of a record that say terms
_ID: Final = frozenset({"id"})
_NO_PLAIN: Final = _SPEAKS | {*_stated.IDS[1:]}  # fields that the general way looks at
_UNWANTED: Final = "excluded_by_where"
_decode: Final = msgspec.json.Decoder().decode

Line = tuple[str, str | None, str, str, str, str]
"""A ledger line, in the order of its columns."""


@dataclass(frozen=True)
class Lines:
    """Where a block of JSON Lines stands: its file, and how many lines and records are before it."""

    file: str  # as ledgers show it
    part: str = ""  # the file's own part of row ids
    line: int = 0
    position: int = 0
    last: int = sys.maxsize  # number of the last record that is to be taken


class Batch:
    """Records on their way to one StageResult."""

    def __init__(self, config: SourceConfig, rows: RowBuffer, open_image: Callable[[str], bytes] | None = None) -> None:
        self.config = config
        self.rows = rows
        self.mapping = config.mapping
        self.open_image = open_image
        self.dropped: list[Line] = []
        self.changes: list[Line] = []
        self.shapes: Counter[str] = Counter()
        self.with_rows = 0
        self.plain: tuple[Columns, npt.NDArray[np.int64], str] | None = None  # conversations, positions, prefix of ids
        self.fault: tuple[str, Mapping[str, Any]] | None = None  # of the record taken last, if it should be mended
        self.restrictions = sorted({*config.restrictions, *implied(config.license)})
        self.usual = Provenance(
            license=config.license,
            restrictions=self.restrictions,
            origin=config.origin,
            generator=config.generator,
            depth=depth_of(config.origin),
            domain=config.domain,
            language=config.language,
        )

    def take(self, record: Record) -> None:
        """Make the record's rows, or its ledger line."""
        self.fault = None
        if record.members:
            self._take_group(record)
            return
        if record.value is None:
            self._quarantine(record, record.error or "unreadable", record.detail)
            return
        start = len(self.rows)
        try:
            self._check_where(record.value)
            made = self._rows_of(record.value, self._prefix(record.part), record.position)
        except Unrepresentable as fault:
            self._quarantine(record, fault.reason, fault.detail)
        else:
            self._note(record, made, start)

    def _take_group(self, record: Record) -> None:
        """Make the rows of records that were read as one, or the ledger line of each of them."""
        wanted: list[Record] = []
        for one in record.members:
            try:
                self._check_where(one.value or {})
                wanted.append(one)
            except Unrepresentable as fault:
                self._quarantine(one, fault.reason, fault.detail)
        if not wanted:
            return
        start, positions = len(self.rows), [one.position for one in wanted]
        try:
            value = self._group(record, [one.value for one in wanted if one.value is not None])
            key = next(iter((record.value or {}).values()), None)
            made = self._rows_of(value, self._prefix(record.part), record.position, grouped=positions, key=key)
        except Unrepresentable as fault:
            for one in wanted:
                self._quarantine(one, fault.reason, fault.detail)
        else:
            self._note(record, made, start)

    def _group(self, record: Record, values: list[Mapping[str, Any]]) -> dict[str, Any]:
        """The value of a group: its key, its records, and the terms that they state (all of them apply)."""
        stated: dict[str, Any] = {}
        said = [_stated.licence(one, {}) for one in values]
        if any(said):
            stated["license"] = [one or self.config.license for one in said]
        restrictions = [restrictions_of_record(one["restrictions"]) for one in values if "restrictions" in one]
        if restrictions:
            stated["restrictions"] = sorted({name for names in restrictions for name in names})
        return {**(record.value or {}), **stated, GROUP: values}

    def take_lines(self, lines: Lines, block: bytes, *, strict: bool) -> None:
        """Make the rows, or the ledger lines, of a block of JSON Lines. Raises RecordError when `strict`."""
        places = cut(block)
        numbers = lines.position + np.cumsum(places[2] != BLANK)
        left = (places[2] != BLANK) & (numbers <= lines.last)
        prefix = self._prefix(lines.part)
        if self._may_be_plain and (found := _plain.read(block, places, left & (places[2] == 0), _NO_PLAIN)):
            self.plain = found, numbers[found.lines], prefix
            left[found.lines] = False
            self.with_rows += len(found.lines)
            self.shapes["chat"] += len(found.lines)
        at = np.flatnonzero(left)
        columns = [at + lines.line + 1, numbers[at], *(each[at] for each in places)]
        for line, position, begins, ends, mark in zip(*(each.tolist() for each in columns), strict=True):
            text = block[begins:ends]
            value = None if mark & LOOK else _decoded(text)
            if value is None:
                self.take(json_record(text, position, lines.file, line, lines.part))
            else:
                self._take_value(value, prefix, position, line, lines, plain=not mark)
            if strict and self.fault:
                refuse(lines.file, line, self.fault)

    @property
    def _may_be_plain(self) -> bool:
        """Whether a conversation of this source is nothing but that."""
        config = self.config
        return config.shape in ("auto", "chat") and not config.where and not self.mapping.rules

    def _take_value(
        self, value: dict[str, Any], prefix: str, position: int, line: int, lines: Lines, *, plain: bool
    ) -> None:
        """What `take` does, without a Record where nothing has to be said about it."""
        self.fault = None
        start = len(self.rows)
        try:
            self._check_where(value)
            made = self._rows_of(value, prefix, position, plain=plain)
        except Unrepresentable as fault:
            self._quarantine(Record(position, value, lines.file, line, None, lines.part), fault.reason, fault.detail)
            return
        for draft in made:
            if draft.notes:
                self._note(Record(position, value, lines.file, line, None, lines.part), made, start)
                break

    def _rows_of(
        self,
        record: Mapping[str, Any],
        prefix: str,
        position: int,
        *,
        plain: bool = False,
        grouped: Sequence[int] = (),
        key: Any = None,
    ) -> list[Draft]:
        """Add the rows of a record's value. Raises Unrepresentable, and then none of them is there."""
        start = len(self.rows)
        mapped = self.mapping.apply(record)
        value, stated = mapped.record, mapped.stated
        try:
            shape, made = drafts(value, self.config.shape, self.mapping.targets)
            if not made:
                raise Unrepresentable("no_rows")
            record_id = _stated.own_id(value, stated if key is None else {"id": key, **stated})
            held = record_id is not None and _stated.is_id(value.get("id")) and str(value["id"]) == record_id
            for fan, draft in enumerate(made):
                came = self._came(draft, value, stated)
                if fan:  # the rows of one record belong together: what is held out is held out with its siblings
                    came = replace(came, parents=[row_id(prefix, position), *came.parents])
                if held:
                    draft.used |= _ID
                if mapped.displaced or grouped:
                    draft.extra = beside(mapped.displaced, draft.extra) | ({GROUPED: grouped} if grouped else {})
                if draft.images and self.open_image:
                    draft.images = [self._opened(image, number) for number, image in enumerate(draft.images, 1)]
                given = (value, plain) if draft.record is None else (draft.record, False)
                self.rows.add((prefix, position, record_id), fan, draft, came, given)
        except Unrepresentable:
            self.rows.cut(start)
            raise
        self.with_rows += len(grouped) or 1
        self.shapes[shape] += len(grouped) or 1
        return made

    def _opened(self, image: Mapping[str, Any], number: int) -> dict[str, Any]:
        if image["bytes"] is not None or image["path"] is None or self.open_image is None:
            return dict(image)
        try:
            return {"bytes": self.open_image(image["path"]), "path": image["path"]}
        except Unrepresentable as fault:
            raise Unrepresentable(fault.reason, image=number) from None

    def _check_where(self, value: Mapping[str, Any]) -> None:
        for name, test in self.config.where.items():
            if not holds(lookup(value, name), test):
                raise Unrepresentable(_UNWANTED, field=name)

    def _prefix(self, part: str) -> str:
        return f"{self.config.name}/{part}" if part else self.config.name

    def _came(self, draft: Draft, value: Mapping[str, Any], stated: Mapping[str, Any]) -> Provenance:
        """Provenance of a row: one object for all rows of which nothing is said."""
        if draft.record is not None:  # a function of one's own that leaves a record's licence out has not lifted it
            value, stated = {**value, **draft.record}, {**stated, **(draft.stated or {})}
        elif not stated and draft.origin is None and draft.generator is None and _SPEAKS.isdisjoint(value):
            return self.usual
        config = self.config
        license, restrictions, own_terms = self._terms(value, stated)
        origin = stated.get("origin") or draft.origin or config.origin
        if origin not in ("human", "synthetic", "mixed"):
            raise Unrepresentable("origin_unknown")
        depth = stated.get("depth")
        parents, unread = _stated.parents(value, stated)
        if unread:
            draft.notes.append(("parent_unread", {"count": unread}))
        return Provenance(
            license=license,
            restrictions=restrictions,
            origin=origin,
            generator=_stated.text(stated.get("generator")) or draft.generator or config.generator,
            parents=parents,
            depth=depth if isinstance(depth, int) else depth_of(origin),
            created=_stated.text(stated.get("created")),
            domain=_stated.text(stated.get("domain")) or config.domain,
            language=_stated.text(stated.get("language")) or config.language,
            own_terms=own_terms,
        )

    def _terms(self, value: Mapping[str, Any], stated: Mapping[str, Any]) -> tuple[str, list[str], bool]:
        """Licence and restrictions of a record, and whether it states any: what it says adds to its source's own."""
        config = self.config
        said = _stated.licence(value, stated)
        licence = config.license if said is None else of_record(said)
        follows = implied(licence) if said is None else [*implied(licence), *implied_by_record(said)]
        if licence == UNKNOWN:  # words that nobody understands lift nothing
            follows = [*follows, *implied(config.license)]
        own = stated["restrictions"] if "restrictions" in stated else value.get("restrictions")
        if licence == config.license and own is None and set(follows) <= set(self.restrictions):
            return licence, self.restrictions, said is not None
        return licence, sorted({*config.restrictions, *follows, *restrictions_of_record(own)}), True

    def _note(self, record: Record, made: list[Draft], start: int) -> None:
        for offset, draft in enumerate(made):
            for reason, detail in dict(draft.notes).items():
                self.changes.append(self._line(record, self.rows.row_id(start + offset), reason, detail))
        for reason, detail in record.detail.items():
            self.changes.append(self._line(record, self.rows.row_id(start), reason, {"count": detail}))

    def _quarantine(self, record: Record, reason: str, detail: Mapping[str, Any]) -> None:
        detail = {**_lists(record, reason), **detail}
        self.dropped.append(self._line(record, row_id(self._prefix(record.part), record.position), reason, detail))
        self.fault = None if reason == _UNWANTED else (reason, detail)

    def _line(self, record: Record, row: str, reason: str, detail: Mapping[str, Any]) -> Line:
        known = record.value if record.value is not None else record.remnant
        own = self._own_id(known) if known is not None else None
        own = None if own is not None and has_surrogate(own) else own
        facts = json.dumps({"file": record.file, "line": record.line, **detail}, ensure_ascii=False, sort_keys=True)
        return row, own, self.config.name, "ingest", reason, facts

    def _own_id(self, value: Mapping[str, Any]) -> str | None:
        try:
            mapped = self.mapping.apply(value)
        except Unrepresentable:
            return _stated.own_id(value, {})
        return _stated.own_id(mapped.record, mapped.stated)

    def result(self, detect_language: bool) -> StageResult:
        """Everything taken so far."""
        columns = self.rows.columns()
        kept = self.rows.table(columns, detect_language=detect_language)
        if self.plain:
            found, positions, prefix = self.plain
            constant = self.rows.constant
            made = _plain.table(found, positions, prefix, constant, self.usual, detect_language=detect_language)
            order = np.argsort(np.concatenate([positions, np.array(columns["record"], np.int64)]), kind="stable")
            kept = pa.concat_tables([made, kept]).take(pa.array(order)) if len(kept) else made
        records = self.with_rows + len(self.dropped)
        figures = {"records": records, "with_rows": self.with_rows, "quarantined": len(self.dropped), "rows": len(kept)}
        reasons = dict(Counter(line[4] for line in self.dropped))
        metrics: dict[str, Any] = {
            **figures,
            "sources": {self.config.name: {**figures, "reasons": reasons, "kinds": _counts(kept["kind"])}},
            "shapes": dict(self.shapes),
            "one_message_rows": self.shapes["text"],
            "unknown_license": _counts(pc.struct_field(kept["source"], "license")).get(UNKNOWN, 0),
            "stated_by_records": {
                self.config.name: dict(Counter(came.license for came in columns["came"] if came.own_terms))
            },
            "quarantine": reasons,
            "languages": _counts(pc.fill_null(kept["language"], "und")),
            "domains": _counts(kept["domain"]),
        }
        return StageResult("ingest", kept, _ledger(self.dropped), _ledger(self.changes), add_up([metrics]))


def refuse(file: str, line: int, fault: tuple[str, Mapping[str, Any]]) -> NoReturn:
    """Raise RecordError for a record that cannot become a row."""
    reason, detail = fault
    facts = f" ({', '.join(f'{key}={value}' for key, value in detail.items())})" if detail else ""
    raise RecordError(
        f"{file}, line {line}: {reason}{facts}", hint="mend the line, or set ingest.strict: false to quarantine it"
    )


def _decoded(text: bytes) -> dict[str, Any] | None:
    """The record of a line of which `cut` says that no key stands twice; None where there is more to say."""
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    """How often each value stands there, in the order of their first rows."""
    return {one["values"]: one["counts"] for one in pc.value_counts(column).to_pylist()}


def _ledger(lines: list[Line]) -> pa.Table:
    columns: Iterable[Iterable[Any]] = zip(*lines, strict=True) if lines else [[]] * len(LEDGER)
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=LEDGER)


def _lists(record: Record, reason: str) -> dict[str, Any]:
    """Names of fields that hold lists of objects: the records themselves, where a file is one object around them."""
    if reason != "unknown_shape" or record.position != 1 or record.value is None:
        return {}
    lists = [
        name
        for name, value in record.value.items()
        if name.isidentifier() and isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    ]
    return {"lists": lists} if lists else {}
