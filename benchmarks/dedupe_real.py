"""Public data sets through dedupe: what goes, checked by other code, and FEBRL against its truth.

    python benchmarks/dedupe_real.py [--data FOLDER] [--pairs 10]

Prints counts, and for each set some pairs by id and similarity (never a text). Takes some minutes on two cores.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from pathlib import Path

from _real_sets import HATECHECK, SOURCES, febrl_of, found, removals, rows_of

SHARED = Path(os.environ.get("CORPUSFORGE_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def main() -> int:
    """Print the tables; 1 where a removal is not what it says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=SHARED / "data")
    parser.add_argument("--pairs", type=int, default=10, help="pairs to show of each set")
    given = parser.parse_args()
    wrong = 0
    ways = [(name, None) for name in SOURCES if name != "hatecheck"] + [("hatecheck", way) for way in HATECHECK]
    for name, way in ways:
        gone = removals(rows_of(given.data, name, HATECHECK[way] if way else None))
        wrong += len(gone.wrong)
        print(f"{name} {way or ''}: {gone.rows:,} rows, {gone.reasons}, wrong: {gone.wrong}", flush=True)
        near = [pair for pair in gone.pairs if pair[2] < 1]
        for pair in random.Random(1).sample(near, min(given.pairs, len(near))):
            print("   ", *pair)
    for number in (1, 3):
        rows = febrl_of(given.data, number)
        for shingle, threshold in ((1, 0.3), (1, 0.4), (1, 0.5), (2, 0.3), (2, 0.5), (5, 0.8)):
            precision, recall = found(rows, shingle=shingle, threshold=threshold)
            print(f"FEBRL {number}, {shingle=}, {threshold=}: {precision=:.4f} {recall=:.4f}", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
