"""The verbs of the graph as functions, for notebooks and scripts.

    import corpusforge as cf

    rows = cf.read("chats/*.jsonl.zst", source={"name": "support", "origin": "human", "license": "CC-BY-4.0"})
    result = cf.dedupe(rows, threshold=0.8)
    result.kept, result.dropped, result.metrics
    result.explain("r1042")

Every stage takes what `read` returns (or another stage's `kept`); keyword arguments are the fields of its config.
Tables are Arrow tables in the row format of `corpusforge.sample`; `result.to_polars()` gives a DataFrame, which the
stages take back as well.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pyarrow as pa

    from corpusforge.check import CheckConfig, Checked
    from corpusforge.dedupe_files import Deduped, Indexing
    from corpusforge.diff import Diff
    from corpusforge.duplicates import Duplicates
    from corpusforge.evaluate.gate_models import ModelVerdict
    from corpusforge.evaluate.profile import Evaluation
    from corpusforge.export import Exported
    from corpusforge.forget import Forgotten
    from corpusforge.inspect import Inspection
    from corpusforge.licensing import Licences
    from corpusforge.overrule import Overruled
    from corpusforge.project import Project
    from corpusforge.result import StageResult
    from corpusforge.scrub_report import ScrubReport
    from corpusforge.sources import SourceTable
    from corpusforge.trace import Trace
    from corpusforge.verify_tasks import VerifiedTasks

__all__ = [
    "blend",
    "check",
    "decontaminate",
    "dedupe",
    "dedupe_files",
    "diff",
    "duplicates",
    "evaluate",
    "export",
    "filter",
    "forget",
    "gate",
    "grade",
    "health",
    "index_files",
    "ingest",
    "inspect",
    "licences",
    "overrule",
    "read",
    "scrub",
    "scrub_report",
    "sources",
    "trace",
    "verify_tasks",
    "write_shards",
]


def read(path: Any, source: Mapping[str, Any] | None = None, **options: Any) -> pa.Table:
    """Rows of files: a path, a glob, or several. Dicts, or an Arrow, Polars or pandas table, are read as well.

    `source` says where they come from: name, origin (human, synthetic, mixed), license, and any other field of a
    source in params.yaml; keyword arguments are such fields too (`shape`, `fields`, …), and `policy={"deny": […]}` says
    which licences rows may have. Records that cannot become rows are left out, and a warning counts them (`ingest`
    lists them, `strict=True` stops at the first). Raises SourceError when nothing is there.
    """
    import warnings

    result = ingest(path, source, **options)
    what = path if _named(path) else type(path).__name__
    if result.dropped.num_rows:
        why = ", ".join(f"{reason} {count:,}" for reason, count in result.reasons().items())
        warnings.warn(f"{what}: records left out: {result.dropped.num_rows:,} ({why})", stacklevel=2)
    plain = result.metrics.get("one_message_rows", 0)
    if plain:
        warnings.warn(f"{what}: plain texts, read as one message each: {plain:,}", stacklevel=2)
    return result.kept


def ingest(path: Any, source: Mapping[str, Any] | None = None, **options: Any) -> StageResult:
    """What `read` reads, as a result: `dropped` lists each record that gave no row, with file, line and reason.

    Takes what `read` takes, warns of nothing, and raises what `read` raises.
    """
    from corpusforge.io.ingest import read_with_ledger
    from corpusforge.io.memory import read_records

    return (read_with_ledger if _named(path) else read_records)(path, source, **options)


def dedupe(rows: pa.Table, *, reference: pa.Table | str | Path | None = None, **options: Any) -> StageResult:
    """Drop exact and near duplicates. `reference` rows are there already: new rows that repeat them go.

    `reference` may be the folder of an index (`index_files`). Raises SourceError where that is broken, ConfigError
    where it is of other options. `semantic={}` reports rows that say the same in other words, by the encoder that it
    names, or by `encoder`, an object with `encode(texts)`.
    """
    from corpusforge.errors import ConfigError
    from corpusforge.io import encoders, index
    from corpusforge.stages.dedupe import dedupe as stage

    for name, hint in (("against", "cf.dedupe(rows, reference=FOLDER)"), ("cache", "it is kept by `dvc repro`")):
        if options.get(name):
            raise ConfigError(f"{name}: an option of builds, not of tables in memory", hint=hint)

    if options.get("semantic") is not None and options.get("encoder") is None:
        options["encoder"] = encoders.of(options["semantic"], Path.cwd())

    known: Any = index.read(Path(reference)) if isinstance(reference, str | Path) else reference
    return stage(
        _rows(rows, "dedupe"), reference=_rows(known, "dedupe") if known is reference is not None else known, **options
    )


def dedupe_files(
    new: str | Path | Sequence[str | Path],
    out: str | Path = "deduped",
    *,
    against: str | Path | Sequence[str | Path] = (),
    text: str = "text",
    own_id: str | None = None,
    **options: Any,
) -> Deduped:
    """Write what is new in files: rows that repeat neither one another nor those of `against` (files, or an index).

    Parquet with a column `text` is taken as it is, whatever its size; `own_id` is the column of ids (`id` where there
    is one). `options` are fields of DedupeConfig. Raises ConfigError, SourceError, SchemaError, StorageError.
    """
    from corpusforge.dedupe_files import dedupe_files as run

    return run(new, out, against=against, columns=(text, own_id), **options)


def index_files(
    rows: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    text: str = "text",
    own_id: str | None = None,
    **options: Any,
) -> Indexing:
    """Write an index of files or of a stage's rows, to hold new ones against (`reference`, `against`).

    Raises ConfigError, SourceError, SchemaError, StorageError.
    """
    from corpusforge.dedupe_files import index_files as run

    return run(rows, folder, columns=(text, own_id), **options)


def filter(rows: pa.Table, **options: Any) -> StageResult:
    """Drop rows that a named quality rule refuses."""
    from corpusforge.stages.filter import filter as stage

    return stage(_rows(rows, "filter"), **options)


def scrub(rows: pa.Table, *, key: str | bytes = "env:CORPUSFORGE_KEY", **options: Any) -> StageResult:
    """Put stand-ins in the place of personal data and secrets.

    `key` is bytes, or where they come from: `env:NAME`, `file:PATH`, or `public-demo` for data that is public anyway.
    Raises MissingKey when it is not there.
    """
    from corpusforge.io.keys import load_key
    from corpusforge.stages.scrub import scrub as stage

    secret = key if isinstance(key, bytes) else load_key(key, Path())
    return stage(_rows(rows, "scrub"), key=secret, **options)


def scrub_report(project: str | Path | Project = ".", *, rows: int = 500) -> ScrubReport:
    """Tell what the last scrub replaced, per entity, source and field, and estimate what it left.

    `rows` of its rows are searched again, at the lowest thresholds. Raises ProjectError where scrub has not run.
    """
    from corpusforge.scrub_report import scrub_report as look

    return look(project, rows=rows)


def health(rows: pa.Table, **options: Any) -> StageResult:
    """Drop tasks whose verifier fails a right answer or passes a wrong one. Programs of code tasks run confined."""
    from corpusforge.stages.health import health as stage

    return stage(_rows(rows, "health"), **options)


def verify_tasks(
    paths: Any,
    *,
    source: Mapping[str, Any] | None = None,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
    **options: Any,
) -> VerifiedTasks:
    """Say how healthy the verifiers of tasks are: those of a file, folder or glob, of several, or of rows in memory.

    `limit` tries the first so many tasks of each kind; `source` says how files are read, as in `check`; keyword
    arguments are the fields of HealthConfig. Raises SourceError where there is no task, ConfigError.
    """
    from corpusforge.verify_tasks import verify_tasks as try_all

    return try_all(paths, source=source, limit=limit, progress=progress, **options)


def grade(rows: pa.Table, **options: Any) -> StageResult:
    """Add difficulty and token counts. `counter` is chars/4, or a tokenizer.json."""
    from corpusforge.io.tokenizer import load_tokenizer
    from corpusforge.stages._stage import configure
    from corpusforge.stages.grade import GradeConfig
    from corpusforge.stages.grade import grade as stage

    config = configure(GradeConfig, None, options)
    return stage(_rows(rows, "grade"), config, tokenizer=load_tokenizer(config.counter, Path()))


def decontaminate(rows: pa.Table, benchmarks: pa.Table | str | Path, **options: Any) -> StageResult:
    """Drop rows that hold benchmark items. `benchmarks` are rows, or a folder with a data file per benchmark."""
    from corpusforge.io.benchmarks import load_folder
    from corpusforge.stages.decontaminate import decontaminate as stage

    named = isinstance(benchmarks, str | Path)
    table = load_folder(Path(benchmarks)) if named else _rows(benchmarks, "decontaminate")
    return stage(_rows(rows, "decontaminate"), benchmarks=table, **options)


def blend(rows: pa.Table, **options: Any) -> StageResult:
    """Keep what quotas allow, and part training from held-out rows."""
    from corpusforge.io import attempts
    from corpusforge.stages._stage import configure
    from corpusforge.stages.blend import BlendConfig
    from corpusforge.stages.blend import blend as stage

    config = configure(BlendConfig, None, options)
    measured = attempts.read(Path(config.rollouts.path)) if config.rollouts else None
    return stage(_rows(rows, "blend"), config, measured=measured)


def write_shards(rows: pa.Table, folder: str | Path, **options: Any) -> dict[str, Any]:
    """Write rows as shards that a trainer reads, with manifest and dataset card; returns the manifest."""
    from corpusforge.io.shards import write_shards as write

    return write(_rows(rows, "write_shards"), Path(folder), **options)


def check(
    path: Any,
    *,
    benchmarks: str | Path | None = None,
    source: Mapping[str, Any] | None = None,
    config: CheckConfig | None = None,
    show: bool = False,
    **options: Any,
) -> Checked:
    """Say what is wrong with a file, or with records or rows in memory. Needs no project; changes nothing."""
    from corpusforge.check import check as look

    return look(path, benchmarks=benchmarks, source=source, config=config, show=show, **options)


def inspect(path: Any, *, sample: int = 3, row: str | None = None) -> Inspection:
    """Describe a Parquet file, a folder of shards, any file that `read` can read, or a table in memory."""
    from corpusforge.inspect import inspect as look
    from corpusforge.io import memory

    if memory.are_paths(path):
        return look(path, sample=sample, row=row)
    with memory.as_file(path) as place:
        return replace(look(place, sample=sample, row=row), path=f"{type(path).__name__} in memory")


def duplicates(
    place: str | Path | Project = ".",
    *,
    top: int = 10,
    cluster: str | None = None,
    texts: str | Path | Sequence[str | Path] = (),
    against: str | Path | Sequence[str | Path] = (),
    columns: tuple[str, str | None] = ("text", None),
) -> Duplicates:
    """The largest groups of rows that dedupe removed; with `cluster`, the rows of one held against the row that stays.

    `place` is a project, its data/dedupe, or what `dedupe_files` wrote; for the latter, texts come from the files it
    was given (`texts`, `against`; `columns` are those of text and id). Raises ProjectError, SourceError.
    """
    from corpusforge.duplicates import Originals
    from corpusforge.duplicates import duplicates as look

    return look(place, top=top, cluster=cluster, originals=Originals.of(texts, against, columns))


def licences(place: str | Path | Project | pa.Table = ".") -> Licences:
    """Tell under which terms a project, a release, a folder of shards or a table of rows stands, and who said so."""
    from corpusforge.licensing import licences as look

    return look(place)


def forget(project: str | Path | Project = ".", **what: Any) -> Forgotten:
    """Let the next build forget rows (`record_id=[…]`, `source=`, `match=`), what was made from them, and their copies.

    Further keywords: `regex`, `why`, `by`, `dry_run`. Raises ProjectError when nothing is found.
    """
    from corpusforge.forget import forget as let_go

    return let_go(_project(project), **what)


def overrule(
    action: str = "",
    rows: str | Sequence[str] = (),
    project: str | Path | Project = ".",
    *,
    why: str = "",
    by: str = "",
) -> Overruled:
    """Let dedupe `keep` or `drop` rows (row ids or own ids) from the next build on; no action: what is on record.

    Raises ProjectError when no row has the id, ConfigError when reason or name is missing.
    """
    from corpusforge.overrule import overrule as rule

    return rule(_project(project), action, [rows] if isinstance(rows, str) else rows, why=why, by=by)


def sources(project: str | Path | Project = ".", *, benchmarks: bool = False) -> SourceTable:
    """What became of every source's records in the last `ingest`: a line per source, which must add up.

    `benchmarks` reads the benchmarks as well, which `ingest` does not. Raises ProjectError when it has not run.
    """
    from corpusforge.sources import sources as look

    return look(_project(project), benchmarks=benchmarks)


def trace(identifier: str, project: str | Path | Project = ".") -> Trace:
    """Tell a row's whole life, by our id or the user's own."""
    from corpusforge.trace import trace as follow

    return follow(identifier, _project(project))


def diff(a: str | Path, b: str | Path) -> Diff:
    """Say what changed between two builds (projects, releases, or folders of shards), row by row."""
    from corpusforge.diff import diff as compare

    return compare(Path(a), Path(b))


def evaluate(model: str | Path | None = None, project: str | Path | Project = ".") -> Evaluation:
    """Judge any model (named as in params: folder, hub name, package:…) on a project's held-out and legacy items.

    Without a model: what the stage `evaluate` found in the last build. Raises ProjectError when the model or held-out
    items are missing, ConfigError when its chat template fits none of them, MissingExtra without torch.
    """
    from corpusforge.io import evaluation

    here = _project(project)
    return evaluation.found(here) if model is None else evaluation.judge(here, str(model))[1]


def gate(model: str | Path | None = None, project: str | Path | Project = ".", *, role: str = "sft") -> ModelVerdict:
    """Say whether models are worse than the accepted ones: those that `evaluate` judged last, or any one `model`.

    `role` (sft, dpo, grpo) names the accepted model that `model` is compared with. Raises ProjectError when `evaluate`
    has not run, or no model of that role was accepted.
    """
    from corpusforge.io import model_gate

    here = _project(project)
    return model_gate.judge(here) if model is None else model_gate.judge_model(here, str(model), role)


def export(
    tool: str,
    folder: str | Path | None = None,
    *,
    project: str | Path | Project = ".",
    stage: str = "all",
    shards: str | Path | None = None,
) -> Exported:
    """Write the configs with which another trainer (trl, axolotl, llamafactory) trains on a project's shards."""
    from corpusforge.export import export as write

    return write(tool, _project(project), folder, stage=stage, shards=shards)


def _named(data: Any) -> bool:
    from corpusforge.io.memory import are_paths

    return are_paths(data)


def _rows(given: Any, verb: str) -> pa.Table:
    from corpusforge.io.memory import as_rows

    return as_rows(given, verb)


def _project(place: str | Path | Project) -> Project:
    from corpusforge.project import Project

    return place if isinstance(place, Project) else Project.find(place)
