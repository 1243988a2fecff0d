"""The config files with which other trainers read our shards: TRL's own commands, axolotl, LLaMA-Factory.

Each function turns one stage's settings (the `model:` block and the `trl:` block) into the options of one tool, under
that tool's names. Where a project does not set an option, TRL's default is written out, because the tools' own
defaults differ (axolotl's scheduler is cosine, TRL's linear). Option names: TRL 1.16 `trl/scripts/utils.py`, axolotl
0.21 `axolotl/utils/schemas/`, LLaMA-Factory 0.9.5 `llamafactory/hparams/`.

    train_sft: {trl: {per_device_train_batch_size: 4}}  ->  trl            per_device_train_batch_size: 4
                                                            axolotl        micro_batch_size: 4
                                                            llamafactory   per_device_train_batch_size: 4
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError
from corpusforge.train._config import ModelConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KINDS: Final = {"sft": "sft", "dpo": "preference", "grpo": "task"}
"""The kind of rows that each stage trains on."""
REWARD: Final = "corpusforge.verify.reward.reward"
_DEFAULTS: Final[dict[str, Any]] = {
    "per_device_train_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "num_train_epochs": 3.0,
    "lr_scheduler_type": "linear",
    "optim": "adamw_torch_fused",
    "weight_decay": 0.0,
    "max_grad_norm": 1.0,
    "bf16": True,
    "gradient_checkpointing": True,
    "logging_steps": 10,
    "save_steps": 100,
    "save_total_limit": 2,
}
_STAGE_DEFAULTS: Final[dict[str, dict[str, Any]]] = {
    "sft": {"learning_rate": 2e-5},
    "dpo": {"learning_rate": 1e-6, "beta": 0.1},
    "grpo": {
        "learning_rate": 1e-6,
        "beta": 0.0,
        "num_generations": 8,
        "max_completion_length": 512,
        "temperature": 1.0,
        "loss_type": "dapo",
    },
}
_LORA: Final = {"r": 8, "lora_alpha": 8, "lora_dropout": 0.0}  # peft's own defaults


@dataclass(frozen=True)
class Job:
    """One stage to train elsewhere. Paths are relative to the folder of the config."""

    stage: str
    """sft, dpo or grpo."""
    model: str
    """The model of params.yaml: a folder, or a name on the hub."""
    files: tuple[str, ...]
    """Parquet files with the rows."""
    columns: tuple[str, ...]
    """Columns of those files that training reads."""
    config: ModelConfig = field(default_factory=ModelConfig)
    options: Mapping[str, Any] = field(default_factory=dict)
    """The stage's `trl:` block."""
    cut: str = "drop"
    assistant_only: bool = True
    """Whether `sft` is to train on the assistant's turns alone."""
    template: str = ""
    """File with a chat template."""
    tuned: str = ""
    """Folder that `sft` of the same export leaves its model in, when this stage goes on from there."""

    @property
    def settings(self) -> dict[str, Any]:
        """The `trl:` block, and TRL's defaults for what it leaves out."""
        settings = {**_DEFAULTS, **_STAGE_DEFAULTS[self.stage], **self.options}
        if "bf16" not in self.options and (self.options.get("fp16") or self.options.get("use_cpu")):
            settings["bf16"] = False
        return settings

    @property
    def output(self) -> str:
        """Folder that the trained model goes to."""
        return f"output/{self.stage}"


@dataclass(frozen=True)
class Written:
    """A tool's options, and the names of settings that it has no option for."""

    options: dict[str, Any]
    lost: tuple[str, ...] = ()
    first: str = ""
    """A command to run before the tool's own."""


def trl(job: Job) -> Written:
    """Options of `trl sft`, `trl dpo` or `trl grpo` (`--config`): the `trl:` block passes through as it stands."""
    config = job.config
    start, first = _start(job, f"{job.tuned}-merged", _MERGE.format(tuned=job.tuned))
    options: dict[str, Any] = {"model_name_or_path": start, "dtype": "auto"}
    if config.revision:
        options["model_revision"] = config.revision
    lost = bool(job.template) and not job.tuned  # a tuned model brings it along
    if job.stage == "sft" and job.template.endswith((".jinja", ".j2")):  # TRL takes other names for a tokenizer's
        options["chat_template_path"] = job.template
        lost = False
    rows = {"path": "parquet", "data_files": list(job.files), "columns": list(job.columns)}
    options |= {"datasets": [rows], "output_dir": job.output}
    if job.stage != "grpo":
        options["max_length"] = config.max_length
    else:
        options["reward_funcs"] = [REWARD]
    if job.stage == "sft":
        options["assistant_only_loss"] = job.assistant_only
    mine = {name: value for name, value in job.settings.items() if name not in _STATED or name in job.options}
    options |= {"seed": config.seed, "data_seed": config.seed, "report_to": "none", **mine}
    if config.lora is not None:
        options |= {"use_peft": True, **_lora(config.lora, "TRL's command", _TRL_LORA)}
    return Written(options, ("model.chat_template",) if lost else (), first)


