"""Policy optimisation with a reward in layers: every layer's value is kept for every completion."""

from __future__ import annotations

import json

import pytest
from tests.sums import GRPO

from corpusforge import methods
from corpusforge.errors import ConfigError
from corpusforge.project import Project
from corpusforge.shell import run_stage
from corpusforge.train._kept import Kept
from corpusforge.verify import Verdict
from corpusforge.verify.layers import Reward

LAYER = "def short(task, completion, *, characters):\n    return float(len(str(completion)) < characters)\n"
REWARDS = {
    "process": {"weight": 0.2},
    "length": {"unit": "characters", "at_most": 4, "slack": 20},
    "own": {"my_rewards:short": {"params": {"characters": 60}}},
}
STEPS = {**GRPO["trl"], "max_steps": 4, "save_steps": 2}


@pytest.fixture
def layered(edited):
    """A copy with layers in its params, tried by rollout."""
    project = edited(train_grpo={"trl": STEPS, "rewards": REWARDS})
    (project.root / "my_rewards.py").write_text(LAYER)
    methods.sync(project)
    run_stage(project, "rollout")
    return Project(project.root)


def lines(project):
    return [json.loads(line) for line in (project.data("train_grpo") / "rewards.jsonl").read_text().splitlines()]


def test_every_layers_value_is_kept_for_every_completion(layered):
    assert "my_rewards.py" in (layered.root / "dvc.yaml").read_text()
    run_stage(layered, "train_grpo")
    kept = lines(layered)
    assert len(kept) == 4 * STEPS["per_device_train_batch_size"]
    assert {tuple(line) for line in kept} == {
        ("step", "row_id", "reward", "rule", "outcome", "process", "length", "my_rewards:short")
    }
    assert {line["row_id"].partition("#")[0] for line in kept} == {"tasks"}
    assert [line["step"] for line in kept] == sorted(line["step"] for line in kept)
    for line in kept:
        values = [(1.0, "outcome"), (0.2, "process"), (0.1, "length"), (0.1, "my_rewards:short")]
        total = sum(weight * (line[name] or 0.0) for weight, name in values)
        assert line["reward"] == pytest.approx(total if line["outcome"] else min(total, 0.5))
    steps = [json.loads(line) for line in (layered.data("train_grpo") / "steps.jsonl").read_text().splitlines()]
    assert all(0 <= entry["layers/length"] <= 1 and entry["layers/process/none"] <= 1 for entry in steps)


def test_without_layers_nothing_is_kept(edited):
    project = edited(train_grpo={"trl": {**STEPS, "max_steps": 2}})
    run_stage(project, "rollout")
    run_stage(project, "train_grpo")
    assert not (project.data("train_grpo") / "rewards.jsonl").exists()


def test_a_layer_that_is_not_there_is_told_before_training(layered):
    (layered.root / "my_rewards.py").write_text("def long(task, completion): return 1.0\n")
    with pytest.raises(ConfigError, match=r"my_rewards has no function 'short'"):
        run_stage(Project(layered.root), "train_grpo")


def test_a_run_that_goes_on_takes_back_the_lines_of_the_steps_that_it_takes_again(tmp_path):
    class State:
        global_step = 0

    reward = Reward(1.0, Verdict("pass", 1.0, "numeric.hash"), {"outcome": 1.0})
    path = tmp_path / "rewards.jsonl"

    def run(*steps):
        kept = Kept(path)
        for State.global_step in steps:
            kept([reward, reward], {"trainer_state": State, "row_id": ["a", "b"]})

    run(0, 2, 4, 6)
    whole = path.read_text()
    with path.open("a") as file:
        file.write('{"step": 8, "row_')
    run(4, 6)
    assert path.read_text() == whole
    run(0)
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [0, 0]
