"""One row in a hundred is new: the stage `dedupe` with what the last build knew, beside the stage without.

    python benchmarks/dedupe_cache.py --rows 100000 --work bench-cache

A project of conversations of the corpus of benchmarks/dedupe.py; the last hundredth is added after the first build.
Whole processes, `corpusforge stage dedupe`, in turn: without a cache; with an empty one; and with that of the build
before. What each leaves under data/ and metrics/ is compared byte for byte; exit code 1 where it differs. `start` is
the stage on 100 rows, which is the start of a process; the shares have it taken off.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pyarrow.parquet as pq
from _process import Cost, measure
from dedupe import SHARED, corpus, missing

PART, FEW = 100, 100
WORKERS = "CORPUSFORGE_WORKERS"  # one unless it is set: each is a process more to start
PARAMS = """ingest: {{sources: [{{name: chats, path: chats.jsonl, license: MIT, origin: human}}]}}
dedupe: {{{options}}}
scrub: {{key: public-demo}}
"""


def lay(root: Path, texts: list[str], options: str) -> None:
    """The project with these texts, a third of each asked and the rest answered."""
    root.mkdir(parents=True, exist_ok=True)
    with (root / "chats.jsonl").open("w", encoding="utf-8") as file:
        for number, text in enumerate(texts):
            cut = len(text) // 3
            turns = [("user", text[:cut]), ("assistant", text[cut:])]
            messages = [{"role": role, "content": content} for role, content in turns]
            file.write(json.dumps({"id": f"r{number}", "messages": messages}, ensure_ascii=False) + "\n")
    (root / "baseline.json").write_text("{}\n")
    (root / "dvc.yaml").touch()
    choose(root, options)


def choose(root: Path, options: str) -> None:
    """Give the stage these options."""
    (root / "params.yaml").write_text(PARAMS.format(options=options))


def run(root: Path, *words: str) -> Cost:
    """One command of ours in the project."""
    place = Path.cwd()
    os.chdir(root)
    try:
        command = [sys.executable, "-m", "corpusforge", *words]
        return measure(command, root / f"{words[-1]}.log", {WORKERS: os.environ.get(WORKERS, "1")})
    finally:
        os.chdir(place)


def left(root: Path) -> str:
    """A hash of all that the stage leaves."""
    found = hashlib.sha256()
    for path in [*sorted((root / "data/dedupe").rglob("*")), root / "metrics/dedupe.json"]:
        if path.is_file():
            found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def ingested(root: Path, texts: list[str], options: str) -> None:
    """The project, up to the stage before."""
    lay(root, texts, options)
    for words in (("sync",), ("stage", "ingest")):
        run(root, *words)


def main() -> None:
    """Make the project, run the stage, print the table."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=5_000)
    ask.add_argument("--times", type=int, default=1, help="how often each is run; medians are told")
    ask.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the public data sets")
    ask.add_argument("--work", type=Path, help="folder that keeps corpora and results (default: a passing one)")
    chosen = ask.parse_args()
    absent = missing(chosen.data)
    if absent:
        print("skipped: not there:", *absent)
        return
    with tempfile.TemporaryDirectory() as passing:
        work = (chosen.work or Path(passing)).resolve()
        work.mkdir(parents=True, exist_ok=True)
        made, _ = corpus(SimpleNamespace(work=work, data=chosen.data), chosen.rows)
        texts = pq.read_table(made)["text"].to_pylist()
        root, few = work / "project", work / "few"
        for one in (root, few):
            shutil.rmtree(one, ignore_errors=True)
        ingested(few, texts[:FEW], "")
        run(few, "stage", "dedupe")  # compiles, where nothing did
        ingested(root, texts[: len(texts) - len(texts) // PART], "cache: known")
        run(root, "stage", "dedupe")
        shutil.copytree(root / "known", work / "before", dirs_exist_ok=True)
        ingested(root, texts, "cache: known")
        costs: dict[str, list[Cost]] = {"start": [], "without": [], "empty": [], "known": []}
        ends = set()
        for _ in range(chosen.times):
            costs["start"].append(run(few, "stage", "dedupe"))
            for name, options in (("without", ""), ("empty", "cache: known"), ("known", "cache: known")):
                choose(root, options)
                shutil.rmtree(root / "known", ignore_errors=True)
                if name == "known":
                    shutil.copytree(work / "before", root / "known")
                costs[name].append(run(root, "stage", "dedupe"))
                ends.add(left(root))
        size = (root / "known/rows.cache").stat().st_size
        said = next(line for line in (root / "dedupe.log").read_text().splitlines() if "cache" in line)
        print(f"{len(texts):,} rows, load {os.getloadavg()[0]:.1f}; {said}; {size / 1e6:,.0f} MB")
        middle = {
            name: [statistics.median(getattr(cost, unit) for cost in found) for unit in ("seconds", "busy")]
            for name, found in costs.items()
        }
        for name, (seconds, busy) in middle.items():
            shares = [
                (one - start) / (whole - start)
                for one, whole, start in zip((seconds, busy), middle["without"], middle["start"], strict=True)
            ]
            told = (
                "" if name == "start" else f"   start taken off: {shares[0]:4.0%} of the seconds, {shares[1]:4.0%} cpu"
            )
            print(f"{name:8} {seconds:7.2f} s {busy:7.2f} cpu s{told}")
        print("data/ and metrics/:", "the same bytes" if len(ends) == 1 else "OTHER BYTES")
        sys.exit(len(ends) != 1)


if __name__ == "__main__":
    main()
