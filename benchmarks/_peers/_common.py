"""What the peers' scripts share: the arguments, the words of a text, and the two files that each leaves.

Every script is called as `with_TOOL.py CORPUS OUT --bands B --height H --workers N` by `benchmarks/dedupe.py`, with
the interpreter of the environment that has the tool, and leaves the kept rows in `OUT/kept.parquet` (or files in
`OUT/kept/`) and the removed ones in `OUT/dropped.parquet` (`record_id`, `reason`, `detail`).
"""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

WORD = re.compile(r"[^\W_]+")


def arguments() -> argparse.Namespace:
    """What `benchmarks/dedupe.py` asks for."""
    ask = argparse.ArgumentParser()
    ask.add_argument("corpus", type=Path)
    ask.add_argument("out", type=Path)
    ask.add_argument("--bands", type=int, required=True)
    ask.add_argument("--height", type=int, required=True, help="rows of a band")
    ask.add_argument("--workers", type=int, default=1)
    return ask.parse_args()


def shingles(text: str) -> list[str]:
    """Runs of five lower-cased words, in the fastest way that Python has; a shorter text is one shingle."""
    words = WORD.findall(text.lower())
    return [*map(" ".join, zip(words, words[1:], words[2:], words[3:], words[4:], strict=False))] or [" ".join(words)]


def write(out: Path, corpus: pa.Table, stays: list[bool], twins: list[str | None]) -> None:
    """Both files. `twins` names for each removed row, in their order, the row that it was taken for, where known."""
    mask = pa.array(stays)
    names = corpus["id"].filter(pc.invert(mask))
    details = [json.dumps({"kept": twin, "method": "minhash", "similarity": None}) for twin in twins]
    dropped = {"record_id": names, "reason": pa.array(["near_duplicate"] * len(names), pa.string()), "detail": details}
    pq.write_table(corpus.filter(mask), out / "kept.parquet")
    pq.write_table(pa.table(dropped), out / "dropped.parquet")
