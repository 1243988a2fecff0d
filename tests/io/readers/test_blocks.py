"""Blocks of JSON Lines hold all lines, once, whatever the size of what is read at a time."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.io.readers import blocks, cutter
from corpusforge.io.readers.blocks import Block, line_blocks
from corpusforge.io.readers.lines import line_records

BOM = b"\xef\xbb\xbf"
LINES = st.lists(
    st.sampled_from([b"", b" ", b"\r", b"{}", b'{"a": 1}', BOM + b"{}", b"x" * 30, b'{"a": "b"}\r', b"1"]), max_size=12
).map(b"\n".join)


def records(file, size, largest=cutter.LARGEST):
    """All records by way of blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "SIZE", size)
        patch.setattr(cutter, "LARGEST", largest)
        items = list(line_blocks(io.BytesIO(file), "a", "p"))
        assert all(item.records == len(list(item)) for item in items if isinstance(item, Block))
        return [record for item in items for record in (item if isinstance(item, Block) else [item])]


@given(LINES, st.integers(1, 40))
@example(BOM + b"{}\n" + BOM + b"{}", 4)
def test_blocks_hold_what_a_reader_of_lines_reads(file, size):
    assert records(file, size) == list(line_records(io.BytesIO(file), "a", "p"))


@given(LINES, st.integers(1, 40))
@example(b"x" * 30 + b"\n{}\n" + b"x" * 30 + b"\n{}", 4)
def test_a_line_that_is_too_long_costs_only_itself(file, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cutter, "LARGEST", 20)
        expected = list(line_records(io.BytesIO(file), "a", "p"))
    assert records(file, size, largest=20) == expected


def test_the_first_records_of_a_block():
    (block,) = line_blocks(io.BytesIO(b'{"a": 1}\n\n{"a": 2}\n{"a": 3}\n'), "a", "p")
    assert [record.value for record in block.first(2)] == [{"a": 1}, {"a": 2}]
    assert (block.first(2).lines.last, block.first(9), block.first(None)) == (2, block, block)
