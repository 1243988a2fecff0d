"""How often gate_models refuses retrainings on the same data, and how often it finds swapped answers.

    python benchmarks/gate_models.py --project my-corpus        a project whose data stages have run
    python benchmarks/gate_models.py                            builds the demo's corpus first (some minutes)
    python benchmarks/gate_models.py --runs 3 --noise 3         a quick look

The project's SFT model is trained again and again from the same rows with other seeds (weights, order):

    noise     `--noise` trainings measure how much retraining alone moves each measure (seed_sd)
    accepted  one training is the accepted model
    same      `--runs` trainings on the same rows: the gate should refuse few
    swapped   `--runs` trainings with `--swap` of the answers exchanged between prompts: it should refuse many

Each is judged on the held-out and legacy items and compared with the accepted one by `gate_models` with the project's
own limits. Printed beside the rate of refusals: the rate of false alarms that the gate states, and the power that each
check states at what swapping really made of its measure. One accepted model is luck, so each of the models on the same
rows is then taken for the accepted one in turn. Trainings run side by side, one thread each. The last lines are the
noise as params.yaml takes it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock

from corpusforge.evaluate.gate_models import LOSS, compared_by_item, gate_models
from corpusforge.evaluate.seed_noise import seed_noise
from corpusforge.io.model_gate import config_of
from corpusforge.project import Project
from corpusforge.train.model import quiet

SEEDS = {"noise": 1_000, "accepted": 2_000, "same": 3_000, "swapped": 3_000}  # where the seeds of each part begin
ROLE = "sft"


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 when more than one of the same retrainings was refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--project", type=Path, help="a project whose data stages have run")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--noise", type=int, default=10)
    parser.add_argument("--swapped", type=int, help="trainings with swapped answers, where not as many as --runs")
    parser.add_argument("--keep", type=Path, help="folder for what each training scored: a stopped run goes on from it")
    parser.add_argument("--swap", type=float, default=0.05)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        root = given.project.resolve() if given.project else built(Path(folder) / "demo")
        began = time.monotonic()
        found = measured(root, given, Path(folder))
        found["seconds"] = round(time.monotonic() - began)
    sys.stdout.write(json.dumps(found, indent=2) + "\n" if given.json else text(found))
    return 0 if found["same"]["refused"] <= 1 else 1


def built(root: Path) -> Path:
    """The demo's corpus, up to the data gate."""
    from corpusforge import graph
    from corpusforge.init import init
    from corpusforge.shell import run_stage

    init(root, recipe="demo")
    for name in graph.DATA:
        run_stage(Project(root), name)
    return root