def _start(job: Job, merged: str, merge: str) -> tuple[str, str]:
    """What a stage starts from, and what makes it: an adapter must become a whole model before the next adapter."""
    if not job.tuned:
        return job.model, ""
    return (job.tuned, "") if job.config.lora is None else (merged, merge)


_MERGE: Final = (
    'python -c "import peft, transformers as t; '
    "peft.AutoPeftModelForCausalLM.from_pretrained('{tuned}').merge_and_unload().save_pretrained('{tuned}-merged'); "
    "t.AutoTokenizer.from_pretrained('{tuned}').save_pretrained('{tuned}-merged')\""
)
_STATED: Final = ("bf16", "gradient_checkpointing")  # TRL turns them on by itself, and off where `use_cpu` says so
_TRL_LORA: Final = {
    "r": "lora_r",
    "lora_alpha": "lora_alpha",
    "lora_dropout": "lora_dropout",
    "target_modules": "lora_target_modules",
    "target_parameters": "lora_target_parameters",
    "modules_to_save": "lora_modules_to_save",
    "use_rslora": "use_rslora",
    "use_dora": "use_dora",
}


def axolotl(job: Job) -> Written:
    """Options of `axolotl train`. Pairs and tasks go to TRL's trainers inside axolotl as they are in the shards.

    axolotl's own `chat_template.default` for pairs renders role and content only: tools, calls and reasoning would be
    lost. With `passthrough` and `skip_prepare_dataset`, TRL renders the pairs itself.
    """
    config = job.config
    place = job.files[0].rpartition("/")[0] or "."
    rows: dict[str, Any] = {"path": place, "ds_type": "parquet", "data_files": list(job.files), "split": "train"}
    start, first = _start(job, f"{job.tuned}/merged", "axolotl merge-lora sft.yaml")
    options: dict[str, Any] = {"base_model": start, "output_dir": job.output, "sequence_len": config.max_length}
    if config.revision:
        options["revision_of_model"] = config.revision
    if job.template:
        options |= {"chat_template": "jinja", "chat_template_jinja": job.template}
    else:
        options["chat_template"] = "tokenizer_default"
    if job.stage == "sft":
        properties = {"role": "role", "content": "content"}
        rows |= {"type": "chat_template", "field_messages": "messages", "message_property_mappings": properties}
        rows |= {"field_tools": "tools", "roles_to_train": ["assistant"], "train_on_eos": "turn"}
        options["excess_length_strategy"] = "drop" if job.cut == "drop" else "truncate"
    else:
        rows |= {"type": "passthrough"} if job.stage == "dpo" else {}
        options |= {"rl": job.stage, "skip_prepare_dataset": True}
    options |= {"datasets": [rows], "val_set_size": 0.0, "seed": config.seed}
    inner, lost = _axolotl_settings(job)
    options |= inner
    if job.stage == "grpo":
        options.setdefault("trl", {})["reward_funcs"] = [REWARD]
    if config.lora is not None:
        options |= _axolotl_lora(config.lora)
    return Written(options, lost, first)


def _axolotl_settings(job: Job) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Settings under axolotl's names, those of the answers and rewards below `trl`; and what it has no name for."""
    options: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    lost = []
    own = _AXOLOTL | _AXOLOTL_STAGE[job.stage]
    for name, value in job.settings.items():
        if name == "warmup_steps" and isinstance(value, float) and value < 1:  # a share of all steps
            options["warmup_ratio"] = value
        elif name in own:
            options[own[name]] = [value] if name == "loss_type" and isinstance(value, str) else value
        elif job.stage == "grpo" and name in _AXOLOTL_TRL:
            inner[name] = value
        else:
            lost.append(name)
    return options | ({"trl": inner} if inner else {}), tuple(lost)


_SAME: Final = (
    *("gradient_accumulation_steps", "max_steps", "learning_rate", "warmup_steps", "warmup_ratio", "weight_decay"),
    *("max_grad_norm", "adam_epsilon", "bf16", "fp16", "gradient_checkpointing", "logging_steps", "save_steps"),
    "save_total_limit",
)
_AXOLOTL: Final = {name: name for name in (*_SAME, "adam_beta1", "adam_beta2")} | {
    "per_device_train_batch_size": "micro_batch_size",
    "num_train_epochs": "num_epochs",
    "lr_scheduler_type": "lr_scheduler",
    "optim": "optimizer",
}
_AXOLOTL_STAGE: Final[dict[str, dict[str, str]]] = {
    "sft": {"packing": "sample_packing"},
    "dpo": {"beta": "rl_beta", "loss_type": "dpo_loss_type", "label_smoothing": "dpo_label_smoothing"},
    "grpo": {},
}
_AXOLOTL_TRL: Final = (
    *("beta", "num_generations", "max_completion_length", "temperature", "top_p", "top_k", "min_p", "loss_type"),
    *("repetition_penalty", "num_iterations", "epsilon", "epsilon_high", "scale_rewards", "generation_batch_size"),
    *("mask_truncated_completions", "log_completions", "use_vllm", "vllm_mode", "sync_ref_model"),
)


