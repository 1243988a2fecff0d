"""A packed file or a stream is read to its very end, or refused: nothing behind a damaged place is passed over."""

from __future__ import annotations

import bz2
import gzip
import lzma
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corpusforge as cf
from corpusforge.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LINE = b'{"text": "a line"}\n'
PACKINGS: dict[str, Callable[[bytes], bytes]] = {"bz2": bz2.compress, "xz": lzma.compress, "gz": gzip.compress}


def rows(path: Path) -> int:
    return cf.ingest(path, detect_language=False).kept.num_rows


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("count", [1, 40_000])
def test_all_parts_are_read(tmp_path: Path, packing: str, count: int) -> None:
    pack, path = PACKINGS[packing], tmp_path / f"x.jsonl.{packing}"
    path.write_bytes(pack(LINE * count) + pack(b"") + pack(LINE * 3))
    assert rows(path) == count + 3


@pytest.mark.parametrize("packing", ["bz2", "xz", "gz"])
@pytest.mark.parametrize("behind", ["damaged", "rubbish", "cut off"])
def test_what_is_damaged_behind_the_first_part_is_no_end(tmp_path: Path, packing: str, behind: str) -> None:
    pack, path = PACKINGS[packing], tmp_path / f"x.jsonl.{packing}"
    second = bytearray(pack(LINE * 5))
    second[0] ^= 1
    tail = {"damaged": bytes(second), "rubbish": b"rubbish", "cut off": pack(LINE * 5)[:-4]}[behind]
    path.write_bytes(pack(LINE) + tail)
    with pytest.raises(SourceError, match=r"damaged|cannot be read"):
        rows(path)


def test_xz_may_be_padded(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.xz"
    path.write_bytes(lzma.compress(LINE) + bytes(8) + lzma.compress(LINE) + bytes(4))
    assert rows(path) == 2


@pytest.mark.parametrize("behind", ["rubbish", "a stream"])
def test_an_arrow_stream_ends_the_file(tmp_path: Path, behind: str) -> None:
    table = pa.table({"text": ["a"]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    stream = sink.getvalue().to_pybytes()
    path = tmp_path / "x.arrows"
    path.write_bytes(stream)
    assert rows(path) == 1
    path.write_bytes(stream + (stream if behind == "a stream" else b"rubbish"))
    with pytest.raises(SourceError, match="cannot be read"):
        rows(path)


def test_a_time_zone_that_nobody_knows_costs_the_row(tmp_path: Path) -> None:
    times = pa.array([0, None], pa.timestamp("s", "UTC+2"))
    pq.write_table(pa.table({"text": ["a", "b"], "at": times}), tmp_path / "x.parquet")
    assert cf.ingest(tmp_path / "x.parquet", detect_language=False).reasons() == {"value_out_of_range": 1}


def test_a_column_name_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"text": ["a"], "abcdz": ["b"]}), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"abcdz", b"ab\xffdz"))
    with pytest.raises(SourceError, match="cannot be read"):
        rows(path)


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    for path in ("a" * 5000, "a" * 5000 + "/*.jsonl"):
        with pytest.raises(SourceError, match="cannot be looked up"):
            cf.ingest(tmp_path / path)


def test_a_key_that_stands_twice_in_json_inside_a_text() -> None:
    twice = '[{"role": "user", "content": "kept", "content": "lost"}]'
    assert cf.ingest([{"messages": twice}]).kept.num_rows == 0


def test_a_key_that_stands_twice_in_a_column_of_json(tmp_path: Path) -> None:
    column = pa.array(['{"a": 1, "a": 2}', '{"a": 1}'], pa.string()).cast(pa.json_())
    pq.write_table(pa.table({"text": ["a", "b"], "x": column}), tmp_path / "x.parquet")
    assert cf.ingest(tmp_path / "x.parquet", detect_language=False).reasons() == {"duplicate_key": 1}
