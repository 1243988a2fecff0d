"""Signatures equal datasketch's own; bands reach the recall they promise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.errors import ConfigError
from corpusforge.text.minhash import band_hashes, candidate_probability, parameters, permutations, signatures
from corpusforge.text.shingles import shingle

BITS = {"affine32": 32, "affine64": 64, "legacy": 32}


@pytest.mark.parametrize("scheme", BITS)
@given(st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=20), min_size=1, max_size=4), st.integers(0, 2**32 - 1))
def test_signatures_are_those_of_datasketch(scheme: str, rows: list[list[int]], seed: int) -> None:
    """datasketch is the oracle, over the bits of our hashes that the scheme takes; an empty set is all maximum."""
    hashes = np.array([h for row in rows for h in row], np.uint64)
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    for row, signature in zip(rows, signatures(hashes, starts, 16, seed, scheme), strict=True):
        oracle = MinHash(16, seed=seed, hashfunc=lambda h: h & ((1 << BITS[scheme]) - 1), scheme=scheme)
        oracle.update_batch(row)
        assert np.array_equal(oracle.hashvalues, signature)
        assert oracle.hashvalues.dtype == signature.dtype


@pytest.mark.parametrize("num_perm", [1, 7, 8, 9, 31, 64, 105])
def test_any_number_of_permutations_and_of_shingles(num_perm: int) -> None:
    """Eight shingles a step, whole registers of permutations: the odd ends count as well."""
    hashes = np.random.default_rng(1).integers(0, 2**64, 300, dtype=np.uint64)
    starts = np.cumsum(np.arange(25)).astype(np.int64)
    found = signatures(hashes, starts, num_perm, 3)
    for row in range(24):
        oracle = MinHash(num_perm, seed=3, hashfunc=lambda h: int(h) & 0xFFFFFFFF)
        oracle.update_batch(hashes[starts[row] : starts[row + 1]])
        assert np.array_equal(oracle.hashvalues, found[row])


@pytest.mark.parametrize("scheme", BITS)
def test_permutations_are_those_of_datasketch(scheme: str) -> None:
    """The same draws in the same order."""
    assert np.array_equal(MinHash(128, seed=7, scheme=scheme).permutations, np.array(permutations(128, 7, scheme)))


def test_a_scheme_that_datasketch_does_not_have_is_refused() -> None:
    """Names what was asked for and what there is."""
    with pytest.raises(ConfigError, match=r"scheme is 'affine33', expected one of 'affine32', 'affine64', 'legacy'"):
        signatures(np.zeros(0, np.uint64), np.zeros(1, np.int64), 16, 1, "affine33")


@given(st.floats(0.01, 1), st.integers(16, 512), st.floats(0.5, 0.999))
def test_parameters_keep_their_promise(threshold: float, num_perm: int, recall: float) -> None:
    """A pair at the threshold meets with the probability asked for, or every minimum is a band of its own."""
    bands, rows = parameters(threshold, num_perm, recall)
    assert 1 <= bands * rows <= num_perm
    assert candidate_probability(threshold, bands, rows) >= recall - 1e-9 or (bands, rows) == (num_perm, 1)


@pytest.mark.parametrize(("threshold", "expected"), [(1.0, (1, 16)), (0.8, (16, 6)), (0.5, (35, 3)), (0.08, (56, 1))])
def test_parameters_of_common_thresholds(threshold: float, expected: tuple[int, int]) -> None:
    """Golden: a change here changes which near pairs are found."""
    assert parameters(threshold, 128, 0.99) == expected


def test_signatures_estimate_jaccard() -> None:
    """Half of the shingles shared: the share of equal minima is a third, within four standard deviations."""
    words = [f"w{i}" for i in range(400)]
    texts = pa.array([" ".join(words[:204]), " ".join(words[100:304])])
    found = shingle(texts, 5)
    a, b = signatures(found.hashes, found.starts, 1024, 1)
    assert abs((a == b).mean() - 100 / 300) < 4 * (1 / 3 * 2 / 3 / 1024) ** 0.5


def test_a_guard_keeps_equal_signatures_apart() -> None:
    """Rows of another guard meet in no band."""
    same = np.tile(np.arange(12, dtype=np.uint32), (3, 1))
    bands = band_hashes(same, 4, 3, np.array([1, 1, 2], np.uint64))
    assert (bands[0] == bands[1]).all()
    assert not (bands[0] == bands[2]).any()
