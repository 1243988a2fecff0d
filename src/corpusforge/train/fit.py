"""Run a TRL trainer so that a kill costs at most the steps since the last checkpoint.

Checkpoints lie outside the stage's output (DVC deletes that before it runs), under a key made of everything that the
weights depend on. A checkpoint counts when its mark, written after all of it was synced, holds the hash of every file;
one that is half-written or damaged is never resumed from. On a CPU the weights after a resumed run are those of an
uninterrupted one, bit for bit.

    .corpusforge/checkpoints/train_sft/key.json
    .corpusforge/checkpoints/train_sft/checkpoint-200/… complete
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import signal
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError, CountError, TrainingError
from corpusforge.train import options
from corpusforge.train._faults import explained
from corpusforge.train.model import not_finite, quiet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

MARK: Final = "complete"
_SAVE_EVERY: Final = 100  # steps between checkpoints, where params do not say
# Entries of the log that differ from run to run, or after a resume (TRL counts tokens from the last start).
_VOLATILE: Final = ("_runtime", "_per_second", "step_time", "_time", "total_flos", "num_tokens")
_TOLD_EVERY: Final = 15.0  # seconds between lines of progress where stderr is no terminal


@dataclass(frozen=True)
class Start:
    """What training starts from: a loaded model, its tokenizer, and the settings that concern both."""

    model: Any  # transformers.PreTrainedModel
    tokenizer: Any  # transformers.PreTrainedTokenizerBase
    max_length: int
    seed: int = 0
    lora: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Workplace:
    """Where a run keeps its checkpoints, and what its weights depend on."""

    stage: str
    checkpoints: Path
    key: Mapping[str, Any] = field(default_factory=dict)

    def prepare(self) -> Path | None:
        """Make the folder ready; returns the last whole checkpoint of the same run, if there is one."""
        path = self.checkpoints / "key.json"
        text = json.dumps(self.key, indent=2, sort_keys=True, default=str).encode()
        if not path.is_file() or path.read_bytes() != text:
            shutil.rmtree(self.checkpoints, ignore_errors=True)
            self.checkpoints.mkdir(parents=True)
            path.write_bytes(text)
        whole = []
        for one in self.checkpoints.glob("checkpoint-*"):
            if is_whole(one):
                whole.append(one)
            else:
                shutil.rmtree(one)
        return max(whole, key=_step_of, default=None)

    def clear(self) -> None:
        """Remove the checkpoints: the output is there."""
        shutil.rmtree(self.checkpoints, ignore_errors=True)


@dataclass(frozen=True)
class Trained:
    """A trained model, with what was logged on the way. `speed` differs from run to run, all else does not."""

    model: Any
    tokenizer: Any
    log: list[dict[str, Any]]  # one entry per logged step: step, loss, …
    steps: int
    rows: int
    speed: dict[str, float]
    resumed_from: int = 0


def arguments(kind: Any, given: Mapping[str, Any], start: Start, place: Workplace) -> Any:
    """TRL's config for this run: the user's options, TRL's defaults where they fit the machine, and what is ours."""
    import torch

    options.check_names(place.stage, given)
    on_gpu = torch.cuda.is_available() and not given.get("use_cpu", False)
    wanted = {"save_steps": _SAVE_EVERY, "logging_steps": 10, "report_to": "none", "disable_tqdm": True}
    if not on_gpu:  # TRL turns both on by itself; on a CPU they cost time and precision, and save nothing
        wanted |= {"bf16": False, "gradient_checkpointing": False, "use_cpu": True}
    # transformers hides losses that are no numbers unless told otherwise; here they stop the run
    wanted |= {"dataloader_pin_memory": on_gpu, "logging_nan_inf_filter": False, **given}
    ours = {
        "output_dir": str(place.checkpoints),
        "seed": start.seed,
        "data_seed": start.seed,
        "save_strategy": "steps",
        "save_total_limit": 2,
    }
    if "max_length" in options.names(options.CONFIGS[place.stage]) and place.stage != "train_grpo":
        ours["max_length"] = start.max_length
    with quiet():
        args = options.build(kind, wanted, ours, f"{place.stage}.trl")
    if not args.max_steps:  # transformers takes one step, then sees that it was one too many
        raise ConfigError(f"{place.stage}.trl: max_steps is 0", hint="leave it out to train num_train_epochs epochs")
    if not (args.save_steps >= 1 and float(args.save_steps).is_integer()):
        raise ConfigError(f"{place.stage}.trl: save_steps is {args.save_steps}, expected whole steps", hint="write 100")
    return args


