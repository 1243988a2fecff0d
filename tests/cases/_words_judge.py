"""Words about scores: `reply` of a row is what a judge said, `score` what it means, null where it means none.

A loopback endpoint says the replies; the verdicts are those of the verifier `judge`, asked about as many completions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.cases._case import CaseError
from tests.cases._words import word
from tests.verify.judges import server

from corpusforge.verify.judge import grade

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import World

    from corpusforge.verify import Verdict


def judged(world: World) -> list[tuple[dict[str, Any], Verdict]]:
    """Each record with the verdict on its reply."""
    records = [one.value for one in world.originals.values()]
    spec = {"rubric": "Is it good?", **world.settings.of("judge")}
    replies = iter([record["reply"] for record in records])
    with server(lambda _: next(replies)) as there:
        judge = there.judge(concurrency=1)
        tasks = [{"verifier": {"kind": "judge", "spec": spec}}] * len(records)
        return list(zip(records, grade(tasks, ["an answer"] * len(records), judge), strict=True))


def score(world: World, verdict: Verdict) -> float | None:
    """The score of a verdict on the case's scale."""
    low, high = world.settings.of("judge").get("scale", [1, 10])
    return None if verdict.score is None else round(low + verdict.score * (high - low), 6)


@word
def scores(world: World, from_: str) -> Iterator[str]:
    """The score read from each reply is the one that the row names, and none where it names none."""
    if from_ != "score field":
        raise CaseError(f"the runner does not know scores from {from_!r}")
    for record, verdict in judged(world):
        found = score(world, verdict)
        if found != record["score"]:
            yield f"{record['id']!r} is scored {found}, expected {record['score']}"


@word
def missing_counted(world: World, n: int) -> Iterator[str]:
    """So many replies are undecided."""
    found = sum(verdict.outcome == "undecided" for _, verdict in judged(world))
    if found != n:
        yield f"{found} are undecided, expected {n}"


@word
def no_default_score(world: World) -> Iterator[str]:
    """A reply without a score has a verdict without one."""
    for record, verdict in judged(world):
        if record["score"] is None and verdict.score is not None:
            yield f"{record['id']!r} has no score, and is scored {score(world, verdict)}"
