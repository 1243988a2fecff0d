"""What every layer said of every completion, on disk while a run lasts: a line each, in the order of training.

    {"step": 0, "row_id": "gsm8k#12", "reward": 1.15, "rule": "numeric.hash", "outcome": 1.0, "process": 0.75}

Lines lie beside the checkpoints. A run that goes on from a checkpoint takes back the lines of the steps that it takes
again, so that they are those of an uninterrupted run. No line holds a text.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from corpusforge.verify.layers import Reward

NAME: Final = "rewards.jsonl"


class Kept:
    """Writes the rewards of each batch to `path`; what stands there of this step or a later one goes first."""

    def __init__(self, path: Path) -> None:
        self.path, self.begun = path, False

    def __call__(self, rewards: Sequence[Reward], columns: Mapping[str, Any]) -> None:
        """Write a batch down; `columns` is what TRL gave with it."""
        step = int(columns["trainer_state"].global_step)
        if not self.begun:
            self.begun = True
            _cut(self.path, step)
        names = columns.get("row_id") or [None] * len(rewards)
        with self.path.open("a", encoding="utf-8") as file:
            for name, reward in zip(names, rewards, strict=True):
                about = {"step": step, "row_id": name, "reward": reward.total, "rule": reward.verdict.rule}
                file.write(json.dumps({**about, **reward.values}) + "\n")


def _cut(path: Path, step: int) -> None:
    """Leave the lines of earlier steps alone in the file; a line that a kill cut off is none."""
    kept = []
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            try:
                earlier = json.loads(line)["step"] < step
            except ValueError:
                break
            if not (earlier and line.endswith("\n")):
                break
            kept.append(line)
    half = path.with_name(f".{path.name}")
    half.write_text("".join(kept), encoding="utf-8")
    half.replace(path)
