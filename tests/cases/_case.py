"""A folder of cases: `<id>.expect.json` says what is right, `<id>.jsonl` (and `.bench.jsonl`, …) are its inputs.

    {"id": "P05", "stage": "ingest", "inputs": ["P05.jsonl"],
     "expect": [{"assert": "value_equals", "id": "1", "path": "batch", "value": "0042"}]}

A case's stages decide whether it must hold today (`MUST`) or is expected to fail until a later piece of work (`LATER`);
of a stage whose depth is there in part, its words do (`HELD`).
Inputs are copied byte for byte; only lines with `$generate` are written out.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

MUST: Final = frozenset({"ingest", "dedup", "shard", "pii", "ops (licence)"})
"""Stages that hold what the cases ask for."""
LATER: Final = {
    "grade": "the depth of grade and of the verifiers comes later",
    "contamination": "the depth of decontaminate comes later",
    "blend": "the depth of blend comes later",
    "train": "the depth of training comes later",
    "inspect": "the depth of inspect comes later",
    "ops": "interrupted builds come later",
    "ops (DVC)": "the depth of the graph comes later",
    "ops (notebook)": "functions of a notebook as stages come later",
    "ops (workers)": "the depth of the engine comes later",
    "ops (hub, nightly)": "the depth of nightly builds comes later",
}
"""Stages whose cases are expected to fail, and why."""
HELD: Final = {
    "grade": frozenset({
        *("verdicts", "symmetric", "bounded", "no_worker_lost", "undecided_counted_apart_from_unequal"),
        *("same_output_across", "kept_exactly", "each_rejected_has", "never_scored", "flagged", "not_flagged"),
        *("scores", "missing_counted", "no_default_score"),
    })
}  # fmt: skip
"""Of those stages, the words that hold today: a case that asserts nothing else must hold."""
_COMMAS: Final = re.compile(r",\s*(?![^()]*\))")
_GENERATE: Final = "$generate"


class CaseError(ValueError):
    """A case that the runner does not understand: never a pass."""


@dataclass(frozen=True)
class Case:
    """One case as its expect file tells it."""

    id: str
    stages: tuple[str, ...]
    folder: Path
    inputs: tuple[str, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    expect: tuple[dict[str, Any], ...] = ()
    steps: tuple[str, ...] = ()

    def later(self) -> list[str]:
        """Why the case is expected to fail; empty when it must hold."""
        said = {str(one.get("assert")) for one in self.expect}
        return [LATER[stage] for stage in self.stages if stage in LATER and not said <= HELD.get(stage, frozenset())]

    def input(self, role: str) -> str | None:
        """The input `<id>.<role>.<ending>`; of the role "" it is `<id>.<ending>`."""
        return next((name for name in self.inputs if role_of(self.id, name) == role), None)


_FIELDS: Final = frozenset({"id", "stage", "inputs", "config", "expect", "steps", "note", "strength"})


def load_cases(folder: Path) -> list[Case]:
    """All cases of a folder, by id."""
    return [load_case(path) for path in sorted(folder.glob("*.expect.json"))]


def load_case(path: Path) -> Case:
    """One case. What is wrong with it is told when it runs, not here: one odd file must not hide the others."""
    told = json.loads(path.read_text(encoding="utf-8"))
    return Case(
        id=str(told.get("id", path.name.removesuffix(".expect.json"))),
        stages=tuple(_COMMAS.split(told["stage"])) if told.get("stage") else (),
        folder=path.parent,
        inputs=tuple(told.get("inputs", ())),
        config=told.get("config", {}),
        expect=tuple(told.get("expect", ())),
        steps=tuple(told.get("steps", ())),
    )


def faults(case: Case) -> list[str]:
    """What makes a case mean nothing, or something that the runner would pass over."""
    told = json.loads((case.folder / f"{case.id}.expect.json").read_text(encoding="utf-8"))
    found = [f"the runner does not know the field {name!r} of a case" for name in sorted(set(told) - _FIELDS)]
    if not case.expect:
        found.append("the case asserts nothing")
    if not case.stages:
        found.append("the case names no stage")
    found += [f"the runner does not know the stage {stage!r}" for stage in case.stages if stage not in MUST | {*LATER}]
    return found + [f"the input {name} is missing" for name in case.inputs if not (case.folder / name).is_file()]


def role_of(case: str, name: str) -> str:
    """What an input is for: `P42.bench.jsonl` is `bench`, `P42.jsonl` is "" (the rows themselves)."""
    inner = name.removeprefix(f"{case}.").split(".")
    return ".".join(inner[:-1]) if inner[-1] not in ("gz", "zst", "bz2", "xz") else ".".join(inner[:-2])


def copy_input(case: Case, name: str, to: Path) -> Path:
    """The input in the folder `to`, `$generate` written out, every other byte as it was."""
    data = (case.folder / name).read_bytes()
    if _GENERATE.encode() in data:
        data = b"".join(_generated(line) for line in data.splitlines(keepends=True))
    (to / name).write_bytes(data)
    return to / name


def _generated(line: bytes) -> bytes:
    if _GENERATE.encode() not in line:
        return line
    return json.dumps(_expand(json.loads(line)), ensure_ascii=False).encode() + b"\n"


def _expand(value: Any) -> Any:
    """`{"$generate": {"text": [["ab", 3]]}}` adds a field; `{"$generate": [["ab", 3]]}` is the text itself."""
    if isinstance(value, list):
        return [_expand(one) for one in value]
    if not isinstance(value, dict):
        return value
    recipe = value.get(_GENERATE)
    if isinstance(recipe, list):
        return _repeated(recipe)
    made = {key: _expand(inner) for key, inner in value.items() if key != _GENERATE}
    return made | {key: _repeated(pairs) for key, pairs in (recipe or {}).items()}


def _repeated(pairs: list[Any]) -> str:
    return "".join(text * count for text, count in pairs)
