"""Words that run a case in several ways: the outcome must not depend on them, or must stay within limits.

A phrase of `vary` may list several values: "workers 1/2/8", "block size 1 KiB / 1 MiB", "PYTHONHASHSEED 0/1/random".
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.cases._case import CaseError
from tests.cases._words import word
from tests.cases._world import VERBS, World

import corpusforge
from corpusforge.io.readers import blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT: Final = Path(__file__).resolve().parents[2]
_UNITS: Final = {"B": 1, "KiB": 2**10, "MiB": 2**20}


@dataclass
class Way:
    """One way to run a case."""

    name: str
    inputs: dict[str, bytes | dict[str, bytes]] = field(default_factory=dict)  # a folder of files instead of a file
    environment: dict[str, str] | None = None  # run in a process of its own, with this in its environment
    block: int = blocks.SIZE  # bytes that the reader takes at once
    cancelled: float | None = None  # cancel a call so far into it, before the one that is looked at
    runner: str = ""  # who calls the verifier


@word
def same_output_across(world: World, vary: list[str], compare: str) -> Iterator[str]:
    """The outcome, compared as stated, is that of the plain run whatever is varied."""
    if compare not in COMPARED:
        raise CaseError(f"the runner does not know how to compare {compare!r}")
    plain = COMPARED[compare](world)
    if not plain:
        yield "the plain run has no outcome"
    for phrase in vary:
        for number, way in enumerate(_ways(world, phrase)):
            if _outcome(world, way, compare, f"{len(phrase)}-{number}") != plain:
                yield f"{compare}: another outcome with {way.name}"


@word
def bounded(
    world: World,
    seconds: float | None = None,
    seconds_per_row: float | None = None,
    peak_mib: float | None = None,
    repeat: int = 1,
) -> Iterator[str]:
    """The run, in a process of its own, takes no longer and no more memory than this, each of `repeat` times."""
    limit = seconds if seconds is not None else (seconds_per_row or 0) * len(world.originals)
    if not limit and peak_mib is None:
        raise CaseError("bounded needs a limit")
    judged = any("pred" in original.value for original in world.originals.values())
    told = _apart(world, Way("limits"), "verdicts" if judged else "kept ids", f"bounded-{seconds}-{peak_mib}", repeat)
    if limit and told["seconds"] > limit:
        yield f"it took {told['seconds']:.1f} s, expected at most {limit}"
    if peak_mib is not None and told["peak_mib"] > peak_mib:
        yield f"it took {told['peak_mib']:.0f} MiB, expected at most {peak_mib}"


def _rows_as_set(world: World) -> Any:
    return sorted(json.dumps(v.whole() | {"": v.content_id}, sort_keys=True) for v in world.views)


def _bytes(world: World) -> Any:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(world.shards.glob("*/*.parquet"))]


COMPARED: Final[dict[str, Callable[[World], Any]]] = {
    "rows as a set": _rows_as_set,
    "rows": lambda world: [json.dumps(view.whole(), sort_keys=True) for view in world.views],
    "kept ids": lambda world: sorted(world.ids),
    "sampled ids": lambda world: sorted(world.ids),
    "content ids": lambda world: sorted(view.content_id for view in world.views),
    "bytes": _bytes,
    "output file hashes": _bytes,
}
"""What an outcome is, by how it is compared; a value that JSON can hold. Words of other topics add theirs."""
RUNNERS: Final[dict[str, Callable[[World], Any]]] = {}
"""Phrases of `vary` that say who calls the verifier, and the outcome it gets."""


def _ways(world: World, phrase: str) -> list[Way]:
    """The ways that a phrase of `vary` means. Raises CaseError for one that nobody has mapped."""
    name, _, listed = phrase.partition(" ")
    if phrase in RUNNERS:
        return [Way(phrase, runner=phrase)]
    if name == "workers":
        return [Way(f"{n} workers", environment={"CORPUSFORGE_WORKERS": n}) for n in listed.split("/")]
    if name == "PYTHONHASHSEED":
        return [Way(f"hash seed {seed}", environment={"PYTHONHASHSEED": seed}) for seed in listed.split("/")]
    if phrase.startswith("block size "):
        sizes = re.findall(r"(\d+) (B|KiB|MiB)", phrase)
        if sizes:
            return [Way(f"blocks of {n} {unit}", block=int(n) * _UNITS[unit]) for n, unit in sizes]
    if phrase == "second run":
        return [Way("a second run", environment={})]
    if phrase == "fresh object":
        return [Way("a fresh object")]
    used = re.fullmatch(r"object already used on (\S+)", phrase)
    if used:
        _ = World(world.case, _made(world.folder / "warmup"), world.settings, used[1]).ids
        return [Way("a used object")]
    if phrase == "after a cancelled call":
        return [Way(f"a call cancelled {share:.0%} of the way", cancelled=share) for share in (0.25, 0.5, 0.75)]
    rearranged = {"file reversed": _reversed, "row order": _shuffled, "file split": _split}.get(phrase)
    if rearranged is None:
        raise CaseError(f"the runner does not know how to vary {phrase!r}")
    return [Way(phrase, {n: rearranged(world.path(n).read_bytes(), n) for n in world.rows_from})]


def _lines(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n") if line.strip()]


def _reversed(data: bytes, _name: str) -> bytes:
    return b"".join(reversed(_lines(data)))


def _shuffled(data: bytes, _name: str) -> bytes:
    lines = _lines(data)
    random.Random(7).shuffle(lines)
    return b"".join(lines)


def _split(data: bytes, name: str) -> dict[str, bytes]:
    lines = _lines(data)
    third = -(-len(lines) // 3)
    return {f"{n}-{name}": b"".join(lines[n * third : (n + 1) * third]) for n in range(3) if lines[n * third :]}


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _outcome(world: World, way: Way, compare: str, place: str) -> Any:
    """What the case gives, run in this way."""
    if way.runner:
        return RUNNERS[way.runner](world)
    if way.environment is not None:
        return _apart(world, way, compare, place)["outcome"]
    return COMPARED[compare](_again(world, way, place))


def _again(world: World, way: Way, place: str) -> World:
    """The case anew, its inputs rearranged."""
    again = World(world.case, _made(world.folder / f"way-{place}"), world.settings, world.name)
    for name, data in way.inputs.items():
        target = again.folder / name
        if isinstance(data, dict):
            for inner, part in data.items():
                (_made(target) / inner).write_bytes(part)
        else:
            target.write_bytes(data)
    again.block = way.block
    if way.cancelled is not None:
        _cancel(again, way.cancelled)
    return again


def _cancel(world: World, share: float) -> None:
    """Interrupt a run of the stages, as Ctrl-C does, so far into the calls of functions that it makes."""
    read = world.read
    stages = [verb for stage in world.case.stages for verb in VERBS.get(stage, ())]
    if not stages:
        raise CaseError("the case has no stage whose call could be cancelled")
    whole = _calls(lambda: world._run(stages[0], read.kept), None)
    with suppress(KeyboardInterrupt):
        _calls(lambda: world._run(stages[0], read.kept), max(1, int(whole * share)))
        raise CaseError("the call ended before it was cancelled")


def _calls(run: Callable[[], Any], last: int | None) -> int:
    """Run, and count the calls of functions of the project's own; at the one numbered `last`, interrupt."""
    count, ours = 0, str(Path(corpusforge.__file__).parent)

    def counted(frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        if event == "call" and frame.f_code.co_filename.startswith(ours):
            count += 1
            if count == last:
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


def _apart(world: World, way: Way, compare: str, place: str, repeat: int = 1) -> dict[str, Any]:
    """The outcome of the case in a process of its own, its seconds and its peak memory."""
    told = {
        "case": str(world.case.folder / f"{world.case.id}.expect.json"),
        "folder": str(_made(world.folder / f"way-{place}")),
        "settings": {"options": world.settings.options, "reference": world.settings.reference},
        "name": world.name,
        "compare": compare,
        "repeat": repeat,
    }
    environment = {**os.environ, **world.settings.environment, **(way.environment or {})}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(Path(__file__).with_name("_apart.py")), json.dumps(told)],
        env=environment, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the run with {way.name} ended with {done.returncode}: {done.stderr[-300:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))
