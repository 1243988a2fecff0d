"""The `trl:` block: TRL's own options, checked by TRL's own config classes, wrong names answered with the nearest one.

Names can be checked without loading torch, because a dataclass states its fields in its source: so a misspelling in
`train_grpo` stops the build before its first stage, not after an hour of training. Values are checked by building the
config, when the stage starts.

    trl: {learning_rat: 1.0e-4}   ->   train_sft.trl: unknown option 'learning_rat'; did you mean 'learning_rate'?
"""

from __future__ import annotations

import ast
import difflib
import importlib
import importlib.util
from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError, UnknownKey

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

CONFIGS: Final = {
    "train_sft": "sft_config",
    "train_raw": "sft_config",
    "train_dpo": "dpo_config",
    "train_grpo": "grpo_config",
}
OURS: Final = {
    "output_dir": "the stage decides where its output goes",
    "max_length": "write model.max_length",
    "seed": "write model.seed",
    "data_seed": "write model.seed",
    "resume_from_checkpoint": "a stage resumes by itself",
    "chat_template_path": "write model.chat_template",
    "model_init_kwargs": "the model is loaded from the `model:` block",
    "push_to_hub": "stages write files; publish the model yourself",
    "save_strategy": "checkpoints are written every save_steps",
    "save_total_limit": "the last two checkpoints are kept until the stage is done",
    "save_only_model": "resuming exactly needs the whole checkpoint",
    "ignore_data_skip": "resuming exactly needs to go on with the next row",
    "log_completions": "no log holds texts; data/rollout/answers.parquet has what the model writes",
    "remove_unused_columns": "the stage hands over the columns that the trainer reads",
    "dataset_text_field": "shards hold conversations",
}
"""Options that CorpusForge sets, each with what to do instead."""


def check_names(stage: str, given: Mapping[str, Any]) -> None:
    """Raise UnknownKey or ConfigError for a name that TRL does not know or that is not the user's to set.

    Where TRL is not installed nothing is checked.
    """
    known = names(CONFIGS[stage])
    for name in given:
        if name in OURS:
            raise ConfigError(f"{stage}.trl: {name!r} is set by CorpusForge", hint=OURS[name])
        if known and name not in known:
            raise _unknown(f"{stage}.trl", name, known - OURS.keys())


def _unknown(block: str, name: str, known: Collection[str]) -> UnknownKey:
    near = difflib.get_close_matches(name, sorted(known), 1, 0.5)
    hint = f"did you mean {near[0]!r}?" if near else "docs/training.md says where the options are listed"
    return UnknownKey(f"{block}: unknown option {name!r}", hint=hint)


def check_values(stage: str, given: Mapping[str, Any]) -> None:
    """Raise ConfigError for a value of another type than TRL's option has; called before the rows are looked at."""
    module = CONFIGS[stage]
    kind = getattr(importlib.import_module(f"trl.trainer.{module}"), f"{module.partition('_')[0].upper()}Config")
    _check_types(kind, given, f"{stage}.trl")


@lru_cache(maxsize=8)
def names(module: str) -> frozenset[str]:
    """Option names of one of TRL's config classes, read from the sources; empty where TRL is not installed."""
    files = [_source("trl", f"trainer/{name}.py") for name in (module, "base_config")]
    files.append(_source("transformers", "training_args.py"))
    return frozenset(name for path in files if path for name in _fields(path))


def _source(package: str, path: str) -> Path | None:
    spec = importlib.util.find_spec(package)
    found = Path(spec.origin).parent / path if spec and spec.origin else None
    return found if found and found.is_file() else None


def _fields(path: Path) -> list[str]:
    """Annotated fields of all classes in a source file."""
    classes = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]
    fields = [node for one in classes for node in one.body if isinstance(node, ast.AnnAssign)]
    return [node.target.id for node in fields if isinstance(node.target, ast.Name) and node.target.id[0] != "_"]


def build(kind: Any, given: Mapping[str, Any], ours: Mapping[str, Any], block: str = "trl") -> Any:
    """A config of TRL's or peft's from the user's options, found under `block` of params, and ours, which win.

    Raises UnknownKey for a name that it does not know, ConfigError with the library's own reason.
    """
    known = {field.name for field in fields(kind)}
    if unknown := [name for name in given if name not in known]:
        raise _unknown(block, unknown[0], known)
    _check_types(kind, given, block)
    try:
        return kind(**{**given, **ours})
    except Exception as error:  # noqa: BLE001 - libraries raise what they like, and no row is in sight yet
        says = " ".join(str(error).split()) or type(error).__name__
        hint = f"see the options of {kind.__name__}; docs/training.md says where they are listed"
        raise ConfigError(f"{kind.__name__} refuses {block}: {says[:300]}", hint=hint) from None


def _check_types(kind: Any, given: Mapping[str, Any], block: str) -> None:
    """Raise ConfigError for a value of another type than the option's: dataclasses take anything, and fail later."""
    from typing import get_type_hints

    from pydantic import PydanticSchemaGenerationError, TypeAdapter, ValidationError

    hints = get_type_hints(kind)
    for name, value in given.items():
        try:
            TypeAdapter(hints[name]).validate_python(value, strict=True)  # else "12" would pass as a number
        except ValidationError:
            says = getattr(hints[name], "__name__", str(hints[name]))
            found = type(value).__name__
            hint = "numbers are written without quotes" if isinstance(value, str) else "see the option's type"
            raise ConfigError(f"{block}: {name} is a {found}, {kind.__name__} expects {says}", hint=hint) from None
        except (KeyError, PydanticSchemaGenerationError):
            continue  # an unknown name is the config class's to refuse; a type of TRL's own is not checked
