"""fastText's language model, read from its file and run over the buffers of an Arrow column.

A text's words and their n-grams of two to four characters (hashed, with a mark at either end of the word) each have a
vector; the mean of these vectors goes down a Huffman tree of languages, in which every node is a logistic regression
(Joulin et al. 2016, Bag of Tricks; FastText.zip for the quantised form). The package that carries the model runs it
too, one text at a time through C++ streams; this gives the same labels in a tenth of the time.

Only the form of lid.176.ftz is read: 16 dimensions, hierarchical softmax, no n-grams of words.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numba as nb
import numpy as np
import numpy.typing as npt

from corpusforge.text.kernels import Bytes, T, jit

if TYPE_CHECKING:
    from collections.abc import Sequence

_MAGIC: Final = (793712314, 12)
_DIM: Final = 16
_BUCKETS: Final = 2_000_000
_LEAST: Final = 2  # characters of an n-gram
_MOST: Final = 4
_TABLE: Final = 1 << 16  # places for words, of which there are some thousand
_LABEL: Final = b"__label__"
_END: Final = b"</s>"

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Model:
    """The arrays of a model file."""

    labels: list[str]
    words: Bytes  # all words behind one another
    word_ends: Ints
    table: Ints  # hash of a word -> its number, -1 for none; open addressing
    known: npt.NDArray[np.uint8]  # one bit per bucket: whether its n-grams have a vector
    row_of: Ints  # bucket -> row of its vector
    rows: Floats  # vectors of words, then of buckets
    output: Floats  # one vector per inner node of the tree
    left: Ints  # children of inner nodes; leaves are the labels
    right: Ints
    end: int  # number of the word that ends every line


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def values(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def array(self, kind: Any, count: int) -> npt.NDArray[Any]:
        found = np.frombuffer(self.data, np.dtype(kind).newbyteorder("<"), count, self.at).astype(kind)
        self.at += found.nbytes
        return found

    def word(self) -> bytes:
        end = self.data.index(b"\0", self.at)
        found, self.at = self.data[self.at : end], end + 1
        return found


def read(data: bytes) -> Model:
    """A model from the bytes of its file. Raises ValueError for another form of model."""
    file = _Reader(data)
    magic = file.values("ii")
    dim, _, _, _, _, word_ngrams, loss, _, buckets, least, most, _, _ = file.values("12id")
    form = (magic, dim, word_ngrams, loss, buckets, least, most)
    if form != (_MAGIC, _DIM, 1, 1, _BUCKETS, _LEAST, _MOST):
        raise ValueError("not the form of lid.176.ftz")
    size, words, labels, _, pruned = file.values("iiiqq")
    entries = [(file.word(), *file.values("qb")) for _ in range(size)]
    pairs = file.array(np.int32, 2 * pruned).reshape(-1, 2)
    if file.values("?") != (True,):
        raise ValueError("not quantised")
    rows = _vectors(file, words)
    if file.values("?") != (False,) or file.values("qq") != (labels, _DIM):
        raise ValueError("not the form of lid.176.ftz")
    output = file.array(np.float32, labels * _DIM)
    left, right = _tree([count for _, count, _ in entries[words:]])
    known, row_of = np.zeros(_BUCKETS // 8, np.uint8), np.zeros(_BUCKETS, np.int32)
    np.bitwise_or.at(known, pairs[:, 0] >> 3, np.left_shift(1, pairs[:, 0] & 7).astype(np.uint8))
    row_of[pairs[:, 0]] = words + pairs[:, 1]
    names = [word for word, _, _ in entries[:words]]
    return Model(
        labels=[word.removeprefix(_LABEL).decode() for word, _, _ in entries[words:]],
        words=np.frombuffer(b"".join(names), np.uint8),
        word_ends=np.cumsum([len(name) for name in names], dtype=np.int32),
        table=_hashed(names),
        known=known,
        row_of=row_of,
        rows=rows,
        output=output,
        left=left,
        right=right,
        end=names.index(_END),
    )


def _vectors(file: _Reader, words: int) -> Floats:
    """The quantised input matrix, multiplied out: each row is the sum of its centroids, times its norm."""
    normed, count, _, size = file.values("?qqi")
    codes = file.array(np.uint8, size).reshape(count, -1)
    centroids = _centroids(file)
    vectors = np.concatenate([centroids[part][codes[:, part]] for part in range(codes.shape[1])], axis=1)
    if normed:
        norms = file.array(np.uint8, count)
        vectors = vectors * _centroids(file)[0][norms]
    if vectors.shape[1] != _DIM or count < words:
        raise ValueError("not the form of lid.176.ftz")
    return np.ascontiguousarray(vectors, np.float32).reshape(-1)


def _centroids(file: _Reader) -> Floats:
    dim, parts, width, last = file.values("iiii")
    if width != last:
        raise ValueError("uneven parts")
    return file.array(np.float32, dim * 256).reshape(parts, 256, width)


def _tree(counts: Sequence[int]) -> tuple[Ints, Ints]:
    """Children of the inner nodes of the Huffman tree over labels, given their counts, most frequent first."""
    size = len(counts)
    weight = [*counts, *[10**15] * (size - 1)]
    left, right = np.full(size - 1, -1, np.int32), np.full(size - 1, -1, np.int32)
    leaf, node = size - 1, size
    for new in range(size, 2 * size - 1):
        least = []
        for _ in range(2):
            if leaf >= 0 and weight[leaf] < weight[node]:
                least.append(leaf)
                leaf -= 1
            else:
                least.append(node)
                node += 1
        left[new - size], right[new - size] = least
        weight[new] = weight[least[0]] + weight[least[1]]
    return left, right


def _hashed(names: Sequence[bytes]) -> Ints:
    table = np.full(_TABLE, -1, np.int32)
    for number, name in enumerate(names):
        place = 2166136261
        for byte in name:
            place = (place ^ (byte | 0xFFFFFF00 if byte >= 0x80 else byte)) * 16777619 & 0xFFFFFFFF
        place %= _TABLE
        while table[place] >= 0:
            place = (place + 1) % _TABLE
        table[place] = number
    return table


_BYTES: Final = T.Array(nb.uint8, 1, "C", readonly=True)
_I32: Final = T.Array(nb.int32, 1, "C", readonly=True)
_F32: Final = T.Array(nb.float32, 1, "C", readonly=True)
_SUM: Final = nb.float32[::1]
_PRIME: Final = np.uint32(16777619)
_BASIS: Final = np.uint32(2166136261)


@jit(nb.uint32(nb.uint32, nb.uint8))
def _step(hashed: Any, byte: Any) -> Any:
    """FNV-1a over signed bytes, as fastText has it."""
    wide = np.uint32(byte)
    if byte >= 128:
        wide |= np.uint32(0xFFFFFF00)
    return np.uint32((hashed ^ wide) * _PRIME)


@jit(nb.int64(_BYTES, nb.int64, nb.int64, _BYTES, _I32, _I32))
def _number(data: Bytes, begin: int, end: int, words: Bytes, word_ends: Ints, table: Ints) -> Any:
    """The number of a word; -1 where the model does not know it."""
    hashed = _BASIS
    for at in range(begin, end):
        hashed = _step(hashed, data[at])
    place = np.int64(hashed) % _TABLE
    while table[place] >= 0:
        number = np.int64(table[place])
        first = np.int64(word_ends[number - 1]) if number else 0
        if word_ends[number] - first == end - begin:
            same = True
            for at in range(end - begin):
                if words[first + at] != data[begin + at]:
                    same = False
                    break
            if same:
                return number
        place = (place + 1) % _TABLE
    return -1


@jit(nb.void(_SUM, _F32, nb.int64))
def _add(total: Any, rows: Floats, row: int) -> None:
    for at in range(_DIM):
        total[at] += rows[row * _DIM + at]


@jit(nb.int64(_BYTES, nb.int64, nb.int64, _BYTES, _I32, _F32, _SUM))
def _add_ngrams(data: Bytes, begin: int, end: int, known: Bytes, row_of: Ints, rows: Floats, total: Any) -> int:
    """Add the vectors of the n-grams of `<word>`; how many there were."""
    added = 0
    for first in range(begin - 1, end + 1):  # the marks stand before the word and behind it
        if begin <= first < end and data[first] & 0xC0 == 0x80:
            continue
        hashed, at, length = _BASIS, first, 0
        while at <= end and length < _MOST:
            hashed = _step(hashed, 60 if at < begin else 62 if at == end else data[at])
            at += 1
            while begin < at < end and data[at] & 0xC0 == 0x80:
                hashed = _step(hashed, data[at])
                at += 1
            length += 1
            if length >= _LEAST:
                bucket = np.int64(hashed % np.uint32(_BUCKETS))
                if known[bucket >> 3] >> (bucket & 7) & 1:
                    _add(total, rows, row_of[bucket])
                    added += 1
    return added


@jit(nb.boolean(_BYTES, nb.int64, nb.int64))
def _is_label(data: Bytes, begin: int, end: int) -> Any:
    """Whether a word starts with __label__: fastText takes it for no text."""
    if end - begin < 9 or data[begin] != 95 or data[begin + 1] != 95 or data[begin + 7] != 95 or data[begin + 8] != 95:
        return False
    return (
        data[begin + 2] == 108
        and data[begin + 3] == 97
        and data[begin + 4] == 98
        and data[begin + 5] == 101
        and data[begin + 6] == 108
    )


@jit(nb.float32(nb.float32))
def _log(value: Any) -> Any:
    return np.float32(np.log(np.float64(value) + 1e-5))


@jit(nb.int64(_SUM, _F32, _I32, _I32, nb.float32))
def _descend(total: Any, output: Floats, left: Ints, right: Ints, sure: Any) -> int:
    """The most probable label; -1 where none has the probability `sure`."""
    labels = len(left) + 1
    nodes = np.empty(2 * labels, np.int64)
    scores = np.empty(2 * labels, np.float32)
    nodes[0], scores[0], waiting = 2 * labels - 2, np.float32(0), 1
    least, found, best = _log(sure), -1, np.float32(0)
    while waiting:
        waiting -= 1
        node, score = nodes[waiting], scores[waiting]
        if score < least or (found >= 0 and score < best):
            continue
        if node < labels:
            if found < 0 or score > best:
                found, best = node, score
            continue
        inner = node - labels
        dot = np.float32(0)
        for at in range(_DIM):
            dot += output[inner * _DIM + at] * total[at]
        chance = np.float32(1.0 / np.float64(np.float32(1) + np.exp(-dot)))
        nodes[waiting], scores[waiting] = right[inner], score + _log(chance)
        nodes[waiting + 1], scores[waiting + 1] = left[inner], score + _log(np.float32(1.0 - np.float64(chance)))
        waiting += 2
    return found


@jit(
    nb.void(
        *(_BYTES, _I32, _BYTES, _I32, _I32, _BYTES, _I32, _F32, _F32, _I32, _I32),
        *(nb.int64, nb.float32, nb.int32[::1]),
    )
)
def _predict(
    data: Bytes, offsets: Ints, words: Bytes, word_ends: Ints, table: Ints, known: Bytes, row_of: Ints, rows: Floats,
    output: Floats, left: Ints, right: Ints, end_of_line: int, sure: Any, found: Ints,
) -> None:  # fmt: skip
    total = np.empty(_DIM, np.float32)
    for text in range(len(offsets) - 1):
        total[:] = 0
        at, stop, added, ended = np.int64(offsets[text]), np.int64(offsets[text + 1]), 0, False
        while at < stop and not ended:
            if data[at] == 32 or data[at] == 0 or 9 <= data[at] <= 13:
                at += 1
                continue
            begin = at
            while at < stop and not (data[at] == 32 or data[at] == 0 or 9 <= data[at] <= 13):
                at += 1
            if _is_label(data, begin, at):
                continue
            number = _number(data, begin, at, words, word_ends, table)
            if number >= 0:
                _add(total, rows, number)
                added += 1
            if number == end_of_line:
                ended = True
            else:
                added += _add_ngrams(data, begin, at, known, row_of, rows, total)
        if not ended:
            _add(total, rows, end_of_line)
            added += 1
        scale = np.float32(1.0 / added)
        for place in range(_DIM):
            total[place] *= scale
        found[text] = _descend(total, output, left, right, sure)


def predict(model: Model, texts: Sequence[str], sure: float) -> list[str | None]:
    """The label of each text that has at least the probability `sure`; None for the others."""
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    found = np.empty(len(encoded), np.int32)
    m = model
    _predict(
        np.frombuffer(b"".join(encoded), np.uint8), offsets, m.words, m.word_ends, m.table, m.known, m.row_of, m.rows,
        m.output, m.left, m.right, m.end, sure, found,
    )  # fmt: skip
    return [m.labels[label] if label >= 0 else None for label in found.tolist()]
