"""Did near-duplicate removal tell the truth? A second opinion that shares no code with what it checks.

    python benchmarks/dedupe_check.py c.parquet OUT --truth t.parquet

`OUT` is what `corpusforge dedupe c.parquet --out OUT` left: the kept rows (`kept.parquet`, or files in `kept/`) and the
ledger of the removed ones (`dropped.parquet`: `record_id`, `detail` with `kept` and `similarity`). Checked, exactly:

- kept and removed rows together are the input, no id twice, and the kept rows have its columns and its texts;
- each removed row names a row of the input that is kept;
- the Jaccard similarity of the two, worked out anew, reaches the threshold and is the one in the ledger to six digits;
- of the pairs in the truth at the threshold or above, at least 99 in 100 lost a row.

Texts are compared as sets of five words in a row (runs of letters and digits after NFKC and lower case); a text of
fewer words is one piece, blanks aside. This is meant for languages that write spaces between words.

Exit code 1 and a few examples of each fault where something is wrong. Texts lie in a file that is mapped into memory,
so a million rows take about as much memory as their ids; their pairs are compared in several processes.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import unicodedata
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

WORD = re.compile(r"[^\W_]+")
LENGTH = 5  # words of a shingle
CHUNK = 5_000  # pairs or rows that a process takes at a time
SHOWN = 5  # examples of each fault
RECALL = 0.99
DIGITS = 1e-6  # the ledger rounds to six digits

Pieces = frozenset[tuple[str, ...]]
Floats = npt.NDArray[np.float64]


def pieces(text: str) -> Pieces:
    """The set that stands for a text."""
    folded = unicodedata.normalize("NFKC", text).lower()
    words = WORD.findall(folded)
    if len(words) < LENGTH:
        return frozenset([("".join(folded.split()),)])
    return frozenset(zip(*(words[i:] for i in range(LENGTH)), strict=False))


def spool(corpus: Path, folder: Path) -> Path:
    """Write the texts of a Parquet file as an Arrow file, of which any row can be read without reading the rest."""
    place = folder / f"{corpus.stem}.arrow"
    with pa.OSFile(str(place), "wb") as file, pa.ipc.new_file(file, pa.schema([("text", pa.string())])) as writer:
        for batch in pq.ParquetFile(corpus).iter_batches(8_192, columns=["text"]):
            writer.write_batch(pa.record_batch({"text": batch["text"].cast(pa.string())}))
    return place


@lru_cache(maxsize=2)
def _texts(place: Path) -> pa.ChunkedArray:
    return pa.ipc.open_file(pa.memory_map(str(place))).read_all()["text"]


@lru_cache(maxsize=2_048)
def pieces_at(place: Path, at: int) -> Pieces:
    """The set of one row of the file that `spool` wrote."""
    return pieces(_texts(place)[at].as_py() or "")


def _compare(place: Path, left: list[int], right: list[int]) -> list[float]:
    found = []
    for one, other in zip(left, right, strict=True):
        a, b = pieces_at(place, one), pieces_at(place, other)
        shared = len(a & b)
        found.append(shared / (len(a) + len(b) - shared))
    return found


def spread(work: Callable[..., list[Any]], workers: int, *columns: Iterable[Any]) -> list[Any]:
    """Call `work` on chunks in several processes, one after the other where there is one worker; results in order."""
    if workers < 2:
        return [one for found in map(work, *columns) for one in found]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        return [one for found in pool.map(work, *columns) for one in found]


def similarities(place: Path, pairs: pl.DataFrame, workers: int) -> Floats:
    """Exact similarity of each pair of rows (`left`, `right`: positions in the file that `spool` wrote)."""
    sorted_ = pairs.select("left", "right").with_row_index("at").sort("right", "left")  # equal partners side by side
    chunks = [sorted_[at : at + CHUNK] for at in range(0, len(sorted_), CHUNK)]
    sides = ([chunk[side].to_list() for chunk in chunks] for side in ("left", "right"))
    found = np.empty(len(pairs))
    found[sorted_["at"].to_numpy()] = spread(_compare, min(workers, len(chunks)), repeat(place, len(chunks)), *sides)
    return found


def kept_files(out: Path) -> list[Path]:
    """Where the kept rows lie."""
    files = [out / "kept.parquet"] if (out / "kept.parquet").exists() else sorted((out / "kept").glob("*.parquet"))
    if not files:
        raise SystemExit(f"no kept rows in {out}: expected kept.parquet or kept/*.parquet")
    return files


def removed(out: Path) -> pl.DataFrame:
    """The ledger as `id`, `twin`, `stated`: who went, for whom, at which similarity."""
    detail = pl.col("detail")
    return (
        pl.scan_parquet(out / "dropped.parquet")
        .select(
            pl.col("record_id").alias("id"),
            detail.str.json_path_match("$.kept").alias("twin"),
            detail.str.json_path_match("$.similarity").cast(pl.Float64, strict=False).alias("stated"),
        )
        .collect()
    )


class Faults(dict[str, tuple[int, list[str]]]):
    """What is wrong: how often, and a few examples."""

    def note(self, what: str, rows: pl.DataFrame) -> None:
        """Count rows with a fault, if any, and remember the first few."""
        if len(rows):
            shown = [", ".join(f"{name} {value}" for name, value in row.items()) for row in rows.head(SHOWN).to_dicts()]
            self[what] = (len(rows), shown)


def check(corpus: Path, out: Path, threshold: float, truth: Path | None = None, workers: int = 1) -> tuple[str, Faults]:
    """What was found, in a few lines, and the faults."""
    faults = Faults()
    hashed = pl.col("text").hash().alias("hash")
    rows = pl.scan_parquet(corpus).select("id", hashed).with_row_index("at").collect()
    kept = pl.scan_parquet(kept_files(out)).select("id", hashed).collect()
    gone = removed(out)
    _balance(rows, kept, gone, faults)
    _columns(corpus, out, faults)
    pairs = _partners(rows, kept, gone, faults)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        pairs = pairs.with_columns(exact=pl.lit(pl.Series(similarities(spool(corpus, Path(folder)), pairs, workers))))
    shown = pairs.select("id", "twin", "stated", "exact")
    faults.note(f"similarity below {threshold}", shown.filter(pl.col("exact") < threshold))
    wrong = (pl.col("exact") - pl.col("stated")).abs().fill_null(1) > DIGITS
    faults.note("similarity is not the one in the ledger", shown.filter(wrong))
    told = f"{len(rows):,} rows, {len(kept):,} kept, {len(gone):,} removed, {len(pairs):,} pairs compared"
    if truth is not None:
        told += "\n" + _planted(truth, rows, gone, threshold, faults)
    return told, faults


def _balance(rows: pl.DataFrame, kept: pl.DataFrame, gone: pl.DataFrame, faults: Faults) -> None:
    """Every row is kept or removed, once."""
    faults.note("id twice in the input", rows.select("id").filter(pl.col("id").is_duplicated()))
    where = pl.concat(
        [kept.select("id", side=pl.lit("kept")), gone.select("id", side=pl.lit("removed"))], how="vertical_relaxed"
    )
    twice = where.group_by("id", maintain_order=True).agg(pl.col("side").str.join(" and ")).sort("id")
    faults.note("row more than once in the result", twice.filter(pl.col("side").str.contains(" and ")))
    faults.note("row missing", rows.select("id").join(where, on="id", how="anti"))
    faults.note("row that the input does not have", where.join(rows, on="id", how="anti", nulls_equal=True))
    changed = kept.join(rows, on="id").filter(pl.col("hash").ne_missing(pl.col("hash_right")))
    faults.note("text of a kept row changed", changed.select("id"))


def _columns(corpus: Path, out: Path, faults: Faults) -> None:
    """Kept rows have the columns of the input."""
    wanted, got = (list(pq.read_schema(file).names) for file in (corpus, kept_files(out)[0]))
    lost = [name for name in wanted if name not in got]
    faults.note("column missing in the kept rows", pl.DataFrame({"column": lost}))


def _partners(rows: pl.DataFrame, kept: pl.DataFrame, gone: pl.DataFrame, faults: Faults) -> pl.DataFrame:
    """Pairs of removed row and partner that can be compared, with their positions in the input."""
    faults.note("no kept row named", gone.filter(pl.col("twin").is_null()).select("id"))
    named = gone.filter(pl.col("twin").is_not_null())
    places = rows.select("id", "at").unique("id", keep="first")
    faults.note("partner is not in the input", named.join(places, left_on="twin", right_on="id", how="anti"))
    faults.note(
        "partner is not kept",
        named.join(places, left_on="twin", right_on="id", how="semi").join(
            kept, left_on="twin", right_on="id", how="anti"
        ),
    )
    left = named.join(places.rename({"at": "left"}), on="id")
    return left.join(places.rename({"at": "right"}), left_on="twin", right_on="id")


def planted(truth: Path, rows: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Pairs of the truth at the threshold or above of which the input has both rows."""
    pairs = pl.read_parquet(truth).filter(pl.col("similarity") >= threshold)
    return pairs.join(rows, on="id", how="semi").join(rows, left_on="original_id", right_on="id", how="semi")


