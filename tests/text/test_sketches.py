"""Sketches are datasketch's own, and an index handed over in either direction answers the same queries."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from datasketch import MinHash, MinHashLSH, WeightedMinHashGenerator

from corpusforge.errors import ConfigError
from corpusforge.text.minhash import SCHEMES, signatures
from corpusforge.text.shingles import shingle
from corpusforge.text.sketches import Sketcher, SketchIndex
from corpusforge.text.tokens import spans

WORDS = [
    *("the", "river", "Ferry", "north", "café", "naïve", "Straße", "İstanbul", "ﬁn", "½", "42", "7th", "don't", "--"),
    *("e\u0301te\u0301", "ποταμός", "ΒΟΡΡΆΣ", "Паром", "причал", "العبارة", "나루터", "북쪽", "उत्तरी", "नौका"),
    *("今天上午", "渡船", "フェリー", "เรือข้ามฟาก", "😀", "x\u200dy", "C++"),
]


def made_up(count: int, seed: int = 1) -> list[str]:
    """Texts over several scripts; some empty, some of one word, some all one word, three in ten near copies."""
    draw = random.Random(seed)
    texts = ["", "  ", "!?", "word", "word!", "Ｗｏｒｄ", "again " * 40]
    while len(texts) < count:
        if draw.random() < 0.3:
            words = draw.choice(texts).split()
            for _ in range(draw.randrange(3) if words else 0):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
        else:
            words = draw.choices(WORDS, k=draw.choice([0, 1, 3, 5, 8, 13, 21, 34]))
        texts.append(" ".join(words))
    return texts


def peers(texts: list[str], sketcher: Sketcher) -> list[MinHash]:
    """The MinHash of each text, by datasketch, from written shingles through the exported function."""
    written = spans(pa.array(texts), sketcher.shingle)
    rows = (written.row(i) for i in range(len(texts)))
    own = {"num_perm": sketcher.num_perm, "seed": sketcher.seed, "scheme": sketcher.scheme}
    return MinHash.bulk(rows, hashfunc=sketcher.hash_function(), **own)


@pytest.mark.parametrize("hash", ["shingle", "sha1"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_ten_thousand_signatures_are_those_of_datasketch(scheme: str, hash: str) -> None:
    """Its own MinHash is the oracle, empty texts included."""
    sketcher = Sketcher(32, seed=11, scheme=scheme, hash=hash)
    texts = made_up(10_000)
    oracle = np.stack([one.hashvalues for one in peers(texts, sketcher)])
    assert np.array_equal(oracle, sketcher.signatures(texts))


def test_sketches_are_those_that_dedupe_makes() -> None:
    """The kernels of the stage, by another door; across the border of two slices."""
    texts = pa.array(made_up(300) * 60)
    found = shingle(texts, 5)
    assert np.array_equal(Sketcher(16).signatures(texts), signatures(found.hashes, found.starts, 16, 1))


def built(texts: list[str], scheme: str, hash: str = "shingle", params: tuple[int, int] = (8, 4)) -> SketchIndex:
    """An index of every text, of which 35 permutations cover some."""
    return SketchIndex.build(
        [f"k{i}" for i in range(len(texts))], texts, Sketcher(35, 5, scheme=scheme, hash=hash), params
    )


@pytest.mark.parametrize(("scheme", "hash"), [("affine32", "shingle"), ("affine64", "shingle"), ("legacy", "sha1")])
def test_an_index_handed_to_datasketch_answers_alike(scheme: str, hash: str) -> None:
    """1,500 queries, most of them with hits, asked with MinHashes that datasketch makes."""
    texts = made_up(2_000)
    index = built(texts[:1_500], scheme, hash)
    lsh = index.to_datasketch()
    asked = texts[500:]
    answers = [index.query(signature) for signature in index.sketcher.signatures(asked)]
    assert [set(lsh.query(one)) for one in peers(asked, index.sketcher)] == [set(answer) for answer in answers]
    assert sum(map(len, answers)) > 1_500
    for text, answer in zip(asked[:40], answers, strict=False):
        assert index.query(text) == answer
        assert set(lsh.query(index.sketcher.minhash(text))) == set(answer)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("key", [str, int, lambda i: str(i).encode()], ids=["str", "int", "bytes"])
def test_an_index_taken_from_datasketch_answers_alike(scheme: str, key: Any) -> None:
    """Built by datasketch alone, over its default hash, with bands that do not cover all minima."""
    sketcher = Sketcher(50, scheme=scheme, hash="sha1")
    texts = made_up(1_500, seed=2)
    sketches = peers(texts, sketcher)
    lsh = MinHashLSH(threshold=0.7, num_perm=50)
    assert lsh.b * lsh.r < 50
    for i, one in enumerate(sketches[:1_000]):
        lsh.insert(key(i), one)
    index = SketchIndex.from_datasketch(lsh, sketcher)
    for one, signature in zip(sketches[200:], sketcher.signatures(texts[200:]), strict=True):
        assert set(index.query(one)) == set(index.query(signature)) == set(lsh.query(one))
    assert [set(index.query(text)) for text in texts[:40]] == [set(lsh.query(one)) for one in sketches[:40]]


def test_there_and_back_again_is_the_same_index() -> None:
    """Keys in their order, signatures, parameters; and by way of a pickle, as indexes travel."""
    index = built(made_up(200), "affine32")
    again = SketchIndex.from_datasketch(pickle.loads(pickle.dumps(index.to_datasketch())), index.sketcher)
    assert again.keys == index.keys
    assert np.array_equal(again.signatures, index.signatures)
    assert (again.bands, again.rows, again.sketcher) == (index.bands, index.rows, index.sketcher)


def test_an_empty_index_goes_both_ways() -> None:
    """Nothing is in it, so nothing is found."""
    index = SketchIndex.build([], [])
    assert (len(index), index.bands, index.rows) == (0, 16, 6)
    assert SketchIndex.from_datasketch(index.to_datasketch()).query(Sketcher().signatures(["a b c"])[0]) == []


def test_without_a_sketcher_texts_cannot_be_asked_for() -> None:
    """datasketch keeps neither seed nor hash; signatures can be asked for."""
    index = SketchIndex.from_datasketch(built(["one two three", "four"], "legacy").to_datasketch())
    assert (index.sketcher.scheme, index.sketcher.hash) == ("legacy", "unknown")
    assert index.query(index.signatures[1]) == ["k1"]
    with pytest.raises(ConfigError, match='hash is "unknown", expected "shingle" or "sha1"'):
        index.query("four")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scheme": "affine33"}, "scheme is 'affine33', expected one of 'affine32', 'affine64', 'legacy'"),
        ({"hash": "md5"}, "hash is 'md5', expected one of 'shingle', 'sha1', 'unknown'"),
        ({"num_perm": 0}, "num_perm is 0, expected 1 to 65536"),
        ({"seed": -1}, "seed is -1, expected 0 to 4294967295"),
        ({"shingle": 51}, "shingle is 51, expected 1 to 50"),
    ],
)
def test_a_sketcher_refuses_what_there_is_not(options: dict[str, Any], message: str) -> None:
    """Found and expected are both named."""
    with pytest.raises(ConfigError, match=message):
        Sketcher(**options)


@pytest.mark.parametrize(
    ("keys", "params", "message"),
    [
        (["a", "b"], (9, 4), "params are 9 bands of 4 rows, 36 minima; expected 1 to num_perm, 35"),
        (["a", "b"], (0, 4), "params are 0 bands of 4 rows, 0 minima; expected 1 to num_perm, 35"),
        (["a", "a"], (8, 4), "keys: 1 distinct, expected 2"),
        (["a"], (8, 4), "keys: found 1, expected one for each of 2 texts"),
        (["a", 1], (8, 4), "keys are of int, str; expected str, int or bytes"),
        ([1, 2**70], (8, 4), "keys: a number beyond 64 bits"),
    ],
)
def test_an_index_refuses_what_does_not_fit(keys: list[Any], params: tuple[int, int], message: str) -> None:
    """Found and expected are both named."""
    with pytest.raises(ConfigError, match=message):
        SketchIndex.build(keys, ["one", "two"], Sketcher(35), params)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (MinHash(35, seed=6), "the seed of the MinHash is 6, that of the index 5"),
        (MinHash(35, seed=5, scheme="legacy"), "the scheme of the MinHash is 'legacy', that of the index 'affine32'"),
        (np.zeros(34, np.uint32), r"the signature is \(34,\), expected \(35,\) for num_perm 35"),
        (np.zeros(35, np.uint64), "the signature is uint64, expected uint32"),
    ],
)
def test_a_query_of_another_kind_is_refused(asked: Any, message: str) -> None:
    """Otherwise it would find nothing and say nothing."""
    with pytest.raises(ConfigError, match=message):
        built(["one"], "affine32").query(asked)


def lsh_of(one: Any, **options: Any) -> MinHashLSH:
    """A datasketch index of one sketch."""
    lsh = MinHashLSH(num_perm=len(one), params=(4, 4), **options)
    lsh.insert("a", one)
    return lsh


def twice() -> MinHashLSH:
    lsh = lsh_of(MinHash(16))
    lsh.insert("a", MinHash(16, seed=2), check_duplication=False)
    return lsh


@pytest.mark.parametrize(
    ("lsh", "sketcher", "message"),
    [
        (lsh_of(MinHash(16), prepickle=True), None, "prepickle is True, expected False"),
        (lsh_of(MinHash(16), hashfunc=lambda b: b[:2]), None, "expected hashfunc None"),
        (lsh_of(MinHash(20)), Sketcher(16), "num_perm of the sketcher is 16, that of the index 20"),
        (lsh_of(MinHash(16)), Sketcher(16, scheme="legacy"), "scheme of the sketcher is 'legacy', that .* 'affine32'"),
        (lsh_of(WeightedMinHashGenerator(3, 16).minhash([1, 2, 3])), None, "in 4 buckets of 256 bytes in all, .* 128"),
        (twice(), None, "key number 0 is in 8 buckets of 128 bytes in all, expected 4 of 64 for affine32"),
    ],
)
def test_an_index_that_cannot_be_read_back_is_refused(lsh: Any, sketcher: Sketcher | None, message: str) -> None:
    """Pickled keys, hashed buckets, other parameters, weighted sketches, a key that is there twice."""
    with pytest.raises(ConfigError, match=message):
        SketchIndex.from_datasketch(lsh, sketcher)


def test_one_band_is_too_few_for_datasketch() -> None:
    """It refuses a single band itself; ours says so in our words."""
    with pytest.raises(ConfigError, match="the index has 1 band, expected at least 2"):
        built(["one"], "affine32", params=(1, 8)).to_datasketch()
