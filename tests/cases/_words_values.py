"""Words about what a row holds: values at paths, texts, and whether they are what came in."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import duckdb
from tests.cases import _view
from tests.cases._case import CaseError
from tests.cases._same import differences
from tests.cases._view import ABSENT, has_digits, same
from tests.cases._words import word
from tests.cases._world import read_back

import corpusforge as cf
from corpusforge.pii.marks import is_standin_email, is_standin_phone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pyarrow as pa
    from tests.cases._view import View
    from tests.cases._world import World

_UNSAID: Final = object()
_EMAIL: Final = re.compile(r"[\w.+\-]+@(?:[\w\-]+\.)+[A-Za-z]+")
_PHONE: Final = re.compile(r"[+(]?\d[\d ().\-]{6,20}\d")


@word
def value_equals(
    world: World, id: str, path: str, value: Any = _UNSAID, value_text: str | None = None
) -> Iterator[str]:
    """The value at the path is this one, or a number of exactly these digits (`value_text`)."""
    if (value is _UNSAID) == (value_text is None):
        raise CaseError("value_equals needs either value or value_text")
    found = world.view(id).get(path, None if value is _UNSAID else value)
    if value_text is not None:
        if not has_digits(found, value_text):
            yield f"{id!r}: {path} is {_shown(found)}, expected the digits {value_text}"
    elif not same(found, value):
        yield f"{id!r}: {path} is {_shown(found)}, expected {value!r}"


@word
def value_missing(world: World, id: str, field: str) -> Iterator[str]:
    """The row has no value there: absent, or null."""
    view = world.view(id)
    found = view.facts.get(field, view.get(field))
    found = found.get("value") if isinstance(found, dict) else found
    if found is not ABSENT and found is not None:
        yield f"{id!r}: {field} is {_shown(found)}, expected nothing"


@word
def key_absent(world: World, id: str, path: str) -> Iterator[str]:
    """There is nothing at the path, not even null."""
    found = world.view(id).get(path)
    if found is not ABSENT:
        yield f"{id!r}: {path} is there"


@word
def non_null_count(world: World, field: str, n: int) -> Iterator[str]:
    """So many rows have a value in this field."""
    found = sum(view.get(field) not in (ABSENT, None) for view in world.views)
    if found != n:
        yield f"{found} rows have {field}, expected {n}"


@word
def fields_kept(world: World, fields: list[str]) -> Iterator[str]:
    """Every row that is left has these fields of its record, unchanged."""
    if not world.views:
        yield "no row is left"
    for view in world.views:
        for name in fields:
            wanted = world.originals[view.id].value.get(name, ABSENT)
            if not same(view.get(name, wanted), wanted):
                yield f"{view.id!r}: {name} is {_shown(view.get(name))}"


@word
def normalised(world: World, id: str, roles: list[str]) -> Iterator[str]:
    """The turns of the conversation have these roles."""
    found = [message["role"] for message in world.view(id).messages]
    if found != roles:
        yield f"{id!r} has the roles {found}, expected {roles}"


@word
def canonical_equal(world: World, ids: list[str]) -> Iterator[str]:
    """These rows are the same content, by their content ids, as soon as they are read."""
    found = {view.id: view.content_id for view in _view.of_rows(world.read.kept) if view.id in ids}
    if set(found) != set(ids):
        yield f"read were {sorted(found)}, expected {ids}"
    if len(set(found.values())) > 1:
        yield f"the content ids differ: {found}"


@word
def text_unchanged(world: World, ids: list[str]) -> Iterator[str]:
    """These rows are, character for character, what came in."""
    for id in ids:
        yield from differences(world.view(id), world.originals[id].value)


@word
def text_masked(world: World, id: str, path: str, must_not_contain: str) -> Iterator[str]:
    """The piece is gone from the text at the path, and something is left of the text."""
    text = _text(world, id, path)
    if must_not_contain in text:
        yield f"{id!r}: {path} still holds it"
    before = world.originals[id].value.get(path)
    if not text.strip() or text == before:
        yield f"{id!r}: {path} is {'unchanged' if text == before else 'empty'}"


@word
def text_contains(world: World, id: str, text: str, path: str | None = None) -> Iterator[str]:
    """The text (at the path, or anywhere in the row) holds this piece."""
    if text not in _text(world, id, path):
        yield f"{id!r} does not hold {text!r}"


@word
def text_starts_with(world: World, id: str, text: str, path: str | None = None) -> Iterator[str]:
    """The text at the path (without one: the row's first message) starts with this piece."""
    if not _text(world, id, path or "messages[0].content").startswith(text):
        yield f"{id!r} does not start with {text!r}"


@word
def text_absent(world: World, id: str, text: str, path: str | None = None, unless: str | None = None) -> Iterator[str]:
    """The text (at the path, or anywhere in the row) does not hold this piece, but perhaps in a stand-in of ours."""
    if unless not in (None, "stand-in chosen by the tool"):
        raise CaseError(f"the runner does not know the exception {unless!r}")
    found = _text(world, id, path)
    if unless:
        for standin in standins(found):
            found = found.replace(standin, "")
    if text in found:
        yield f"{id!r} holds {text!r}"


@word
def stand_ins_consistent(world: World, id: str, distinct_values: int, occurrences: list[int]) -> Iterator[str]:
    """The row holds so many stand-ins, each as often as the value that it stands for was there."""
    counts = sorted(Counter(standins(world.view(id).says())).values(), reverse=True)
    if len(counts) != distinct_values or counts != sorted(occurrences, reverse=True):
        yield f"{id!r} holds stand-ins {counts} times, expected {occurrences}"


def standins(text: str) -> list[str]:
    """Every stand-in for an e-mail address or a phone number in a text, as often as it is there."""
    found = [one for one in _EMAIL.findall(text) if is_standin_email(one)]
    return found + [one for one in _PHONE.findall(text) if is_standin_phone(one)]


def _text(world: World, id: str, path: str | None) -> str:
    view = world.view(id)
    found = view.get(path, "") if path else view.says()
    if not isinstance(found, str):
        raise CaseError(f"{id!r}: there is no text at {path}")
    return found


@word
def same_rows(world: World, files: list[str]) -> Iterator[str]:
    """The files give the same rows: ids, contents and every field."""
    first, *others = (_wholes(world.ingested(name).kept) for name in files)
    if not first:
        yield f"{files[0]} gives no rows"
    for name, rows in zip(files[1:], others, strict=True):
        if not same(rows, first):
            yield f"{name} gives other rows than {files[0]}"


def _wholes(rows: pa.Table) -> list[dict[str, Any]]:
    return [view.whole() | {"": view.content_id} for view in _view.of_rows(rows)]


@word
def round_trip(world: World, through: list[str]) -> Iterator[str]:
    """After these steps the rows still hold all of their records, and nothing else.

    Steps: `ingest`, `shard`, `read_back` (by `datasets`), `export jsonl` (by DuckDB, as its page in docs tells).
    """
    if not through or through[0] != "ingest":
        raise CaseError("round_trip has to start with ingest")
    views, inexact = _travelled(world, through)
    if not views:
        yield "no row came back"
    left = {view.id: view for view in views}
    for id, original in world.originals.items():
        if id in left:
            yield from differences(left[id], original.value, inexact)
        elif not world.rejected(id):
            yield f"{id!r} did not come back"


def _travelled(world: World, through: list[str]) -> tuple[list[View], frozenset[str]]:
    """The rows at the end of the way, and the digits that shards hold as text."""
    rows, shards, views = world.read.kept, world.folder, _view.of_rows(world.read.kept)
    inexact: frozenset[str] = frozenset()
    for number, step in enumerate(through[1:]):
        if step == "shard":
            shards = world.folder / f"way-{number}"
            manifest = cf.write_shards(rows, shards, **world.settings.of("shard"))
            views = _view.of_lines(read_back(shards, world.folder / "cache"))
            inexact |= _listed(manifest, rows)
        elif step in ("read_back", "read back"):
            views = _view.of_lines(read_back(shards, world.folder / "cache"))
        elif step == "export jsonl":
            export_jsonl(shards, world.folder / f"way-{number}.jsonl")
        elif step == "ingest" and through[number] == "export jsonl":
            rows = cf.ingest(world.folder / f"way-{number - 1}.jsonl", fields={"id": "record_id"}).kept
            views = _view.of_lines({**view.fields, "messages": view.messages} for view in _view.of_rows(rows))
        else:
            raise CaseError(f"the runner does not know the step {step!r} after {through[number]!r}")
    return views, inexact


def _listed(manifest: dict[str, Any], rows: Any) -> frozenset[str]:
    """Digits that the manifest says are held as text, taken from the rows themselves."""
    found = set()
    views = {view.row_id: view for view in _view.of_rows(rows)}
    for one in manifest["inexact_in_datasets"]:
        if one["held_as"] == "text":
            value = views[one["row_id"]].get(one["column"] + one["path"])
            found.add(str(value))
    return frozenset(found)


def export_jsonl(shards: Path, target: Path) -> None:
    """The lines of a folder of shards as JSON Lines."""
    files = [str(path) for path in sorted(shards.glob("*/*.parquet"))]
    duckdb.sql(f"COPY (SELECT * FROM read_parquet({files}, union_by_name=true)) TO '{target}' (FORMAT json)")


def _shown(value: Any) -> str:
    """A value in a message, short."""
    return "absent" if value is ABSENT else repr(value)[:80]
