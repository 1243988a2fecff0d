"""Indexes of near duplicates that can be handed to datasketch and taken from it.

A `Sketcher` says how a text becomes a signature: how many permutations, from which seed, in which of datasketch's
schemes, over which hash of which shingles. A `SketchIndex` holds keys, their signatures and how these are cut into
bands, all as plain Arrow and numpy. It answers what `datasketch.MinHashLSH` answers: the keys that share a band.

    index = SketchIndex.build(["a", "b"], ["The cat sat on the mat.", "The cat sat on the mat!"])
    index.query("the cat sat on the mat")                      ->   ["a", "b"]
    lsh = index.to_datasketch()                                 a MinHashLSH
    lsh.query(index.sketcher.minhash("the cat sat on the mat")) ->   ["a", "b"], in any order
    SketchIndex.from_datasketch(lsh, index.sketcher)            the same index

Sketches of `dedupe` are those of `Sketcher(num_perm=bands * rows)` in `affine32` over our own hash. A text without any
word has the signature of the empty set: such texts find one another here, as in datasketch; `dedupe` leaves them alone.

Indexes of datasketch keep neither the seed nor the hash function: whoever takes one says what they were.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from corpusforge.errors import ConfigError
from corpusforge.text.minhash import SCHEMES, Minima, band_hashes, checked, parameters, signatures
from corpusforge.text.shingles import Hashes, shingle
from corpusforge.text.tokens import sha1_hashes, shingle_hash, tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from datasketch import MinHash, MinHashLSH

HASHES: Final = ("shingle", "sha1", "unknown")
_THRESHOLD, _RECALL = 0.8, 0.99  # bands of an index built without `params`: the defaults of `dedupe`
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)  # odd, golden ratio
_SLICE: Final = 16_384  # texts whose shingles are in memory at once

Key = str | int | bytes


@dataclass(frozen=True)
class Sketcher:
    """How texts become signatures. Raises ConfigError for what is out of range."""

    num_perm: int = 128
    """Minima per signature."""
    seed: int = 1
    """Seed of the permutations, as datasketch takes it."""
    scheme: str = "affine32"
    """One of datasketch's: affine32, affine64, legacy (before its 2.0)."""
    hash: str = "shingle"
    """Hash of a shingle: our own ("shingle"), datasketch's default ("sha1"), or "unknown": texts cannot be sketched."""
    shingle: int = 5
    """Words (or characters, in scripts without spaces) per shingle."""

    def __post_init__(self) -> None:
        checked(self.scheme)
        if self.hash not in HASHES:
            raise ConfigError(f"hash is {self.hash!r}, expected one of {', '.join(map(repr, HASHES))}")
        for name, value, least, most in (
            ("num_perm", self.num_perm, 1, 1 << 16),
            ("seed", self.seed, 0, (1 << 32) - 1),
            ("shingle", self.shingle, 1, 50),
        ):
            if not least <= value <= most:
                raise ConfigError(f"{name} is {value}, expected {least} to {most}")

    def signatures(self, texts: pa.Array | pa.ChunkedArray | Iterable[str | None]) -> Minima:
        """One signature per text, (texts, num_perm): what `minhash(text).hashvalues` is for each."""
        column = _column(texts, pa.string())
        out = np.empty((len(column), self.num_perm), SCHEMES[self.scheme])
        for at in range(0, len(column), _SLICE):
            hashes, starts = self._hashes(column.slice(at, _SLICE))
            out[at : at + _SLICE] = signatures(hashes, starts, self.num_perm, self.seed, self.scheme)
        return out

    def tokens(self, text: str) -> list[bytes]:
        """The shingles of a text, as bytes for `hash_function`, and for `MinHash.update_batch`."""
        return tokens(text, self.shingle)

    def hash_function(self) -> Callable[[Any], int]:
        """The `hashfunc` with which a datasketch MinHash of `tokens(text)` is the signature of the text."""
        from datasketch.hashfunc import sha1_hash32, sha1_hash64

        self._must_know_the_hash()
        wide = self.scheme == "affine64"
        if self.hash == "sha1":
            return sha1_hash64 if wide else sha1_hash32  # type: ignore[no-any-return]
        return partial(shingle_hash, k=self.shingle, bits=64 if wide else 32)

    def minhash(self, text: str) -> MinHash:
        """The text as a datasketch MinHash, made by datasketch from our shingles: to query its indexes with."""
        from datasketch import MinHash

        made = MinHash(self.num_perm, seed=self.seed, hashfunc=self.hash_function(), scheme=self.scheme)
        made.update_batch(self.tokens(text))
        return made

    def _hashes(self, texts: pa.Array) -> tuple[Hashes, npt.NDArray[np.int64]]:
        self._must_know_the_hash()
        if self.hash == "sha1":
            return sha1_hashes(texts, self.shingle)
        found = shingle(texts, self.shingle)
        return found.hashes, found.starts

    def _must_know_the_hash(self) -> None:
        if self.hash == "unknown":
            raise ConfigError(
                'hash is "unknown", expected "shingle" or "sha1" to sketch a text',
                hint="say which: SketchIndex.from_datasketch(lsh, Sketcher(num_perm=…, hash=…))",
            )


