"""The gate for models on disk: reads what `evaluate` found and what was accepted, asks for a verdict, stops the graph.

The verdict of a failed gate is kept in .corpusforge/last_model_verdict.json, because a stage that fails leaves no
output. Publishing asks `passed_models`: the verdict must be of the very shards and models that are there.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError, GateError, ProjectError
from corpusforge.evaluate.gate_models import GateModelsConfig, ModelVerdict, gate_models
from corpusforge.evaluate.results import TRAINED, Judged
from corpusforge.io import atomic, evaluation
from corpusforge.io.gate import read_baseline
from corpusforge.io.stored import read_json
from corpusforge.train import model as models

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

LAST_VERDICT: Final = ".corpusforge/last_model_verdict.json"
FIGURES: Final = "models.json"
"""What a release holds of its models, and what makes it one with models."""
RELEASED: Final = "evaluation"
"""Folder of a release that holds the scores of its models."""
_SHOWN: Final = 10  # failed checks named in the error


def run(project: Project, out: Path) -> dict[str, Any]:
    """Judge the models of the build and write `out`/verdict.json. Raises GateError when one is worse."""
    (project.root / LAST_VERDICT).unlink(missing_ok=True)
    verdict = judge(project)
    atomic.write_json(project.root / LAST_VERDICT, verdict.to_dict())
    if not verdict.passed:
        raise _refusal(verdict)
    atomic.write_json(out / "verdict.json", verdict.to_dict())
    return {
        "build": verdict.build,
        "passed": len(verdict.checks),
        "failed": 0,
        "accepted": verdict.accepted,
        "false_alarm_rate": verdict.false_alarm_rate,
        "found": {check.name: check.found for check in verdict.checks},
        "smallest_drops": {c.name: c.smallest_drop for c in verdict.checks if c.smallest_drop is not None},
        "notes": verdict.notes,
    }


def judge(project: Project) -> ModelVerdict:
    """The verdict on what `evaluate` found. Raises ProjectError when it has not run."""
    return gate_models(evaluation.evaluated(project), accepted_models(project), config_of(project))


def judge_model(project: Project, name: str, role: str) -> ModelVerdict:
    """The verdict on any model against the accepted one of `role`.

    Raises ConfigError for a role that there is not, ProjectError when no model of it was accepted.
    """
    if role not in TRAINED:
        raise ConfigError(f"no such role: {role!r}", hint=f"models are accepted as {', '.join(TRAINED)}")
    accepted = accepted_models(project)
    if accepted is None or role not in accepted.results:
        known = ", ".join(accepted.results) if accepted else "none"
        raise ProjectError(
            f"no {role} model was accepted, so there is nothing to compare with (accepted: {known})",
            hint="`corpusforge publish`, then `corpusforge accept`; or name another role with --as",
        )
    judged, _ = evaluation.judge(project, name, role)
    only = replace(accepted, results={role: accepted.results[role]})
    return gate_models(judged, only, config_of(project))


def config_of(project: Project) -> GateModelsConfig:
    """The gate_models block of params.yaml, or its defaults."""
    return project.params.gate_models or GateModelsConfig()


def accepted_models(project: Project) -> Judged | None:
    """The models of baseline.json; None where none was accepted. Raises ProjectError when they cannot be read."""
    packed = read_baseline(project.root / "baseline.json").get("models")
    if not packed:
        return None
    try:
        return Judged.unpack(packed)
    except (KeyError, ValueError, TypeError, AttributeError):
        hint = "`corpusforge accept` writes it; without the key `models`, no model is accepted"
        raise ProjectError("baseline.json: `models` cannot be read", hint=hint) from None


def gated(project: Project) -> bool:
    """Whether the project's graph judges models."""
    return (project.root / "params.yaml").exists() and project.params.gate_models is not None


def passed_models(project: Project, build: str) -> None:
    """Raise GateError or ProjectError unless `gate_models` passed the models that lie here, trained on `build`."""
    path = project.data("gate_models") / "verdict.json"
    if not path.exists():
        last = project.root / LAST_VERDICT
        said = read_json(last) if last.exists() else {}
        if said.get("build") == build and not said.get("passed", True):
            failed = [check["name"] for check in said["checks"] if not check["passed"]]
            says = f"gate_models refused this build: {', '.join(failed[:3])}{', …' if failed[3:] else ''}"
            raise GateError(says, hint=f"{LAST_VERDICT} holds every check; mend the cause, then `dvc repro`")
        raise ProjectError("gate_models has not passed this build", hint="run `dvc repro gate_models`")
    verdict = read_json(path, "passed", "build", "fingerprints")
    if not verdict["passed"] or verdict["build"] != build:
        raise ProjectError("gate_models has not passed the shards that are here", hint="run `dvc repro gate_models`")
    if verdict["fingerprints"] != evaluation.evaluated(project).fingerprints:
        raise ProjectError("gate_models has not passed what evaluate found", hint="run `dvc repro gate_models`")
    for role in TRAINED:
        folder = project.data(evaluation.STAGES[role]) / "model"
        if role in verdict["fingerprints"] and models.fingerprint(folder) != verdict["fingerprints"][role]:
            raise ProjectError(f"gate_models has not passed the {role} model that is here", hint="run `dvc repro`")


def released_files(project: Project) -> dict[str, Path]:
    """What a release holds of its models, by its path there: figures, verdict and scores; no weights."""
    here = project.data("evaluate")
    return {
        FIGURES: here / "figures.json",
        "model_verdict.json": project.data("gate_models") / "verdict.json",
        **{f"{RELEASED}/{name}.parquet": here / f"{name}.parquet" for name in ("tasks", "rows")},
    }


def baseline_of(release: Path) -> dict[str, Any] | None:
    """What later models are compared with, from a release; None when it has no models."""
    if not (release / FIGURES).exists():
        return None
    found = read_json(release / FIGURES, "models")
    return evaluation.judged_in(release / RELEASED, found).pack(found["models"])


def _refusal(verdict: ModelVerdict) -> GateError:
    """Every failed check, at bounded length."""
    failed = verdict.failed
    lines = [f"  {check.name}: worse by {check.found:.3g}, limit {check.limit:.3g} ({check.says})" for check in failed]
    lines = lines[:_SHOWN] + [f"  and {len(failed) - _SHOWN} more, in {LAST_VERDICT}"] * (len(failed) > _SHOWN)
    head = f"gate_models: {len(failed)} of {len(verdict.checks)} checks failed, nothing may be published"
    hint = (
        f"models that are no worse fail in at most {verdict.false_alarm_rate:.0%} of all cases; look at "
        "metrics/evaluate.json, undo what did this, or raise the limit under gate_models in params.yaml"
    )
    return GateError("\n".join([head, *lines]), hint=hint)
