"""A run that is killed, stopped or out of space costs the steps since its last whole checkpoint, and nothing else."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
from tests.projects import environment
from tests.sums import SFT
from tests.test_kill import wait_for
from tests.test_pipeline import hashes

from corpusforge.errors import ConfigError, CountError, TrainingError
from corpusforge.project import Project
from corpusforge.shell import run_stage
from corpusforge.train import fit

LONG = {"trl": {**SFT["trl"], "max_steps": 60, "save_steps": 6}}
KILLED = {
    "train_sft": {},
    "train_raw": {},
    "train_dpo": {},
    "train_grpo": {"num_generations": 4, "max_completion_length": 6, "per_device_train_batch_size": 8},
}


def place(folder, **key):
    return fit.Workplace("train_sft", folder / "checkpoints", key)


def checkpoint(workplace, step, whole=True):
    folder = workplace.checkpoints / f"checkpoint-{step}"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"x")
    if whole:
        fit.seal(folder)
    return folder


def test_the_last_whole_checkpoint_is_resumed_and_half_written_ones_are_removed(tmp_path):
    one = place(tmp_path, rows="a")
    assert one.prepare() is None
    checkpoint(one, 5)
    last = checkpoint(one, 10)
    half = checkpoint(one, 15, whole=False)
    assert place(tmp_path, rows="a").prepare() == last
    assert not half.exists()


@pytest.mark.parametrize("damage", ["cut", "gone", "swapped", "unreadable mark"])
def test_a_checkpoint_that_was_damaged_after_it_was_sealed_is_not_resumed(tmp_path, damage):
    one = place(tmp_path, rows="a")
    one.prepare()
    before = checkpoint(one, 5)
    last = checkpoint(one, 10)
    weights = last / "model.safetensors"
    {
        "cut": lambda: weights.write_bytes(b""),
        "gone": weights.unlink,
        "swapped": lambda: weights.write_bytes(b"y"),
        "unreadable mark": lambda: (last / fit.MARK).write_bytes(b"\xff"),
    }[damage]()
    assert place(tmp_path, rows="a").prepare() == before
    assert not last.exists()


def test_a_key_that_cannot_be_read_is_another_key(tmp_path):
    one = place(tmp_path, rows="a")
    one.prepare()
    left = checkpoint(one, 5)
    (one.checkpoints / "key.json").write_bytes(b"\xff\x00")
    assert one.prepare() is None
    assert not left.exists()


def test_checkpoints_of_a_run_on_other_rows_are_not_resumed(tmp_path):
    one = place(tmp_path, rows="a")
    one.prepare()
    left = checkpoint(one, 5)
    assert place(tmp_path, rows="b").prepare() is None
    assert not left.exists()


def logged(project, name):
    """Every logged figure by step and name."""
    lines = [json.loads(line) for line in (project.data(name) / "steps.jsonl").read_text().splitlines()]
    return {(entry["step"], key): value for entry in lines for key, value in entry.items()}


def stage(project, name):
    return subprocess.Popen(
        [sys.executable, "-m", "corpusforge", "stage", name],
        cwd=project.root, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
def test_a_killed_run_goes_on_from_its_checkpoint_and_ends_with_the_same_weights(edited, tmp_path, name):
    """For GRPO too: checkpoints fall where no batch of generated answers is left over."""
    project = edited(**{name: {"trl": {**LONG["trl"], **KILLED[name]}}})
    if name == "train_grpo":
        run_stage(project, "rollout")
    shutil.copytree(project.root, tmp_path / "whole", symlinks=True)
    run_stage(Project(tmp_path / "whole"), name)
    shutil.rmtree(project.data(name), ignore_errors=True)
    folder = project.root / ".corpusforge" / "checkpoints" / name
    with stage(project, name) as process:
        begun = wait_for(lambda: any(folder.glob(f"checkpoint-*/{fit.MARK}")) or process.poll() is not None, 240)
        process.kill()
        said = process.stderr.read()
    assert begun
    assert process.returncode == -signal.SIGKILL, said
    assert not project.data(name).exists()
    found = run_stage(project, name)
    assert 6 <= found["speed"]["resumed_from"] < 60
    whole = Project(tmp_path / "whole")
    assert logged(project, name) == logged(whole, name)
    assert hashes(project, name) == hashes(whole, name)
    assert not folder.exists()


def test_sigterm_ends_the_run_after_its_step_with_a_checkpoint(edited):
    project = edited(train_sft={"trl": {**LONG["trl"], "save_steps": 1000, "max_steps": 5000}})
    shutil.rmtree(project.data("train_sft"))
    with stage(project, "train_sft") as process:
        key = project.root / ".corpusforge" / "checkpoints" / "train_sft" / "key.json"
        said = process.stderr.readline()  # the first line of progress: it is in the middle of its steps
        process.send_signal(signal.SIGTERM)
        said += process.stderr.read()
    assert key.exists()
    assert process.returncode == TrainingError.exit_code, said
    assert "error[training]: train_sft was told to stop, at step" in said
    assert list(key.parent.glob(f"checkpoint-*/{fit.MARK}"))
    assert not project.data("train_sft").exists()


def test_a_full_disk_is_said_and_leaves_no_half_written_output(edited, tmp_path):
    project = edited(train_sft=LONG)
    shutil.rmtree(project.data("train_sft"))
    small = project.root / ".corpusforge" / "checkpoints"
    small.mkdir(exist_ok=True)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", small], capture_output=True)
    if mounted.returncode:
        pytest.skip("no small disk: mounting one is not allowed here")
    try:
        with pytest.raises(TrainingError, match="train_sft: the disk is full") as error:
            run_stage(project, "train_sft")
    finally:
        subprocess.run(["umount", small], check=True)
    assert "free some space" in error.value.hint
    assert not project.data("train_sft").exists()
    assert run_stage(project, "train_sft")["steps"] == 60


def test_a_loss_that_is_no_number_stops_the_run(edited):
    project = edited(train_sft={"trl": {**SFT["trl"], "learning_rate": 1e30, "max_grad_norm": 0.0}})
    with pytest.raises(TrainingError, match=r"the loss is (nan|inf) at step \d+"):
        run_stage(project, "train_sft")


def test_weights_that_were_lost_between_two_logs_are_no_model(edited):
    project = edited(
        train_sft={"trl": {**SFT["trl"], "learning_rate": 1e30, "max_grad_norm": 0.0, "logging_steps": 99}}
    )
    shutil.rmtree(project.data("train_sft"))
    with pytest.raises(TrainingError, match="after 12 steps the weights are no numbers"):
        run_stage(project, "train_sft")
    assert not project.data("train_sft").exists()


def test_a_run_without_a_step_is_no_training(edited):
    project = edited(train_sft={"trl": {**SFT["trl"], "max_steps": -1, "num_train_epochs": 0}})
    with pytest.raises(ConfigError, match="no step was taken"):
        run_stage(project, "train_sft")


def test_rows_that_trl_drops_without_a_word_fail_the_stage(edited, monkeypatch):
    from corpusforge.train import preflight

    monkeypatch.setattr(preflight, "sft", lambda rows, *_: preflight.Seen(np.arange(len(rows))))
    project = edited(model={"max_length": 16}, train_sft={"trl": {**SFT["trl"], "assistant_only_loss": True}})
    with pytest.raises(CountError, match=r"preflight left \d+ rows, TRL kept 0"):
        run_stage(project, "train_sft")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("save_steps", 0.5),
        ("save_steps", float("nan")),
        ("save_steps", float("inf")),
        ("learning_rate", "fast"),
        ("max_steps", "12"),
        ("max_steps", 0),
        ("optim", "adamx"),
        ("gradient_accumulation_steps", 0),
        ("lr_scheduler_kwargs", {"bogus": 1}),
        ("parallelism_config", {"tp": 2}),
        ("log_completions", True),
    ],
)
def test_a_value_that_trl_refuses_is_a_config_error(edited, name, value):
    project = edited(train_sft={"trl": {**SFT["trl"], name: value}})
    with pytest.raises(ConfigError):
        run_stage(project, "train_sft")


def test_what_is_logged_does_not_differ_from_run_to_run(sums):
    steps = [json.loads(line) for line in (sums.data("train_sft") / "steps.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in steps] == [2, 4, 6, 8, 10, 12]
    assert not any(key.endswith(fit._VOLATILE) for entry in steps for key in entry)
    assert "speed" not in json.loads(sums.figures_path("train_sft").read_text())
    assert json.loads(sums.metrics_path("train_sft").read_text())["seconds"] > 0


def test_the_csv_for_plots_has_the_columns_that_dvc_asks_for(sums):
    from corpusforge import graph

    header = (sums.root / "metrics" / "train_sft.csv").read_text().splitlines()[0]
    assert header.split(",") == ["step", *graph.node("train_sft").plots]


def test_nothing_of_a_finished_run_is_left_behind(sums):
    assert not (sums.root / ".corpusforge" / "checkpoints" / "train_sft").exists()
    assert not (sums.root / ".corpusforge" / "cache").exists()
