"""Dedupe of plain files: Parquet with a text column in; the rows that stay, a ledger and figures out.

    corpusforge dedupe new.parquet --against old.parquet --out clean/
    clean/kept/part-00000.parquet    the rows that stay, all columns as they were, in their order
    clean/dropped.parquet            who went, for whom, how similar
    clean/metrics.json

All columns are read once to be written, and the texts once before that, a slice per thread. Between the two there are
on disk 8 bytes per row and band and 8 per shingle, about twice the text: reading them back costs a tenth of making them
anew. Longer texts stay, then earlier rows; rows of `against` are there already and never go.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.engine.local import in_threads
from corpusforge.io import index
from corpusforge.io.parquet import part_name
from corpusforge.io.scratch import Laid, Scratch, room
from corpusforge.result import LEDGER
from corpusforge.stages._guard import flat
from corpusforge.stages._index import method_of
from corpusforge.stages._near import Meetings, meetings, near
from corpusforge.text.arrow import arrow, numbers
from corpusforge.text.fingerprints import fingerprints, first_equal
from corpusforge.text.minhash import band_hashes, candidate_probability, parameters, signatures
from corpusforge.text.pairs import Sets, distinct
from corpusforge.text.shingles import shingle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from corpusforge.io.texts import Slice, Texts
    from corpusforge.stages._index import SignatureIndex
    from corpusforge.stages.dedupe import DedupeConfig

Positions = npt.NDArray[np.int64]
_STAGE: Final = "dedupe"
_SETS: Final = 4_096  # sets of an index that are read at once
_FACTS: Final = [("row_id", pa.string()), ("record_id", pa.string())]


@dataclass(frozen=True)
class Sketches:
    """What of each text is compared first; rows are texts."""

    bands: npt.NDArray[np.uint64]  # (bands, rows)
    content: npt.NDArray[np.uint64]  # (rows, 2)
    units: npt.NDArray[np.int32]
    shingles: Laid


def sketch(work: Work, number: int) -> Sketches:
    """Read all texts of a corpus once; bands and shingles lie on disk."""
    corpus, config, scratch = work.corpora[number], work.config, work.scratch
    width, height = (0, 0) if config.exact_only else parameters(config.threshold, config.num_perm, config.recall)
    shape = (max(width, 1), max(corpus.rows, 1))
    bands = room(scratch / f"bands-{number}", shape)
    laid = Laid(scratch / f"shingles-{number}")
    content, units = np.zeros((corpus.rows, 2), np.uint64), np.zeros(corpus.rows, np.int32)

    def of(part: Slice) -> None:
        for at, texts in corpus.texts(part):
            end = at + len(texts)
            found = shingle(texts, config.shingle)
            units[at:end], content[at:end] = found.units, fingerprints(texts)
            if width:
                laid.put(at, found.starts, found.hashes)
                signature = signatures(found.hashes, found.starts, width * height, config.seed)
                free = np.zeros(len(texts), np.uint64)
                bands[:width, at:end] = band_hashes(signature, width, height, free).T

    for _ in in_threads(of, corpus.slices, work.workers):
        pass
    return Sketches(bands[:width, : corpus.rows], content, units, laid)


@dataclass(frozen=True)
class Verdict:
    """Per row of new, then old: the row that it goes for (-1: it stays), how similar, and whether it is a copy."""

    partner: Positions
    similarity: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    figures: dict[str, Any]


@dataclass(frozen=True)
class Work:
    """What one run works with."""

    corpora: list[Texts]  # new, and what is there already
    config: DedupeConfig
    scratch: Path
    workers: int
    index: SignatureIndex | None = None

    @property
    def starts(self) -> list[int]:
        """Where each corpus begins among all rows; the index stands behind them."""
        return list(itertools.accumulate([one.rows for one in self.corpora], initial=0))


def run(work: Work, out: Path) -> dict[str, Any]:
    """Decide and write; give the figures."""
    sketches = [sketch(work, number) for number in range(len(work.corpora))]
    related = _related(work, sketches[0])
    return write(work, decide(work, sketches, related), related, out)


def decide(work: Work, sketches: list[Sketches], related: Positions) -> Verdict:
    """Find who goes for whom; `related` are the rows of the index that new ones may be like."""
    count = work.corpora[0].rows
    content = np.concatenate([*(one.content for one in sketches), *_of_index(work, related, "content")])
    units = np.concatenate([*(one.units for one in sketches), *_of_index(work, related, "units")])
    protected = np.arange(len(units)) >= count
    ranked = np.lexsort((np.arange(len(units)), -units, ~protected)).astype(np.int64)
    ranked = ranked[units[ranked] > 0]
    leader = first_equal(content, ranked)
    near_to, similarity = np.full(len(units), -1, np.int64), np.ones(len(units))
    figures: dict[str, Any] = {}
    if not work.config.exact_only:
        width, height = parameters(work.config.threshold, work.config.num_perm, work.config.recall)

        def band(i: int) -> Any:
            return np.concatenate([*(one.bands[i] for one in sketches), *_bands_of_index(work, related, i)])

        spread = partial(in_threads, workers=work.workers)
        shingles = np.maximum(units - work.config.shingle + 1, 1)
        met = meetings(ranked[leader[ranked] < 0], band, width, shingles, spread)
        place = work.scratch / "sets"
        place.mkdir()
        near_to, similarity, made = near(
            met, _sets(work, sketches, met, related), protected, work.config.threshold, Scratch(place), spread
        )
        stated = round(candidate_probability(work.config.threshold, width, height), 6)
        figures = {"bands": width, "rows_per_band": height, "recall_at_threshold": stated, **made}
    first = np.where(leader >= 0, leader, np.arange(len(units)))
    exact = (leader >= 0) & (near_to[first] < 0)
    return Verdict(
        np.where(protected, -1, np.where(exact, leader, near_to[first])),
        np.where(exact, 1.0, similarity[first]),
        exact,
        figures | {"empty": int((units[:count] == 0).sum())},
    )


def _sets(work: Work, sketches: list[Sketches], met: Meetings, related: Positions) -> Iterator[tuple[Positions, Sets]]:
    """Shingle sets of the rows that meet."""
    wanted = np.sort(met.positions)
    for start, one in zip(work.starts, sketches, strict=False):

        def of(first: int, start: int = start, laid: Laid = one.shingles) -> tuple[Positions, Sets]:
            begin = start + first
            own = wanted[slice(*np.searchsorted(wanted, [begin, begin + laid.rows(first)]))]
            return own, distinct(*laid.take(first, own - begin))

        yield from in_threads(of, one.shingles.firsts(), work.workers)
    if work.index is not None:
        known = work.starts[-1]
        own = wanted[wanted >= known]
        known_sets = work.index.sets
        parts = [own[at : at + _SETS] for at in range(0, len(own), _SETS)]
        taken = in_threads(lambda part: known_sets.take(related[part - known]), parts, work.workers)
        yield from zip(parts, taken, strict=True)


def _related(work: Work, new: Sketches) -> Positions:
    """Rows of the index that new rows may be like."""
    if work.index is None:
        return np.zeros(0, np.int64)
    wanted = {f"band_{i:03d}": [band] for i, band in enumerate(new.bands)} | {"content": [new.content[:, 0]]}
    return work.index.related(wanted)


def _of_index(work: Work, related: Positions, name: str) -> list[Any]:
    if work.index is None:
        return []
    if name == "content":
        return [
            np.stack([numbers(flat(work.index.facts[half]))[related] for half in ("content_0", "content_1")], axis=1)
        ]
    return [numbers(flat(work.index.facts[name]))[related]]


def _bands_of_index(work: Work, related: Positions, number: int) -> list[Any]:
    return [] if work.index is None else [work.index.bands[related, number]]


def write(work: Work, verdict: Verdict, related: Positions, out: Path) -> dict[str, Any]:
    """Write what stays and the ledger of what goes; give the figures."""
    new = work.corpora[0]
    gone = verdict.partner[: new.rows] >= 0
    (out / "kept").mkdir()
    plain = [new.text, *([new.own_id] if new.own_id else [])]

    def keep(job: tuple[int, Slice]) -> int:
        number, part = job
        rows = new.read(part).filter(arrow(~gone[part.start : part.start + part.rows]))
        named = [name for name in rows.column_names if name not in plain]
        pq.write_table(rows, out / "kept" / part_name(number), compression=new.codec(part), use_dictionary=named)
        return int(rows.num_rows)

    kept = sum(in_threads(keep, list(enumerate(new.slices)), work.workers))
    ledger = _ledger(work, verdict, related, np.flatnonzero(gone))
    pq.write_table(ledger, out / "dropped.parquet", compression="zstd")
    exact = int(verdict.exact[: new.rows][gone].sum())
    return {
        "in": new.rows,
        "kept": kept,
        "dropped": ledger.num_rows,
        "reasons": {"exact_duplicate": exact, "near_duplicate": ledger.num_rows - exact},
        "against": sum(one.rows for one in work.corpora[1:]) + (work.index.rows if work.index else 0),
        **verdict.figures,
    }


def _ledger(work: Work, verdict: Verdict, related: Positions, gone: Positions) -> pa.Table:
    """A line per row that went, naming the row that stays: by the user's own id, by row id, and where it is."""
    every_name: list[pl.DataFrame] = []
    before: list[Path] = []
    for corpus in work.corpora:
        every_name.append(names(corpus, before))
        before += corpus.files
    if work.index is not None:
        every_name.append(
            pl.DataFrame(pl.from_arrow(work.index.facts.select(["row_id", "record_id"]).take(arrow(related))))
        )
    every = pl.concat(every_name)
    own, kept = every[gone], every[verdict.partner[gone]]
    exact = pl.Series(verdict.exact[gone])
    lines = pl.DataFrame(
        {
            "kept": kept.select(pl.coalesce("record_id", "row_id")).to_series(),
            "kept_row": kept["row_id"],
            "kept_in": np.where(verdict.partner[gone] < work.corpora[0].rows, "new", "against"),
            "method": exact.replace_strict({True: "exact", False: "minhash"}, return_dtype=pl.String),
            "similarity": np.round(verdict.similarity[gone], 6),
        }
    )
    table = own.select(
        "row_id",
        "record_id",
        pl.col("row_id").str.replace(r"#\d+$", "").alias("source"),
        pl.lit(_STAGE).alias("stage"),
        exact.replace_strict({True: "exact_duplicate", False: "near_duplicate"}, return_dtype=pl.String).alias(
            "reason"
        ),
        lines.select(pl.struct(pl.all()).struct.json_encode()).to_series().alias("detail"),
    )
    return table.to_arrow(compat_level=pl.CompatLevel.oldest()).select(LEDGER.names).cast(LEDGER)


