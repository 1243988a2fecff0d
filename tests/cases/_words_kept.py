"""Words about which rows are left, which are gone, and whether every one is accounted for."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tests.cases import _view
from tests.cases._case import CaseError
from tests.cases._same import differences
from tests.cases._words import word

import corpusforge as cf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import Removed, World


@word
def kept_exactly(world: World, ids: list[str], set: str | None = None) -> Iterator[str]:
    """These ids are left, each once, and no others; `set` "RL" asks for the tasks among them."""
    if set not in (None, "RL"):
        raise CaseError(f"the runner does not know the set {set!r}")
    left = [view.id for view in world.views if set is None or view.facts["kind"] == "task"]
    if Counter(left) != Counter(ids):
        yield f"left are {sorted(left)}, expected {sorted(ids)}"


@word
def kept_includes(world: World, ids: list[str]) -> Iterator[str]:
    """These ids are among those that are left, or among the rows that were there already."""
    for missing in sorted(set(ids) - set(world.ids) - {view.id for view in world.reference_views}):
        yield f"{missing!r} is not left"


@word
def kept_count(world: World, n: int) -> Iterator[str]:
    """So many rows are left."""
    if len(world.ids) != n:
        yield f"{len(world.ids)} rows are left, expected {n}"


@word
def kept_count_at_least(world: World, n: int) -> Iterator[str]:
    """At least so many rows are left."""
    if len(world.ids) < n:
        yield f"{len(world.ids)} rows are left, expected at least {n}"


@word
def ids_equal(world: World, ids: list[str]) -> Iterator[str]:
    """The user's own ids are these texts, in the order of the records."""
    if world.ids != ids:
        yield f"the ids are {world.ids}, expected {ids}"


@word
def one_of_each(world: World, groups: list[list[str]], stage: str | None = None) -> Iterator[str]:
    """Of each group exactly one id is left. `stage` "exact dedup" asks for exact duplicates alone."""
    ids = world.ids
    if stage is not None:
        if stage != "exact dedup":
            raise CaseError(f"the runner does not know the stage {stage!r} of one_of_each")
        ids = [view.id for view in _view.of_rows(world._run("dedupe", world.read.kept).kept)]
    for group in groups:
        left = [one for one in ids if one in group]
        if len(left) != 1:
            yield f"of {group} are left {left}, expected one"


@word
def no_duplicate_ids(world: World, unless: str | None = None) -> Iterator[str]:
    """No id is there twice (`unless` rows may be repeated on purpose)."""
    if unless not in (None, "repeat"):
        raise CaseError(f"the runner does not know the exception {unless!r}")
    for id, count in Counter(world.ids).items():
        if count > 1:
            yield f"{id!r} is there {count} times"


@word
def accounted(world: World, rows_in: int) -> Iterator[str]:
    """Rows in = rows left + rows removed or rejected, and each of those has one line in the ledger."""
    lines = Counter(line.row_id for line in world.ledger)
    if world.read.metrics.get("records", rows_in) != rows_in:
        yield f"{world.read.metrics['records']} records were read, expected {rows_in}"
    if len(world.ids) + len(lines) != rows_in:
        yield f"{len(world.ids)} are left and {len(lines)} in the ledger, together expected {rows_in}"
    for row, count in lines.items():
        if count > 1:
            yield f"{row} has {count} lines in the ledger"
    both = set(lines) & {view.row_id for view in world.views}
    if both:
        yield f"{sorted(both)} are left, and in the ledger as well"


@word
def removed_includes(
    world: World, ids: list[str], partner: dict[str, str] | None = None, reason: str | None = None
) -> Iterator[str]:
    """These ids are gone, listed, each for the sake of its partner (where one is named)."""
    for id in ids:
        lines = world.rejected(id)
        if id in world.ids or not lines:
            yield f"{id!r} is {'left' if id in world.ids else 'not in the ledger'}"
        elif reason is not None and not any(mentions(line, reason) for line in lines):
            yield f"{id!r} was removed as {lines[0].reason}, expected {reason!r}"
        elif partner and id in partner and not any(partner[id] in partners(world, line) for line in lines):
            yield f"{id!r} was removed for {partners(world, lines[0])}, expected {partner[id]!r}"


