"""Words about duplicates, by exact similarity of word shingles that are counted here, not by what the stage says."""

from __future__ import annotations

import re
import unicodedata
from itertools import combinations
from typing import TYPE_CHECKING, Final

from tests.cases import _view
from tests.cases._case import CaseError
from tests.cases._words import word
from tests.cases._words_kept import partners

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._view import View
    from tests.cases._world import World

_SHINGLE: Final = 5  # words: the default of dedupe
_UNIT: Final = re.compile(
    r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]|(?:(?![\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff])\w)+"
)
_SAYS: Final = {
    "removed id": lambda line: line.id or line.row_id,
    "kept id": lambda line: line.detail.get("kept"),
    "similarity": lambda line: line.detail.get("similarity"),
    "stage": lambda line: line.stage,
    "reason": lambda line: line.reason,
}


def shingles(view: View) -> frozenset[tuple[str, ...]]:
    """Every run of five words (characters, where no blanks are written) of what the row says."""
    text = " ".join(message.get("content") or "" for message in view.messages)
    units = _UNIT.findall(unicodedata.normalize("NFKC", text).lower())
    return frozenset(tuple(units[at : at + _SHINGLE]) for at in range(max(1, len(units) - _SHINGLE + 1)))


def similarity(one: View, other: View) -> float:
    """Jaccard similarity of two rows, 0 to 1."""
    a, b = shingles(one), shingles(other)
    return len(a & b) / len(a | b)


def _before(world: World) -> dict[str, View]:
    return {view.id: view for view in [*_view.of_rows(world.read.kept), *world.reference_views]}


@word
def each_removed_has_kept_partner(world: World, min_similarity: float) -> Iterator[str]:
    """Every removed row has a row that stays and is this similar, and the ledger names that row."""
    before, kept = _before(world), {view.id for view in [*world.views, *world.reference_views]}
    for line in world.ledger:
        named = [id for id in partners(world, line) if id in kept]
        if not named:
            yield f"{line.id!r} went for {partners(world, line)}, which does not stay"
        elif line.id is not None and similarity(before[line.id], before[named[0]]) < min_similarity:
            yield f"{line.id!r} and {named[0]!r} are not {min_similarity} similar"


@word
def no_two_kept_similar(world: World, similarity: float) -> Iterator[str]:
    """No two rows that stay are this similar."""
    for one, other in combinations(world.views, 2):
        if _similarity(one, other) >= similarity:
            yield f"{one.id!r} and {other.id!r} stay both"


_similarity = similarity


@word
def each_reported_pair_similarity_at_least(world: World, value: float) -> Iterator[str]:
    """No pair in the ledger is less similar than this, as counted here, and the ledger does not say so either."""
    before = _before(world)
    for line in world.ledger:
        told = line.detail.get("similarity")
        if told is None or told < value:
            yield f"{line.id!r} was removed at {told}"
        named = [id for id in partners(world, line) if id in before]
        if line.id is not None and named and similarity(before[line.id], before[named[0]]) < value:
            yield f"{line.id!r} and {named[0]!r} are less similar than {value}"


@word
def ledger_complete(world: World, fields: list[str]) -> Iterator[str]:
    """Rows were removed, and every line of the ledger has these fields."""
    if not world.ledger:
        yield "the ledger is empty"
    for line in world.ledger:
        for name in fields:
            if name not in _SAYS:
                raise CaseError(f"the runner does not know the field {name!r} of a ledger")
            if _SAYS[name](line) in (None, ""):
                yield f"{line.row_id}: the ledger has no {name}"


@word
def ledger_ids_subset_of_input_ids(world: World) -> Iterator[str]:
    """Rows were removed, and every id that the ledger names is an id of the input."""
    if not world.ledger:
        yield "the ledger is empty"
    for line in world.ledger:
        for id in (line.id, *partners(world, line)[:1]):
            if id not in world.originals:
                yield f"{line.row_id}: {id!r} is no id of the input"


@word
def ledger_count_equals_rows_removed(world: World) -> Iterator[str]:
    """The ledger has one line for every row that is gone."""
    gone = set(world.originals) - set(world.ids)
    if sorted(line.id or line.row_id for line in world.ledger) != sorted(gone):
        yield f"gone are {sorted(gone)}, in the ledger are {[line.id or line.row_id for line in world.ledger]}"
