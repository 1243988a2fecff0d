"""What `import corpusforge` costs, beside `import polars, pyarrow`.

    python benchmarks/import_time.py [--rounds 5]

Each statement runs in fresh processes; the fastest run counts, less an empty process. The package loads its parts when
they are first used, so a stage's part is measured, too. The aim for both is a ratio of at most 2.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

STATEMENTS = {
    "nothing": "",
    "polars, pyarrow": "import polars, pyarrow",
    "corpusforge": "import corpusforge",
    "with a stage": "import corpusforge.api, corpusforge.stages.dedupe",
}
AIM = 2.0


def seconds(statement: str) -> float:
    """Wall time of one fresh process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement or "pass"], check=True)
    return time.perf_counter() - start


def measure(rounds: int) -> dict[str, float]:
    """Fastest time of each statement over `rounds` rounds, in seconds, less an empty process."""
    best = {name: min(seconds(text) for _ in range(rounds)) for name, text in STATEMENTS.items()}
    return {name: max(0.0, value - best["nothing"]) for name, value in best.items() if name != "nothing"}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    times = measure(parser.parse_args().rounds)
    for name, value in times.items():
        print(f"{name:16} {value * 1000:7.1f} ms")
    ratio = max(times["corpusforge"], times["with a stage"]) / times["polars, pyarrow"]
    print(f"ratio {ratio:.2f} (aim: at most {AIM})")
    sys.exit(ratio > AIM)