def _axolotl_lora(given: Mapping[str, Any]) -> dict[str, Any]:
    names = {**_TRL_LORA, "use_rslora": "peft_use_rslora", "use_dora": "peft_use_dora"}
    options = {"adapter": "lora", **_lora(given, "axolotl", names)}
    targets = options.pop("lora_target_modules", None) or _no_targets("axolotl")
    return options | ({"lora_target_linear": True} if targets == _ALL else {"lora_target_modules": targets})


def llamafactory(job: Job) -> Written:
    """Options of `llamafactory-cli train`, for sft and dpo; the rows have the form of `sharegpt`."""
    config = job.config
    start, _ = _start(job, job.model, "")
    options: dict[str, Any] = {"model_name_or_path": start, "output_dir": job.output, "stage": job.stage}
    if config.revision:
        options["model_revision"] = config.revision
    options |= {"do_train": True, "finetuning_type": "full" if config.lora is None else "lora"}
    options |= {"dataset_dir": ".", "dataset": dataset_name(job.stage), "cutoff_len": config.max_length}
    options |= {"seed": config.seed, "data_seed": config.seed, "report_to": "none"}
    lost = ["model.chat_template"] if job.template else []
    own = {name: name for name in _LLAMAFACTORY} | (
        {"packing": "packing"} if job.stage == "sft" else {"beta": "pref_beta", "loss_type": "pref_loss"}
    )
    for name, value in job.settings.items():
        if name == "gradient_checkpointing":
            options |= {} if value else {"disable_gradient_checkpointing": True}
        elif name in own:
            options[own[name]] = value
        else:
            lost.append(name)
    if config.lora is not None:
        options |= _llamafactory_lora(config.lora)
        if job.tuned:  # merged when it is loaded, so that DPO's reference is the tuned model, not the one below it
            options |= {"adapter_name_or_path": job.tuned, "create_new_adapter": True}
    return Written(options, tuple(lost))


_LLAMAFACTORY: Final = (
    *(name for name in _SAME if name != "gradient_checkpointing"),
    *("per_device_train_batch_size", "num_train_epochs", "lr_scheduler_type", "optim", "adam_beta1", "adam_beta2"),
    *("use_cpu", "dataloader_num_workers", "deepspeed", "fsdp", "save_strategy"),
)


def _llamafactory_lora(given: Mapping[str, Any]) -> dict[str, Any]:
    names = {name: name for name in ("lora_alpha", "lora_dropout", "use_rslora", "use_dora")}
    names |= {"r": "lora_rank", "target_modules": "lora_target", "modules_to_save": "additional_target"}
    options = _lora(given, "LLaMA-Factory", names)
    targets = options.get("lora_target") or _no_targets("LLaMA-Factory")
    options["lora_target"] = "all" if targets == _ALL else ",".join(targets)
    if options.get("additional_target"):
        options["additional_target"] = ",".join(options["additional_target"])
    return options


_ALL: Final = ["all-linear"]


def _lora(given: Mapping[str, Any], tool: str, names: Mapping[str, str]) -> dict[str, Any]:
    """Options of peft's LoraConfig under a tool's names. Raises ConfigError for one that the tool has no name for."""
    options: dict[str, Any] = {}
    for name, value in {**_LORA, **given}.items():
        if name == "task_type" and value == "CAUSAL_LM":
            continue
        if name not in names:
            raise ConfigError(f"model.lora: {tool} has no option for {name!r}", hint="train with `dvc repro` instead")
        listed = name in ("target_modules", "target_parameters", "modules_to_save") and isinstance(value, str)
        options[names[name]] = [value] if listed else value
    return options


def _no_targets(tool: str) -> Any:
    raise ConfigError(
        f"model.lora: {tool} needs target_modules", hint="write [q_proj, v_proj] (peft's default) or all-linear"
    )


def dataset_name(stage: str) -> str:
    """The name of a stage's rows in dataset_info.json."""
    return f"corpusforge_{stage}"


def dataset_info(stage: str, file: str) -> dict[str, Any]:
    """The entry of LLaMA-Factory's dataset_info.json for rows in the form of `sharegpt`."""
    columns = {"messages": "messages", "tools": "tools"}
    if stage == "dpo":
        columns |= {"chosen": "chosen", "rejected": "rejected"}
    tags = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}
    tags |= {"observation_tag": "tool", "function_tag": "function_call", "system_tag": "system"}
    return {"file_name": file, "formatting": "sharegpt", "ranking": stage == "dpo", "columns": columns, "tags": tags}


@dataclass(frozen=True)
class Tool:
    """A trainer outside CorpusForge."""

    name: str
    options: Callable[[Job], Written]
    command: str
    """To type in the folder of the config."""
    stages: tuple[str, ...] = tuple(KINDS)
    reads_shards: bool = True


TOOLS: Final = {
    "trl": Tool("TRL", trl, "trl {stage} --config {stage}.yaml"),
    "axolotl": Tool("axolotl", axolotl, "axolotl train {stage}.yaml"),
    "llamafactory": Tool(
        "LLaMA-Factory", llamafactory, "llamafactory-cli train {stage}.yaml", ("sft", "dpo"), reads_shards=False
    ),
}
"""Trainers by the name that `export` knows them by."""
