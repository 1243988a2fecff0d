"""_pack: what crosses between processes comes out as it went in, and no bytes make anything else."""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify.trial._pack import DEEPEST, pack, unpack

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.complex_numbers(allow_nan=False)
    | st.text(st.characters())
    | st.binary()
    | st.fractions()
    | st.decimals(allow_nan=False)
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.sampled_from([int, str, list, dict, ValueError, range(3, 99, 7), "\ud800"])
    | st.builds(pow, st.just(10), st.just(4000))  # as a literal it would fill the name of the strategy
)
HASHABLE = st.recursive(SCALARS, lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3), max_leaves=5)
VALUES = st.recursive(
    HASHABLE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(HASHABLE, inner, max_size=3)
        | st.sets(HASHABLE, max_size=3)
        | st.lists(inner, max_size=3).map(lambda items: collections.deque(items, 9))
    ),
    max_leaves=10,
)
ALLOWED = (
    *(type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, type, range),
    *(decimal.Decimal, fractions.Fraction, datetime.date, datetime.timedelta, datetime.datetime, collections.deque),
)


def refuse(*_: Any) -> Any:
    raise LookupError("not plain data")


@given(VALUES)
def test_a_value_comes_out_as_it_went_in(value: Any) -> None:
    found = unpack(pack(value, refuse), refuse)
    assert (found, type(found)) == (value, type(value))


@given(st.floats())
def test_floats_keep_every_bit_that_can_be_seen(value: float) -> None:
    assert repr(unpack(pack(value, refuse), refuse)) == repr(value)


@given(st.binary(max_size=60) | st.text("lstdi;o1290p", max_size=40).map(str.encode))
def test_no_bytes_make_anything_but_plain_data(data: bytes) -> None:
    try:
        found = unpack(data, refuse)
    except (ValueError, LookupError, TypeError, ArithmeticError):
        return
    assert isinstance(found, ALLOWED)


@pytest.mark.parametrize(
    "data", [b"", b"l", b"l-1;", b"i1;", b"s9;a", b"n0;n0;", b"pt2;s9;os.systemt1;s2;ls", b"pt2;s14;builtins.printt0;"]
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises((ValueError, LookupError)):
        unpack(data, refuse)


def test_nesting_ends_somewhere() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        unpack(b"l1;" * (DEEPEST + 2) + b"n0;", refuse)


@pytest.mark.parametrize("value", [print, object(), type("T", (int,), {})(3), collections.Counter("a"), iter([])])
def test_what_is_no_plain_data_is_handed_to_whoever_exports_it(value: Any) -> None:
    with pytest.raises(LookupError, match="not plain data"):
        pack([value], refuse)
