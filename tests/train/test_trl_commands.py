"""TRL's own commands train on our shards: without any code of ours for SFT and DPO, with our reward for GRPO."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from safetensors.numpy import load_file
from tests.projects import chat, make_project
from tests.rows import table
from tests.test_export import rows

import corpusforge as cf
from corpusforge.io import export
from corpusforge.io.shards import write_shards
from corpusforge.train import model, scratch
from corpusforge.train._config import ScratchConfig

if TYPE_CHECKING:
    from corpusforge.project import Project

pytest.importorskip("trl", reason="training needs the extra `train`")
pytestmark = pytest.mark.slow

ON_A_CPU = ["--use_cpu", "true", "--bf16", "false", "--gradient_checkpointing", "false", "--save_strategy", "no"]
STEPS = {"max_steps": 3, "per_device_train_batch_size": 2, "logging_steps": 1, "learning_rate": 1.0e-3}
GRPO = {**STEPS, "num_generations": 2, "max_completion_length": 4}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Shards with calls, pairs and tasks, a tiny model, and the configs of TRL's commands."""
    root = tmp_path_factory.mktemp("project")
    blocks = {"train_sft": {"trl": STEPS}, "train_dpo": {"trl": STEPS}, "rollout": {}, "train_grpo": {"trl": GRPO}}
    project = make_project(root, {"chats": [chat(0)]}, model={"name": "./tiny", "max_length": 96}, **blocks)
    write_shards(table(rows()), project.data("shard"))
    texts = [message["content"] or "" for row in rows() for message in row["messages"]]
    tokenizer = scratch.train_tokenizer(texts, 330, 96)
    size = ScratchConfig(vocab_size=330, hidden_size=16, layers=1, heads=2)
    model.save(scratch.make_model(size, tokenizer, 96, 0), tokenizer, root / "tiny")
    cf.export("trl", project=project)
    return project


def train(project: Project, stage: str) -> str:
    """Run `trl STAGE --config STAGE.yaml` in the folder of the export; what it printed."""
    command = [str(Path(sys.executable).with_name("trl")), stage, "--config", f"{stage}.yaml", *ON_A_CPU]
    ran = subprocess.run(
        command,
        cwd=project.root / "export" / "trl",
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(project.root / "hf"), "ACCELERATE_USE_CPU": "true"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-2_000:]
    return ran.stdout + ran.stderr


def weights(folder: Path) -> dict[str, list[float]]:
    """All weights of a model's folder."""
    return {name: values.tolist() for name, values in load_file(folder / "model.safetensors").items()}


def test_sft_then_dpo_then_grpo_train_from_the_written_configs(project):
    output = project.root / "export" / "trl" / "output"
    train(project, "sft")
    assert weights(output / "sft") != weights(project.root / "tiny")
    train(project, "dpo")
    assert weights(output / "dpo") != weights(output / "sft")
    said = train(project, "grpo")
    assert "verdicts/fail" in said
    assert (output / "grpo" / "model.safetensors").is_file()


def test_a_template_that_marks_no_turns_is_trained_on_whole(project):
    template = project.root / "plain.jinja"
    template.write_text("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", encoding="utf-8")
    config = project.params.model
    assert export.assistant_only(project.root, config, {}) is True
    unmarked = config.model_copy(update={"chat_template": "plain.jinja"})
    assert export.assistant_only(project.root, unmarked, {}) is False
