"""Bytes packed, and tables written, in every way that is read."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def zst(data: bytes) -> bytes:
    """Bytes as a zstd file."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


PACKERS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "plain": bytes,
    "gz": partial(gzip.compress, mtime=0),
    "zst": zst,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


def parquet(table: pa.Table) -> bytes:
    """A Parquet file of two row groups."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=max(1, table.num_rows // 2))
    return sink.getvalue()


def arrow_file(table: pa.Table) -> bytes:
    """An Arrow IPC file."""
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def arrow_stream(table: pa.Table) -> bytes:
    """An Arrow IPC stream, as `datasets` caches its tables."""
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def feather(table: pa.Table) -> bytes:
    """A Feather file of the second version, packed inside."""
    sink = io.BytesIO()
    pyarrow.feather.write_feather(table, sink, compression="zstd")
    return sink.getvalue()


TABLES: Final[Mapping[str, Callable[[pa.Table], bytes]]] = {
    "parquet": parquet,
    "arrow_file": arrow_file,
    "arrow_stream": arrow_stream,
    "feather": feather,
}
