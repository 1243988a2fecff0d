"""Releases: what others read. `releases/<build>/` is whole or not there; `releases/current` points to a whole one.

Stage outputs are working files: DVC deletes them before a stage runs. A release is a copy of the shards and of the
records that explain them (manifest, report, verdict, ledgers, params, methods lock; where models are judged, their
figures and verdict, no weights), made under a hidden name, synced, and renamed; then the pointer is replaced in one
step. A process killed at any moment leaves the old pointer or the new one, never none. A release is named by its build
id, so the same corpus is the same folder.

    releases/3f9c…/shards/…  ledgers/dedupe.dropped.parquet  report.json  index.html  verdict.json  …
    releases/current -> 3f9c…
    releases/history.jsonl
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from corpusforge import graph
from corpusforge.errors import GateError, ProjectError
from corpusforge.io import atomic, attempts, gate, lock, manifest, model_gate
from corpusforge.io.stored import read_json
from corpusforge.stages.gate_data import baseline_of

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

FOLDER: Final = "releases"
CURRENT: Final = "current"
HISTORY: Final = "history.jsonl"
SHARDS: Final = "shards"


@dataclass(frozen=True)
class Release:
    """One published build. `status` is `published`, `same corpus` or `rolled back`."""

    build: str
    path: Path
    rows: int
    status: str = "published"

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; the path relative to the project."""
        return asdict(self) | {"path": f"{FOLDER}/{self.build}"}

    def __str__(self) -> str:
        return f"{self.status}: {self.build}, {self.rows:,} rows"


def publish(project: Project) -> Release:
    """Make the build on disk the current release.

    Where the graph judges models, they must have passed as well. Raises GateError when a gate refused this very build
    or shards are not what the manifest says, ProjectError when a gate has not looked at it, BusyError when another
    process publishes.
    """
    with lock.hold(project.root, "publish"):
        build, rows = passed_build(project)
        models = _models(project, build)
        target = project.root / FOLDER / build
        whole = target.is_dir() and not manifest.verify(target / SHARDS) and _same(target, models)
        if whole and current(project) == build:
            return Release(build, target, rows, "same corpus")
        if not whole:
            _remove_leftovers(project.root / FOLDER)
            with atomic.folder(target) as out:
                _fill(project, out, models)
        _point(project, build, "publish")
        return Release(build, target, rows)


def passed_build(project: Project) -> tuple[str, int]:
    """Build id and rows of the shards on disk, if `gate_data` passed exactly them. Raises ProjectError or GateError."""
    shards = project.data("shard")
    held = manifest.read_manifest(shards)
    path = project.data("gate_data") / "verdict.json"
    if not path.exists():
        failed = _failed_checks(project, held["build"])
        if failed:
            says = f"gate_data refused this build: {', '.join(failed[:3])}{', …' if failed[3:] else ''}"
            raise GateError(says, hint=f"{gate.LAST_VERDICT} holds every check; mend the cause, then `dvc repro`")
        raise ProjectError(
            "gate_data has not passed this build", hint="run `dvc repro gate_data`; it says what is wrong"
        )
    verdict = read_json(path, "passed", "build")
    if not verdict["passed"] or verdict["build"] != held["build"]:
        raise ProjectError("gate_data has not passed the shards that are here", hint="run `dvc repro gate_data`")
    damaged = manifest.verify(shards)
    if damaged:
        raise GateError(
            f"{len(damaged)} files are not what the manifest says: {', '.join(damaged[:3])}",
            hint="run `dvc repro` (or `dvc checkout`), then publish again",
        )
    return str(held["build"]), sum(shard["rows"] for shard in held["shards"])


def _models(project: Project, build: str) -> dict[str, Path]:
    """What the release will hold of its models, by its path there; nothing where the graph does not judge models."""
    if not model_gate.gated(project):
        return {}
    model_gate.passed_models(project, build)
    return model_gate.released_files(project)


def _same(release: Path, models: dict[str, Path]) -> bool:
    """Whether a release of the same corpus holds the same figures of the same models, or none where there are none."""
    there, here = release / model_gate.FIGURES, models.get(model_gate.FIGURES)
    if here is None or not there.exists():
        return here is None and not there.exists()
    return there.read_bytes() == here.read_bytes()


def _failed_checks(project: Project, build: str) -> list[str]:
    """Names of the checks that `build` failed, where it is the build that the gate looked at last."""
    path = project.root / gate.LAST_VERDICT
    said = read_json(path) if path.exists() else {}
    return [check["name"] for check in said["checks"] if not check["passed"]] if said.get("build") == build else []


def rollback(project: Project, build: str | None = None) -> Release:
    """Point `current` to an earlier release: `build` (a unique beginning is enough), else the one before the current.

    Raises ProjectError when there is no such release, GateError when its shards are damaged.
    """
    with lock.hold(project.root, "publish"):
        chosen = _find(project, build) if build else _previous(project)
        target = project.root / FOLDER / chosen
        if manifest.verify(target / SHARDS):
            raise GateError(f"release {chosen} is damaged: its shards are not what its manifest says")
        _point(project, chosen, "rollback")
        return Release(chosen, target, _rows(target), "rolled back")


def releases(project: Project) -> list[dict[str, Any]]:
    """Every release, in the order of publication: build, rows, when, and whether it is the current one."""
    now, when = current(project), _published(project)
    return [
        {
            "build": name,
            "rows": _rows(project.root / FOLDER / name),
            "published": when.get(name),
            "current": name == now,
        }
        for name in _builds(project, when)
    ]


