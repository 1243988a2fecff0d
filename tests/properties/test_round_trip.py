"""What comes in goes out: any JSON value in any field survives ingest, blend, the shards and reading them back.

pytest tests/properties/test_round_trip.py --hypothesis-profile=deep      20,000 examples of each
"""

from __future__ import annotations

import json
import math
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cases._same import canonical, differences
from tests.cases._view import View, has_digits, of_lines, of_rows, same
from tests.properties.records import RECORD

import corpusforge as cf

if TYPE_CHECKING:
    from collections.abc import Iterator

often = settings(max_examples=max(settings.default.max_examples, 200))
Listed = dict[tuple[str, str, str], str]  # row id, column, path -> how a shard holds the number


def lines(records: list[dict[str, Any]], *, ascii_only: bool = False) -> bytes:
    """Records as JSON Lines."""
    return "".join(json.dumps(record, ensure_ascii=ascii_only) + "\n" for record in records).encode()


@contextmanager
def ingested(records: list[dict[str, Any]], *, ascii_only: bool = False) -> Iterator[tuple[cf.StageResult, Path]]:
    """The records as a file of JSON Lines, read; and a folder to write to."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "in.jsonl"
        path.write_bytes(lines(records, ascii_only=ascii_only))
        yield cf.ingest(path, detect_language=False), Path(folder)


def number_of(view: View) -> int:
    """Which record a row is of, counted from 0."""
    return int(view.row_id.partition("#")[2]) - 1


@often
@given(st.lists(RECORD, min_size=1, max_size=3), st.booleans())
def test_any_value_in_any_field_comes_back(records, ascii_only):
    with ingested(records, ascii_only=ascii_only) as (read, folder):
        assert read.dropped.num_rows == 0
        views = of_rows(read.kept)
        assert [number_of(view) for view in views] == list(range(len(records)))
        for view, record in zip(views, records, strict=True):
            assert list(differences(view, record)) == []
        held = cf.write_shards(cf.blend(read.kept).kept, folder / "shards")
        tables = [pq.read_table(folder / "shards" / shard["path"]) for shard in held["shards"]]
    listed = {(one["row_id"], one["column"], one["path"]): one["held_as"] for one in held["inexact_in_datasets"]}
    for exact, read_by in ((True, by_json), (False, by_datasets)):
        back = {number_of(view): view for table in map(read_by, tables) for view in of_lines(table)}
        assert sorted(back) == list(range(len(records)))
        for number, record in enumerate(records):
            look_at(back[number], record, listed, exact)


def by_json(table: pa.Table) -> list[dict[str, Any]]:
    """The lines of a shard, messages opened by Python's own JSON reader."""
    read = table.to_pylist()
    for field in table.schema:
        if pa.types.is_list(field.type) and field.type.value_type == pa.json_():
            for line in read:
                line[field.name] = [json.loads(message) for message in line[field.name]]
    return read


def by_datasets(table: pa.Table) -> list[dict[str, Any]]:
    """The lines of a shard, as `datasets` decodes them."""
    return list(datasets.Dataset(table, fingerprint="0"))


def look_at(view: View, record: dict[str, Any], listed: Listed, exact: bool) -> None:
    """A line of a shard holds its record; numbers may be otherwise only where the manifest lists them."""
    numbers = {path: how for (row, _, path), how in listed.items() if row == view.row_id}
    messages = canonical(record)
    if messages is not None:
        said = [{**turn, "content": turn.get("content") or ""} for turn in messages]
        assert alike(view.messages, said, "", numbers, exact)
    plain = {name: value for name, value in record.items() if name != "messages"}
    if record.get("text", "") is None:  # as content that is null
        plain["text"] = ""
    assert list(differences(view, plain)) == []


def alike(found: Any, wanted: Any, path: str, listed: dict[str, str], exact: bool) -> bool:
    """Whether a message came back; `exact`: numbers are the same digits unless listed as text."""
    if isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(
            alike(found[key], wanted[key], f"{path}.{key}", listed, exact) for key in wanted
        )
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(
            alike(*pair, f"{path}[{place}]", listed, exact)
            for place, pair in enumerate(zip(found, wanted, strict=True))
        )
    if listed.get(path) == "text":
        return isinstance(found, str) and has_digits(found, repr(wanted))
    if isinstance(wanted, float) and not exact:
        return listed.get(path) == "number" or math.isclose(found, wanted, rel_tol=1e-12)
    return same(found, wanted)
