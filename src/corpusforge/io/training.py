"""The training stages on disk: read shards, look at what the trainer will see, train, and write the model.

data/train_sft/model/         as `from_pretrained` reads it
data/train_sft/base/          the untrained model, where it was made from nothing
data/train_sft/steps.jsonl    what was logged, a line per logged step
data/train_sft/dropped.parquet, changes.parquet    what preflight found
data/train_grpo/rewards.jsonl what every layer of the reward said, a line per completion, where there are layers
metrics/train_sft.csv         the same steps, for `dvc plots`
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge import graph
from corpusforge.distributions import installed
from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import atomic, evaluation, layers, shard_rows
from corpusforge.io.shards import write_shards
from corpusforge.io.stored import read_table
from corpusforge.train import _kept, fit, model, options, preflight, scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from corpusforge.project import Project
    from corpusforge.train._config import ModelConfig
    from corpusforge.train.fit import Start, Trained, Workplace
    from corpusforge.train.preflight import Seen

CHECKPOINTS: Final = ".corpusforge/checkpoints"
_CACHE: Final = ".corpusforge/cache"
_CHARACTERS: Final = 20_000_000  # that a tokenizer is trained on at most


@model.steady
def run_sft(project: Project, out: Path) -> dict[str, Any]:
    """Train on the conversations of the shards; returns the stage's figures."""
    from corpusforge.train.train_sft import train_sft

    stage = _Stage(project, out, "train_sft")
    rows = stage.lines("sft")
    if project.params.evaluate is not None:
        evaluation.items(project)  # raises when nothing is held out: before training, not after it
    start, made = first_start(project, rows, project.params.model)
    if made:
        model.save(start.model, start.tokenizer, out / "base")
    return stage.run(rows, start, preflight.sft, lambda kept, place: train_sft(kept, start, stage.config, place))


@model.steady
def run_raw(project: Project, out: Path) -> dict[str, Any]:
    """Train the same model on the rows as they came in."""
    from corpusforge.train.train_raw import over, train_raw

    stage = _Stage(project, out, "train_raw")
    assert project.params.train_sft is not None  # a graph without it is refused when params are read
    stage.config = over(stage.config, project.params.train_sft)
    shards = out / "shards"
    write_shards(raw_rows(project), shards)
    stage.shards = shards
    rows = stage.lines("sft")
    shutil.rmtree(shards)
    begin = project.data("train_sft") / "base"
    name = str(begin) if begin.is_dir() else project.params.model.name
    start = _start(project, name)
    return stage.run(rows, start, preflight.sft, lambda kept, place: train_raw(kept, start, stage.config, place))


@model.steady
def run_dpo(project: Project, out: Path) -> dict[str, Any]:
    """Optimise the tuned model on the pairs of the shards."""
    from corpusforge.train.train_dpo import train_dpo

    stage = _Stage(project, out, "train_dpo")
    rows = stage.lines("preference")
    start = _start(project, str(project.data("train_sft") / "model"))
    return stage.run(rows, start, preflight.preference, lambda kept, place: train_dpo(kept, start, stage.config, place))


@model.steady
def run_grpo(project: Project, out: Path) -> dict[str, Any]:
    """Optimise the tuned model on the tasks that `rollout` chose."""
    from corpusforge.train.train_grpo import train_grpo

    stage = _Stage(project, out, "train_grpo")
    layers.load(project)
    rows = stage.lines("task")
    tried = read_table(project.data("rollout") / "attempts.parquet", ["row_id", "chosen"])
    chosen = set(tried.filter(tried["chosen"])["row_id"].to_pylist())
    rows = rows.select([place for place, name in enumerate(rows["row_id"]) if name in chosen])
    if not len(rows):
        raise ProjectError(
            "rollout chose no task", hint="lower rollout.min_mixed, or train longer before: data/rollout"
        )
    start = _start(project, str(project.data("train_sft") / "model"))
    return stage.run(rows, start, preflight.tasks, lambda kept, place: train_grpo(kept, start, stage.config, place))


class _Stage:
    """One run of a training stage."""

    def __init__(self, project: Project, out: Path, name: str) -> None:
        self.project, self.out, self.name = project, out, name
        self.config: Any = getattr(project.params, name)
        self.shards = project.data("shard")

    def lines(self, kind: str) -> Any:
        """The lines to train on. Raises ProjectError when there are none."""
        where = self.project.params.model.where
        rows = shard_rows.lines(self.shards, kind, "train", where, _cache(self.project, self.name))
        if rows is None:
            which = f" with {json.dumps(where)}" if where else ""
            raise ProjectError(
                f"{self.name}: the shards hold no {kind} row{which}",
                hint=f"take {self.name} out of params.yaml, add a source of such rows, or widen model.where",
            )
        return rows

    def run(
        self,
        rows: Any,
        start: Start,
        look: Callable[..., Seen],
        train: Callable[[Any, Workplace], Trained],
    ) -> dict[str, Any]:
        options.check_values(self.name, self.config.trl)
        seen = look(rows, start.tokenizer, self.name, self.config, start.max_length)
        _write_ledgers(self.out, seen)
        if not len(seen.keep):
            why = ", ".join(f"{reason} {count:,}" for reason, count in seen.reasons().items())
            raise ProjectError(
                f"{self.name}: nothing is left of {len(rows):,} rows ({why})",
                hint="raise model.max_length, or see docs/training.md",
            )
        hidden = {*NAMES} - ({"row_id"} if getattr(self.config, "layered", False) else set())
        kept = rows.select(seen.keep).select_columns([c for c in rows.column_names if c not in hidden])
        place = self.workplace(start, seen)
        trained = train(kept, place)
        model.save(trained.model, trained.tokenizer, self.out / "model")
        _write_steps(self.project, self.name, self.out, trained)
        if (place.checkpoints / _kept.NAME).is_file():
            shutil.move(place.checkpoints / _kept.NAME, self.out / _kept.NAME)
        place.clear()
        _uncache(self.project, self.name, "tokenizer")
        return figures(seen, trained)

    def workplace(self, start: Start, seen: Seen) -> Workplace:
        """Where the checkpoints are, under a key of everything that the weights depend on."""
        project, node = self.project, graph.node(self.name)
        params = {name: _dumped(project, name) for name in node.follows}
        key = {
            "rows": seen.digest,
            "model": model.state_hash(start.model),
            "template": start.tokenizer.chat_template,
            "params": {**params, self.name: self.config.model_dump(mode="json")},
            "methods": node.method,
            "libraries": {name: installed(name) for name in node.libraries},
        }
        if self.name == "train_grpo" and (modules := layers.hashes(project)):
            key["layers"] = modules
        return fit.Workplace(self.name, project.root / CHECKPOINTS / self.name, key)


