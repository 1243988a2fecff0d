"""Benchmark items as sets of word n-grams, and how much of an item a row holds.

An item has a question and, where the benchmark gives one, an answer; each side of at least n words is an *entry* of
word n-grams. A question of fewer words (but at least `min_words`) is one n-gram of its own length: the whole phrase.
Shorter questions cannot be told from everyday speech and are counted as too short; answers of fewer than n words count
only together with their question.

N-grams that many items of a benchmark share are its template, not its content, and prove nothing; neither do n-grams
that many rows of the corpus hold (`common` below). Coverage is the share of an entry's n-grams found in the row.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from corpusforge.text.ngrams import (
    GramTable,
    Words,
    chunks,
    grams,
    mask_entities,
    original_offset,
    tokenise,
    words,
)
from corpusforge.text.pieces import COLUMNS, Pieces, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

SIDES: Final = ("question", "answer")
WHOLE: Final = 0.8  # coverage from which a row holds the item itself, not just words in common with it
PARTS: Final = 0.9  # share of an item's words that must lie in matched n-grams, whatever their order
_PARTS_FROM: Final = 0.3  # coverage below which the order of parts is not looked at
_GOLD: Final = ("answer", "solution", "canonical_solution", "reference", "code", "output", "response", "target")


@dataclass(frozen=True)
class Item:
    """One benchmark item: where it comes from, and which texts of the index are its answers."""

    benchmark: str
    name: str
    answers: tuple[int, ...]


class BenchmarkIndex:
    """The n-grams of all benchmark items.

    `entries`: entry, item, side (0 question, 1 answer), words, total (distinct n-grams that count)
    `occurrences`: gram, entry, position (of the n-gram in the entry, in words), size (of the n-gram, in words)
    """

    def __init__(self, benchmarks: pa.Table, n: int, min_words: int, max_df: int) -> None:
        texts = list(_texts(benchmarks))
        masked = mask_entities(pa.array([text for _, _, text in texts], pa.large_string()))
        self._tokens = tokenise(masked)
        self._masked = masked
        self._words: dict[int, list[str]] = {}
        self._places = [(record, side) for record, side, _ in texts]
        self.n, self.max_df = n, max_df
        self.items = self._items(benchmarks)
        self.too_short = self._too_short(min_words)
        self.entries, self.occurrences, hashes = self._entries(min_words, max_df)
        sizes = self.occurrences["size"].unique().to_list()
        self.table = GramTable(hashes, sizes or [n])

    def _items(self, benchmarks: pa.Table) -> list[Item]:
        answers: list[list[int]] = [[] for _ in range(benchmarks.num_rows)]
        for text, (record, side) in enumerate(self._places):
            if side:
                answers[record].append(text)
        sources = benchmarks["source"].to_pylist()
        names = [
            source["record_id"] or row for source, row in zip(sources, benchmarks["row_id"].to_pylist(), strict=True)
        ]
        return [Item(s["name"], n, tuple(a)) for s, n, a in zip(sources, names, answers, strict=True)]

    def _too_short(self, min_words: int) -> dict[str, int]:
        """Items per benchmark whose question has fewer than `min_words` words."""
        counts = {item.benchmark: 0 for item in self.items}
        long_enough = {r for t, (r, side) in enumerate(self._places) if not side and self._size(t) >= min_words}
        for record, item in enumerate(self.items):
            counts[item.benchmark] += record not in long_enough
        return counts

    def _size(self, text: int) -> int:
        return int(self._tokens.bounds[text + 1] - self._tokens.bounds[text])

    def _entries(self, min_words: int, max_df: int) -> tuple[pl.DataFrame, pl.DataFrame, Any]:
        numbers: list[np.ndarray[Any, Any]] = []
        hashes: list[np.ndarray[Any, Any]] = []
        kept: list[tuple[int, int, int, int]] = []
        for text, (record, side) in enumerate(self._places):
            size = self._size(text)
            if size >= self.n or (side == 0 and size >= min_words):
                length = min(self.n, size)
                own = grams(self._tokens, text, length)
                hashes.append(own)
                numbers.append(np.stack([np.full(len(own), text), np.arange(len(own)), np.full(len(own), length)]))
                kept.append((text, record, side, size))
        every = np.concatenate([np.empty(0, np.uint64), *hashes])
        entry, position, length_of = np.concatenate([np.empty((3, 0), np.int64), *numbers], axis=1)
        distinct, gram = np.unique(every, return_inverse=True)
        found = pl.DataFrame({"gram": gram.astype(np.int32), "entry": entry, "position": position, "size": length_of})
        entries = pl.DataFrame(
            kept, schema={"entry": pl.Int64, "item": pl.Int64, "side": pl.Int64, "words": pl.Int64}, orient="row"
        ).with_columns(benchmark=pl.col("item").map_elements(lambda i: self.items[i].benchmark, pl.String))
        found = _without_template(found, entries, max_df)
        totals = found.group_by("entry").agg(total=pl.col("gram").n_unique())
        return entries.join(totals, "entry").sort("entry"), found, distinct

    def text_words(self, text: int) -> list[str]:
        """The words of a question or answer, as they are compared."""
        if text in self._words:
            return self._words[text]
        low, high = self._tokens.bounds[text : text + 2]
        raw = self._masked[text].as_py().encode("utf-8", "surrogatepass")
        self._words[text] = words(raw, self._tokens.starts[low:high], self._tokens.ends[low:high])
        return self._words[text]

    def answers(self, item: int) -> list[list[str]]:
        """The answers of an item, in words."""
        return [self.text_words(text) for text in self.items[item].answers]

    @cached_property
    def first(self) -> dict[int, tuple[int, int, int]]:
        """Entry, position and size of one occurrence of every n-gram."""
        one = self.occurrences.unique("gram", keep="first", maintain_order=True)
        return {gram: (entry, position, size) for gram, entry, position, size in one.iter_rows()}

    def gram_words(self, gram: int) -> list[str]:
        """The words of an n-gram."""
        entry, position, size = self.first[gram]
        return self.text_words(entry)[position : position + size]


def _texts(benchmarks: pa.Table) -> Iterator[tuple[int, int, str]]:
    """Record, side and text of every question and answer of the benchmark rows."""
    for record, row in enumerate(benchmarks.select(["kind", "messages", "chosen", "verifier", "extra"]).to_pylist()):
        turns = [m for m in row["messages"] or [] if m["content"]]
        asked = [m["content"] for m in turns if m["role"] not in {"system", "assistant"}]
        said = [m["content"] for m in turns if m["role"] == "assistant"]
        if not asked:  # a plain text is all there is
            asked, said = said, []
        question = "\n".join(asked)
        yield record, 0, question
        gold = [*said, *(m["content"] for m in row["chosen"] or [] if m["content"])]
        gold += _gold((row["verifier"] or {}).get("spec")) + _gold(row["extra"])
        for text in dict.fromkeys(one.removeprefix(question) for one in gold):  # a function's answer repeats its head
            yield record, 1, text


def _gold(text: str | None) -> list[str]:
    """Answers in a JSON object: the strings and numbers under the names that benchmarks use for them."""
    value = json.loads(text) if text else None
    if not isinstance(value, dict):
        return []
    found = [value.get(key) for key in _GOLD]
    flat = [one for v in found for one in (v if isinstance(v, list) else [v])]
    return [str(one) for one in flat if isinstance(one, str | int | float) and str(one).strip()]


def _without_template(found: pl.DataFrame, entries: pl.DataFrame, max_df: int) -> pl.DataFrame:
    """Leave out n-grams that more than `max_df` different items of one benchmark hold, where an entry has others."""
    shape = found.sort("entry", "position").group_by("entry", maintain_order=True).agg(pl.col("gram").implode().hash())
    known = found.join(entries.select("entry", "benchmark"), "entry").join(shape.rename({"gram": "shape"}), "entry")
    df = known.group_by("benchmark", "gram").agg(df=pl.col("shape").n_unique())
    known = known.join(df, ["benchmark", "gram"]).with_columns(template=pl.col("df") > max_df)
    known = known.with_columns(only=pl.col("template").all().over("entry"))
    kept = known.filter(~pl.col("template") | pl.col("only"))
    return kept.select("gram", "entry", "position", "size").sort("entry", "position")


def row_grams(rows: pa.Table, index: BenchmarkIndex) -> pl.DataFrame:
    """Which known n-grams each row holds, in any field: `row`, `gram`, distinct and sorted."""
    parts = pieces(rows)
    found = []
    for start, texts in chunks(parts.text):
        hits = index.table.find(tokenise(mask_entities(texts)))
        found.append(pl.DataFrame({"row": parts.row[start + hits.text], "gram": hits.gram}))
    empty = pl.DataFrame(schema={"row": pl.Int64, "gram": pl.Int32})
    return pl.concat([empty, *found]).unique().sort("row", "gram")


def coverage(pairs: pl.DataFrame, index: BenchmarkIndex, max_df: int) -> pl.DataFrame:
    """How much of each entry a row holds: `row`, `entry`, `raw`, `coverage`, `parts`.

    `raw` counts all of the entry's n-grams. In `coverage` those that more than `max_df` rows hold without holding the
    item itself are left out on both sides, and it is never above `raw`. `parts` is the share of the entry's words
    inside matched n-grams, 0 where not enough of the entry is there to look.
    """
    known = index.occurrences.select("gram", "entry").unique()
    totals = index.entries.select("entry", "total", "words")
    held = pairs.join(known, "gram").join(totals, "entry")
    raw = held.group_by("row", "entry").agg(raw=pl.len() / pl.col("total").first())
    held = held.join(raw, ["row", "entry"])
    df = held.filter(pl.col("raw") < WHOLE).group_by("entry", "gram").agg(df=pl.len())
    common = df.filter(pl.col("df") > max_df).select("entry", "gram")
    left = totals.join(common.group_by("entry").agg(common=pl.len()), "entry", how="left").with_columns(
        specific=pl.col("total") - pl.col("common").fill_null(0)
    )
    own = held.join(common, ["entry", "gram"], how="anti").group_by("row", "entry").agg(own=pl.len())
    both = raw.join(own, ["row", "entry"], how="left").join(left.select("entry", "specific"), "entry")
    nothing_left = (pl.col("raw") >= 1).cast(pl.Float64)
    share = (
        pl.when(pl.col("specific") > 0).then(pl.col("own").fill_null(0) / pl.col("specific")).otherwise(nothing_left)
    )
    both = both.with_columns(coverage=pl.min_horizontal("raw", share))
    return both.join(_parts(pairs, both, index), ["row", "entry"], how="left").select(
        "row", "entry", "raw", "coverage", pl.col("parts").fill_null(0.0)
    )


def _parts(pairs: pl.DataFrame, both: pl.DataFrame, index: BenchmarkIndex) -> pl.DataFrame:
    """Share of an entry's words inside matched n-grams, for pairs that share something specific."""
    worth = both.filter((pl.col("raw") >= _PARTS_FROM) & (pl.col("own") > 0)).select("row", "entry")
    placed = (
        worth.join(index.occurrences, "entry")
        .join(pairs, ["row", "gram"])
        .join(index.entries.select("entry", "words"), "entry")
    )
    # Words covered by windows [position, position + size): each window adds what reaches beyond the one before.
    ordered = placed.sort("row", "entry", "position")
    end = pl.col("position") + pl.col("size")
    before = end.shift(1).over("row", "entry").fill_null(0)
    ordered = ordered.with_columns(fresh=end - pl.max_horizontal("position", before))
    return ordered.group_by("row", "entry").agg(parts=pl.col("fresh").sum() / pl.col("words").first())


