"""An id depends on what a record says and on where it stands, not on how its file is written, read or cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.records import RECORD
from tests.properties.test_nothing_vanishes import RECORD as ANY_RECORD
from tests.properties.test_round_trip import ingested, lines
from tests.properties.test_sample import reversed_keys

import corpusforge as cf
from corpusforge.io.readers import blocks

if TYPE_CHECKING:
    from corpusforge import StageResult

often = settings(max_examples=max(settings.default.max_examples, 100))
RECORDS = st.lists(RECORD | ANY_RECORD, min_size=1, max_size=8)


def ids(result: StageResult) -> list[tuple[str, str]]:
    """Row id and content id of every row, in order."""
    return list(zip(result.kept["row_id"].to_pylist(), result.kept["content_id"].to_pylist(), strict=True))


@often
@given(RECORDS, st.booleans(), st.integers(1, 400))
def test_ids_do_not_depend_on_key_order_escapes_or_blocks(
    records: list[dict[str, Any]], ascii_only: bool, size: int
) -> None:
    with ingested(records) as (plain, _):
        wanted = ids(plain)
    with ingested([reversed_keys(record) for record in records]) as (turned, _):
        assert ids(turned) == wanted
    with mock.patch.object(blocks, "SIZE", size), ingested(records, ascii_only=ascii_only) as (cut, _):
        assert ids(cut) == wanted


@often
@given(RECORDS, st.integers(0, 8))
def test_content_ids_do_not_depend_on_how_records_are_spread_over_files(
    records: list[dict[str, Any]], cut: int
) -> None:
    with ingested(records) as (whole, folder):
        spread = folder / "spread"
        spread.mkdir()
        (spread / "a.jsonl").write_bytes(lines(records[:cut]))
        (spread / "b.jsonl").write_bytes(lines(records[cut:]))
        parts = cf.ingest(spread, detect_language=False)
    assert [content for _, content in ids(parts)] == [content for _, content in ids(whole)]
    assert pc.count_distinct(parts.kept["row_id"]).as_py() == parts.kept.num_rows == whole.kept.num_rows
    assert parts.reasons() == whole.reasons()


def test_who_rated_may_be_an_object_of_any_key_order() -> None:
    record = {"text": "a", "rating": {"value": 1, "by": {"role": "user", "name": None}}}
    with ingested([record]) as (plain, _), ingested([reversed_keys(record)]) as (turned, _):
        assert ids(turned) == ids(plain)
        assert plain.kept["rating"][0]["by"].as_py() == '{"name":null,"role":"user"}'
