"""The evaluation on disk: held-out and legacy items, every model of the graph, and what each of them scored.

data/evaluate/tasks.parquet     model, set, row_id, content_id, passes, attempts, undecided, greedy
data/evaluate/rows.parquet      model, measure (loss, margin), row_id, content_id, value, tokens, bytes

Items are drawn by their content, so that every build takes the same ones. A task whose question stands word for word in
the training shards is no test of anything: it is left out, and counted. No text is written.
"""

from __future__ import annotations

import json
import shutil
import time
import unicodedata
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge.errors import ProjectError, SourceError
from corpusforge.evaluate.evaluate import EvaluateConfig, Held, evaluate
from corpusforge.evaluate.profile import Evaluation, figures
from corpusforge.evaluate.results import ROWS, TASKS, Judged, read
from corpusforge.io import lock, manifest, shard_rows
from corpusforge.io.benchmarks import load_benchmarks
from corpusforge.io.stored import read_table, reading
from corpusforge.stages.shard import trainer_form
from corpusforge.text.draws import draw
from corpusforge.train import model as models

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from corpusforge.evaluate.evaluate import Item, Scores
    from corpusforge.project import Project

CACHE: Final = ".corpusforge/cache/evaluate"
_PATIENCE: Final = 600.0  # seconds to wait for another run that reads the held-out items
STAGES: Final = {"sft": "train_sft", "raw": "train_raw", "dpo": "train_dpo", "grpo": "train_grpo"}
"""The stage that leaves each model."""
_BATCH: Final = 5_000  # training rows looked at together
_PROMPTS: Final = {"sft": "messages", "preference": "prompt", "task": "prompt"}


@models.steady
def run(project: Project, out: Path) -> dict[str, Any]:
    """Judge the base and every trained model; returns the stage's figures.

    Raises ProjectError when nothing is held out or a model is missing, and what `evaluate` raises.
    """
    models.needs_training()
    began = time.monotonic()
    held, left_out = items(project)
    scores, fingerprints = [], {}
    for role, name in _models(project).items():
        found, fingerprints[role] = _scored(project, name, held, role)
        scores.append(found)
    tasks, rows = (pa.concat_tables([getattr(one, table) for one in scores]) for table in ("tasks", "rows"))
    pq.write_table(tasks, out / "tasks.parquet", compression="zstd")
    pq.write_table(rows, out / "rows.parquet", compression="zstd")
    judged = Judged(build_of(project), read(tasks, rows), conditions(project), fingerprints)
    return _figures(project, judged, held, left_out) | {"speed": {"seconds": round(time.monotonic() - began, 1)}}


@models.steady
def judge(project: Project, name: str, role: str = "model") -> tuple[Judged, Evaluation]:
    """Judge any one model, named as in `model.name`, on the project's items; it goes under `role`.

    Raises what `run` raises.
    """
    models.needs_training()
    held, left_out = items(project)
    scores, fingerprint = _scored(project, name, held, role)
    judged = Judged(build_of(project), read(scores.tasks, scores.rows), conditions(project), {role: fingerprint})
    return judged, Evaluation({"name": name, **_figures(project, judged, held, left_out)})


def found(project: Project) -> Evaluation:
    """The figures of the stage, to be shown. Raises ProjectError when it has not run."""
    return Evaluation(project.metrics("evaluate"))


def evaluated(project: Project) -> Judged:
    """What the stage found, as it lies in data/evaluate. Raises ProjectError when it has not run."""
    return judged_in(project.data("evaluate"), project.metrics("evaluate"))


def judged_in(folder: Path, found: Mapping[str, Any]) -> Judged:
    """The scores in a folder that has both tables, and the figures that belong to them."""
    tasks = read_table(folder / "tasks.parquet", schema=TASKS)
    rows = read_table(folder / "rows.parquet", schema=ROWS)
    with reading(folder / "figures.json"):
        return Judged(found["build"], read(tasks, rows), found["conditions"], found["fingerprints"])


def config_of(project: Project) -> EvaluateConfig:
    """The evaluate block of params.yaml, or its defaults."""
    return project.params.evaluate or EvaluateConfig()


def build_of(project: Project) -> str:
    """Build id of the shards."""
    return str(manifest.read_manifest(project.data("shard"))["build"])


def conditions(project: Project) -> dict[str, Any]:
    """What scores depend on besides the model and the items."""
    config = config_of(project)
    return {
        "temperature": config.temperature,
        "max_new_tokens": config.max_new_tokens,
        "max_length": project.params.model.max_length,
    }


def items(project: Project) -> tuple[Held, dict[str, int]]:
    """What models are judged on, and how many tasks were left out because training has seen them.

    Raises ProjectError when there is nothing, SourceError for a legacy source without tasks.
    """
    config, shards, where = config_of(project), project.data("shard"), project.params.model.where
    with _copies(project) as cache:
        tasks = _drawn(shard_rows.lines(shards, "task", "heldout", where, cache), None)
        rows = _drawn(shard_rows.lines(shards, "sft", "heldout", where, cache), config.rows)
        pairs = _drawn(shard_rows.lines(shards, "preference", "heldout", where, cache), config.rows)
    legacy = _legacy(project, config)
    seen = _seen(shards, {prompt_key(item["prompt"]) for item in (*tasks, *legacy)})
    fresh, known = ([item for item in listed if prompt_key(item["prompt"]) not in seen] for listed in (tasks, legacy))
    held = Held(fresh[: config.tasks], known, rows, pairs)
    left_out = {
        "tasks_seen_in_training": len(tasks) - len(fresh),
        "legacy_tasks_seen_in_training": len(legacy) - len(known),
    }
    if held.empty:
        which = f" with {json.dumps(where)}" if where else ""
        raise ProjectError(
            f"evaluate: nothing is held out{which}, and there is no legacy task",
            hint="raise blend.heldout, widen model.where, or name sources of tasks in evaluate.legacy",
        )
    return held, left_out


