"""Records that belong together, read as one: `group: message_tree_id` makes one record of every line of a tree.

    {"message_tree_id": "t1", "message_id": "a", "parent_id": null, …}
    {"message_tree_id": "t1", "message_id": "b", "parent_id": "a", …}
    ->  {"message_tree_id": "t1", "group": [{…"a"…}, {…"b"…}]}, in the place of the first

The records of a group stand one after the other: memory holds one group, never the source. A group that comes back
later would already have given its rows, so it stops the build. Every record is counted for itself: those of a group
that gave rows gave rows, those of one that did not are quarantined, each by its own line.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from corpusforge.errors import SourceError
from corpusforge.shapes.paths import lookup
from corpusforge.stages._trial import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpusforge.stages.ingest import Record, SourceConfig

LOOKED_BACK: Final = 1_000_000
"""Groups that are remembered, to notice one that comes back."""


def grouped(records: Iterable[Record], source: SourceConfig) -> Iterator[Record]:
    """One record per group of `source.group`; as they are without it. Raises SourceError for a group torn apart.

    A record without the field, or that could not be read, stands alone.
    """
    if source.group is None:
        yield from records
        return
    seen: OrderedDict[int, None] = OrderedDict()
    key: str | int | None = None
    members: list[Record] = []
    for record in records:
        found = lookup(record.value, source.group) if record.value is not None else None
        named = found if isinstance(found, (str, int)) and not isinstance(found, bool) else None
        if members and named != key:
            yield _together(members, source.group, key)
            members = []
        if named is None:
            yield record if record.value is None else replace(record, value=None, error=MISSING, remnant=record.value)
            continue
        if not members:
            _remember(seen, hash((record.part, named)), record, source)
        key = named
        members.append(record)
    if members:
        yield _together(members, source.group, key)


def _remember(seen: OrderedDict[int, None], mark: int, record: Record, source: SourceConfig) -> None:
    if mark in seen:
        raise SourceError(
            f"source {source.name!r}: {record.file}, line {record.line}: the records of this {source.group} do not "
            "stand together",
            hint=f"sort the file by {source.group}, then run it again",
        )
    seen[mark] = None
    if len(seen) > LOOKED_BACK:
        seen.popitem(last=False)


def _together(members: list[Record], name: str, key: str | int | None) -> Record:
    detail: Counter[str] = Counter()
    for member in members:
        detail.update(member.detail)
    return replace(members[0], value={name: key}, detail=dict(detail), members=tuple(members))
