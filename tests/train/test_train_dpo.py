"""Preference optimisation from the pairs of the shards."""

from __future__ import annotations

import json

import pytest
from tests.sums import DPO
from tests.test_pipeline import hashes

from corpusforge.errors import ProjectError
from corpusforge.shell import run_stage
from corpusforge.train import model


@pytest.fixture(scope="module")
def tuned(sums, tmp_path_factory):
    import shutil

    from corpusforge.project import Project

    root = tmp_path_factory.mktemp("dpo") / "project"
    shutil.copytree(sums.root, root, symlinks=True)
    project = Project(root)
    run_stage(project, "train_dpo")
    return project


def test_it_starts_from_the_tuned_model_and_raises_the_margin(tuned):
    steps = [json.loads(line) for line in (tuned.data("train_dpo") / "steps.jsonl").read_text().splitlines()]
    assert steps[-1]["rewards/margins"] > steps[0]["rewards/margins"]
    one, other = (model.load(str(tuned.data(name) / "model"))[0] for name in ("train_sft", "train_dpo"))
    assert model.state_hash(one) != model.state_hash(other)


def test_the_same_input_gives_the_same_bytes(tuned):
    before = hashes(tuned, "train_dpo")
    run_stage(tuned, "train_dpo")
    assert hashes(tuned, "train_dpo") == before


def test_shards_without_pairs_are_an_error_that_says_what_to_do(edited):
    project = edited(model={"where": {"source": ["talk"]}}, train_dpo=DPO)
    with pytest.raises(ProjectError, match="train_dpo: the shards hold no preference row") as error:
        run_stage(project, "train_dpo")
    assert "take train_dpo out" in error.value.hint


def test_a_stage_before_that_has_not_run_is_named(edited):
    import shutil

    project = edited(train_dpo=DPO)
    shutil.rmtree(project.data("train_sft"))
    with pytest.raises(ProjectError, match="train_sft"):
        run_stage(project, "train_dpo")


def test_the_number_of_threads_changes_no_byte_of_a_small_model(tuned):
    import torch

    before, threads = hashes(tuned, "train_dpo"), torch.get_num_threads()
    for number in (1, 2):
        torch.set_num_threads(number)
        try:
            run_stage(tuned, "train_dpo")
        finally:
            torch.set_num_threads(threads)
        assert hashes(tuned, "train_dpo") == before