def names(corpus: Texts, before: Sequence[Path] = ()) -> pl.DataFrame:
    """Row ids (`file#number`, from 1 on) and the users' own ids; `before` are files that had their names earlier."""
    files = np.concatenate([np.zeros(0, np.int64), *(np.full(p.rows, p.file) for p in corpus.slices)])
    first = np.zeros(len(corpus.files), np.int64)
    for part in reversed(corpus.slices):
        first[part.file] = part.start
    called = pl.Series(labels([*before, *corpus.files])[len(before) :], dtype=pl.String)
    frame = pl.DataFrame({"file": called.gather(files), "number": np.arange(corpus.rows) - first[files] + 1})
    ids = corpus.ids()
    return frame.select(
        pl.concat_str("file", pl.col("number").cast(pl.String), separator="#").alias("row_id"),
        (pl.lit(None, pl.String) if ids is None else pl.Series(ids).cast(pl.String)).alias("record_id"),
    )


def labels(files: Sequence[Path]) -> list[str]:
    """A name for each file: its own without the ending; `name~2`, `name~3` … for others of that name, in order."""
    own = {file.stem for file in files}
    told: dict[str, None] = {}
    for file in files:
        label, number = file.stem, 1
        while label in told or (number > 1 and label in own):
            number += 1
            label = f"{file.stem}~{number}"
        told[label] = None
    return list(told)


def write_index(work: Work, folder: Path) -> int:
    """Write an index of the (only) corpus; give its rows."""
    (corpus,) = work.corpora
    made = sketch(work, 0)
    own = names(corpus).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.schema(_FACTS))
    facts = own.append_column("units", arrow(made.units))
    for half in (0, 1):
        facts = facts.append_column(f"content_{half}", arrow(made.content[:, half]))
    blank = made.units == 0
    bands = np.where(blank, np.uint64(0), made.bands)
    lookups = {"content": np.where(blank, np.uint64(0), made.content[:, 0])}

    laid = made.shingles

    def of(first: int) -> Sets:
        return distinct(*laid.take(first, np.arange(laid.rows(first))))

    parts = in_threads(of, laid.firsts(), work.workers)
    index.write(folder, method_of(work.config, "texts"), facts, bands, lookups, parts)
    return corpus.rows
