"""What is laid down beside the work comes back whole, from memory and from disk."""

from __future__ import annotations

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.io.scratch import Laid, Scratch


@given(st.lists(st.tuples(st.integers(0, 2), st.lists(st.integers(0, 9), max_size=5)), max_size=12), st.integers(0, 99))
def test_batches_come_back_in_the_order_in_which_they_were_put(puts: list[tuple[int, list[int]]], memory: int) -> None:
    """Wherever memory ends; and nothing is left on disk."""
    with TemporaryDirectory() as folder:
        store = Scratch(Path(folder), memory)
        for batch, values in puts:
            store.put(batch, np.array(values, np.int64), np.array(values[:1], np.uint8))
        for batch in {batch for batch, _ in puts}:
            own = [values for number, values in puts if number == batch]
            longer, shorter = store.take(batch)
            assert (longer.dtype, shorter.dtype) == (np.int64, np.uint8)
            assert longer.tolist() == [value for values in own for value in values]
            assert shorter.tolist() == [value for values in own for value in values[:1]]
        assert not list(Path(folder).iterdir())


@given(
    st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), max_size=4), st.integers(0, 99), st.data()
)
def test_some_of_the_rows_that_were_laid_down_together(
    parts: list[list[list[int]]], memory: int, data: st.DataObject
) -> None:
    """From memory or disk; and nothing is left there."""
    with TemporaryDirectory() as folder:
        laid = Laid(Path(folder) / "laid", memory)
        firsts = [100 * number for number in range(len(parts))]
        for first, rows in reversed(list(zip(firsts, parts, strict=True))):
            starts = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
            laid.put(first, starts, np.array([value for row in rows for value in row], np.uint64))
        assert laid.firsts() == firsts
        for first, rows in zip(firsts, parts, strict=True):
            assert laid.rows(first) == len(rows)
            wanted = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1)))) if rows else []
            values, starts = laid.take(first, np.array(wanted, np.int64))
            assert [values[a:b].tolist() for a, b in itertools.pairwise(starts)] == [rows[place] for place in wanted]
        assert not list((Path(folder) / "laid").iterdir())