NAMES: Final = (*shard_rows.NAMED, "content_id")


def _dumped(project: Project, block: str) -> Any:
    return getattr(project.params, block).model_dump(mode="json")


def figures(seen: Seen, trained: Trained) -> dict[str, Any]:
    """The figures of a training stage: rows through preflight, steps, what was logged last."""
    last = trained.log[-1] if trained.log else {}
    return {
        **seen.metrics,
        "reasons": seen.reasons(),
        "steps": trained.steps,
        "loss": last.get("loss"),
        "last": {name: value for name, value in last.items() if name != "step"},
        "parameters": sum(weights.numel() for weights in trained.model.parameters()),
        "speed": {**trained.speed, **({"resumed_from": trained.resumed_from} if trained.resumed_from else {})},
    }


def first_start(project: Project, rows: Any, config: ModelConfig) -> tuple[Start, bool]:
    """The model that params name, and whether it was made here, from nothing."""
    if config.name != "from_scratch":
        return _start(project, config.name), False
    size = config.from_scratch
    tokenizer = scratch.train_tokenizer(_texts(project, rows), size.vocab_size, config.max_length)
    made = scratch.make_model(size, tokenizer, config.max_length, config.seed)
    model.use_template(tokenizer, config, project.root)
    return fit.Start(made, tokenizer, config.max_length, config.seed, config.lora), True


def _start(project: Project, name: str) -> Start:
    config = project.params.model
    loaded, tokenizer = model.load(name, revision=config.revision, root=project.root)
    model.use_template(tokenizer, config, project.root)
    room = model.context(loaded)
    if room is not None and room < config.max_length:
        raise ConfigError(
            f"model.max_length is {config.max_length}, and {config.name!r} has positions for {room} tokens",
            hint=f"write `max_length: {room}` or less under `model:`",
        )
    return fit.Start(loaded, tokenizer, config.max_length, config.seed, config.lora)


def _texts(project: Project, rows: Any) -> Iterator[str]:
    """The texts that a tokenizer is trained on: conversations first, then pairs and tasks, up to a limit."""
    left = _CHARACTERS
    where = project.params.model.where
    cache = _cache(project, "tokenizer")
    others = [shard_rows.lines(project.data("shard"), kind, "train", where, cache) for kind in ("preference", "task")]
    for table in (rows, *others):
        for row in table if table is not None else ():
            for text in _said(row):
                left -= len(text)
                if left < 0:
                    return
                yield text


def _said(row: Mapping[str, Any]) -> Iterator[str]:
    for column in ("messages", "prompt", "chosen"):
        for message in row.get(column) or ():
            if isinstance(message.get("content"), str):
                yield message["content"]


def raw_rows(project: Project) -> pa.Table:
    """What `ingest` read, without held-out rows and copies of them."""
    rows = project.rows("ingest")
    held = project.rows("blend", ["row_id", "split"])
    held_out = held.filter(pc.equal(held["split"], "heldout"))["row_id"]
    gone = project.ledger("dedupe")
    kept_of = pa.array([json.loads(detail).get("kept") for detail in gone["detail"].to_pylist()], pa.string())
    copies = gone["row_id"].filter(pc.is_in(kept_of, held_out))
    unfair = pa.chunked_array([*held_out.chunks, *copies.chunks], pa.string())
    return rows.filter(pc.invert(pc.is_in(rows["row_id"], unfair)))


def _write_ledgers(out: Path, seen: Seen) -> None:
    pq.write_table(seen.dropped, out / "dropped.parquet", compression="zstd")
    pq.write_table(seen.changes, out / "changes.parquet", compression="zstd")


def _write_steps(project: Project, name: str, out: Path, trained: Trained) -> None:
    """What was logged, as JSON Lines in the output and as CSV for `dvc plots`."""
    atomic.write_text(out / "steps.jsonl", "".join(json.dumps(entry) + "\n" for entry in trained.log))
    columns = ["step", *graph.node(name).plots]
    text = io.StringIO()
    table = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    table.writeheader()
    table.writerows(trained.log)
    atomic.write_text(project.root / "metrics" / f"{name}.csv", text.getvalue())


def _cache(project: Project, name: str) -> Path:
    """An empty folder for the memory-mapped copies that `datasets` makes; removed when the stage is done."""
    path = project.root / _CACHE / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def _uncache(project: Project, *names: str) -> None:
    """Remove what `_cache` made under `names`; other stages may be reading theirs."""
    for name in names:
        shutil.rmtree(project.root / _CACHE / name, ignore_errors=True)
    with suppress(OSError):
        (project.root / _CACHE).rmdir()
