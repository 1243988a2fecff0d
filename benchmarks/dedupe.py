"""Near-duplicate removal: `corpusforge dedupe` beside datatrove, rensa and datasketch, on texts with planted copies.

    python benchmarks/dedupe.py                                     ours, and those peers that are installed here
    python benchmarks/dedupe.py --peers /path/to/peers/bin/python --rows 1000000 --peer-rows 100000 --work DIR
    python benchmarks/dedupe.py --peers … --rows 0 --pairs 5 --pair-rows 200000       ours and rensa in turn
    python benchmarks/dedupe.py … --rows 0 --pairs 5 --pair-with datasketch --pair-rows 1000000 --pair-peer-rows 100000

Peers pin other versions of what we use, so they live in an environment of their own:

    python -m venv peers && peers/bin/pip install rensa==0.5.0 datasketch==2.0.0 pyarrow==26.0.1
    peers/bin/pip install "datatrove[io,processing,multilingual]==0.10.1" spacy==3.8.18 xxhash==3.8.2

Each tool is a process of its own that reads Parquet and writes Parquet: the kept rows, and who went. All have the bands
and rows per band that ours has, so a pair at the threshold becomes a candidate with the same probability (0.992 at
0.8), and all compare five words in a row, lower-cased; words are runs of letters and digits, for datatrove those of its
English tokenizer. Ours then compares each candidate exactly. The peers do not: in rensa and datasketch a row goes when
an earlier row is a candidate, in datatrove all but one row of each group linked by candidates. How each is called is in
`benchmarks/_peers/`; datatrove and ours have `--workers` workers, the others as many threads as they take.

The corpus is made of GSM8K and GPTeacher with three in ten rows copied and edited; it stays in `--work` and is made
once per size. `precision` is the share of removed rows that have a kept row at the threshold or above, exactly.
Peers may run on fewer rows (`--peer-rows`): what is compared is rows per second. `corpusforge` runs once on few rows
before the clock starts, which compiles its kernels where no earlier run did. Exit code 1 where
`benchmarks/dedupe_check.py` finds a fault in our result.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from _dedupe_quality import Quality, judge
from _process import Cost, measure
from dedupe_check import check

from corpusforge.text.minhash import parameters

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("CORPUSFORGE_SHARED", HERE.parent.parent / "shared"))
TEXTS = (
    "gsm8k/train.jsonl:question+answer",
    "gpteacher/roleplay-similarity_0.6-instruct-dataset.json:instruction+response",
)
OURS = "corpusforge"
PEERS = ("datatrove", "rensa", "datasketch")
THRESHOLD = 0.8
BANDS, HEIGHT = parameters(THRESHOLD, 128, 0.99)
WARM = 200  # rows of the run that compiles


@dataclass(frozen=True)
class Line:
    """One run: who, on how many rows, at what cost, how right."""

    tool: str
    rows: int
    cost: Cost
    quality: Quality | None = None

    @property
    def speed(self) -> float:
        """Rows per second."""
        return self.rows / self.cost.seconds


def corpus(chosen: argparse.Namespace, rows: int) -> tuple[Path, Path]:
    """The corpus of this size and its truth, made where they are not there yet."""
    made, truth = chosen.work / f"c-{rows}.parquet", chosen.work / f"t-{rows}.parquet"
    if not (made.exists() and truth.exists()):
        texts = [str(chosen.data / text) for text in TEXTS]
        tool = str(chosen.data.parent / "tools" / "plant_duplicates.py")
        command = [sys.executable, tool, "--rows", str(rows), "--copies", "0.3", "--texts", *texts]
        subprocess.run([*command, "--out", str(made), "--truth", str(truth)], check=True, stdout=subprocess.DEVNULL)
    return made, truth


def missing(data: Path) -> list[Path]:
    """What the corpus is made of and is not there."""
    needed = [data / text.partition(":")[0] for text in TEXTS]
    return [file for file in (data.parent / "tools" / "plant_duplicates.py", *needed) if not file.exists()]


def command(tool: str, made: Path, out: Path, chosen: argparse.Namespace) -> list[str]:
    """What to type for a tool."""
    if tool == OURS:
        return [*shlex.split(chosen.ours), "dedupe", str(made), "--out", str(out), "--threshold", str(THRESHOLD)]
    shape = ["--bands", str(BANDS), "--height", str(HEIGHT), "--workers", str(chosen.workers)]
    return [chosen.peers, str(HERE / "_peers" / f"with_{tool}.py"), str(made), str(out), *shape]


def there(tool: str, chosen: argparse.Namespace) -> bool:
    """Whether the tool can be run."""
    if tool == OURS:
        return True
    script = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({tool!r}) is None)"
    return subprocess.run([chosen.peers, "-c", script], check=False).returncode == 0


def run(tool: str, rows: int, chosen: argparse.Namespace) -> tuple[Line, Path]:
    """Run a tool on the corpus of this size: its cost, and the folder of its result."""
    made, _ = corpus(chosen, rows)
    out = chosen.work / f"out-{tool}-{rows}"
    shutil.rmtree(out, ignore_errors=True)
    if tool != OURS:
        out.mkdir()
    env = {"CORPUSFORGE_WORKERS": str(chosen.workers)}
    cost = measure(command(tool, made, out, chosen), chosen.work / f"{tool}-{rows}.log", env)
    return Line(tool, rows, cost), out


def table(lines: list[Line]) -> str:
    """All runs, their speed beside ours."""
    ours = next((line.speed for line in lines if line.tool == OURS), None)
    names = ("seconds", "rows/s", "ours is", "cpu s", "peak MB", "largest MB", "removed", "recall", "precision")
    told = [f"{'':12} {'rows':>10} " + " ".join(f"{name:>10}" for name in names)]
    for line in lines:
        cost, quality = line.cost, line.quality
        ratio = f"{ours / line.speed:.1f} x" if ours and line.tool != OURS else ""
        figures = [f"{cost.seconds:,.1f}", f"{line.speed:,.0f}", ratio, f"{cost.busy:,.1f}"]
        figures += [f"{cost.peak / 1e6:,.0f}", f"{cost.largest / 1e6:,.0f}"]
        if quality:
            figures += [f"{quality.removed:,}", f"{quality.recall:.4f}", f"{quality.precision:.4f}"]
        told.append(f"{line.tool:12} {line.rows:10,} " + " ".join(f"{figure:>10}" for figure in figures))
    return "\n".join(told)


def pairs(chosen: argparse.Namespace, peer: str) -> None:
    """Ours and a peer in turn: each pair, and the median of the ratios of their speeds."""
    ratios = []
    rows = {OURS: chosen.pair_rows, peer: chosen.pair_peer_rows or chosen.pair_rows}
    for number in range(chosen.pairs):
        order = (OURS, peer) if number % 2 == 0 else (peer, OURS)
        lines = {tool: run(tool, rows[tool], chosen)[0] for tool in order}
        ours, theirs = lines[OURS], lines[peer]
        ratios.append(ours.speed / theirs.speed)
        print(
            f"pair {number + 1}: corpusforge {ours.cost.seconds:.1f} s ({ours.cost.busy:.1f} cpu s), "
            f"{peer} {theirs.cost.seconds:.1f} s ({theirs.cost.busy:.1f} cpu s), ratio {ratios[-1]:.2f}",
            flush=True,
        )
    told = f"{rows[OURS]:,} rows" + (f" ({peer}: {rows[peer]:,})" if rows[peer] != rows[OURS] else "")
    print(f"corpusforge is {statistics.median(ratios):.2f} x {peer}: median of {len(ratios)} at {told}")


def compare(chosen: argparse.Namespace, peers: list[str]) -> bool:
    """Ours on all rows, each peer on its own; print the table; whether our result is without a fault."""
    faults: dict[str, tuple[int, list[str]]] = {}
    lines = []
    for tool in (OURS, *peers):
        line, out = run(tool, chosen.rows if tool == OURS else chosen.peer_rows or chosen.rows, chosen)
        if tool == OURS:
            made, truth = corpus(chosen, line.rows)
            told, faults = check(made, out, THRESHOLD, truth, chosen.workers)
            print(
                told, *(f"FAULT: {what}: {count:,}: {shown[:1]}" for what, (count, shown) in faults.items()), sep="\n"
            )
        lines.append(replace(line, quality=judge(*corpus(chosen, line.rows), out, THRESHOLD, chosen.workers)))
    print(table(lines))
    print("No peer compares its candidates. In rensa and datasketch a row goes when an earlier row is a candidate,")
    print("in datatrove all go but one of the rows that candidates link.")
    return not faults


def arguments() -> argparse.Namespace:
    """What was asked for."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--rows", type=int, default=2_000, help="0: pairs only")
    ask.add_argument("--peer-rows", type=int, help="rows for the peers (default: as many)")
    ask.add_argument("--pairs", type=int, default=0, help="how many times ours and a peer run in turn")
    ask.add_argument("--pair-with", action="append", choices=PEERS, help="whom (may be repeated; default: rensa)")
    ask.add_argument("--pair-rows", type=int, default=20_000)
    ask.add_argument("--pair-peer-rows", type=int, help="rows of the peer in a pair (default: as many)")
    ask.add_argument("--peers", default=sys.executable, help="the Python that has the peers")
    ask.add_argument("--only", action="append", choices=PEERS, help="only this peer (may be repeated)")
    ask.add_argument("--ours", default=f"{shlex.quote(sys.executable)} -m corpusforge", help="what runs ours")
    ask.add_argument("--data", type=Path, default=SHARED / "data", help="folder of the public data sets")
    ask.add_argument("--work", type=Path, help="folder that keeps corpora and results (default: a passing one)")
    ask.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    return ask.parse_args()


def main() -> None:
    """Make the corpora, run what is there, print the table."""
    chosen = arguments()
    absent = missing(chosen.data)
    if absent:
        print("skipped: not there:", *absent)
        return
    with tempfile.TemporaryDirectory() as passing:
        chosen.work = (chosen.work or Path(passing)).resolve()
        chosen.work.mkdir(parents=True, exist_ok=True)
        peers = [tool for tool in chosen.only or PEERS if there(tool, chosen)]
        print("peers that are not installed there:", *sorted({*PEERS} - {*peers}) or ["none"])
        print(f"{BANDS} bands of {HEIGHT}, {chosen.workers} workers, load {os.getloadavg()[0]:.1f}", flush=True)
        run(OURS, WARM, chosen)
        right = compare(chosen, peers) if chosen.rows else True
        for peer in chosen.pair_with or ["rensa"] if chosen.pairs else []:
            if there(peer, chosen):
                pairs(chosen, peer)
    sys.exit(not right)


if __name__ == "__main__":
    main()
