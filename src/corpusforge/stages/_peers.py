"""What the verdict on one task needs of all the others: places and ids, found among hashes.

Another task of the same kind with another gold answer is tried on each; a task that asks what another asks, and wants
another answer, is noted. A task is known by a line of numbers and two ids, however long its texts are.

    row_id    content_id  group    asked   gold          partner     conflicts with
    gsm8k#1   03ab…       numeric  7f01…   91cc…         gsm8k#9
    gsm8k#2   71e0…       numeric  52d8…   03fa…         gsm8k#1     gsm8k#3
    gsm8k#3   9c44…       numeric  52d8…   aa17…         gsm8k#2     gsm8k#2
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt

_SHOWN: Final = 5  # other rows that a conflict names


def partners(known: pa.Table) -> npt.NDArray[np.int64]:
    """For each task the place of another of its group with another gold answer, -1 for none.

    It is the next one in the order of content ids, the first coming after the last: rows may stand in any order.
    """
    found = np.full(known.num_rows, -1)
    order = _sorted(known, "gold", ("group", "content_id", "row_id"))
    if not len(order):
        return found
    group = np.asarray(pc.dictionary_encode(known["group"]).combine_chunks().indices)[order]
    gold = _numbers(known, "gold")[order]
    opens = _changes(group)  # a group begins
    runs = np.flatnonzero(opens | _changes(gold))  # places where a run of one gold answer begins
    run = np.cumsum(opens | _changes(gold)) - 1
    begins = run[opens]  # the first run of each group
    of = np.cumsum(opens) - 1
    first, last = begins[of], np.append(begins[1:], len(runs))[of] - 1
    following = np.where(run < last, run + 1, first)
    following += gold[runs[following]] == gold  # after the last run comes the first, or the second if they are alike
    there = last > first
    found[order[there]] = order[runs[following[there]]]
    return found


def conflicting(known: pa.Table) -> dict[int, list[str]]:
    """Places of tasks that ask the same as one with another gold answer, and ids of the first of those."""
    both = known.set_column(known.column_names.index("gold"), "gold", _both(known))
    order = _sorted(both, "gold", ("asked", "row_id"))
    if not len(order):
        return {}
    asked, gold = _numbers(known, "asked")[order], _numbers(known, "gold")[order]
    starts = np.flatnonzero(_changes(asked))
    sizes = np.diff(np.append(starts, len(order)))
    several = np.add.reduceat(gold != np.repeat(gold[starts], sizes), starts) > 0
    found: dict[int, list[str]] = {}
    for start, size in zip(starts[several].tolist(), sizes[several].tolist(), strict=True):
        members, golds = order[start : start + size], gold[start : start + size].tolist()
        rows = known["row_id"].take(pa.array(members)).to_pylist()
        others = {
            one: list(islice((row for row, other in zip(rows, golds, strict=True) if other != one), _SHOWN))
            for one in set(golds)
        }
        found |= {at: others[one] for at, one in zip(members.tolist(), golds, strict=True)}
    return found


def _both(known: pa.Table) -> pa.ChunkedArray:
    """The gold hashes of tasks of which it is also known what they ask."""
    return pc.if_else(pc.is_valid(known["asked"]), known["gold"], pa.scalar(None, pa.uint64()))


def _sorted(known: pa.Table, needed: str, keys: tuple[str, ...]) -> npt.NDArray[np.int64]:
    """Places of the tasks that have `needed`, in the order of keys."""
    there = np.flatnonzero(np.asarray(pc.is_valid(known[needed])))
    some = known.select(list(keys)).take(pa.array(there))
    order: npt.NDArray[np.int64] = there[np.asarray(pc.sort_indices(some, sort_keys=[(k, "ascending") for k in keys]))]
    return order


def _numbers(known: pa.Table, name: str) -> npt.NDArray[np.uint64]:
    return np.asarray(pc.fill_null(known[name], 0))


def _changes(values: npt.NDArray[np.generic]) -> npt.NDArray[np.bool_]:
    """Where a value is another than the one before it."""
    return np.append(True, values[1:] != values[:-1])