@dataclass(frozen=True, eq=False)
class SketchIndex:
    """Keys and their banded signatures. `build` and `from_datasketch` make one; `query` asks it.

    `signatures` is (keys, bands * rows), the first minima of `sketcher.num_perm`; band i are columns i * rows to
    (i + 1) * rows. Raises ConfigError where shapes, types or keys do not fit.
    """

    keys: pa.Array
    signatures: Minima = field(repr=False)
    bands: int
    rows: int
    sketcher: Sketcher

    def __post_init__(self) -> None:
        width, made = self.bands * self.rows, self.sketcher.num_perm
        if min(self.bands, self.rows) < 1 or width > made:
            raise ConfigError(
                f"params are {self.bands} bands of {self.rows} rows, {width} minima; expected 1 to num_perm, {made}"
            )
        if self.signatures.shape != (len(self.keys), width):
            raise ConfigError(f"signatures are {self.signatures.shape}, expected {(len(self.keys), width)}")
        kind = np.dtype(SCHEMES[self.sketcher.scheme])
        if self.signatures.dtype != kind:
            raise ConfigError(f"signatures are {self.signatures.dtype}, expected {kind} for {self.sketcher.scheme}")
        if self.keys.null_count or len(self.keys.unique()) != len(self.keys):
            raise ConfigError(f"keys: {len(self.keys.drop_null().unique())} distinct, expected {len(self.keys)}")

    def __len__(self) -> int:
        return len(self.keys)

    @classmethod
    def build(
        cls,
        keys: pa.Array | Sequence[Key],
        texts: pa.Array | pa.ChunkedArray | Iterable[str | None],
        sketcher: Sketcher | None = None,
        params: tuple[int, int] | None = None,
    ) -> SketchIndex:
        """Sketch each text. `params` are (bands, rows); without them, those that `dedupe` takes for `num_perm`."""
        sketcher = sketcher or Sketcher()
        bands, rows = params or parameters(_THRESHOLD, sketcher.num_perm, _RECALL)
        column, made = _key_column(keys), sketcher.signatures(texts)
        if len(column) != len(made):
            raise ConfigError(f"keys: found {len(column)}, expected one for each of {len(made)} texts")
        return cls(column, np.ascontiguousarray(made[:, : max(bands * rows, 0)]), bands, rows, sketcher)

    def query(self, asked: str | Minima | MinHash) -> list[Key]:
        """Keys that share a band with a text, a signature or a datasketch MinHash, in the order of the index."""
        own = self._signature(asked).reshape(self.bands, self.rows)
        order, ranked = self._buckets
        hashed = self._hashed(own.reshape(1, -1))
        ends = zip(np.searchsorted(ranked, hashed, "left"), np.searchsorted(ranked, hashed, "right"), strict=True)
        at, band = np.divmod(np.concatenate([order[first:last] for first, last in ends]), self.bands)
        theirs = self.signatures.reshape(len(self), self.bands, self.rows)[at, band]
        met = np.unique(at[(theirs == own[band]).all(axis=1)])  # equal hashes are not yet equal bands
        return self.keys.take(pa.array(met)).to_pylist()  # type: ignore[no-any-return]

    def to_datasketch(self) -> MinHashLSH:
        """A MinHashLSH in memory with the same keys, which answers every query as this index does."""
        from datasketch import LeanMinHash, MinHashLSH

        if self.bands < 2:
            raise ConfigError(
                f"to_datasketch: the index has {self.bands} band, expected at least 2, as datasketch does"
            )
        lsh = MinHashLSH(num_perm=self.sketcher.num_perm, params=(self.bands, self.rows))
        whole = np.zeros(self.sketcher.num_perm, self.signatures.dtype)  # what no band covers is not looked at
        for key, signature in zip(self.keys.to_pylist(), self.signatures, strict=True):
            whole[: len(signature)] = signature
            made = LeanMinHash(seed=self.sketcher.seed, hashvalues=whole, scheme=self.sketcher.scheme)
            lsh.insert(key, made, check_duplication=False)
        return lsh

    @classmethod
    def from_datasketch(cls, lsh: MinHashLSH, sketcher: Sketcher | None = None) -> SketchIndex:
        """Take over a MinHashLSH that keeps its buckets as bytes and its keys as they are.

        `sketcher` says what the index does not keep: seed, hash and shingle. Without it, seed 1 and an unknown hash:
        then signatures can be queried, texts cannot. Raises ConfigError where it does not fit the index, and for
        pickled keys, hashed buckets, weighted sketches, and keys other than texts, bytes or numbers of 64 bits.
        """
        sketcher = _fitting(lsh, sketcher)
        keys = list(lsh.keys.keys())
        kind = np.dtype(SCHEMES[sketcher.scheme])
        out = np.empty((len(keys), lsh.b * lsh.r), kind)
        expected = [lsh.r * kind.itemsize] * lsh.b
        for row, key in enumerate(keys):
            buckets = list(lsh.keys.get(key))
            if [len(bucket) for bucket in buckets] != expected:
                found = sum(map(len, buckets))
                raise ConfigError(
                    f"from_datasketch: key number {row} is in {len(buckets)} buckets of {found} bytes in all, "
                    f"expected {lsh.b} of {sum(expected)} for {sketcher.scheme}",
                    hint="the index holds sketches of another scheme, weighted ones, or one key twice",
                )
            out[row] = np.frombuffer(b"".join(buckets), kind).byteswap()
        return cls(_key_column(keys), out, lsh.b, lsh.r, sketcher)

    @cached_property
    def _buckets(self) -> tuple[npt.NDArray[np.int64], Hashes]:
        """Places of bands (row * bands + band) in the order of their hashes, and the hashes in order."""
        hashed = self._hashed(self.signatures)
        order = np.argsort(hashed, kind="stable")
        return order, hashed[order]

    def _hashed(self, signature: Minima) -> Hashes:
        """A hash for each band of each signature, other ones for the same minima in another band."""
        words = np.ascontiguousarray(signature).view(np.uint32)  # two for a minimum of 64 bits
        hashed = band_hashes(words, self.bands, words.shape[1] // self.bands, np.zeros(len(words), np.uint64))
        return (hashed + np.arange(self.bands, dtype=np.uint64) * _STEP).ravel()

    def _signature(self, asked: str | Minima | MinHash) -> Minima:
        """The first bands * rows minima of what is asked for."""
        if isinstance(asked, str):
            return np.ascontiguousarray(self.sketcher.signatures([asked])[0, : self.bands * self.rows])
        for name in ("scheme", "seed"):
            found, own = getattr(asked, name, None), getattr(self.sketcher, name)
            if found is not None and found != own:
                raise ConfigError(f"query: the {name} of the MinHash is {found!r}, that of the index {own!r}")
        values = np.asarray(getattr(asked, "hashvalues", asked))
        made = self.sketcher.num_perm
        if values.shape not in ((made,), (self.bands * self.rows,)):
            raise ConfigError(f"query: the signature is {values.shape}, expected {(made,)} for num_perm {made}")
        if values.dtype != self.signatures.dtype:
            raise ConfigError(f"query: the signature is {values.dtype}, expected {self.signatures.dtype}")
        return np.ascontiguousarray(values[: self.bands * self.rows])


def _fitting(lsh: MinHashLSH, sketcher: Sketcher | None) -> Sketcher:
    """The sketcher that goes with an index; ConfigError where they differ or the index cannot be read back."""
    if lsh.prepickle:
        raise ConfigError("from_datasketch: prepickle is True, expected False", hint="keys are not unpickled here")
    if lsh.hashfunc is not None:
        raise ConfigError(
            "from_datasketch: the index hashes its buckets, expected hashfunc None",
            hint="signatures cannot be had back from hashes of them: build the index without `hashfunc`",
        )
    scheme = getattr(lsh, "_minhash_scheme", None)  # None: nothing in it, or made before datasketch 2.0
    if sketcher is None:
        empty = not len(lsh.keys.keys())
        sketcher = Sketcher(lsh.h, scheme=scheme or ("affine32" if empty else "legacy"), hash="unknown")
    if sketcher.num_perm != lsh.h:
        raise ConfigError(
            f"from_datasketch: num_perm of the sketcher is {sketcher.num_perm}, that of the index {lsh.h}"
        )
    if scheme not in (None, sketcher.scheme):
        raise ConfigError(
            f"from_datasketch: scheme of the sketcher is {sketcher.scheme!r}, that of the index {scheme!r}"
        )
    return sketcher


def _column(values: Any, kind: pa.DataType | None = None) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    return values if isinstance(values, pa.Array) else pa.array(list(values), kind)


def _key_column(keys: pa.Array | Sequence[Any]) -> pa.Array:
    """Keys as one Arrow array; ConfigError for kinds that Arrow would not give back as they were."""
    if not isinstance(keys, pa.Array | pa.ChunkedArray):
        kinds = sorted({"int" if isinstance(key, np.integer) else type(key).__name__ for key in keys})
        if kinds not in ([], ["str"], ["int"], ["bytes"]):
            raise ConfigError(f"keys are of {', '.join(kinds[:5])}; expected str, int or bytes, one kind for all")
    try:
        return _column(keys)
    except (pa.ArrowInvalid, OverflowError, UnicodeEncodeError) as error:
        raise ConfigError("keys: a number beyond 64 bits or a text that is no Unicode; expected neither") from error