def measured(root: Path, given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Train, judge, compare."""
    swapped_runs = given.runs if given.swapped is None else given.swapped
    counts = {"noise": given.noise, "accepted": 1, "same": given.runs, "swapped": swapped_runs}
    folder = given.keep.resolve() if given.keep else folder
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [
        (str(root), SEEDS[part] + number, given.swap if part == "swapped" else 0.0, str(folder / f"{part}-{number}"))
        for part, count in counts.items()
        for number in range(count)
    ]
    names = [part for part, count in counts.items() for _ in range(count)]
    os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    judged: dict[str, list[Any]] = {part: [] for part in counts}
    with multiprocessing.get_context("spawn").Pool(given.jobs, maxtasksperchild=8) as pool:
        for done, (part, one) in enumerate(zip(names, pool.imap(trained, jobs), strict=True), 1):
            judged[part].append(one)
            rate = np.nanmean(list(one.results[ROLE].values("pass_rate").values()))
            sys.stderr.write(f"{done} of {len(jobs)}: {part}, pass rate {rate:.3f}\n")
    return compared(root, judged, given.swap)


def trained(job: tuple[str, int, float, str]) -> Any:
    """Train on the project's conversations with a seed, and judge the model (in a worker process)."""
    import torch

    from corpusforge.evaluate.evaluate import evaluate
    from corpusforge.evaluate.results import Judged, read
    from corpusforge.io import evaluation, shard_rows
    from corpusforge.io.training import NAMES, first_start
    from corpusforge.train import fit, preflight
    from corpusforge.train.train_sft import train_sft

    torch.set_num_threads(1)
    root, seed, swap, folder = job
    kept_at = Path(folder) / "judged.json"
    if kept_at.exists():
        return Judged.unpack(json.loads(kept_at.read_text(encoding="utf-8")))
    project = Project(Path(root))
    model, config = project.params.model.model_copy(update={"seed": seed}), project.params.train_sft
    assert config is not None, "the project trains no SFT model"
    rows = shard_rows.lines(project.data("shard"), "sft", "train", model.where, Path(folder) / "cache")
    with FileLock(Path(folder).parent / "tokenizer.lock"):  # all workers read its texts through one cache
        start = first_start(project, rows, model)[0]
    seen = preflight.sft(rows, start.tokenizer, "train_sft", config, start.max_length)
    kept = rows.select(seen.keep).select_columns([c for c in rows.column_names if c not in NAMES])
    if swap:
        kept = swapped(kept, swap, seed)
    quick = config.model_copy(update={"trl": {**config.trl, "save_steps": 1_000_000}})
    made = train_sft(kept, start, quick, fit.Workplace("train_sft", Path(folder) / "checkpoints"))
    held, _ = evaluation.items(project)
    scores = evaluate(
        made.model, made.tokenizer, held, evaluation.config_of(project), max_length=model.max_length, name=ROLE
    )
    found = Judged(f"seed {seed}", read(scores.tasks, scores.rows), evaluation.conditions(project), {})
    kept_at.write_text(json.dumps(found.pack({})), encoding="utf-8")
    return found


def swapped(rows: Any, share: float, seed: int) -> Any:
    """The rows, with the answers of `share` of them handed on in a circle."""
    chosen = np.random.default_rng(seed).choice(len(rows), max(2, round(share * len(rows))), replace=False)
    after = dict(zip(chosen.tolist(), np.roll(chosen, 1).tolist(), strict=True))
    answers = {place: rows[other]["messages"][-1] for place, other in after.items()}

    def change(row: dict[str, Any], place: int) -> dict[str, Any]:
        return {"messages": [*row["messages"][:-1], answers[place]]} if place in answers else {}

    with quiet():
        return rows.map(change, with_indices=True, load_from_cache_file=False)


def compared(root: Path, judged: dict[str, list[Any]], swap: float) -> dict[str, Any]:
    """Refusals, beside what the gate says of itself."""
    (accepted,) = judged["accepted"]
    scored = {part: [one.results[ROLE] for one in models] for part, models in judged.items()}
    noise = seed_noise(scored["noise"])
    limits = {"seed_sd": {name: round(one.sd, 4) for name, one in noise.items()}, "seed_runs": len(scored["noise"])}
    config = config_of(Project(root)).model_copy(update=limits)
    usual = [*scored["noise"], *scored["same"]]
    found: dict[str, Any] = {
        "alpha": config.alpha,
        **limits,
        "at_most": {name: round(one.upper, 4) for name, one in noise.items()},
        "limits": {"max_drop": config.max_drop, "max_loss_rise": config.max_loss_rise},
        "swap": swap,
        "accepted": {name: round(score(accepted.results[ROLE], name), 4) for name in noise},
        "mean": {name: round(mean(usual, name), 4) for name in noise},
        "sd": {name: round(statistics.stdev(score(one, name) for one in usual), 4) for name in noise},
    }
    for part in ("same", "swapped"):
        verdicts = [gate_models(replace(one, build="again"), accepted, config) for one in judged[part]]
        why: dict[str, int] = {}
        for check in (check for verdict in verdicts for check in verdict.failed):
            why[check.name] = why.get(check.name, 0) + 1
        worse = {name: worsening(scored[part], usual, name) for name in noise}
        found[part] = {
            "runs": len(verdicts),
            "refused": sum(not verdict.passed for verdict in verdicts),
            "checks_failed": why,
            "worse_by": {name: round(one, 4) for name, one in worse.items()},
            "stated_power": {
                name: round(power(scored[part], accepted.results[ROLE], config, name, one), 3)
                for name, one in worse.items()
            },
        }
    alike = [accepted, *judged["same"]]
    pairs = [(replace(new, build="again"), old) for new in alike for old in alike if new is not old]
    stopped = sum(not gate_models(new, old, config).passed for new, old in pairs)
    return {**found, "pairs": {"compared": len(pairs), "refused": stopped}}


def score(one: Any, measure: str) -> float:
    """The mean over items of one training."""
    return float(np.mean(list(one.values(measure, per_byte=True).values())))


def mean(scored: list[Any], measure: str) -> float:
    """The mean over trainings; NaN without any."""
    return statistics.fmean(score(one, measure) for one in scored) if scored else float("nan")


def worsening(scored: list[Any], usual: list[Any], measure: str) -> float:
    """How much worse these trainings are than the usual ones, in the unit of the gate's limit (nats for losses)."""
    fell = mean(usual, measure) - mean(scored, measure)
    return -fell if measure == LOSS else fell


def power(scored: list[Any], accepted: Any, config: Any, measure: str, worse_by: float) -> float:
    """The probability, by the gate's own account, that its check of one measure finds a true worsening of that size."""
    level = config.alpha / len(config.measures)
    tests = [compared_by_item(one, accepted, measure, config, level)[0] for one in scored]
    return statistics.fmean(test.sensitivity.power(worse_by) for test in tests) if tests else float("nan")


def text(found: dict[str, Any]) -> str:
    """What was found, for people."""
    lines = [
        f"noise of seeds, from {found['seed_runs']} trainings; accepted: a drop of {found['limits']['max_drop']}, a "
        f"rise of the loss by {found['limits']['max_loss_rise']:.0%}",
        "measure              seed_sd  at most  accepted model  all same-data trainings  their sd",
        *(
            f"{name:<20} {sd:>7.4f}  {found['at_most'][name]:>7.4f}  {found['accepted'][name]:>14.4f}  "
            f"{found['mean'][name]:>23.4f}  {found['sd'][name]:>8.4f}"
            for name, sd in found["seed_sd"].items()
        ),
    ]
    for part, says in (("same", "same rows"), ("swapped", f"{found['swap']:.0%} of the answers swapped")):
        one = found[part]
        lines += [f"{says}: refused {one['refused']} of {one['runs']}; failed checks {one['checks_failed'] or 'none'}"]
        lines += [
            f"    {name:<20} worse by {worse:+.4f}; stated power there {one['stated_power'][name]:.0%}"
            for name, worse in one["worse_by"].items()
            if part == "swapped" and one["runs"]
        ]
    pairs = found["pairs"]
    lines += [
        f"stated: at most {found['alpha']:.0%} false alarms; each of the models on the same rows accepted in turn: "
        f"refused {pairs['refused']} of {pairs['compared']}",
        f"{found['seconds']:,} s",
    ]
    lines += ["", "for params.yaml, under gate_models:"]
    lines += ["  seed_sd:", *(f"    {name}: {sd}" for name, sd in found["seed_sd"].items())]
    lines += [f"  seed_runs: {found['seed_runs']}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