def fit(trainer: Any, args: Any, start: Start, rows: Any, place: Workplace, **more: Any) -> Trained:
    """Train until the end, from the last checkpoint if there is one.

    `rows` is a `datasets.Dataset` that preflight has been through: the trainer must keep every row of it, else
    CountError. Raises TrainingError when the loss is not finite, the disk is full, or the run was told to stop.
    """
    from transformers.trainer_callback import PrinterCallback

    watch = _watch(place)
    with explained(place.stage, place.checkpoints), _stoppable(watch), quiet():
        checkpoint = place.prepare()
        built = trainer(
            model=start.model,
            args=args,
            train_dataset=rows,
            processing_class=start.tokenizer,
            callbacks=[watch],
            peft_config=_lora(start.lora),
            **more,
        )
        built.remove_callback(PrinterCallback)  # progress is told by `watch`
        _same_rows(built, rows, args)
        began = time.monotonic()
        built.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        seconds = time.monotonic() - began
    if watch.stopped:
        at = built.state.global_step
        raise TrainingError(f"{place.stage} was told to stop, at step {at}", hint="run it again: it goes on from there")
    model = built.accelerator.unwrap_model(built.model)
    if start.lora is not None:
        model = model.merge_and_unload()
    _check_trained(model, built.state.global_step, place)
    before = _step_of(checkpoint) if checkpoint else 0
    return Trained(
        model, start.tokenizer, _log(built.state.log_history), built.state.global_step, len(rows),
        _speed(built, seconds, before), before,
    )  # fmt: skip


def _same_rows(trainer: Any, rows: Any, args: Any) -> None:
    """TRL drops rows without a word: count them."""
    if getattr(args, "packing", False):
        return
    left = len(trainer.train_dataset)
    if left != len(rows):
        raise CountError(f"preflight left {len(rows)} rows, TRL kept {left} of them", hint="please report this")


def _check_trained(model: Any, steps: int, place: Workplace) -> None:
    """A loss that is lost between two logs, and a run without a step, leave no other trace."""
    if not steps:
        raise ConfigError(f"{place.stage}: no step was taken", hint="set trl.max_steps or trl.num_train_epochs")
    if not_finite(model):
        raise TrainingError(
            f"{place.stage}: after {steps} steps the weights are no numbers", hint="lower trl.learning_rate"
        )


def _lora(given: Mapping[str, Any] | None) -> Any:
    if given is None:
        return None
    from peft import LoraConfig

    return options.build(LoraConfig, {"task_type": "CAUSAL_LM", **given}, {}, "model.lora")


def _watch(place: Workplace) -> Any:
    """A callback that marks whole checkpoints, tells progress, and stops on request or when the loss is lost."""
    from transformers import TrainerCallback

    class Watch(TrainerCallback):  # type: ignore[misc]
        stopped = False
        told = 0.0

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            seal(place.checkpoints / f"checkpoint-{state.global_step}")

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
            if self.stopped:
                control.should_save = control.should_training_stop = True

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:  # noqa: ARG002
            said = {k: v for k, v in (logs or {}).items() if k in ("loss", "reward") and isinstance(v, float)}
            loss = said.get("loss", 0.0)
            if not math.isfinite(loss):
                raise TrainingError(
                    f"{place.stage}: the loss is {loss} at step {state.global_step}", hint="lower trl.learning_rate"
                )
            if sys.stderr.isatty() or time.monotonic() - self.told > _TOLD_EVERY:
                self.told = time.monotonic()
                shown = ", ".join(f"{name} {value:.4g}" for name, value in said.items())
                sys.stderr.write(f"{place.stage}: step {state.global_step} of {state.max_steps}, {shown}\n")

    return Watch()


def seal(checkpoint: Path) -> None:
    """Sync a checkpoint to disk and mark it as whole: the mark holds the hash of every file."""
    hashes = {}
    for path in _files(checkpoint):
        with path.open("rb") as file:
            os.fsync(file.fileno())
        hashes[path.relative_to(checkpoint).as_posix()] = _hash(path)
    half = checkpoint / f".{MARK}"
    with half.open("w", encoding="utf-8") as file:
        json.dump(hashes, file)
        file.flush()
        os.fsync(file.fileno())
    half.rename(checkpoint / MARK)


def is_whole(checkpoint: Path) -> bool:
    """Whether a checkpoint was sealed, and its files are still those that were."""
    try:
        sealed = json.loads((checkpoint / MARK).read_bytes())
        return bool(sealed == {path.relative_to(checkpoint).as_posix(): _hash(path) for path in _files(checkpoint)})
    except (OSError, ValueError):
        return False


def _files(checkpoint: Path) -> list[Path]:
    return sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.name.lstrip(".") != MARK)


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _stoppable(watch: Any) -> Iterator[None]:
    """SIGTERM ends the run after the step it is in, with a checkpoint."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: Any) -> None:
        watch.stopped = True

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _log(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was logged, without what differs from run to run; keys sorted, as a checkpoint gives them back."""
    kept = [{k: _number(v) for k, v in sorted(entry.items()) if not k.endswith(_VOLATILE)} for entry in history]
    return [{"step": entry.pop("step"), **entry} for entry in kept if "loss" in entry or "reward" in entry]


def _number(value: Any) -> Any:
    """JSON has no NaN: what is no number is null."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _speed(trainer: Any, seconds: float, before: int) -> dict[str, float]:
    steps = trainer.state.global_step - before
    tokens = max((entry.get("num_tokens", 0) for entry in trainer.state.log_history), default=0)
    found = {"seconds": round(seconds, 1), "steps_per_second": round(steps / max(seconds, 1e-9), 2)}
    if tokens and not before:
        found |= {"tokens": tokens, "tokens_per_second": round(tokens / max(seconds, 1e-9))}
    return found


def _step_of(checkpoint: Path) -> int:
    return int(checkpoint.name.rpartition("-")[2])
