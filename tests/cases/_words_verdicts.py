"""Words about verdicts on answers: `gold` and `pred` of a row, and the verdict that the row itself names."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import queue
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.cases._case import CaseError
from tests.cases._words import word
from tests.cases._words_vary import COMPARED, ROOT, RUNNERS

from corpusforge.verify import verify, verify_many
from corpusforge.verify.reward import reward

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


@word
def never_scored(world: World, ids: list[str]) -> Iterator[str]:
    """None of these tasks is left, and on none of them any answer passes or fails."""
    for id in ids:
        task = world.originals[id].value
        if id in world.ids:
            yield f"{id!r} is left"
        for said in ("5", "\\boxed{5}", str(task["verifier"].get("answer")), ""):
            if verify(task, said).score is not None:
                yield f"{id!r} scores an answer"


@word
def no_worker_lost(world: World) -> Iterator[str]:
    """After these rows the verifier still tells right from wrong, as often as it is asked."""
    records = _records(world)
    if len(outcomes(records)) != len(records):
        yield "a verdict is missing"
    easy = [{"gold": str(n), "pred": str(n + wrong)} for n in range(8) for wrong in (0, 1)]
    if (
        outcomes([{**one, "gold": f"x^{{{one['gold']}}}", "pred": f"x^{{{one['pred']}}}"} for one in easy])
        != [
            "equal",
            "unequal",
        ]
        * 8
    ):
        yield "easy answers are judged wrongly afterwards"


@word
def undecided_counted_apart_from_unequal(world: World) -> Iterator[str]:
    """A reward is None for what is undecided and 0 for what is unequal."""
    records = _records(world)
    specs = [json.dumps({"answer": record["gold"]}) for record in records]
    given = [[{"role": "assistant", "content": record["pred"]}] for record in records]
    kinds = ["math"] * len(records)
    rewards = reward(prompts=[[]] * len(records), completions=given, verifier_kind=kinds, verifier_spec=specs)
    worth = {"equal": 1.0, "unequal": 0.0, "undecided": None}
    found = outcomes(records)
    if rewards != [worth[one] for one in found]:
        yield f"rewards {rewards} for {dict(Counter(found))}"


def _records(world: World) -> list[dict[str, Any]]:
    return [original.value for original in world.originals.values()]


def _one(record: dict[str, Any]) -> str:
    return outcomes([record])[0]


def _in_threads(world: World) -> list[str]:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(_one, _records(world)))


def _in_processes(world: World) -> list[str]:
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(_one, _records(world)))


def _in_asyncio(world: World) -> list[str]:
    async def all_of_them() -> list[str]:
        return await asyncio.gather(*(asyncio.to_thread(_one, record) for record in _records(world)))

    return asyncio.run(all_of_them())


def _in_a_notebook(world: World) -> list[str]:
    """The verdicts that a kernel of Jupyter's prints."""
    from jupyter_client.manager import start_new_kernel

    code = (
        f"import sys, json; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'src')!r}]\n"
        "from tests.cases._words_verdicts import outcomes\n"
        f"print(json.dumps(outcomes(json.loads({json.dumps(_records(world))!r}))))"
    )
    manager, client = start_new_kernel()
    try:
        printed: queue.Queue[str] = queue.Queue()
        client.execute_interactive(
            code, timeout=300, output_hook=lambda message: printed.put(message["content"].get("text", ""))
        )
        said = "".join(printed.queue)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return list(json.loads(said.strip().splitlines()[-1]))


COMPARED["verdicts"] = lambda world: outcomes(_records(world))
RUNNERS.update(
    {
        "main thread": lambda world: outcomes(_records(world)),
        "8-thread pool": _in_threads,
        "2-process pool": _in_processes,
        "asyncio to_thread": _in_asyncio,
        "notebook kernel": _in_a_notebook,
    }
)
