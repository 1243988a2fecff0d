"""What the stage `health` and `corpusforge verify` cost as tasks become more: seconds, and memory at its peak.

    python benchmarks/health.py --rows 20000 40000 80000
    python benchmarks/health.py --files mbpp.jsonl --against /path/to/other/src --times 3

Tasks are made up: two numbers to add in a prompt of a thousand characters, or a row that is no task in every fourth
place with `--mixed`. The stage reads partitions of `--part` rows, as a project's does; the command reads one file.
`--files` times the command on given files instead, in turn with the code in another folder, and prints the ratios.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
from _process import Cost, measure

from corpusforge.io import parquet
from corpusforge.sample import SCHEMA

PAD = "The harbour master counts crates of copper, ribbon and pepper before the boats leave. " * 11
PARAMS = """ingest: {sources: [{name: made, path: made.jsonl, license: MIT, origin: human}]}
scrub: {key: public-demo}
"""
ALONE = {"CORPUSFORGE_WORKERS": "1"}


def asked(number: int) -> tuple[str, str]:
    """A prompt unlike all others, and its answer."""
    return f"{PAD}\nHow many crates are {number} and {number * 7 % 1009}?", str(number + number * 7 % 1009)


def row(number: int, *, task: bool) -> dict[str, object]:
    """A row of the format."""
    prompt, answer = asked(number)
    source = {"name": "made", "uri": "made.jsonl", "revision": "r", "record": number, "license": "MIT"}
    source |= {"restrictions": [], "origin": "human", "parents": [], "depth": 0}
    said = [{"role": "user", "content": prompt}]
    more = {"kind": "task", "verifier": {"kind": "numeric", "spec": json.dumps({"answer": answer})}} if task else {}
    turns = said if task else [*said, {"role": "assistant", "content": answer}]
    ids = {"row_id": f"made#{number}", "content_id": f"{number * 2654435761 % 2**32:08x}{number:024x}"}
    return {**dict.fromkeys(SCHEMA.names), **ids, "kind": "sft", "messages": turns, "source": source, **more}


def lay(root: Path, rows: int, part: int, *, mixed: bool) -> None:
    """A project that has come as far as `scrub`, and the same tasks as one file."""
    (root / "params.yaml").write_text(PARAMS)
    (root / "baseline.json").write_text("{}\n")
    (root / "dvc.yaml").touch()
    (root / "data/scrub/rows").mkdir(parents=True)
    with (root / "made.jsonl").open("w", encoding="utf-8") as file:
        for start in range(0, rows, part):
            numbers = range(start + 1, min(start + part, rows) + 1)
            some = [row(number, task=not (mixed and number % 4 == 0)) for number in numbers]
            table = pa.Table.from_pylist(some, schema=SCHEMA)
            parquet.write(table, root / "data/scrub/rows" / parquet.part_name(start // part))
            for number in numbers:
                prompt, answer = asked(number)
                verifier = {"kind": "numeric", "answer": answer}
                file.write(json.dumps({"id": f"t{number}", "prompt": prompt, "verifier": verifier}) + "\n")


def run(root: Path, *words: str, env: dict[str, str] | None = None) -> Cost:
    """One command of ours."""
    return measure([sys.executable, "-P", "-m", "corpusforge", *words], root / "log", {**ALONE, **(env or {})})


def grown(chosen: argparse.Namespace) -> None:
    """A line per size."""
    import os

    print("tasks    stage s  stage peak MB   verify s  verify peak MB")
    for rows in chosen.rows:
        with tempfile.TemporaryDirectory() as folder:
            root, place = Path(folder), Path.cwd()
            lay(root, rows, chosen.part, mixed=chosen.mixed)
            os.chdir(root)
            try:
                run(root, "sync")
                stage = run(root, "stage", "health")
                command = run(root, "verify", "made.jsonl")
            finally:
                os.chdir(place)
            print(
                f"{rows:>7,} {stage.seconds:>8.1f} {stage.largest / 1e6:>14.0f} {command.seconds:>10.1f}"
                f" {command.largest / 1e6:>15.0f}",
                flush=True,
            )


def beside(chosen: argparse.Namespace) -> None:
    """The command on files, in turn with another version of the code."""
    files = [str(file.resolve()) for file in chosen.files]
    command = [sys.executable, "-P", "-m", "corpusforge", "verify", *files, "--limit", str(chosen.limit), "--json"]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(chosen.times):
            seconds = {}
            for name, code in (("here", ""), ("there", str(chosen.against or ""))):
                cost = measure(command, Path(folder) / "log", {"PYTHONPATH": code} if code else None, (0, 1))
                seconds[name] = cost.seconds
                spent = f"{cost.seconds:7.1f} s, {cost.busy:7.1f} of processors"
                print(f"{name:<6} {spent}, {cost.largest / 1e6:5.0f} MB", flush=True)
            ratios.append(seconds["there"] / seconds["here"])
    print(f"there / here: {', '.join(f'{one:.2f}' for one in ratios)}; median {statistics.median(ratios):.2f}")


def main() -> None:
    """Measure what was asked for."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, nargs="+", default=[2_000])
    ask.add_argument("--part", type=int, default=10_000, help="rows of a partition")
    ask.add_argument("--mixed", action="store_true", help="every fourth row is no task")
    ask.add_argument("--files", type=Path, nargs="+", help="time the command on these")
    ask.add_argument("--against", type=Path, help="folder of other code (its src)")
    ask.add_argument("--limit", type=int, default=1_000_000, help="tasks of each kind, of --files")
    ask.add_argument("--times", type=int, default=1)
    chosen = ask.parse_args()
    (beside if chosen.files else grown)(chosen)


if __name__ == "__main__":
    main()
