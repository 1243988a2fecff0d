"""What two rows must have in common before similar texts make them duplicates.

    kind, tools, images, rating     equal
    task                            same verifier kind and gold; same numbers in the same order, if they matter
    sft, rated                      both unanswered or both answered; answers shorter than a shingle equal, so a label
                                    or a number decides, however long and alike the prompts

All of it is one 64-bit hash per row, mixed into the hashes of the row's bands: rows that differ in it never meet.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from corpusforge.text.views import answer_text

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)  # odd: the place of an image among a row's images matters


def gold_keys(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """Hash of each task's gold (its verifier's spec); 0 for other kinds."""
    from corpusforge.text.shingles import byte_keys

    spec = byte_keys(_field(rows, "verifier", "spec"))
    return np.where(_is_kind(rows, "task"), spec, np.uint64(0))


def asked_keys(rows: pa.Table, prompt: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash of what a task asks: its prompt (of key `prompt`), the tools at hand, the images; 0 without a prompt."""
    from corpusforge.text.shingles import byte_keys, combine

    asked = combine(prompt, byte_keys(flat(rows["tools"])), _image_keys(rows))
    return np.where(prompt != 0, asked, np.uint64(0))


def guard_keys(rows: pa.Table, numbers: npt.NDArray[np.uint64] | None, shingle: int) -> npt.NDArray[np.uint64]:
    """Hash of all in which rows must be equal; `numbers` is a hash of each row's numbers, where they matter."""
    from corpusforge.text.shingles import byte_keys, combine, short_keys

    none = np.uint64(0)
    task = _is_kind(rows, "task")
    said = answer_text(rows)
    answers = np.where(pc.equal(pc.binary_length(said), 0), np.uint64(1), short_keys(said, shingle))
    return combine(
        byte_keys(flat(rows["kind"])),
        byte_keys(flat(rows["tools"])),
        byte_keys(pc.cast(_field(rows, "rating", "value"), pa.string())),
        _image_keys(rows),
        np.where(task, byte_keys(_field(rows, "verifier", "kind")), none),
        gold_keys(rows),
        np.where(task, numbers if numbers is not None else none, none),
        np.where(_is_kind(rows, "sft") | _is_kind(rows, "rated"), answers, none),
    )


def _image_keys(rows: pa.Table) -> npt.NDArray[np.uint64]:
    """Hash of a row's images, by their bytes or else their paths; 0 without images."""
    from corpusforge.text.shingles import byte_keys, mix

    images = flat(rows["images"])
    keys = np.zeros(len(images), np.uint64)
    every = images.flatten()
    if len(every):
        ones = byte_keys(every.field("bytes")) ^ mix(byte_keys(every.field("path")))
        parents = np.asarray(pc.list_parent_indices(images), np.int64)
        turn = (np.arange(len(parents)) - np.searchsorted(parents, parents)).astype(np.uint64)
        np.bitwise_xor.at(keys, parents, mix(ones + turn * _STEP))
    return keys


def _field(rows: pa.Table, column: str, name: str) -> pa.Array:
    return pc.struct_field(flat(rows[column]), name)


def _is_kind(rows: pa.Table, kind: str) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.fill_null(pc.equal(rows["kind"], kind), False))


def flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Make one array of a column's chunks."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
