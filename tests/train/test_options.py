"""TRL's options: names are checked before the first stage, without torch; values when the stage starts."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import pytest
from tests.sums import SFT
from tests.test_pipeline import edit_params

from corpusforge import methods
from corpusforge.errors import ConfigError, UnknownKey
from corpusforge.project import Project
from corpusforge.train import options


@pytest.mark.parametrize(
    ("module", "name"), [("sft_config", "SFTConfig"), ("dpo_config", "DPOConfig"), ("grpo_config", "GRPOConfig")]
)
def test_names_read_from_the_sources_are_those_of_the_class(module, name):
    import trl

    assert options.names(module) >= {field.name for field in fields(getattr(trl, name))}


def test_a_misspelt_name_is_answered_with_the_nearest_right_one():
    with pytest.raises(UnknownKey, match=r"train_sft\.trl: unknown option 'learning_rat'") as error:
        options.check_names("train_sft", {"learning_rat": 1})
    assert error.value.hint == "did you mean 'learning_rate'?"


def test_an_option_of_another_trainer_is_unknown():
    options.check_names("train_grpo", {"num_generations": 8})
    with pytest.raises(UnknownKey):
        options.check_names("train_dpo", {"num_generations": 8})


@pytest.mark.parametrize("name", options.OURS)
def test_an_option_that_corpusforge_sets_is_answered_with_what_to_do(name):
    with pytest.raises(ConfigError, match=f"{name!r} is set by CorpusForge") as error:
        options.check_names("train_sft", {name: 1})
    assert error.value.hint


def test_checking_names_loads_no_torch():
    code = "import sys; from corpusforge.train.options import names; sys.exit('torch' in sys.modules or not names(%r))"
    subprocess.run([sys.executable, "-c", code % "sft_config"], check=True)


@pytest.mark.parametrize("value", ["fast", "0.1", None, [1], True])
def test_a_value_of_another_type_is_named(value):
    with pytest.raises(ConfigError, match=r"train_sft\.trl: learning_rate is a \w+, SFTConfig expects float"):
        options.check_values("train_sft", {"learning_rate": value})


@pytest.mark.parametrize("stage", options.CONFIGS)
def test_a_whole_number_is_a_number(stage):
    options.check_values(stage, {"learning_rate": 1, "report_to": "none", "max_grad_norm": 0.5})


@pytest.mark.parametrize("given", [{"r": "eight"}, {"rank": 8}])
def test_a_wrong_option_of_lora_is_told_as_one_of_lora(given):
    from corpusforge.train.fit import _lora

    with pytest.raises(ConfigError, match=r"model\.lora") as error:
        _lora(given)
    assert error.value.hint


def test_a_misspelt_option_of_lora_is_answered_with_the_nearest_right_one():
    from corpusforge.train.fit import _lora

    with pytest.raises(UnknownKey, match=r"model\.lora: unknown option 'lora_alfa'") as error:
        _lora({"r": 8, "lora_alfa": 16})
    assert error.value.hint == "did you mean 'lora_alpha'?"


def test_the_first_stage_refuses_a_misspelt_option_of_the_last(sums, tmp_path):
    import shutil

    shutil.copytree(sums.root, tmp_path / "project", symlinks=True)
    project = edit_params(Project(tmp_path / "project"), lambda p: p["train_grpo"]["trl"].update(num_generation=4))
    with pytest.raises(UnknownKey, match=r"train_grpo\.trl: unknown option 'num_generation'"):
        methods.check(project, "ingest")


def test_a_batch_that_num_generations_does_not_divide_is_refused(edited):
    from corpusforge.shell import run_stage

    trl = {**SFT["trl"], "num_generations": 3, "per_device_train_batch_size": 4, "max_completion_length": 6}
    project = edited(train_grpo={"trl": trl})
    run_stage(project, "rollout")
    with pytest.raises(ConfigError, match="GRPOConfig refuses"):
        run_stage(project, "train_grpo")