@contextmanager
def _copies(project: Project) -> Iterator[Path]:
    """A folder for memory-mapped copies of shards: one at a time, so that what a killed run left can be removed."""
    cache = project.root / CACHE
    with lock.hold(project.root, "evaluate-items", wait=_PATIENCE):
        shutil.rmtree(cache, ignore_errors=True)
        cache.mkdir(parents=True)
        try:
            yield cache
        finally:
            shutil.rmtree(cache, ignore_errors=True)


def prompt_key(messages: Sequence[Mapping[str, Any]]) -> str:
    """All that the user says in a prompt, without regard to case and blanks; "" where nobody asks."""
    return "\n".join(_asked(messages))


def _asked(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    said = (_text(message.get("content")) for message in messages if message.get("role") == "user")
    return [" ".join(unicodedata.normalize("NFC", text).casefold().split()) for text in said]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _seen(shards: Path, wanted: set[str]) -> set[str]:
    """Those of the `wanted` prompts that a training row holds: as one of its questions, or as all up to one."""
    found = set()
    for kind, column in _PROMPTS.items():
        for path in shard_rows.files(shards, kind, "train"):
            for messages in _conversations(path, column):
                asked = _asked(messages)
                found |= wanted.intersection(asked)
                found |= {key for end in range(2, len(asked) + 1) if (key := "\n".join(asked[:end])) in wanted}
    return found - {""}


def _conversations(path: Path, column: str) -> Iterator[list[dict[str, Any]]]:
    with reading(path), pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_BATCH, columns=[column]):
            for texts in batch.column(0).to_pylist():
                yield [json.loads(text) for text in texts]


def _drawn(rows: Any, limit: int | None) -> list[dict[str, Any]]:
    """At most `limit` lines, drawn by content, each content once; always in the order of the draw."""
    if rows is None:
        return []
    named = list(zip(rows["content_id"], rows["row_id"], strict=True))
    lots = draw(pa.array([content for content, _ in named], pa.string()), "evaluate")
    first: dict[str, int] = {}
    for place in sorted(range(len(named)), key=lambda place: (int(lots[place]), named[place])):
        first.setdefault(named[place][0], place)
    chosen = rows.select(np.fromiter(list(first.values())[:limit], np.int64))
    return [dict(row) for row in chosen]


def _legacy(project: Project, config: EvaluateConfig) -> list[Item]:
    """The tasks of the legacy sources, as lines of task shards, in the order of their content ids."""
    rows = load_benchmarks(config.legacy, project.root)
    tasks = trainer_form(rows.filter(pc.equal(rows["kind"], "task")), "task")
    there = set(tasks["source"].to_pylist())
    for source in config.legacy:
        if source.name not in there:
            raise SourceError(
                f"evaluate.legacy: {source.name!r} has no task",
                hint="its records need a question and an answer, or a verifier: docs/shapes.md lists the shapes",
            )
    names = [*shard_rows.NAMED, "content_id", *shard_rows.FORM["task"]]
    lines = {line["content_id"]: line for line in tasks.select(names).to_pylist()}
    return [{**line, "prompt": [json.loads(text) for text in line["prompt"]]} for _, line in sorted(lines.items())]


def _models(project: Project) -> dict[str, str]:
    """The models of the graph by role, named as `models.load` takes them."""
    base = project.data("train_sft") / "base"
    found = {"base": str(base) if base.is_dir() else project.params.model.name}
    for role, stage in STAGES.items():
        if stage in project.params.training:
            folder = project.data(stage) / "model"
            if not folder.is_dir():
                raise ProjectError(f"evaluate: {stage} has left no model", hint=f"run `dvc repro {stage}`")
            found[role] = str(folder)
    return found


def _scored(project: Project, name: str, held: Held, role: str) -> tuple[Scores, str]:
    """What one model scores, and its fingerprint. The model is gone when this returns."""
    from corpusforge.train.generate import to_device

    config = project.params.model
    revision = config.revision if name == config.name else None
    model, tokenizer = models.load(name, revision=revision, root=project.root)
    if name == config.name or not tokenizer.chat_template:
        models.use_template(tokenizer, config.model_copy(update={"name": name}), project.root)
    place, single = models.locate(name, project.root)
    folder = project.root / place
    hashed = models.fingerprint(folder) if folder.is_dir() and not single else models.state_hash(model)
    found = evaluate(to_device(model), tokenizer, held, config_of(project), max_length=config.max_length, name=role)
    return found, hashed


def _figures(project: Project, judged: Judged, held: Held, left_out: Mapping[str, int]) -> dict[str, Any]:
    fewest = (
        {name: min(len(getattr(one, name)) for one in judged.results.values()) for name in ("loss", "margin")}
        if judged.results
        else {"loss": 0, "margin": 0}
    )
    return {
        "build": judged.build,
        "tasks": len(held.tasks),
        "legacy_tasks": len(held.legacy),
        "rows": len(held.rows),
        "pairs": len(held.pairs),
        "left_out": {
            **left_out,
            "conversations_without_score": len(held.rows) - fewest["loss"],
            "pairs_without_score": len(held.pairs) - fewest["margin"],
        },
        "conditions": dict(judged.conditions),
        "fingerprints": dict(judged.fingerprints),
        **figures(judged.results, config_of(project).level),
    }