@word
def excluded(world: World, ids: list[str], reason: str) -> Iterator[str]:
    """These ids are gone for this reason."""
    yield from removed_includes(world, ids, reason=reason)


@word
def never_removed_as(world: World, ids: list[str], reason: str) -> Iterator[str]:
    """No ledger line says that these ids went for this reason."""
    for id in ids:
        if id not in world.originals:
            yield f"{id!r} is no row of the input"
        for line in world.rejected(id):
            if mentions(line, reason):
                yield f"{id!r} was removed as {line.reason}"


@word
def each_rejected_has(world: World, fields: list[str], reason: str | None = None) -> Iterator[str]:
    """Every rejected row has these fields (id, line, reason, …) in the ledger, under whichever config of the case."""
    for line, own in _all_rejected(world):
        facts = {
            "id": line.id if own else line.row_id,  # a broken line has no id of its own
            "line": line.line,
            "reason": line.reason,
            "stage": line.stage,
            "source": line.source,
            "file": line.detail.get("file"),
        }
        for name in fields:
            if name not in facts:
                raise CaseError(f"the runner does not know the field {name!r} of a rejected row")
            if facts[name] in (None, ""):
                yield f"{line.row_id}: the ledger has no {name}"
        if reason is not None and not mentions(line, reason):
            yield f"{line.row_id} was rejected as {line.reason}, expected {reason!r}"


def _all_rejected(world: World) -> Iterator[tuple[Removed, bool]]:
    """The ledger lines of the case under all of its configs, and whether the record has an id of its own."""
    for sibling in world.siblings or [world]:
        lines = {original.line for original in sibling.originals.values()}
        with suppress(cf.CorpusForgeError):  # a config that the case expects to be refused
            yield from ((line, line.line is None or line.line in lines) for line in sibling.ledger)


@word
def never_kept_silently_changed(world: World, ids: list[str]) -> Iterator[str]:
    """Each of these is left as it came, or listed in the ledger."""
    for id in ids:
        if id in world.ids:
            yield from differences(world.view(id), world.originals[id].value)
        elif not world.rejected(id):
            yield f"{id!r} is neither left nor in the ledger"


@word
def kept_or_rejected_with_reason(world: World, id: str, if_kept: dict[str, Any] | None = None) -> Iterator[str]:
    """The row is left with this value, or in the ledger with a reason."""
    if id in world.ids:
        from tests.cases._words_values import value_equals

        yield from value_equals(world, id=id, **(if_kept or {})) if if_kept else ()
    elif not any(line.reason for line in world.rejected(id)):
        yield f"{id!r} is neither left nor in the ledger"


@word
def repaired_or_quarantined(world: World, ids: list[str], repair: str, reported: bool = False) -> Iterator[str]:
    """Each is left with the repair in its text (`U+FFFD`), or quarantined; `reported`: in a ledger either way."""
    sign = chr(int(repair.removeprefix("U+"), 16))
    for id in ids:
        if id in world.ids:
            if sign not in world.view(id).says():
                yield f"{id!r} is left without {repair}"
            if reported and not any(note.id == id for note in world.notes):
                yield f"{id!r} was repaired, and nothing says so"
        elif not world.rejected(id):
            yield f"{id!r} is neither left nor in the ledger"


@word
def rejected_or_flagged(world: World, id: str, reason_mentions: str) -> Iterator[str]:
    """The row is in a ledger (gone, or noted) with a reason that says this."""
    lines = [*world.rejected(id), *(note for note in world.notes if note.id == id)]
    if not any(mentions(line, reason_mentions) for line in lines):
        yield f"nothing about {id!r} mentions {reason_mentions!r}: {[line.reason for line in lines]}"


def mentions(line: Removed, what: str) -> bool:
    """Whether a ledger line's reason says `what`: all of its words, in any order, as codes spell them."""
    said = f"{line.reason} {line.detail}".lower().replace("_", " ")
    return all(one.rstrip("s") in said for one in what.lower().replace("_", " ").split())


def partners(world: World, line: Removed) -> list[str]:
    """The ids for whose sake a row went, the user's own first."""
    own = {view.row_id: view.id for view in [*_view.of_rows(world.read.kept), *world.reference_views]}
    kept = str(line.detail.get("kept"))
    return [own[kept], kept] if kept in own else [kept]
