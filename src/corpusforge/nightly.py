"""nightly: rebuild what changed, ask the gates, publish what is good, and say what happened in one JSON line.

    {"status": "published", "build": "3f9c…", "rows": 12040, "ran": ["ingest", …], "added": 64, …, "seconds": 41.2}

A failed run publishes nothing: the release that was current stays current. Two runs at once: the second is refused.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from corpusforge import methods
from corpusforge.diff import diff
from corpusforge.errors import CorpusForgeError
from corpusforge.io import dvc, gate, lock, model_gate, releases
from corpusforge.io.notify import notify

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

LOG: Final = ".corpusforge/nightly.log"
_VERDICTS: Final = {"gate_data": gate.LAST_VERDICT, "gate_models": model_gate.LAST_VERDICT}
_EXIT: Final = {"published": 0, "same corpus": 0, "gate failed": 1, "stopped": 130}


def nightly(project: Project, *, accept: bool = False, on_failure: str | None = None) -> dict[str, Any]:
    """Rebuild, gate and publish; returns what happened, ready to be printed as one JSON line.

    `accept` makes a published build the new baseline. `on_failure` is a command (which gets the JSON on its standard
    input) or a http(s) address (which gets it as a POST). `status` is `published`, `same corpus`, `gate failed`,
    `failed` or `stopped`. Raises BusyError when another nightly run holds the project.
    """
    started = time.monotonic()
    with lock.hold(project.root, "nightly", wait=0):
        result = _guarded(project, accept)
        result["seconds"] = round(time.monotonic() - started, 1)
        if on_failure and exit_code(result):
            result["on_failure"] = notify(on_failure, result)
    return result


def exit_code(result: dict[str, Any]) -> int:
    """0 published or same corpus, 1 gate failed, 130 stopped, 3 anything else."""
    return _EXIT.get(result["status"], 3)


def _guarded(project: Project, accept: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"status": "failed", "build": None, "rows": None}
    try:
        with dvc.stoppable():
            _rebuild(project, accept, result)
    except dvc.Stopped as error:
        result |= {"status": "stopped", "message": str(error)}
    except CorpusForgeError as error:
        result |= {"status": "failed", "message": str(error)}
    return result


def _rebuild(project: Project, accept: bool, result: dict[str, Any]) -> None:
    """Fill `result` step by step, so that what was done before an error is told as well."""
    result["synced"] = methods.sync(project)
    outcome = dvc.repro(project.root, "gate_models" if model_gate.gated(project) else "gate_data", project.root / LOG)
    result["ran"] = outcome.ran
    if outcome.code:
        result |= {"failed_stage": outcome.failed_stage, "message": outcome.message, "log": LOG}
        if outcome.failed_stage in _VERDICTS:
            result |= _gate_says(project.root / _VERDICTS[outcome.failed_stage])
        return
    before = releases.current(project)
    release = releases.publish(project)
    result |= {"status": release.status, "build": release.build, "rows": release.rows}
    if before and before != release.build:
        rows = diff(project.root / releases.FOLDER / before, release.path).rows
        result |= {"before": before, "added": rows.added, "removed": rows.removed, "changed": rows.changed}
    if accept and release.status == "published":
        releases.accept(project)
        result["accepted"] = True


def _gate_says(path: Path) -> dict[str, Any]:
    """The checks that failed, if it was a check that stopped the gate and not an error."""
    if not path.exists():
        return {}
    verdict = json.loads(path.read_text(encoding="utf-8"))
    failed = [check for check in verdict["checks"] if not check["passed"]]
    return {"status": "gate failed", "build": verdict["build"], "failed_checks": failed}
