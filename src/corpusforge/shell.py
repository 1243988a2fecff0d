"""The shell around every stage: everything that is not the method.

It takes the stage's lock, checks that methods.lock.json and dvc.yaml tell the truth, runs the method over partitions
through an engine (partition.py checks the rows at the border and the counting), writes rows and ledger to a folder
beside the target, syncs, renames, and writes the metrics.

    dvc repro -> corpusforge stage dedupe -> run_stage(project, "dedupe")
"""

from __future__ import annotations

import shutil
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import graph, methods
from corpusforge.engine.local import LocalEngine, workers_for
from corpusforge.errors import CountError, storage_told
from corpusforge.io import atomic, inputs, lock, parquet
from corpusforge.io.scratch import read_mapped
from corpusforge.partition import Job, apply, summarise
from corpusforge.result import LEDGER, add_up
from corpusforge.stages._stage import Decided

HEADLINE: Final = (
    *("records", "with_rows", "quarantined", "in", "kept", "dropped", "changed", "rows", "tokens", "lines", "warnings"),
    *("passed", "failed", "build", "loss", "steps", "tasks", "chosen", "models", "curation"),
)

_RUNNERS: Final = {
    "ingest": ("partitions", "run"),
    "shard": ("shards", "run"),
    "report": ("report", "run"),
    "gate_data": ("gate", "run"),
    "train_sft": ("training", "run_sft"),
    "train_raw": ("training", "run_raw"),
    "train_dpo": ("training", "run_dpo"),
    "rollout": ("rollouts", "run"),
    "train_grpo": ("training", "run_grpo"),
    "evaluate": ("evaluation", "run"),
    "gate_models": ("model_gate", "run"),
}

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from corpusforge.io.cache import RowCache
    from corpusforge.project import Project


def run_stage(project: Project, name: str) -> dict[str, Any]:
    """Run one stage of a project and return its metrics. Raises what the stage, the checks or the disk raise."""
    with storage_told(name), lock.hold(project.root, name):
        methods.check(project, name)
        project.metrics_path(name).unlink(missing_ok=True)
        with atomic.folder(project.data(name)) as out:
            metrics = _run_tables(project, name, out) if graph.node(name).tables else _runner(name)(project, out)
            speed = metrics.pop("speed", {})  # differs from run to run: shown, but no part of the output
            atomic.write_json(out / project.figures_path(name).name, metrics)
        atomic.write_json(project.metrics_path(name), headline(metrics) | speed)
    return metrics | ({"speed": speed} if speed else {})


def headline(metrics: dict[str, Any]) -> dict[str, Any]:
    """The figures that people follow from build to build: `dvc metrics show` has a column for each."""
    return {key: metrics[key] for key in HEADLINE if key in metrics}


def _runner(name: str) -> Callable[[Project, Path], dict[str, Any]]:
    """The runner of a stage that does not map rows to rows: a function of a module in io/."""
    import importlib

    place, function = _RUNNERS[name]
    run: Callable[[Project, Path], dict[str, Any]] = getattr(
        importlib.import_module(f"corpusforge.io.{place}"), function
    )
    return run


def _run_tables(project: Project, name: str, out: Path) -> dict[str, Any]:
    """A stage with rows in and rows out, over the partitions of the stage before."""
    stage = graph.stage(name)
    config = getattr(project.params, name)
    loaded = inputs.load(stage.needs, project.params, project.root)
    sources = project.parts(graph.node(name).after[0])
    (out / "rows").mkdir()
    (out / "scratch").mkdir()
    jobs = [Job(name, config, loaded, source, out, number) for number, source in enumerate(sources)]
    whole: dict[str, Any] = {}
    with _remembering(name, loaded.get("cache")) as remember:
        with LocalEngine(workers_for(sum(source.stat().st_size for source in sources))) as engine:
            if isinstance(stage, Decided):
                engine.map(summarise, jobs, _progress(name, "summarise", len(jobs)))
                whole = _decide(stage, jobs, engine.workers)
            partial = add_up(engine.map(apply, jobs, _progress(name, "rows", len(jobs))))
        remember([job.scratch("summary") for job in jobs])
    for ledger in ("dropped", "changes"):
        _join_ledgers([job.scratch(ledger) for job in jobs], out / f"{ledger}.parquet")
    shutil.rmtree(out / "scratch")
    return {**_counts_first(partial), **whole}


@contextmanager
def _remembering(stage: str, cache: RowCache | None) -> Iterator[Callable[[list[Path]], None]]:
    """What to call when all is done, so that the next build knows the rows of this one; says what there is to say."""
    if cache is None:
        yield lambda _summaries: None
        return
    try:
        yield cache.finish
    finally:
        cache.close()
        sys.stderr.writelines(f"{stage}: {note}\n" for note in dict.fromkeys(cache.notes))


def _counts_first(metrics: dict[str, Any]) -> dict[str, Any]:
    first = ("in", "kept", "dropped", "changed", "reasons", "by_source")
    return {key: metrics[key] for key in first} | {k: v for k, v in metrics.items() if k not in first}


def _decide(stage: Decided, jobs: list[Job], workers: int) -> dict[str, Any]:
    """Bring the summaries together, decide, and lay each partition's verdicts beside it."""
    summaries = [read_mapped(job.scratch("summary")) for job in jobs]
    ends = np.cumsum([0, *(s.num_rows for s in summaries)])
    fetch = parquet.Gather([job.source for job in jobs], workers, jobs[0].out / "scratch")
    decision = stage.decide(pa.concat_tables(summaries), jobs[0].config, jobs[0].inputs, fetch)
    if decision.verdicts.num_rows != ends[-1]:
        raise CountError(f"{stage.name}: {decision.verdicts.num_rows} verdicts for {ends[-1]} rows")
    for job, start, end in zip(jobs, ends[:-1], ends[1:], strict=True):
        pq.write_table(decision.verdicts.slice(start, end - start), job.scratch("verdicts"), compression="lz4")
    return dict(decision.metrics)


def _join_ledgers(parts: list[Path], target: Path) -> None:
    """One ledger file from the partitions' ledgers, in their order, a part at a time."""
    with pq.ParquetWriter(target, LEDGER, compression="zstd") as writer:
        for part in parts:
            writer.write_table(pq.read_table(part, schema=LEDGER))


def _progress(stage: str, what: str, total: int) -> Callable[[int], None] | None:
    """Tell how far a stage is, on a terminal only."""
    if not sys.stderr.isatty() or total < 2:
        return None

    def say(done: int) -> None:
        sys.stderr.write(f"\r{stage}: {what} {done}/{total} partitions" + ("\n" if done == total else ""))
        sys.stderr.flush()

    return say
