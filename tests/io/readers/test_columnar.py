"""Typed columns become JSON values without losing a digit, a null or a key."""

from __future__ import annotations

import datetime
import decimal
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.io.readers.packing import PACKERS, TABLES, arrow_file, arrow_stream

from corpusforge.errors import SourceError
from corpusforge.io.readers import read_file

if TYPE_CHECKING:
    from pathlib import Path


def values(path: Path) -> list[Any]:
    """What the records hold, or why they hold nothing."""
    return [r.value if r.value is not None else r.error for r in read_file(path, path.name)]


POINT = pa.struct({"x": "int64", "y": "int64"})
CALL = '{"a": [1, null], "n": 18446744073709551617}'
TABLE = pa.table(
    {
        "whole": pa.array([decimal.Decimal(2**64 + 1), None], pa.decimal128(38, 0)),
        "money": pa.array([decimal.Decimal("1.50"), None], pa.decimal128(10, 2)),
        "large": pa.array([2**64 - 1, 0], pa.uint64()),
        "half": pa.array([0.1, float("nan")], pa.float32()),
        "when": pa.array([datetime.datetime(2024, 2, 29, 1, 2, 3), None], pa.timestamp("us")),
        "raw": pa.array([b"\x00\xff", None], pa.binary()),
        "map": pa.array([[("a", {"x": 1, "y": None})], []], pa.map_(pa.string(), POINT)),
        "pairs": pa.array([[(1, "a")], None], pa.map_(pa.int64(), pa.string())),
        "word": pa.array(["same", "same"]).dictionary_encode(),
        "calls": pa.ExtensionArray.from_storage(pa.json_(), pa.array([CALL, None])),
        "list": pa.array([[{"a": 1, "b": None}, None], []]),
    }
)  # fmt: skip
FIRST = {
    "whole": 2**64 + 1,
    "money": "1.50",
    "large": 2**64 - 1,
    "half": 0.10000000149011612,
    "when": "2024-02-29T01:02:03",
    "raw": {"base64": "AP8="},
    "map": {"a": {"x": 1}},
    "pairs": [[1, "a"]],
    "word": "same",
    "calls": {"a": [1, None], "n": 2**64 + 1},
    "list": [{"a": 1}, None],
}


@pytest.mark.parametrize("pack", PACKERS)
@pytest.mark.parametrize("form", TABLES)
def test_every_type(tmp_path: Path, form: str, pack: str) -> None:
    """The same from every form, packed as a whole or not."""
    path = tmp_path / "a.bin"
    path.write_bytes(PACKERS[pack](TABLES[form](TABLE)))
    first, second = values(path)
    assert json.dumps(first) == json.dumps(FIRST)
    assert {key for key, value in second.items() if value is not None} == {"large", "map", "word", "list"}


def test_broken_json_in_a_column_costs_its_row(tmp_path: Path) -> None:
    """Arrow does not check what a column of JSON holds."""
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{", '{"a": NaN}', "[1]"]))
    path = tmp_path / "a.arrow"
    path.write_bytes(arrow_file(pa.table({"calls": column})))
    assert values(path) == ["broken_json", "nan_or_infinity", {"calls": [1]}]


@pytest.mark.parametrize("write", [arrow_file, arrow_stream])
def test_a_table_that_breaks_off_is_no_source(tmp_path: Path, write: Any) -> None:
    """At whatever byte it ends: an error that names it, never a part of it."""
    whole = write(pa.table({"text": [f"row {n}" for n in range(50)]}))
    path = tmp_path / "a.arrow"
    for end in [*range(16, len(whole) - 8, 97), len(whole) - 8]:  # the last 8 bytes of a stream are its end mark
        path.write_bytes(whole[:end])
        with pytest.raises(SourceError, match=r"a\.arrow"):
            values(path)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    path.write_bytes(arrow_stream(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], ["text", "text"])))
    with pytest.raises(SourceError, match="two columns have one name"):
        values(path)
