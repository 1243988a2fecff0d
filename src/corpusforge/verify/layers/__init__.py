"""Rewards in layers: the outcome, the steps that lead to it, and constraints of form, each kept by its name.

    score(task, "48/2 = 24, 48+24 = 71. The answer is 71.", process={})
        ->  Reward(total=0.1, verdict=Verdict("fail", …), values={"outcome": 0.0, "process": 0.5})

total = weight x value, summed over the layers; a value is put on the scale that params give and clipped. Three rules:

- An outcome that is undecided leaves the whole reward None: a right step says nothing about an answer.
- A layer that has nothing to say (no step to check) is None and adds nothing, as a 0 would. Its weight is not shared
  out among the others: then hiding one's work would pay.
- A failed outcome never gets more than `failed_at_most` of what a pass alone gives.

A layer of one's own is a function of task and completion, as a verifier is, that gives a number, or None:

    @register("polite")
    def polite(task, completion, *, words=("please",)): …
"""

from __future__ import annotations

import importlib
import inspect
import math
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from corpusforge.errors import ConfigError, CorpusForgeError
from corpusforge.stages._stage import configure
from corpusforge.verify import Task, verify_many
from corpusforge.verify.layers import _config, constraints
from corpusforge.verify.layers._config import RewardsConfig
from corpusforge.verify.layers._steps import said
from corpusforge.verify.layers.arithmetic import arithmetic
from corpusforge.verify.layers.calls import calls
from corpusforge.verify.layers.code import code

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from corpusforge.verify import Verdict

__all__ = ["REGISTERED", "Reward", "RewardsConfig", "combine", "register", "score", "score_many"]

Function = TypeVar("Function", bound="Callable[..., float | None]")
REGISTERED: Final[dict[str, Callable[..., float | None]]] = {}
"""Layers of one's own, by name."""
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_BUILT_IN: Final = ("outcome", "process", "format", "length", "repetition")
_STEPS: Final = {"arithmetic": arithmetic, "calls": calls, "code": code}


@dataclass(frozen=True)
class Reward:
    """A completion's reward, and what each layer said. Holds no text."""

    total: float | None
    """None where the outcome is undecided."""
    verdict: Verdict
    values: Mapping[str, float | None]
    """Each layer's value, scaled and clipped, before its weight; None where it had nothing to say."""
    faults: tuple[str, ...] = ()
    """Layers of one's own that raised, or gave no number; their value is None."""

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**asdict(self), "values": dict(self.values), "faults": list(self.faults)}


def register(name: str) -> Callable[[Function], Function]:
    """A decorator that adds a layer: `layer(task, completion, **params) -> float | None`, named under `rewards.own`.

    The layer is known to this process; for `dvc repro` write `module:function` in params. Raises ConfigError for a name
    that is built in, taken by another function, or no name.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "a layer is named in small letters, digits and underscores, and begins with a letter"
        raise ConfigError("the name of a layer is not one", hint=hint)
    if name in _BUILT_IN:
        raise ConfigError(f"the layer `{name}` is built in", hint="register yours under another name")

    def add(layer: Function) -> Function:
        known = REGISTERED.get(name)
        if known is not None and _origin(known) != _origin(layer):
            raise ConfigError(f"the layer `{name}` is registered already", hint="give one of the two another name")
        REGISTERED[name] = layer
        return layer

    return add


def _origin(function: Any) -> tuple[Any, Any]:
    """Where a function is written: a cell that is run again registers the same one anew."""
    return getattr(function, "__module__", None), getattr(function, "__qualname__", id(function))


def score(
    task: Task | Mapping[str, Any], completion: Any, config: RewardsConfig | None = None, **layers: Any
) -> Reward:
    """The reward of one completion. Keyword arguments are the fields of RewardsConfig: `process={"weight": 0.2}`.

    Raises ConfigError for unknown layers or options, else what `verify` raises.
    """
    return score_many([task], [completion], configure(RewardsConfig, config, layers))[0]


def score_many(
    tasks: Sequence[Task | Mapping[str, Any]],
    completions: Sequence[Any],
    config: RewardsConfig | None = None,
    tokens: Sequence[int] | None = None,
) -> list[Reward]:
    """One reward per pair, in order; `tokens` says how many tokens each completion has."""
    config = config or RewardsConfig()
    measures = {name: measure(name, block) for name, block in config.blocks().items()}
    verdicts = verify_many(tasks, completions)
    rewards = []
    for number, (row, completion, verdict) in enumerate(zip(tasks, completions, verdicts, strict=True)):
        raw, faults = {}, []
        for name, layer in measures.items():
            raw[name] = _measured(layer, row, completion, tokens[number] if tokens is not None else None)
            if isinstance(raw[name], Exception):
                raw[name] = None
                faults.append(name)
        rewards.append(combine(config, verdict, raw, tuple(faults)))
    return rewards


def combine(
    config: RewardsConfig, verdict: Verdict, raw: Mapping[str, float | None], faults: tuple[str, ...] = ()
) -> Reward:
    """One number from a verdict and the layers' own values."""
    outcome = {"pass": 1.0, "fail": 0.0}.get(verdict.outcome)
    blocks: dict[str, _config.LayerConfig] = {"outcome": config.outcome, **config.blocks()}
    values = {
        name: None if value is None else blocks[name].scaled(value)
        for name, value in {"outcome": outcome, **raw}.items()
    }
    if outcome is None:
        return Reward(None, verdict, values, faults)
    total = math.fsum(blocks[name].weight * value for name, value in values.items() if value is not None)
    if outcome == 0 and config.failed_at_most is not None:
        total = min(total, config.failed_at_most * config.outcome.weight * config.outcome.scaled(1))
    return Reward(total, verdict, values, faults)


