"""Typed tables, a batch at a time: Parquet, Arrow IPC (files, streams, Feather), and whatever else comes as Arrow.

Columns become fields. Nulls inside structs count as absent; a missing number's NaN is null, and noted; dates and times
are ISO texts; decimals are whole numbers where their scale is 0, else texts with all their digits; bytes are
`{"base64": …}`; maps with text keys are objects; columns of JSON (the `arrow.json` type) are what their text means.
"""

from __future__ import annotations

import base64
import decimal
import math
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.errors import SourceError
from corpusforge.io.readers.unpack import open_bytes, open_seekable
from corpusforge.stages.ingest import Record
from corpusforge.text.jsontext import JsonFault, parse_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from corpusforge.io.readers.unpack import Place

BATCH: Final = 1000
"""Rows that are decoded at a time, if they are not large."""
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""The last bytes of an Arrow stream."""
_BYTES: Final = 32 << 20
"""Bytes of a Parquet file's rows that are decoded at a time."""


def parquet_records(path: Place, label: str, part: str) -> Iterator[Record]:
    """Rows of a Parquet file, plain or packed as a whole. Raises SourceError, and what pyarrow raises."""
    with open_seekable(path) as file, pq.ParquetFile(file, buffer_size=1 << 20) as table:
        _check_names(table.schema_arrow, label)
        rows, size = (
            table.metadata.num_rows,
            sum(table.metadata.row_group(n).total_byte_size for n in range(table.num_row_groups)),
        )
        at_once = max(1, min(BATCH, _BYTES * rows // max(size, 1)))
        yield from table_records(table.iter_batches(at_once), label, part)


def arrow_records(path: Place, label: str, part: str) -> Iterator[Record]:
    """Rows of an Arrow IPC file (Feather is one) or stream. Raises SourceError, and what pyarrow raises."""
    with _arrow_batches(path) as (schema, batches):
        _check_names(schema, label)
        yield from table_records(batches, label, part)


@contextmanager
def _arrow_batches(path: Place) -> Iterator[tuple[pa.Schema, Iterable[pa.RecordBatch]]]:
    with open_bytes(path) as file:
        stream = file.read(6) != b"ARROW1"
    if stream:
        with open_bytes(path) as file:
            watched = _Ending(file)
            with pa.ipc.open_stream(watched) as reader:
                yield reader.schema, _sliced(reader)
            if watched.last != _END:
                raise EOFError
            if watched.read(1):
                raise pa.ArrowInvalid("something stands behind the end of the stream")
    else:
        with open_seekable(path) as file, pa.ipc.open_file(file) as reader:
            yield reader.schema, _sliced(reader.get_batch(number) for number in range(reader.num_record_batches))


class _Ending:
    """A file that remembers the last bytes that were read of it: a stream that lacks its end mark was cut off."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.last = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        data = self.file.read(size)
        self.last = (self.last + data[-len(_END) :])[-len(_END) :]
        return data

    def close(self) -> None:
        """Whoever opened the file closes it."""


def _sliced(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches of a size that Python objects can be made of; checked, because Arrow trusts offsets that it reads."""
    for batch in batches:
        batch.validate(full=True)
        for start in range(0, batch.num_rows, BATCH):
            yield batch.slice(start, BATCH)


def _check_names(schema: pa.Schema, label: str) -> None:
    if len(set(schema.names)) < len(schema.names):
        raise SourceError(f"{label}: two columns have one name", hint="give each column its own name")


def table_records(batches: Iterable[pa.RecordBatch], label: str, part: str, start: int = 0) -> Iterator[Record]:
    """Rows of Arrow batches as records; the row number stands for the line."""
    position = start
    for batch in batches:
        reshape = _reshaper(pa.struct(list(batch.schema)))
        for value in _values(batch):
            position += 1
            if isinstance(value, str):
                yield Record(position, None, label, position, value, part)
                continue
            try:
                row = reshape(value) if reshape else value
            except JsonFault as fault:
                yield Record(position, None, label, position, fault.reason, part)
            else:
                yield columnar_record(row, position, label, part, batch.nbytes // batch.num_rows)


def _reshaper(kind: pa.DataType) -> Callable[[Any], Any] | None:
    """What has to be done to Python values of a type before they are JSON values; None for nothing."""
    if isinstance(kind, pa.BaseExtensionType):
        return _json_value if kind.extension_name == "arrow.json" else _reshaper(kind.storage_type)
    if pa.types.is_map(kind):
        return _map_value if pa.types.is_string(kind.key_type) or pa.types.is_large_string(kind.key_type) else None
    if pa.types.is_struct(kind):
        fields = {field.name: reshape for field in kind if (reshape := _reshaper(field.type))}
        return (lambda value: _struct_value(value, fields)) if fields else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        inner = _reshaper(kind.value_type)
        return (lambda value: None if value is None else [inner(one) for one in value]) if inner else None
    return None


def _json_value(value: str | None) -> Any:
    return None if value is None else parse_text(value)


def _map_value(value: list[tuple[str, Any]] | None) -> Any:
    if value is None or len({key for key, _ in value}) < len(value):
        return value
    return dict(value)


def _struct_value(value: dict[str, Any] | None, fields: dict[str, Callable[[Any], Any]]) -> Any:
    return value and {key: fields[key](inner) if key in fields else inner for key, inner in value.items()}


def _values(batch: pa.RecordBatch) -> list[dict[str, Any] | str]:
    """The rows of a batch; the reason code instead of a row that Python cannot hold."""
    try:
        return list(batch.to_pylist())
    except (ValueError, OverflowError, KeyError):
        return [_value(batch.slice(number, 1)) for number in range(batch.num_rows)]


def _value(row: pa.RecordBatch) -> dict[str, Any] | str:
    try:
        return dict(row.to_pylist()[0])
    except UnicodeDecodeError:
        return "invalid_unicode"
    except (ValueError, OverflowError, KeyError):  # KeyError: a time zone that nobody knows
        return "value_out_of_range"


def columnar_record(value: dict[str, Any], position: int, label: str, part: str, size: int = 0) -> Record:
    """A record of a typed table: null keys of structs left out, dates as ISO text, a missing number's NaN as null."""
    nans = [0]
    plain = {key: (inner if key in ("images", "image") else _plain(inner, nans)) for key, inner in value.items()}
    detail = {"nan_as_null": nans[0]} if nans[0] else {}
    return Record(position, plain, label, position, None, part, detail, size=size)


def _plain(value: Any, nans: list[int]) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if math.isnan(value):
            nans[0] += 1
            return None
        return value
    if isinstance(value, dict):
        return {key: _plain(inner, nans) for key, inner in value.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(inner, nans) for inner in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode("ascii")}
    if isinstance(value, decimal.Decimal) and value.as_tuple().exponent == 0:
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