@dataclass(frozen=True)
class Evidence:
    """The n-grams that were found word for word in fetched rows, and where.

    `places`: row (as in the fetched table), gram, piece, start, end (characters of the field's text).
    """

    places: pl.DataFrame
    parts: Pieces
    tokens: Words
    masked: pa.Array

    def says(self, row: int, answers: list[list[str]]) -> bool:
        """Whether one of `answers` (in words) stands in an answer of the row, a task's gold answer included."""
        own = np.flatnonzero(self.parts.row == row)
        for piece in own:
            is_prompt = COLUMNS[self.parts.column[piece]] == "messages" and self.parts.role[piece] != 2
            if is_prompt:
                continue
            spoken = _piece_words(self, int(piece))
            if any(_holds(spoken, answer) for answer in answers if answer):
                return True
        return False


def locate(rows: pa.Table, index: BenchmarkIndex) -> Evidence:
    """Find known n-grams in `rows` again, and compare them word for word."""
    parts = pieces(rows)
    masked = mask_entities(parts.text)
    tokens = tokenise(masked)
    hits = index.table.find(tokens)
    evidence = Evidence(pl.DataFrame(), parts, tokens, masked)
    lines: list[tuple[int, int, int, int, int]] = []
    for piece in np.unique(hits.text):
        spoken = _piece_words(evidence, int(piece))
        spans = _Spans(evidence, int(piece))
        low, high = np.searchsorted(hits.text, [piece, piece + 1])
        for at, gram in zip(hits.position[low:high].tolist(), hits.gram[low:high].tolist(), strict=True):
            wanted = index.gram_words(gram) if gram in index.first else []
            if wanted and spoken[at : at + len(wanted)] == wanted:
                lines.append((int(parts.row[piece]), gram, int(piece), *spans(at, len(wanted))))
    schema = {"row": pl.Int64, "gram": pl.Int32, "piece": pl.Int64, "start": pl.Int64, "end": pl.Int64}
    return Evidence(pl.DataFrame(lines, schema=schema, orient="row"), parts, tokens, masked)


