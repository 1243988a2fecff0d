"""Made-up cases for the runner's own tests: one record set per topic, right and wrong assertions, spoilt outputs."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.cases._case import Case, load_case
from tests.cases._world import read_back

import corpusforge as cf
from corpusforge.verify.reward import reward

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

CHAT = [
    {"id": "a", "text": "The kestrel hovers above the quarry.", "n": 9007199254740995, "note": None, "tag": "0042"},
    {"id": "b", "text": "Two barges wait below the lock.", "n": 7, "note": "late"},
    {"id": "c", "messages": [{"role": "user", "content": "Lamp?"}, {"role": "assistant", "content": "", "tool_calls": [
        {"type": "function", "function": {"name": "set", "arguments": {"percent": 20, "room": None}}}]}]},
]  # fmt: skip
BAD = [
    b'{"id": "a", "text": "one"}',
    b'{"id": "s", "text": "half \\ud83e"}',
    b'{"id": "x", "te',
    b'{"id": "m", "messages": [{"role": "user", "content": {"a": 1}}]}',
]
TWINS = [
    {"id": "t1", "text": "Salt was traded for cloth along the old road."},
    {"id": "t2", "text": "Salt was traded for cloth along the old road."},
    {"id": "t3", "text": "A heron stood in the shallows until the fog had lifted."},
]
PII = [
    {"id": "p1", "text": "Write to anna.kowalska@harbour-tours.com before noon."},
    {"id": "p2", "text": "Nothing to see here at all."},
]
LICENCES = [
    {"id": "l1", "license": "mit", "text": "one"},
    {"id": "l2", "license": ["mit", "cc-by-nc-4.0"], "text": "two"},
    {"id": "l3", "license": None, "text": "three"},
]


@dataclass
class Example:
    """A word with an assertion that holds, and with what makes it fail: another assertion, or a spoilt output."""

    records: list[Any]
    right: dict[str, Any]
    wrong: dict[str, Any] | None = None
    spoil: Callable[[pytest.MonkeyPatch], None] | None = None
    stage: str = "ingest"
    config: dict[str, Any] = field(default_factory=dict)
    others: dict[str, list[Any]] = field(default_factory=dict)  # role -> records of a further input


def write_case(folder: Path, example: Example, assertion: dict[str, Any], id: str = "M01", **more: Any) -> Case:
    """The case of an example, in a folder."""
    folder.mkdir(exist_ok=True)
    inputs = {f"{id}.jsonl": example.records} | {f"{id}.{role}.jsonl": r for role, r in example.others.items()}
    for name, records in inputs.items():
        lines = [one if isinstance(one, bytes) else json.dumps(one, ensure_ascii=False).encode() for one in records]
        (folder / name).write_bytes(b"".join(line + b"\n" for line in lines))
    told = {"id": id, "stage": example.stage, "inputs": list(inputs), "expect": [assertion], **more}
    told |= {"config": example.config} if example.config else {}
    path = folder / f"{id}.expect.json"
    path.write_text(json.dumps(told), encoding="utf-8")
    return load_case(path)


def changed(change: Callable[[cf.StageResult], cf.StageResult], verb: str = "ingest") -> Callable[..., None]:
    """Spoil the results of a verb."""

    def spoil(patch: pytest.MonkeyPatch) -> None:
        true = getattr(cf, verb)
        patch.setattr(cf, verb, lambda *given, **options: change(true(*given, **options)))

    return spoil


def with_kept(result: cf.StageResult, kept: pa.Table) -> cf.StageResult:
    """The result with other rows."""
    return cf.StageResult(result.stage, kept, result.dropped, result.changes, result.metrics)


def with_dropped(result: cf.StageResult, dropped: pa.Table) -> cf.StageResult:
    """The result with another ledger."""
    return cf.StageResult(result.stage, result.kept, dropped, result.changes, result.metrics)


def edited(table: pa.Table, column: str, edit: Callable[[Any], Any]) -> pa.Table:
    """The table with every value of a column edited."""
    place = table.schema.get_field_index(column)
    values = pa.array([edit(value) for value in table[column].to_pylist()], table.schema.field(column).type)
    return table.set_column(place, column, values)


def upper(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A conversation that says the same, louder."""
    return [{**message, "content": (message["content"] or "").upper()} for message in messages]


lost_row = changed(lambda result: with_kept(result, result.kept.slice(1)))
doubled_row = changed(lambda result: with_kept(result, pa.concat_tables([result.kept, result.kept.slice(0, 1)])))
other_text = changed(lambda result: with_kept(result, edited(result.kept, "messages", upper)))
other_extra = changed(lambda result: with_kept(result, edited(result.kept, "extra", lambda _: '{"made":"up"}')))
lost_ledger = changed(lambda result: with_dropped(result, result.dropped.slice(0, 0)))
no_reasons = changed(lambda result: with_dropped(result, edited(result.dropped, "reason", lambda _: "")))
other_ids = changed(
    lambda result: with_kept(result, edited(result.kept, "source", lambda s: {**s, "record_id": f"0{s['record_id']}"}))
)


def empty_result(verb: str) -> Callable[..., None]:
    """Spoil a verb: all rows are gone, the ledger says what it said."""
    return changed(lambda result: with_kept(result, result.kept.slice(0, 0)), verb)


def no_figures(verb: str) -> Callable[..., None]:
    """Spoil a verb: it has no figures."""
    return changed(lambda result: cf.StageResult(result.stage, result.kept, result.dropped, result.changes), verb)


def one_sided(patch: pytest.MonkeyPatch) -> None:
    """Spoil the verifier: what it says depends on which answer is called the gold one."""
    patch.setattr(
        "tests.cases._words_verdicts.outcomes",
        lambda records, gold="gold", _="": ["equal" if gold == "gold" else "x"] * len(records),
    )


def zero_for_undecided(patch: pytest.MonkeyPatch) -> None:
    """Spoil the reward: what is undecided is worth as little as what is wrong."""
    true = reward
    patch.setattr("tests.cases._words_verdicts.reward", lambda **given: [one or 0.0 for one in true(**given)])


def middling(patch: pytest.MonkeyPatch) -> None:
    """Spoil the judge: a reply without a score gets the middle of the scale."""
    patch.setattr("corpusforge.verify.judge.score_of", lambda _, low, high: (low + high) / 2)


def lost_shard(patch: pytest.MonkeyPatch) -> None:
    """Spoil the reading back of shards: a line is gone."""
    true = read_back
    patch.setattr("tests.cases._words_shards.read_back", lambda *given: true(*given)[1:])


def folder(place: Path) -> Path:
    """A new empty folder."""
    place.mkdir()
    return place


def fails(patch: pytest.MonkeyPatch) -> None:
    """Spoil every run."""

    def refuse(*_: Any, **__: Any) -> None:
        raise cf.CorpusForgeError("no")

    patch.setattr(cf, "ingest", refuse)