def lost(pairs: pl.DataFrame, gone: pl.Series) -> pl.DataFrame:
    """The pairs of which at least one row went."""
    return pairs.filter(pl.col("id").is_in(gone.implode()) | pl.col("original_id").is_in(gone.implode()))


def _planted(truth: Path, rows: pl.DataFrame, gone: pl.DataFrame, threshold: float, faults: Faults) -> str:
    """Whether the planted pairs were found."""
    pairs = planted(truth, rows, threshold)
    found = lost(pairs, gone["id"])
    share = len(found) / len(pairs) if len(pairs) else 1.0
    if share < RECALL:
        missed = pairs.join(found, on="id", how="anti").sort("similarity", descending=True)
        faults.note(f"planted pair of which no row went, recall {share:.4f} < {RECALL}", missed)
    return f"planted pairs at {threshold} or more: {len(pairs):,}, of {len(found):,} a row went ({share:.4f})"


def main() -> None:
    """Check, print, exit with 1 where something is wrong."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("corpus", type=Path)
    ask.add_argument("out", type=Path, help="folder with the kept rows and dropped.parquet")
    ask.add_argument("--truth", type=Path, help="planted pairs: id, original_id, similarity")
    ask.add_argument("--threshold", type=float, default=0.8)
    ask.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = ask.parse_args()
    told, faults = check(chosen.corpus, chosen.out, chosen.threshold, chosen.truth, chosen.workers)
    print(told)
    for what, (count, examples) in faults.items():
        print(f"FAULT: {what}: {count:,}", *examples, sep="\n    ")
    print("faults found" if faults else "no fault")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