class _Spans:
    """Character spans in one piece's own text, from word positions in its masked text."""

    def __init__(self, evidence: Evidence, piece: int) -> None:
        low, high = evidence.tokens.bounds[piece : piece + 2]
        self.starts, self.ends = evidence.tokens.starts[low:high], evidence.tokens.ends[low:high]
        self.text: str = evidence.parts.text[piece].as_py()
        masked: str = evidence.masked[piece].as_py()
        self.same = masked == self.text
        self.raw = masked.encode("utf-8", "surrogatepass")
        self.ascii = masked.isascii()

    def __call__(self, at: int, size: int) -> tuple[int, int]:
        start, end = self._chars(int(self.starts[at])), self._chars(int(self.ends[at + size - 1]))
        if self.same:
            return start, end
        return original_offset(self.text, start), original_offset(self.text, end)

    def _chars(self, byte: int) -> int:
        return byte if self.ascii else len(self.raw[:byte].decode("utf-8", "surrogatepass"))


def _piece_words(evidence: Evidence, piece: int) -> list[str]:
    low, high = evidence.tokens.bounds[piece : piece + 2]
    raw = evidence.masked[piece].as_py().encode("utf-8", "surrogatepass")
    return words(raw, evidence.tokens.starts[low:high], evidence.tokens.ends[low:high])


def _holds(spoken: list[str], wanted: list[str]) -> bool:
    return any(spoken[at : at + len(wanted)] == wanted for at in range(len(spoken) - len(wanted) + 1))
