"""Exact similarity, buckets, survivors and groups against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text.pairs import (
    Sets,
    buckets,
    components,
    jaccard,
    linked,
    sets,
)
from corpusforge.text.shingles import Shingles, mix
from corpusforge.text.survivors import _bits_of, _may_reach, survivors

SMALL_SETS = st.lists(st.sets(st.integers(0, 30), max_size=12), min_size=1, max_size=8)
ANSWER = 1 << 63


def as_sets(rows: list[set[int]] | list[list[int]]) -> Sets:
    """Sets of the kernels from Python collections."""
    starts = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    values = np.array([value for row in rows for value in row], np.uint64)
    nothing = np.zeros(len(rows), np.uint64)
    return sets(Shingles(values, starts, nothing.astype(np.int32), nothing))


def plain_jaccard(a: set[int], b: set[int]) -> float:
    """The definition."""
    return len(a & b) / len(a | b) if a | b else 0.0


@given(SMALL_SETS)
def test_jaccard_is_exact(rows: list[set[int]]) -> None:
    """The kernel gives the definition's value, to the last bit."""
    made = as_sets(rows)
    for i, a in enumerate(rows):
        for j, b in enumerate(rows):
            assert jaccard(made, i, made, j) == plain_jaccard(a, b)


@given(SMALL_SETS, SMALL_SETS)
def test_answers_count_apart(prompts: list[set[int]], answers: list[set[int]]) -> None:
    """With answer bits the smaller of both similarities counts."""
    pairs = list(zip(prompts, answers, strict=False))
    made = as_sets([[*p, *(value | ANSWER for value in a)] for p, a in pairs])
    for i, (p, a) in enumerate(pairs):
        for j, (q, b) in enumerate(pairs):
            whole = plain_jaccard(p | {-1 - v for v in a}, q | {-1 - v for v in b})
            assert jaccard(made, i, made, j) == (min(whole, plain_jaccard(a, b)) if a | b else whole)


@given(st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=6), st.data())
def test_sets_are_without_repetition(rows: list[list[int]], data: st.DataObject) -> None:
    """Each row's span holds its distinct values in the order of the text, also after some are taken."""
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6))
    some = as_sets(rows).take(np.array(places, np.int64))
    assert len(some) == len(places)
    for i, place in enumerate(places):
        assert some.values[some.starts[i] : some.starts[i + 1]].tolist() == list(dict.fromkeys(rows[place]))


@given(SMALL_SETS, st.floats(0.05, 1))
def test_survivors_are_the_greedy_choice(rows: list[set[int]], threshold: float) -> None:
    """With one bucket for all, the kernel keeps exactly the rows that a plain greedy pass keeps."""
    members = buckets(np.zeros(len(rows), np.uint64))[:, None]
    partner, similarity, _, cut = survivors(
        members, as_sets(rows), np.arange(len(rows)), np.zeros(len(rows), bool), threshold, 100
    )
    kept: list[int] = []
    for i, row in enumerate(rows):
        hits = [j for j in kept if plain_jaccard(rows[j], row) >= threshold]
        assert partner[i] == (hits[0] if hits else -1)
        if hits:
            assert similarity[i] == plain_jaccard(rows[hits[0]], row)
        else:
            kept.append(i)
    assert cut == 0


def test_the_limit_is_counted() -> None:
    """Three kept rows in the bucket, one comparison allowed: the fourth row stays, and is counted."""
    rows = [{1, 2}, {3, 4}, {5, 6}, {5, 6}]
    members = buckets(np.zeros(4, np.uint64))[:, None]
    nobody = np.zeros(4, bool)
    assert survivors(members, as_sets(rows), np.arange(4), nobody, 0.5, 100)[0].tolist() == [-1, -1, -1, 2]
    partner, _, made, cut = survivors(members, as_sets(rows), np.arange(4), nobody, 0.5, 1)
    assert (partner.tolist(), made, cut) == ([-1] * 4, 3, 2)


def test_protected_rows_stay() -> None:
    """An equal row that is protected is not dropped, and still drops the next one."""
    members = buckets(np.zeros(3, np.uint64))[:, None]
    protected = np.array([True, True, False])
    assert survivors(members, as_sets([{1}] * 3), np.arange(3), protected, 0.8, 9)[0].tolist() == [-1, -1, 0]


@given(st.lists(st.integers(0, 6), max_size=12))
def test_buckets_number_what_is_shared(band: list[int]) -> None:
    """A value that one row alone has is -1; the others are numbered from 0 on, equal values alike."""
    found = buckets(np.array(band, np.uint64)).tolist()
    assert all((number < 0) == (band.count(value) == 1) for number, value in zip(found, band, strict=True))
    shared = [(number, value) for number, value in zip(found, band, strict=True) if number >= 0]
    assert len(set(shared)) == len({number for number, _ in shared}) == len({value for _, value in shared})
    assert {number for number, _ in shared} == set(range(len(set(shared))))


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), max_size=9))
def test_linked_rows_share_buckets_directly_or_through_others(rows: list[tuple[int, int]]) -> None:
    """Labels are those of the groups that shared buckets make; the second band's buckets have other numbers."""
    members = np.array([(a, b + 4 if b >= 0 else b) for a, b in rows], np.int32).reshape(-1, 2)
    links = [
        (i, j)
        for i, a in enumerate(rows)
        for j, b in enumerate(rows)
        if any(x == y >= 0 for x, y in zip(a, b, strict=True))
    ]
    left, right = (np.array([link[side] for link in links], np.int64) for side in (0, 1))
    assert linked(members).tolist() == components(len(rows), left, right).tolist()


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_components_follow_links(links: list[tuple[int, int]]) -> None:
    """Two positions share a label exactly when links lead from one to the other; the label is the smallest."""
    reach = [{i} for i in range(10)]
    for a, b in links:
        joined = reach[a] | reach[b]
        for i in joined:
            reach[i] = joined
    left, right = (np.array([link[side] for link in links], np.int64) for side in (0, 1))
    assert components(10, left, right).tolist() == [min(group) for group in reach]


@given(
    st.lists(st.lists(st.integers(0, 40), max_size=30), min_size=2, max_size=2), st.sampled_from([0.1, 0.5, 0.8, 1.0])
)
def test_what_is_ruled_out_by_bits_is_not_similar(numbers: list[list[int]], threshold: float) -> None:
    """And a set is never ruled out against itself."""
    hashes = [np.unique(mix(np.array(row, np.uint64))) for row in numbers]
    values = np.concatenate(hashes)
    ends = np.cumsum([len(row) for row in hashes])
    spans = np.stack([ends - [len(row) for row in hashes], ends], axis=1).astype(np.int64)
    bits = _bits_of(values, spans)
    both, either = len(np.intersect1d(*hashes)), len(np.union1d(*hashes))
    if either and both / either >= threshold:
        assert _may_reach(bits, spans, 0, 1, threshold)
    assert _may_reach(bits, spans, 0, 0, threshold)
