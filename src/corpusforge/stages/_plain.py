"""The plain conversations of a block of JSON Lines, from the compiled reader's columns to rows.

Most chat data is lines of messages with role and content. `text.chatlines` reads these without making a Python object
of each; here they become the same rows, to the byte, that the general way (`_batch`, `_rows`) would make of them.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.content import id_of_text
from corpusforge.sample import MESSAGE, SCHEMA
from corpusforge.shapes import PLAIN_CHAT, PLAIN_MESSAGE
from corpusforge.stages import _domain
from corpusforge.stages._rows import sources
from corpusforge.text import language

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    from corpusforge.stages._rows import Provenance
    from corpusforge.text.chatlines import Columns
    from corpusforge.text.jsonlines import Cut


def read(block: bytes, cut: Cut, wanted: npt.NDArray[np.bool_], elsewhere: frozenset[str]) -> Columns | None:
    """The plain conversations among the wanted lines, without the fields `elsewhere`; None where there are none."""
    if not wanted.any() or not _is_utf8(block):
        return None
    from corpusforge.text import chatlines  # it takes a while to load

    names = chatlines.Names.of(PLAIN_CHAT | elsewhere, PLAIN_MESSAGE)
    found = chatlines.read(block, cut[0], cut[1], wanted, names)
    return found if len(found.lines) else None


def _is_utf8(block: bytes) -> bool:
    offsets = pa.py_buffer(np.array([0, len(block)], np.int64))
    text = pa.LargeStringArray.from_buffers(1, offsets, pa.py_buffer(block))
    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def table(
    found: Columns,
    positions: npt.NDArray[np.int64],
    prefix: str,
    constant: Mapping[str, str],
    came: Provenance,
    *,
    detect_language: bool,
) -> pa.Table:
    """Rows of the conversations, which stand at these positions of their file."""
    rows = len(positions)
    texts = {name: _texts(*held) for name, held in found.texts.items()}
    record_id = _where(texts["record_id"], found.named)
    messages = _messages(found, texts)
    columns: dict[str, Any] = {
        "row_id": pc.binary_join_element_wise(f"{prefix}#", pc.cast(pa.array(positions), pa.string()), ""),
        "content_id": _content_ids(*found.texts["canonical"]),
        "kind": _repeated("sft", rows),
        "messages": messages,
        "source": sources(constant, {"record": pa.array(positions), "record_id": record_id}, [came], rows),
        "domain": _repeated(came.domain, rows) if came.domain else _domains(messages),
        "language": _repeated(came.language, rows)
        if came.language or not detect_language
        else _languages(texts["said"]),
        "extra": _unless_empty(texts["extra"]),
    }
    arrays = [columns[field.name] if field.name in columns else pa.nulls(rows, field.type) for field in SCHEMA]
    return pa.table(arrays, schema=SCHEMA)


def _texts(places: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.StringArray:
    return pa.StringArray.from_buffers(len(places) - 1, pa.py_buffer(places.astype(np.int32)), pa.py_buffer(data))


def _where(texts: pa.StringArray, there: npt.NDArray[np.bool_]) -> pa.StringArray:
    return pc.if_else(pa.array(there), texts, pa.scalar(None, pa.string()))


def _unless_empty(texts: pa.StringArray) -> pa.StringArray:
    return _where(texts, pc.greater(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False))


def _repeated(value: str | None, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), rows)


def _messages(found: Columns, texts: Mapping[str, pa.StringArray]) -> pa.ListArray:
    from corpusforge.text.chatlines import ROLES

    children = {
        "role": pa.array(ROLES, pa.string()).take(pa.array(found.roles)),
        "content": texts["content"],
        "extra": _unless_empty(texts["message_extra"]),
    }
    count = len(found.roles)
    arrays = [children[field.name] if field.name in children else pa.nulls(count, field.type) for field in MESSAGE]
    structs = pa.StructArray.from_arrays(arrays, fields=list(MESSAGE))
    return pa.ListArray.from_arrays(pa.array(found.messages, pa.int32()), structs)


def _content_ids(places: npt.NDArray[np.int64], data: npt.NDArray[np.uint8]) -> pa.StringArray:
    held = data.tobytes()
    return pa.array([id_of_text(held[begins:ends]) for begins, ends in pairwise(places.tolist())], pa.string())


def _languages(said: pa.StringArray) -> pa.StringArray:
    return pa.array(language.detect(said.to_pylist()), pa.string())


def _domains(messages: pa.ListArray) -> pa.StringArray:
    offsets, contents = messages.offsets, messages.values.field("content")

    def texts(row: int) -> list[str]:
        first, last = offsets[row].as_py(), offsets[row + 1].as_py()
        return [*contents.slice(first, last - first).to_pylist()]

    return pa.array(_domain.fill([None] * len(messages), messages, texts), pa.string())
