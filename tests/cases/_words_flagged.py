"""Words about marks on rows: a line in a ledger, whether the row stays or goes, and what the figures of a stage say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.cases._case import CaseError
from tests.cases._words import word
from tests.cases._words_kept import mentions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import Removed, World

_SAYS: Final = {
    "benchmark": lambda line: line.detail.get("benchmark"),
    "item id": lambda line: line.detail.get("item"),
    "row id": lambda line: line.row_id,
    "side": lambda line: line.detail.get("side"),
    "score": lambda line: line.detail.get("coverage"),
    "matched span": lambda line: line.detail.get("span"),
    "reason": lambda line: line.reason,
}


def _marks(world: World, id: str | None = None) -> list[Removed]:
    """The ledger lines that stages after `ingest` wrote about a row (or about any)."""
    lines = [line for line in [*world.ledger, *world.notes] if line.stage != "ingest"]
    return [line for line in lines if id is None or line.id == id]


@word
def flagged(world: World, ids: list[str], reason: str | None = None, item: str | None = None) -> Iterator[str]:
    """Each of these rows is marked, for this reason, with this benchmark item."""
    for id in ids:
        lines = _marks(world, id)
        if not any(
            (reason is None or mentions(line, reason)) and item in (None, line.detail.get("item")) for line in lines
        ):
            yield f"{id!r} is not marked so: {[line.reason for line in lines]}"


@word
def reported(world: World, ids: list[str], reason: str) -> Iterator[str]:
    """Some ledger says this about each of these rows."""
    yield from flagged(world, ids, reason=reason)


@word
def counted_as(world: World, ids: list[str], what: str) -> Iterator[str]:
    """Each of these rows is marked as this."""
    yield from flagged(world, ids, reason=what)


@word
def not_flagged(world: World, ids: list[str]) -> Iterator[str]:
    """None of these rows is marked, and all are among those that came in."""
    for id in ids:
        if id not in world.originals:
            yield f"{id!r} is no row of the input"
        for line in _marks(world, id):
            yield f"{id!r} is marked: {line.reason}"


@word
def not_flagged_or_class(world: World, ids: list[str], class_: str) -> Iterator[str]:
    """None of these rows is marked, or only as being of this class."""
    for id in ids:
        for line in _marks(world, id):
            if not mentions(line, class_):
                yield f"{id!r} is marked: {line.reason}"


@word
def flagged_exactly(world: World, ids: list[str]) -> Iterator[str]:
    """These rows are marked, and no others."""
    found = sorted({line.id or line.row_id for line in _marks(world)})
    if found != sorted(ids):
        yield f"marked are {found}, expected {sorted(ids)}"


@word
def conflict_reported(world: World, ids: list[str], kind: str) -> Iterator[str]:
    """A ledger names all of these rows together as one conflict of this kind."""
    reasons = {"same prompt, different answer": "conflicting_gold"}
    if kind not in reasons:
        raise CaseError(f"the runner does not know the conflict {kind!r}")
    rows = {view.id: view.row_id for view in world.views}
    others = [rows.get(id, id) for id in ids[1:]]
    lines = [line for line in _marks(world, ids[0]) if line.reason == reasons[kind]]
    if not any(set(others) <= set(line.detail.get("other_gold", ())) for line in lines):
        yield f"no line names {ids} together"


@word
def report_counts(world: World, items_too_short: int) -> Iterator[str]:
    """The figures of the last stage count so many items that are too short to be looked for, in all benchmarks."""
    found = sum(figures["items_too_short"] for figures in world.results[-1].metrics["benchmarks"].values())
    if found != items_too_short:
        yield f"{found} items are too short, expected {items_too_short}"


@word
def report_has(world: World, fields: list[str]) -> Iterator[str]:
    """Rows are marked, and every mark says these."""
    if not _marks(world):
        yield "nothing is marked"
    for line in _marks(world):
        for name in fields:
            if name not in _SAYS:
                raise CaseError(f"the runner does not know the field {name!r} of a report")
            if _SAYS[name](line) in (None, "", []):
                yield f"{line.row_id}: the report has no {name}"


@word
def report_lists(world: World, checks_run: bool = False, checks_not_run: bool = False) -> Iterator[str]:
    """The figures of the last stage say which checks ran, and which did not."""
    figures = world.results[-1].metrics
    for name, asked in (("checks_run", checks_run), ("checks_not_run", checks_not_run)):
        if asked and not figures.get(name):
            yield f"the figures have no {name}"


@word
def json_valid(world: World, id: str, path: str) -> Iterator[str]:
    """What stands at the path is an object or a list, not a text that may be broken."""
    found: Any = world.view(id).get(path)
    if not isinstance(found, (dict, list)):
        yield f"{id!r}: {path} holds no JSON"