def current(project: Project) -> str | None:
    """Build id of the current release; None when nothing was published."""
    pointer = project.root / FOLDER / CURRENT
    if pointer.is_symlink():
        return pointer.readlink().name
    return pointer.read_text(encoding="utf-8").strip() if pointer.is_file() else None


def current_folder(project: Project) -> Path:
    """Folder of the current release. Raises ProjectError when nothing was published."""
    build = current(project)
    if build is None:
        raise ProjectError("nothing was published here", hint="`corpusforge publish` makes a release")
    return project.root / FOLDER / build


def accept(project: Project) -> dict[str, Any]:
    """Make the current release the baseline that later builds are compared with (baseline.json); returns it.

    Where the release holds models, their scores are in it, under `models`. Where `rollout` tried the tasks of this
    build, their pass rates go to rollouts.parquet for `blend`, and `rollouts` says of how many tasks. Raises
    ProjectError when nothing was published.
    """
    release = current_folder(project)
    models = model_gate.baseline_of(release)
    figures = baseline_of(read_json(release / "report.json")) | ({"models": models} if models else {})
    tried = attempts.accept(project, release.name)
    atomic.write_json(project.root / "baseline.json", figures)
    return figures | ({"rollouts": tried} if tried else {})


def _fill(project: Project, out: Path, models: dict[str, Path]) -> None:
    """Copy everything a release holds, as plain files: never links into what DVC may delete or protect."""
    _copy_tree(project.data("shard"), out / SHARDS)
    for stage, names in (("report", ("report.json", "index.html")), ("gate_data", ("verdict.json",))):
        for name in names:
            shutil.copyfile(project.data(stage) / name, out / name)
    _copy_ledgers(project, out / "ledgers")
    for name, path in models.items():
        (out / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(path, out / name)
    for name in ("params.yaml", "methods.lock.json"):
        if (project.root / name).exists():
            shutil.copyfile(project.root / name, out / name)
    damaged = manifest.verify(out / SHARDS)
    if damaged:
        raise GateError(f"{damaged[0]} changed while it was copied", hint="is `dvc repro` running? publish again")
    for folder in (out, *(path for path in out.rglob("*") if path.is_dir())):
        atomic.sync_folder(folder)


def _copy_ledgers(project: Project, folder: Path) -> None:
    folder.mkdir()
    for node in graph.GRAPH:
        for name in ("dropped", "changes"):
            ledger = project.data(node.name) / f"{name}.parquet"
            if ledger.exists():
                shutil.copyfile(ledger, folder / f"{node.name}.{name}.parquet")


def _remove_leftovers(folder: Path) -> None:
    """Remove what killed publishers left, whatever build they were at. The caller holds the lock."""
    for leftover in folder.glob(".*.unfinished-*"):
        shutil.rmtree(leftover, ignore_errors=True)


def _copy_tree(source: Path, target: Path) -> None:
    for path in sorted(source.rglob("*")):
        if path.is_file():
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place)


def _point(project: Project, build: str, action: str) -> None:
    """Replace the pointer in one step. The history is a log and comes first: the pointer is the truth."""
    folder = project.root / FOLDER
    event = {"build": build, "action": action, "at": datetime.now(UTC).isoformat(timespec="seconds")}
    with (folder / HISTORY).open("a", encoding="utf-8") as file:
        file.write(json.dumps(event) + "\n")
        file.flush()
        os.fsync(file.fileno())
    temporary = folder / f".{CURRENT}.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    try:
        temporary.symlink_to(build, target_is_directory=True)
    except OSError:  # no symbolic links here: the pointer is a file that holds the name
        atomic.write_text(folder / CURRENT, f"{build}\n")
    else:
        temporary.replace(folder / CURRENT)
        atomic.sync_folder(folder)


def _published(project: Project) -> dict[str, str]:
    """Build -> when it was last published, in that order. An unfinished last line of a killed run is skipped."""
    path = project.root / FOLDER / HISTORY
    found: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        with suppress(ValueError):
            event = json.loads(line)
            if event["action"] == "publish":
                found.pop(event["build"], None)
                found[event["build"]] = event["at"]
    return found


def _builds(project: Project, when: dict[str, str]) -> list[str]:
    """Release folders, in the order of publication; those that the history does not know come first."""
    order = {name: place for place, name in enumerate(when)}
    here = [p.name for p in (project.root / FOLDER).glob("[!.]*") if (p / SHARDS).is_dir() and not p.is_symlink()]
    return sorted(here, key=lambda name: (order.get(name, -1), name))


def _find(project: Project, prefix: str) -> str:
    builds = _builds(project, _published(project))
    names = [name for name in builds if name.startswith(prefix)]
    if len(names) != 1:
        raise ProjectError(
            f"{len(names)} releases begin with {prefix!r}", hint=f"releases: {', '.join(builds) or 'none'}"
        )
    return names[0]


def _previous(project: Project) -> str:
    """The release that was published before the current one."""
    builds, now = _builds(project, _published(project)), current(project)
    place = builds.index(now) if now in builds else 0
    if place == 0:
        raise ProjectError("there is no earlier release to go back to", hint="`corpusforge releases` lists them")
    return builds[place - 1]


def _rows(release: Path) -> int:
    return sum(shard["rows"] for shard in manifest.read_manifest(release / SHARDS)["shards"])
