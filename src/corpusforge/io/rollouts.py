"""Rollouts on disk: the tuned model tries the tasks of the training shards, a chunk at a time.

data/rollout/attempts.parquet    a line per task: passes, attempts, undecided, and whether GRPO sees it
data/rollout/answers.parquet     a line per try: what the model wrote, the outcome, and the rule that decided

Tasks are tried in an order that only their content knows. Each chunk is written down twice, outside the output that DVC
deletes: when it is answered and when it is judged. A run that is killed goes on from there and leaves the same bytes; a
verifier that takes the process with it costs no answer. The chunks lie under a key of everything they depend on.

    .corpusforge/checkpoints/rollout/key.json, answered-00000.parquet, judged-00000.parquet, …
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge import graph
from corpusforge.distributions import installed
from corpusforge.errors import ProjectError
from corpusforge.io import atomic, shard_rows
from corpusforge.text.draws import draw
from corpusforge.train import fit, generate, model
from corpusforge.train.rollout import figures, rollout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from corpusforge.project import Project
    from corpusforge.train.rollout import RolloutConfig
    from corpusforge.verify import Verdict

    Verify = Callable[[Sequence[Any], Sequence[Any]], list[Verdict]]

CHUNK: Final = 64  # tasks; a killed run loses the answers to so many
ANSWERS: Final = pa.schema(
    [
        ("row_id", pa.string()),
        ("attempt", pa.int32()),
        ("completion", pa.string()),
        ("finished", pa.bool_()),
        ("outcome", pa.string()),
        ("rule", pa.string()),
    ]
)
"""A line per try. `completion` is null where the task could not be asked; `finished`: it ended before the limit."""
_FOLDER: Final = ".corpusforge/checkpoints/rollout"
_CACHE: Final = ".corpusforge/cache/rollout"
_TASK: Final = ("row_id", "content_id", "record_id", "source", "verifier_kind")


@model.steady
def run(project: Project, out: Path, verify: Verify | None = None) -> dict[str, Any]:
    """Try the tasks and write attempts and answers to `out`; returns the stage's figures.

    Raises ProjectError when the shards hold no task, MissingExtra when a package that a verifier needs is not there.
    """
    from corpusforge.verify import verify_many

    model.needs_training()
    cache = project.root / _CACHE
    shutil.rmtree(cache, ignore_errors=True)
    cache.mkdir(parents=True)
    tries = _Tries(project, _tasks(project, cache), verify or verify_many)
    tries.check_verifiers()
    outcomes = tries.write(out / "answers.parquet")
    attempts = rollout(
        tries.table(),
        [outcomes.get(name, []) for name in tries.tasks["row_id"]],
        tries.config,
        model=tries.fingerprint,
        sampling=asdict(tries.sampling),
    )
    pq.write_table(attempts, out / "attempts.parquet", compression="zstd")
    tries.place.clear()
    shutil.rmtree(cache, ignore_errors=True)
    return {**figures(attempts), **tries.metrics()}


def _tasks(project: Project, cache: Path) -> Any:
    """The tasks of the training shards, copies of a row once, in the order in which they are tried."""
    where = project.params.model.where
    lines = shard_rows.lines(project.data("shard"), "task", "train", where, cache)
    if lines is None:
        which = f" with {json.dumps(where)}" if where else ""
        raise ProjectError(
            f"rollout: the training shards hold no task{which}",
            hint="take rollout and train_grpo out of params.yaml, add a source of tasks, or widen model.where",
        )
    names = np.array(list(lines["row_id"]), object)
    lots = draw(pa.array(list(lines["content_id"]), pa.string()), f"rollout {project.params.model.seed}")
    order = np.lexsort((names.astype(str), lots))
    _, first = np.unique(names[order].astype(str), return_index=True)
    return lines.select(order[np.sort(first)])


@dataclass
class _Tries:
    """The tries of one run, and where what is done of them is kept."""

    project: Project
    tasks: Any  # datasets.Dataset
    verify: Verify
    cut_off: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    written: dict[str, float] = field(default_factory=lambda: {"seconds": 0.0, "tokens": 0, "answers": 0})

    def __post_init__(self) -> None:
        folder = self.project.data("train_sft") / "model"
        loaded, self.tokenizer = model.load(str(folder), root=self.project.root)
        model.use_template(self.tokenizer, self.project.params.model, self.project.root)
        self.model = generate.to_device(loaded)
        self.fingerprint = model.fingerprint(folder)
        self.tried = min(self.config.limit or len(self.tasks), len(self.tasks))
        self.place = fit.Workplace("rollout", self.project.root / _FOLDER, self.key())

    @property
    def config(self) -> RolloutConfig:
        config = self.project.params.rollout
        assert config is not None
        return config

    @property
    def sampling(self) -> generate.Sampling:
        limits = self.project.params.model
        given = self.config.model_dump(include={"attempts", "temperature", "top_p", "max_new_tokens", "batch_tokens"})
        return generate.Sampling(**given, seed=limits.seed, max_length=limits.max_length)

    def key(self) -> dict[str, Any]:
        """All that the answers and their verdicts depend on."""
        digest = hashlib.blake2b(digest_size=16)
        for name, content in zip(self.tasks["row_id"], self.tasks["content_id"], strict=True):
            digest.update(f"{name}\0{content}\0".encode("utf-8", "surrogatepass"))
        node = graph.node("rollout")
        return {
            "tasks": digest.hexdigest(),
            "tried": self.tried,
            "model": self.fingerprint,
            "template": self.tokenizer.chat_template,
            "sampling": asdict(self.sampling),
            "device": self.model.device.type,
            "method": node.method,
            "libraries": {name: installed(name) for name in node.libraries},
        }

    def table(self) -> pa.Table:
        """Which row each task is."""
        return pa.table({name: pa.array(list(self.tasks[name]), pa.string()) for name in _TASK})

    def check_verifiers(self) -> None:
        """Ask each kind once, before hours of answers: a package that is missing says so here."""
        kinds = list(self.tasks["verifier_kind"])[: self.tried]
        firsts = [self.tasks[kinds.index(kind)] for kind in sorted(set(kinds), key=str)]
        self.verify(firsts, [""] * len(firsts))

    def write(self, path: Path) -> dict[str, list[str]]:
        """Write every try to `path`; returns the outcomes of each row that was tried."""
        outcomes: dict[str, list[str]] = {}
        with pq.ParquetWriter(path, ANSWERS, compression="zstd") as writer:
            for chunk in self.chunks():
                writer.write_table(chunk)
                said = chunk.select(["row_id", "completion", "finished", "outcome", "rule"]).to_pylist()
                for one in said:
                    outcomes.setdefault(one["row_id"], []).append(one["outcome"])
                self.rules.update(one["rule"] for one in said)
                self.cut_off += sum(one["completion"] is not None and not one["finished"] for one in said)
        return outcomes

    def chunks(self) -> Iterator[pa.Table]:
        """The tries of CHUNK tasks after CHUNK tasks, made or found."""
        self.place.prepare()
        tell = generate.teller("rollout", self.tried * self.config.attempts)
        for number, start in enumerate(range(0, self.tried, CHUNK)):
            tasks = list(self.tasks.select(range(start, min(start + CHUNK, self.tried))))
            answered, judged = (
                self.place.checkpoints / f"{name}-{number:05d}.parquet" for name in ("answered", "judged")
            )
            if tell and answered.exists():
                tell(len(tasks) * self.config.attempts)
            answers = _kept(answered, partial(self.answer, tasks, tell))
            yield _kept(judged, partial(self.judge, tasks, answers))

    def answer(self, tasks: list[dict[str, Any]], tell: generate.Tell | None) -> pa.Table:
        """A line of ANSWERS per try, not judged; its rule says why a task was not asked."""
        began = time.monotonic()
        sampled = generate.sample(self.model, self.tokenizer, tasks, self.sampling, tell)
        self.written["seconds"] += time.monotonic() - began
        self.written["tokens"] += sum(one.tokens for one in sampled)
        self.written["answers"] += sum(len(one.texts) for one in sampled)
        lines = []
        for task, one in zip(tasks, sampled, strict=True):
            for attempt in range(self.config.attempts):
                asked = one.refused is None
                line = {"row_id": task["row_id"], "attempt": attempt}
                line |= {"completion": one.texts[attempt], "finished": one.finished[attempt]} if asked else {}
                lines.append(line if asked else line | {"rule": f"rollout.{one.refused}"})
        return pa.Table.from_pylist(lines, schema=ANSWERS)

    def judge(self, tasks: list[dict[str, Any]], answers: pa.Table) -> pa.Table:
        """The lines with outcome and rule. An answer that a task got twice is judged once."""
        known = {task["row_id"]: task for task in tasks}
        lines = answers.to_pylist()
        asked = list(
            dict.fromkeys((one["row_id"], one["completion"]) for one in lines if one["completion"] is not None)
        )
        said = self.verify([known[name] for name, _ in asked], [text for _, text in asked])
        verdicts = dict(zip(asked, said, strict=True))
        for line in lines:
            verdict = verdicts.get((line["row_id"], line["completion"]))
            line["outcome"] = verdict.outcome if verdict else "undecided"
            line["rule"] = verdict.rule if verdict else line["rule"]
        return pa.Table.from_pylist(lines, schema=ANSWERS)

    def metrics(self) -> dict[str, Any]:
        """What the answers add to the stage's figures. Speed is that of what this run wrote itself."""
        seconds = max(self.written["seconds"], 1e-9)
        return {
            "cut_off": self.cut_off,
            "rules": dict(sorted(self.rules.items())),
            "model": self.fingerprint,
            "speed": {
                "seconds": round(self.written["seconds"], 1),
                "answers": int(self.written["answers"]),
                "tokens_per_second": round(self.written["tokens"] / seconds),
            },
        }


def _kept(path: Path, make: Callable[[], pa.Table]) -> pa.Table:
    """The table at `path`; made and put there, whole or not at all, where there is none."""
    with suppress(pa.ArrowException, OSError):  # a damaged one is made again
        return pq.read_table(path, schema=ANSWERS)
    table, buffer = make(), io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    atomic.write_bytes(path, buffer.getvalue())
    return table
