"""Arrow to NumPy and back by buffers is what pyarrow's own ways give."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text.arrow import arrow, bools, numbers


@given(st.lists(st.booleans(), max_size=40), st.integers(0, 20))
def test_booleans_from_any_place(values: list[bool], skip: int) -> None:
    """A slice need not begin at a whole byte."""
    column = pa.array(values, pa.bool_()).slice(skip)
    assert bools(column).tolist() == values[skip:]
    assert arrow(np.array(values, np.bool_)).to_pylist() == values


@given(st.lists(st.none() | st.integers(0, 2**31 - 1), max_size=20), st.integers(0, 9))
def test_numbers_with_nulls_as_zeros(values: list[int | None], skip: int) -> None:
    """From any place."""
    assert numbers(pa.array(values, pa.int32()).slice(skip)).tolist() == [value or 0 for value in values[skip:]]


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64", "float32", "float64"])
def test_numbers_go_and_come(kind: str) -> None:
    """With their type, and from every second place of an array."""
    values = np.arange(7).astype(kind)[::2]
    assert arrow(values).equals(pa.array(values))
    assert numbers(arrow(values)).tolist() == values.tolist()
