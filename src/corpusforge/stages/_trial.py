"""Whether what params say of a source's records fits them, found out on its first thousand.

A misspelt path would quarantine every record of a source, one by one, a million times. So while the first thousand
pass, it is watched whether `group` and each path of `fields` lead anywhere, and whether any record gives a row; if not,
the build stops, with the path and the nearest one that the records have.

    fields.tags: tags           []                  is there, and empty
    fields.tags: docs[*].tags   [{"tags": []}]      is there
    fields.tags: docs[*].tags   [] or [{}]          leads nowhere
"""

from __future__ import annotations

import difflib
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from corpusforge.errors import SourceError
from corpusforge.shapes import Unrepresentable, drafts
from corpusforge.shapes.own import is_own
from corpusforge.shapes.paths import EVERY, lookup, places, steps
from corpusforge.stages._record import Record
from corpusforge.stages._source import holds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from corpusforge.stages._source import SourceConfig

Item = TypeVar("Item", bound="Record | Iterable[Record]")

FIRST: Final = 1000
"""Records on which a mapping is tried."""
MISSING: Final = "group_missing"
"""Reason of a record that has no value in the field that `group` names; what it holds is its remnant."""
_NOT_THIS_SHAPE: Final = ("field_missing", "unknown_shape", "ambiguous_shape", "shape_failed", "shape_gave_no_dict")
"""Reasons for which it is the mapping that is wrong, rather than a record."""


def tried(items: Iterable[Item], source: SourceConfig) -> Iterator[Item]:
    """The same records, or blocks of records, in their order.

    Raises SourceError once it is clear that mapping or shape fit none of the first thousand.
    """
    stream = iter(items)
    trial = Trial(source)
    if not trial.over:
        for item in stream:
            yield item
            for record in (item,) if isinstance(item, Record) else item:
                trial.see(record)
                if trial.over:
                    break
            if trial.over:
                break
        trial.judge()
    yield from stream


class Trial:
    """What the first records of a source say of its mapping."""

    def __init__(self, source: SourceConfig) -> None:
        self.source = source
        self.missing = dict.fromkeys(source.mapping.places())  # (name, path) that led nowhere so far
        self.reasons: Counter[str] = Counter()
        self.fits = not source.fields and source.shape in ("auto", "rated")  # nothing is said that could be wrong
        self.ungrouped = source.group  # the field of the groups, while no record had it
        self.alone = 0  # records of no group
        self.seen = 0
        self.places: dict[str, None] = {}

    @property
    def over(self) -> bool:
        """Whether nothing more is to be found out."""
        if self.ungrouped is not None:
            return self.alone >= FIRST
        return self.seen >= FIRST or (self.fits and not self.missing)

    def see(self, record: Record) -> None:
        """Look at one record; what could not be read, or is not wanted, says nothing."""
        if record.error == MISSING and record.remnant is not None:
            self._see_alone(record.remnant)
            return
        if record.members:
            self.ungrouped = None
        value = self._value(record)
        if value is None:
            return
        self.seen += 1
        for name, path in list(self.missing):
            if _leads(value, path):
                del self.missing[name, path]
        if not self.fits:
            self._try(value)
        if self.missing or not self.fits:
            self.places |= dict.fromkeys(places(value)) if len(self.places) < FIRST else {}

    def _see_alone(self, value: Mapping[str, Any]) -> None:
        if self.ungrouped is None or not self._is_wanted(value):
            return
        self.alone += 1
        if _leads(value, self.ungrouped):  # there, though no text and no number
            self.ungrouped = None
        elif len(self.places) < FIRST:
            self.places |= dict.fromkeys(places(value))

    def _value(self, record: Record) -> Mapping[str, Any] | None:
        wanted = [one for one in record.members or (record,) if one.value is not None and self._is_wanted(one.value)]
        if not wanted:
            return None
        if not record.members:
            return record.value
        return {**(record.value or {}), "group": [one.value for one in wanted]}

    def _is_wanted(self, value: Mapping[str, Any]) -> bool:
        return all(holds(lookup(value, name), test) for name, test in self.source.where.items())

    def _try(self, value: Mapping[str, Any]) -> None:
        mapping = self.source.mapping
        try:
            self.fits = bool(drafts(mapping.apply(value).record, self.source.shape, mapping.targets)[1])
        except Unrepresentable as fault:
            said = fault.detail.get("field") or fault.detail.get("error")
            self.reasons[f"{fault.reason} ({said})" if said else fault.reason] += 1

    def judge(self) -> None:
        """Raise SourceError where a path led nowhere, or no record gave a row."""
        seen = self.seen if self.ungrouped is None else self.alone
        if not seen:
            return
        of = f"source {self.source.name!r}"
        count = f"none of the first {seen:,} records" if seen > 1 else "the first record is not one that"
        there = f"they have: {', '.join(list(self.places)[:12])}"
        wrong = [("group", self.ungrouped)] if self.ungrouped is not None else []
        wrong += [(f"fields.{name}", path) for name, path in self.missing]
        for setting, path in wrong:
            near = difflib.get_close_matches(path, list(self.places), 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else there
            raise SourceError(f"{of}: {setting}: {count} has {path!r}", hint=hint)
        if not self.fits and self._is_mistake():
            why = ", ".join(f"{reason} {number:,}" for reason, number in self.reasons.most_common(3))
            what = f"shape {self.source.shape}" if self.source.shape != "auto" else "the mapping"
            raise SourceError(f"{of}: {count} gives a row with {what}: {why}", hint=there)

    def _is_mistake(self) -> bool:
        """Whether it is the mapping that is wrong, rather than the data."""
        wrong = sum(count for reason, count in self.reasons.items() if reason.startswith(_NOT_THIS_SHAPE))
        if not self.source.fields and not is_own(self.source.shape):
            return self.seen >= FIRST and wrong == sum(self.reasons.values())
        return self.seen >= FIRST or wrong == sum(self.reasons.values()) > 0


def _leads(value: Mapping[str, Any], path: str) -> bool:
    """Whether anything stands there; of what is looked for in each of a list, whether one of them has it."""
    found = lookup(value, path)
    if isinstance(found, list) and EVERY in steps(path)[:-1]:
        return any(one is not None for one in found)
    return found is not None
