"""One row in a hundred is new: held against an index of the others, beside deciding all of them again.

    python benchmarks/dedupe_new.py --rows 1000000 --work bench-dedupe

Four whole processes, on the corpus of benchmarks/dedupe.py (made where it is not there yet): all rows; the index of the
99 in 100; the new hundredth against that index; and one row against an index of one, which is the start of a process.
The share is that of the new rows' run in the full run, the start taken off both. `--times 5` runs the new rows and the
one row in turn so often, and takes the middle difference: on a shared machine a single one says little. With `--check`:
what goes from the new rows by the index goes from them by the file, for the same rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
from _process import Cost, measure
from dedupe import SHARED, THRESHOLD, corpus, missing

PART = 100


def run(work: Path, name: str, *arguments: str | Path) -> Cost:
    """One command of ours."""
    command = [sys.executable, "-m", "corpusforge", *map(str, arguments), "--threshold", str(THRESHOLD)]
    return measure(command, work / f"{name}.log")


def split(made: Path, work: Path) -> tuple[Path, Path, Path]:
    """The rows in two files, and a file of one row."""
    rows = pq.read_table(made)
    cut = rows.num_rows - rows.num_rows // PART
    files = tuple(work / f"{name}-{rows.num_rows}.parquet" for name in ("old", "new", "one"))
    for file, part in zip(files, (rows.slice(0, cut), rows.slice(cut), rows.slice(0, 1)), strict=True):
        pq.write_table(part, file, row_group_size=50_000)
    return files


def main() -> None:
    """Make the files, run the commands, print the table."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=20_000)
    ask.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the public data sets")
    ask.add_argument("--work", type=Path, help="folder that keeps corpora and results (default: a passing one)")
    ask.add_argument("--times", type=int, default=1, help="how often the new rows and the one row run in turn")
    ask.add_argument("--check", action="store_true", help="also against the file, and compare")
    chosen = ask.parse_args()
    absent = missing(chosen.data)
    if absent:
        print("skipped: not there:", *absent)
        return
    with tempfile.TemporaryDirectory() as passing:
        work = (chosen.work or Path(passing)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        made, _ = corpus(SimpleNamespace(work=work, data=chosen.data), chosen.rows)
        old, new, one = split(made, work)
        for name in ("index", "index-one", "out-all", "out-new", "out-one", "out-file"):
            shutil.rmtree(work / name, ignore_errors=True)
        run(work, "one", "index", one, work / "index-one")
        costs = {
            "all rows": run(work, "all", "dedupe", made, "--out", work / "out-all"),
            "index of the old": run(work, "index", "index", old, work / "index"),
        }
        turns = []
        for _ in range(chosen.times):
            added = run(work, "new", "dedupe", new, "--against", work / "index", "--out", work / "out-new")
            start = run(work, "start", "dedupe", one, "--against", work / "index-one", "--out", work / "out-one")
            turns.append((added, start))
        costs["new against it"], costs["one against one"] = turns[-1]
        print(f"{chosen.rows:,} rows, {chosen.rows // PART:,} new, load {os.getloadavg()[0]:.1f}")
        for name, cost in costs.items():
            print(f"{name:18} {cost.seconds:8.2f} s {cost.busy:8.2f} cpu s {cost.largest / 1e6:8,.0f} MB")
        for unit in ("seconds", "busy"):
            differences = [getattr(added, unit) - getattr(start, unit) for added, start in turns]
            start = statistics.median(getattr(one, unit) for _, one in turns)
            share = statistics.median(differences) / (getattr(costs["all rows"], unit) - start)
            each = ", ".join(f"{difference:.2f}" for difference in differences)
            print(f"share of the full run, start taken off ({unit}): {share:.1%} ({each} s)")
        if chosen.check:
            run(work, "file", "dedupe", new, "--against", old, "--out", work / "out-file")
            same = [(work / f"out-{way}" / "dropped.parquet").read_bytes() for way in ("new", "file")]
            print("by the index and by the file:", "the same ledger" if same[0] == same[1] else "OTHER LEDGERS")
            sys.exit(same[0] != same[1])


if __name__ == "__main__":
    main()
