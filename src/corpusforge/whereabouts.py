"""Which folders of a project hold personal data, and whether `dvc push` would take them away.

It is read from what is there: the stages and outputs of dvc.yaml, `.dvc` files beside sources, the cache. Stages before
`scrub` have `push: false`; whoever takes that away is told here.

    raw/chats.jsonl      as it came                        not pushed: DVC only watches it
    data/ingest          rows before scrubbing             not pushed: push: false
    .dvc/cache           copies of data/, older builds     only what is pushed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge import graph

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpusforge.project import Project

_PARTS: Final = {
    "refused": "rows that went for their terms, as they came",
    "dropped.parquet": "the ledger: ids of quarantined records, the user's own ids among them",
}


@dataclass(frozen=True)
class Place:
    """A file or folder, what of it is personal, and whether `dvc push` takes it, with the reason."""

    path: str
    holds: str
    pushed: bool
    why: str


def places(project: Project) -> list[Place]:
    """Places that are there and hold personal data, sources first."""
    stages = _stages(project.root)
    return [*_sources(project.root, stages), *_outputs(project, stages), *_rest(project.root)]


def _stages(root: Path) -> dict[str, Any]:
    from ruamel.yaml import YAML

    path = root / "dvc.yaml"
    read = YAML(typ="safe").load(path.read_text(encoding="utf-8")) if path.is_file() else None
    return dict((read or {}).get("stages") or {})


def _sources(root: Path, stages: dict[str, Any]) -> Iterator[Place]:
    for path in stages.get("ingest", {}).get("deps", []):
        if not (root / path).exists():
            continue
        if (root / f"{path}.dvc").is_file():
            yield Place(path, "a source, as it came", True, f"{path}.dvc tracks it; `push: false` there keeps it back")
        else:
            yield Place(path, "a source, as it came", False, "DVC only watches it; see that git does not keep it")


def _outputs(project: Project, stages: dict[str, Any]) -> Iterator[Place]:
    """Outputs of private stages, and what in them is more than rows."""
    for node in graph.GRAPH:
        if not node.private or not project.data(node.name).is_dir():
            continue
        pushed = _pushed(stages.get(node.name, {}).get("outs", []), f"data/{node.name}")
        why = "dvc.yaml has no `push: false` there" if pushed else "push: false"
        holds = "rows before scrubbing" if node.tables or node.name == "ingest" else "a model of unscrubbed rows"
        yield Place(f"data/{node.name}", holds, pushed, why)
        for name, says in _PARTS.items():
            if (project.data(node.name) / name).exists():
                yield Place(f"data/{node.name}/{name}", says, pushed, why)


def _pushed(outs: list[Any], path: str) -> bool:
    settings = [one[path] for one in outs if isinstance(one, dict) and path in one]
    return not settings or settings[0].get("push", True) is not False


def _rest(root: Path) -> Iterator[Place]:
    if (root / ".dvc" / "cache").is_dir():
        yield Place(
            ".dvc/cache", "copies of all of data/, older builds included", False, "only what is pushed of data/"
        )
    if (root / ".corpusforge").is_dir():
        yield Place(".corpusforge", "checkpoints of models, locks, logs", False, "DVC does not know it")
