"""Words about verdicts on answers: `gold` and `pred` of a row, and the verdict that the row itself names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cases._case import CaseError
from tests.cases._words import word

from corpusforge.verify import verify_many

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import World

_CALLED = {"pass": "equal", "fail": "unequal", "undecided": "undecided"}


def outcomes(records: list[dict[str, Any]], gold: str = "gold", pred: str = "pred") -> list[str]:
    """`equal`, `unequal` or `undecided` for each record, by the maths verifier."""
    tasks = [{"verifier": {"kind": "math", "spec": {"answer": record[gold]}}} for record in records]
    return [_CALLED[verdict.outcome] for verdict in verify_many(tasks, [record[pred] for record in records])]


@word
def verdicts(world: World, from_: str, ids: list[str] | None = None) -> Iterator[str]:
    """The verdict on each row is the one (or one of those, parted by "or") that its own `verdict` field names."""
    if from_ != "verdict field":
        raise CaseError(f"the runner does not know verdicts from {from_!r}")
    records = [world.originals[id].value for id in (ids or world.originals)]
    for record, found in zip(records, outcomes(records), strict=True):
        if found not in record["verdict"].removesuffix(" within the limit").split(" or "):
            yield f"{record['id']!r} is {found}, expected {record['verdict']}"


@word
def symmetric(world: World, ids: list[str] | None = None) -> Iterator[str]:
    """Gold and answer swapped give the same verdict."""
    records = [world.originals[id].value for id in (ids or world.originals)]
    for record, one, other in zip(records, outcomes(records), outcomes(records, "pred", "gold"), strict=True):
        if one != other:
            yield f"{record['id']!r} is {one}, swapped {other}"
