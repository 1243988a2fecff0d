"""What the stages of training gain on the demo's corpus, and whether curation pays: base, SFT, DPO, GRPO, raw rows.

    python benchmarks/learning.py                         three seeds; builds the demo's corpus first
    python benchmarks/learning.py --seeds 8 --jobs 4      more of both
    python benchmarks/learning.py --project my-corpus     a project whose data stages have run

For each seed (weights, order, sampling) the training stages of the project's own graph run in a copy of it, up to
`evaluate`, one thread each. Printed per seed: pass rates on held-out tasks greedily and at the temperature of
`evaluate`, on legacy tasks, preference accuracy, held-out loss; and what is claimed, each with a paired test:

    sft > base    pass rate      dpo > sft    preference accuracy      grpo > sft    pass rate      curated > raw

`all` averages each item over the seeds before testing: its p-value and interval speak of these trainings and of more
items like these. Exit code 1 unless the first three hold for all seeds together, at p < 0.05; the last is told
whichever way it falls.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

MEASURES = ("greedy", "pass_rate", "legacy", "preference_accuracy", "heldout_loss")
CLAIMS = (
    ("sft", "base", "pass_rate", True),
    ("dpo", "sft", "preference_accuracy", True),
    ("grpo", "sft", "pass_rate", True),
    ("sft", "raw", "pass_rate", False),
)
"""The better model, the other one, the measure, and whether the exit code depends on it."""
LEVEL = 0.05


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; 1 unless every claim that must hold does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, help="a project whose data stages have run; without it, the demo")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="seeds trained side by side")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        root = given.project.resolve() if given.project else built(Path(folder) / "demo")
        with ThreadPoolExecutor(given.jobs) as pool:
            judged = list(pool.map(lambda seed: trained(root, seed, Path(folder) / f"seed-{seed}"), range(given.seeds)))
    found = compared(judged) | {"seconds": round(time.monotonic() - began)}
    sys.stdout.write(json.dumps(found, indent=2) + "\n" if given.json else text(found))
    return 0 if all(claim["holds"] for claim in found["all"]["claims"] if claim["required"]) else 1


def built(root: Path) -> Path:
    """The demo's corpus, up to the data gate."""
    from corpusforge import graph
    from corpusforge.init import init
    from corpusforge.project import Project
    from corpusforge.shell import run_stage

    init(root, recipe="demo")
    for name in graph.DATA:
        run_stage(Project(root), name)
    return root


def trained(root: Path, seed: int, copy: Path) -> dict[str, Any]:
    """Results by model (corpusforge.evaluate.results.Results) of the training stages, run in a copy with this seed."""
    from corpusforge.io import evaluation
    from corpusforge.project import Project

    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git", ".dvc", ".corpusforge"))
    seeded(copy / "params.yaml", seed)
    for name in (name for name in Project(copy).params.training if name != "gate_models"):
        began = time.monotonic()
        stage(copy, name)
        sys.stderr.write(f"seed {seed}: {name}, {time.monotonic() - began:.0f} s\n")
    return dict(evaluation.evaluated(Project(copy)).results)


def seeded(params: Path, seed: int) -> None:
    """Set `model.seed`."""
    from ruamel.yaml import YAML

    yaml = YAML()
    document = yaml.load(params.read_text(encoding="utf-8"))
    document["model"]["seed"] = seed
    with params.open("w", encoding="utf-8") as file:
        yaml.dump(document, file)


def stage(root: Path, name: str) -> None:
    """Run a stage as DVC does, in a process of its own. Ends the benchmark with what it said when it fails."""
    own = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "corpusforge", "stage", name]
    done = subprocess.run(command, cwd=root, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} ended with {done.returncode}:\n{done.stderr[-2_000:]}")


def compared(judged: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures and claims per seed, and of all seeds together."""
    values = [
        {name: {measure: one.values(measure) for measure in MEASURES} for name, one in seed.items()} for seed in judged
    ]
    return {"seeds": [told(one) for one in values], "all": told(averaged(values))}


def averaged(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Each item's mean over the seeds, by model and measure; items that not every seed has a value for are left out."""
    mean: dict[str, Any] = {}
    for name in set.intersection(*(set(one) for one in values)):
        mean[name] = {}
        for measure in MEASURES:
            seeds = [one[name][measure] for one in values]
            shared = set.intersection(*(set(one) for one in seeds))
            mean[name][measure] = {item: statistics.fmean(one[item] for one in seeds) for item in sorted(shared)}
    return mean


def told(values: dict[str, Any]) -> dict[str, Any]:
    """Means per model and measure, and the claims."""
    models = {
        name: {measure: statistics.fmean(one[measure].values()) if one[measure] else None for measure in MEASURES}
        for name, one in values.items()
    }
    there = [parts for parts in CLAIMS if {parts[0], parts[1]} <= values.keys() and values[parts[0]][parts[2]]]
    return {"models": models, "claims": [claim(values, *parts) for parts in there]}


def claim(values: dict[str, Any], better: str, other: str, measure: str, required: bool) -> dict[str, Any]:
    """Whether one model is better than another at a measure, by the paired test over the items both have."""
    from corpusforge.evaluate.comparison import matched, paired_test

    test = paired_test(*matched(values[better][measure], values[other][measure]))
    return {
        "claim": f"{better} > {other}",
        "measure": measure,
        "difference": test.difference,
        "low": test.low,
        "high": test.high,
        "p_value": test.p_value,
        "items": test.n,
        "holds": bool(test.difference > 0 and test.p_value < LEVEL),
        "required": required,
    }


def number(value: float | None) -> str:
    """A figure with three decimals; "-" for one that was not measured."""
    return "-" if value is None else f"{value:.3f}"


def text(found: dict[str, Any]) -> str:
    """What was found, for people."""
    from corpusforge.evaluate.results import ROLES
    from corpusforge.present import Block, Shown, plain

    seeds = [*((str(seed), one) for seed, one in enumerate(found["seeds"])), ("all", found["all"])]
    rows = [
        (seed, name, *(number(one["models"][name][measure]) for measure in MEASURES))
        for seed, one in seeds
        for name in (*ROLES, "raw")
        if name in one["models"]
    ]
    tests = [
        (
            *(seed, one["claim"], one["measure"].replace("_", " "), f"{one['difference']:+.3f}"),
            *(f"{one['low']:+.3f} to {one['high']:+.3f}", f"{one['p_value']:.2g}", f"{one['items']:,}"),
            "yes" if one["holds"] else "NO",
        )
        for seed, told_of in seeds
        for one in told_of["claims"]
    ]
    names = ("pass rate T=0", "pass rate T>0", "legacy", "preference accuracy", "held-out loss")
    blocks = [
        Block("Models", ("seed", "model", *names), rows),
        Block("Claims", ("seed", "claim", "measure", "difference", "95 % interval", "p", "items", "holds"), tests),
    ]
    return plain(Shown(f"{len(found['seeds'])} seeds, {found['seconds']:,} s", blocks), 118) + "\n"


if __name__ == "__main__":
    sys.exit(main())
