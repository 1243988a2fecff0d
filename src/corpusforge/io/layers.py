"""Layers of a reward that are functions of the project: `train_grpo: {rewards: {own: {"module:function": …}}}`.

As with shapes of one's own, the project's folder can be imported from, and the module's file is one more thing that the
stage depends on (`files`), for DVC and for the checkpoints of a run.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from corpusforge.errors import ConfigError, SourceError
from corpusforge.io import own
from corpusforge.verify.layers import REGISTERED, measure

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project


def files(project: Project) -> list[Path]:
    """The project's own modules that layers are in, each once."""
    block = project.params.train_grpo
    names = {name.partition(":")[0]: None for name in (block.rewards.own if block else ()) if ":" in name}
    found = [own.module_file(name, project.root) for name in names]
    return [file for file in found if file is not None]


def hashes(project: Project) -> dict[str, str]:
    """SHA-256 of each of those modules."""
    return {
        file.relative_to(project.root).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files(project)
    }


def load(project: Project) -> None:
    """Make the project's own layers known under their names in params. Raises ConfigError when one is not there."""
    block = project.params.train_grpo
    for name in block.rewards.own if block else ():
        if ":" not in name:
            hint = f"write module:function for {name!r}, with the module beside params.yaml"
            raise ConfigError("train_grpo.rewards.own: a registered name is not known to a stage", hint=hint)
        try:
            REGISTERED[name] = own.load(name, "train_grpo.rewards.own", project.root)
        except SourceError as error:
            raise ConfigError(str(error).removeprefix("source "), hint=error.hint) from None


def check(project: Project) -> list[str]:
    """The names of all layers, after each was made ready as a training would. Raises ConfigError."""
    block = project.params.train_grpo
    load(project)
    layers = block.rewards.blocks() if block else {}
    for name, options in layers.items():
        measure(name, options)
    return list(layers)
