"""Tell what torch, safetensors and TRL raise while a trainer runs: what it was, and what to type next.

A library's message may hold the text of a row once it has rows in its hands. Then only the error's name is told, and
the place where it was raised; before that, its own words are. An error of ours is let through as it is.

    RuntimeError("WandbCallback requires wandb …")  ->  train_sft: TRL refuses: WandbCallback requires wandb …
    TypeError, in a training step                   ->  train_sft: TypeError in trl.trainer.grpo_trainer, line 1404
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from corpusforge.errors import ConfigError, CorpusForgeError, MissingExtra, StorageError, TrainingError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import FrameType

# Functions of trainers and loaders that have rows in their hands; `datasets` has them everywhere.
_WITH_ROWS: Final = frozenset({"training_step", "prediction_step", "get_batch_samples", "__next__"})
_DEBUG_HINT: Final = (
    "most often an option under trl: does it; CORPUSFORGE_DEBUG=1 shows the traceback (which may hold texts of rows)"
)


@contextmanager
def explained(stage: str, checkpoints: Path) -> Iterator[None]:
    """Errors of libraries, raised in the block, as TrainingError, ConfigError or MissingExtra.

    Where CORPUSFORGE_DEBUG is set, only faults of the disk and a full memory are.
    """
    try:
        yield
    except CorpusForgeError:
        raise
    except Exception as error:
        told = _of_machine(stage, checkpoints, error)
        if told is None:
            frames = _frames(error)
            ours = frames[-1].f_globals.get("__name__", "").startswith("corpusforge.")
            if os.environ.get("CORPUSFORGE_DEBUG") or ours:
                raise
            told = _refused(stage, error, frames)
        raise told from None


def _of_machine(stage: str, checkpoints: Path, error: Exception) -> CorpusForgeError | None:
    told = StorageError.of(error, stage)
    if told is not None and told.message.endswith("is full"):
        hint = f"free some space, then run it again: it goes on from the last checkpoint in {checkpoints}"
        return TrainingError(told.message, hint=hint)
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        hint = "lower trl.per_device_train_batch_size, or set trl.gradient_checkpointing: true"
        return TrainingError(f"{stage}: out of memory", hint=hint)
    return told


def _refused(stage: str, error: Exception, frames: list[FrameType]) -> CorpusForgeError:
    place = f"{frames[-1].f_globals.get('__name__', 'an unknown place')}, line {frames[-1].f_lineno}"
    if any(_with_rows(frame) for frame in frames):
        return TrainingError(f"{stage}: {type(error).__name__} in {place}", hint=_DEBUG_HINT)
    says = " ".join(str(error).split())[:300] or f"{type(error).__name__} in {place}"
    if isinstance(error, ImportError):
        return MissingExtra(f"{stage}: an option under trl needs a package: {says}", hint="install it, or drop it")
    return ConfigError(f"{stage}: TRL refuses: {says}", hint="change the option under trl; docs/training.md")


def _with_rows(frame: FrameType) -> bool:
    return frame.f_code.co_name in _WITH_ROWS or frame.f_globals.get("__name__", "").startswith("datasets.")


def _frames(error: BaseException) -> list[FrameType]:
    """The frames that an error came through, outermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        found.append(trace.tb_frame)
        trace = trace.tb_next
    return found