def measure(name: str, block: _config.LayerConfig) -> Callable[[Task, Any, int | None], float | None]:
    """A layer as a function of task, completion and its number of tokens. Raises ConfigError for one not to be had."""
    match block:
        case _config.ProcessConfig():
            return lambda task, completion, _: process(task, completion, steps=block.steps, most=block.most)
        case _config.FormatConfig():
            return lambda _, it, __: constraints.has_format(said(it), block.tags, opened=block.opened)
        case _config.RepetitionConfig():
            return lambda _, it, __: constraints.varied(said(it), block.words, block.at_most)
        case _config.LengthConfig():
            return lambda _, completion, tokens: _length(said(completion), tokens, block)
        case _config.OwnConfig():
            own, params = resolve(name), dict(block.params)
            try:
                inspect.signature(own).bind(None, None, **params)
            except (TypeError, ValueError) as error:
                raise ConfigError(f"rewards.own: {name} cannot be called with its params: {error}") from None
            return lambda task, completion, _: own(task, completion, **params)
    raise ConfigError(f"{name}: no such layer")


def process(
    task: Task, completion: Any, *, steps: Sequence[str] = ("arithmetic", "calls", "code"), most: int = 12
) -> float | None:
    """The share of right steps among those that count; None where there is none."""
    tallies = [_STEPS[name](task, completion) for name in steps]
    right, wrong = min(most, sum(tally.right for tally in tallies)), sum(tally.wrong for tally in tallies)
    return right / (right + wrong) if right + wrong else None


def _length(text: str, tokens: int | None, block: _config.LengthConfig) -> float | None:
    length = tokens if block.unit == "tokens" else constraints.length_of(text, block.unit)
    return None if length is None else constraints.within(length, block.at_least, block.at_most, block.slack)


def resolve(name: str) -> Callable[..., float | None]:
    """A layer of one's own by its name, or as `module:function`. Raises ConfigError."""
    if name in REGISTERED:
        return REGISTERED[name]
    module, _, function = name.partition(":")
    if not function:
        known = ", ".join(sorted(REGISTERED)) or "none"
        raise ConfigError(
            f"rewards.own: no layer {name!r} is registered", hint=f"registered are: {known}; or module:function"
        )
    try:
        found = getattr(importlib.import_module(module), function, None)
    except ImportError as error:
        raise ConfigError(
            f"rewards.own: {module} cannot be imported ({type(error).__name__})",
            hint=f"expected module:function; see what `python -c 'import {module}'` says",
        ) from None
    if not callable(found):
        raise ConfigError(f"rewards.own: {module} has no function {function!r}", hint="expected module:function")
    return found  # type: ignore[no-any-return]


def _measured(layer: Callable[..., Any], row: Any, completion: Any, tokens: int | None) -> Any:
    """What a layer says: a finite number, None, or the exception that it ended with."""
    try:
        task = Task.of(row)
        value = layer(task, completion, tokens)
        if value is None:
            return None
        return float(value) if math.isfinite(value) else ValueError("no finite number")
    except CorpusForgeError:
        raise
    except Exception as error:  # noqa: BLE001 - one odd completion must not end a training run; it is counted
        return error
