"""What several commands share: options of one meaning, how their values are read, and the answer no."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

NO = 1  # exit code: the answer is no

TextColumn = Annotated[str, typer.Option(help="Column of the text.")]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of the ids; `id` where there is one.")]
Others = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="Others of docs/stages/dedupe.md.")]


def pairs(texts: list[str], option: str = "--field", example: str = "prompt=question") -> dict[str, str]:
    """NAME=VALUE options as they stand."""
    parts = [text.partition("=") for text in texts]
    if not all(name and field for name, _, field in parts):
        raise typer.BadParameter(f"expected NAME=VALUE, such as {example}", param_hint=option)
    return {name: field for name, _, field in parts}


def values(texts: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE options, values read as YAML reads them."""
    from ruamel.yaml import YAML

    own = [text.partition("=")[0] for text in texts or [] if text.partition("=")[0] in ("against", "threshold")]
    if own:
        raise typer.BadParameter(f"{own[0]} has an option of its own: --{own[0]}", param_hint="--option")
    return {name: YAML(typ="safe").load(value) for name, value in pairs(texts or [], "--option", "shingle=4").items()}


def above_zero(value: float) -> float:
    """A number that is one, and above zero. Raises BadParameter."""
    if not 0 < value < math.inf:
        raise typer.BadParameter(f"expected a number above 0, got {value:g}")
    return value


def answer(yes: bool) -> None:
    """End with exit code 1 where the answer is no."""
    if not yes:
        raise typer.Exit(NO)
