"""evaluate: what the base model and every trained one can do, on tasks, conversations and pairs that none has seen.

Each model answers every held-out and every legacy task once greedily and `attempts` times at `temperature`; verifiers
decide. Held-out conversations give its loss, held-out pairs its preference accuracy: the share in which the chosen
answer is likelier than the rejected one (ties count half). All models get the same items, drawn by their content, so
that two of them, and two builds, are compared item by item (Miller 2024, arXiv:2411.00640).

    t1  "What is 48 plus 21?"  sft: greedy 69, pass; 8 sampled answers, 5 pass, 3 fail  ->  5 of 8

Attempts that no verifier can decide are counted apart and are neither passes nor fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pydantic import Field

from corpusforge.errors import ConfigError
from corpusforge.evaluate import likelihood
from corpusforge.evaluate.results import ROWS, TASKS
from corpusforge.stages._source import SourceConfig
from corpusforge.stages._stage import StageConfig
from corpusforge.train.model import context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from corpusforge.verify import Verdict

    Item = Mapping[str, Any]
    """A line of a shard: row_id, content_id, source, and what its kind has."""

SETS: Final = ("heldout", "legacy")
_DIGITS: Final = 6  # of losses and margins: what is left of float32 over batches of several shapes
_TRIED: Final = 20  # items whose failing together shows that the template fits none


class EvaluateConfig(StageConfig):
    """What the models are judged on."""

    attempts: int = Field(8, ge=1)
    """Sampled answers per task at `temperature`; one greedy answer comes on top."""
    temperature: float = Field(1.0, gt=0)
    """Sampling temperature of the attempts."""
    max_new_tokens: int = Field(256, ge=1)
    """Tokens of an answer at most."""
    tasks: int = Field(500, ge=1)
    """Held-out tasks at most, drawn by their content: the same ones in every build."""
    rows: int = Field(500, ge=1)
    """Held-out conversations, and pairs, at most, likewise."""
    legacy: list[SourceConfig] = Field([])
    """Sources of tasks that every model is judged on besides: a fixed set, never trained on."""
    level: float = Field(0.95, gt=0.5, lt=1)
    """Level of the intervals."""


@dataclass(frozen=True)
class Held:
    """What models are judged on. Items go by content id, each once per list."""

    tasks: Sequence[Item] = ()
    """Lines of task shards: prompt, verifier_kind, verifier_spec, tools."""
    legacy: Sequence[Item] = ()
    """Tasks of the legacy sources, in the same form."""
    rows: Sequence[Item] = ()
    """Lines of sft shards: messages, tools."""
    pairs: Sequence[Item] = ()
    """Lines of preference shards: prompt, chosen, rejected, tools."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to judge on."""
        return not (self.tasks or self.legacy or self.rows or self.pairs)


@dataclass(frozen=True)
class Scores:
    """What one model scored; see `results` for the columns."""

    tasks: pa.Table = field(default_factory=TASKS.empty_table)
    rows: pa.Table = field(default_factory=ROWS.empty_table)


def evaluate(
    model: Any,
    tokenizer: Any,
    held: Held,
    config: EvaluateConfig | None = None,
    *,
    max_length: int,
    name: str = "model",
) -> Scores:
    """Judge one model (transformers) under `name` on `held`; the same model and items give the same scores.

    `max_length` is the tokens of prompt and answer together at most, less where the model holds less; conversations and
    pairs are cut there. Raises
    ConfigError when the chat template fits none of the items, TrainingError when the model's output is not finite,
    MissingExtra when a verifier's package is not installed.
    """
    config = config or EvaluateConfig()
    max_length = min(max_length, context(model) or max_length)
    _check_template(tokenizer, held, name)
    tasks = [
        line
        for which, items in zip(SETS, (held.tasks, held.legacy), strict=True)
        for line in _answered(model, tokenizer, items, config, max_length, {"model": name, "set": which})
    ]
    rows = [*_losses(model, tokenizer, held.rows, max_length), *_margins(model, tokenizer, held.pairs, max_length)]
    return Scores(
        pa.Table.from_pylist(tasks, schema=TASKS),
        pa.Table.from_pylist([{"model": name, **row} for row in rows], schema=ROWS),
    )


def _answered(
    model: Any, tokenizer: Any, tasks: Sequence[Item], config: EvaluateConfig, max_length: int, named: Mapping[str, str]
) -> list[dict[str, Any]]:
    """A line of TASKS per task. Answers themselves are verified and forgotten."""
    from corpusforge.train.generate import Sampling, sample, teller

    greedy = Sampling(1, 0.0, max_new_tokens=config.max_new_tokens, max_length=max_length)
    warm = Sampling(config.attempts, config.temperature, max_new_tokens=config.max_new_tokens, max_length=max_length)
    verdicts = []
    for how, label in ((greedy, "greedy"), (warm, "sampled")):
        tell = teller(f"evaluate {named['model']}, {named['set']}, {label}", len(tasks) * how.attempts)
        said = sample(model, tokenizer, tasks, how, tell) if tasks else []
        verdicts.append(_verified(tasks, [one.texts for one in said]))
    return [
        {**named, **_names(task), **_counted(verdicts[1][place], config.attempts), "greedy": _yes(verdicts[0][place])}
        for place, task in enumerate(tasks)
    ]


def _verified(tasks: Sequence[Item], texts: Sequence[Sequence[str]]) -> list[list[Verdict]]:
    """The verdicts on each task's answers; none for a task that could not be asked."""
    from corpusforge.verify import verify_many

    asked = [(task, text) for task, said in zip(tasks, texts, strict=True) for text in said]
    verdicts = iter(verify_many([task for task, _ in asked], [text for _, text in asked]))
    return [[next(verdicts) for _ in said] for said in texts]


def _counted(verdicts: Sequence[Verdict], attempts: int) -> dict[str, int]:
    passes = sum(verdict.outcome == "pass" for verdict in verdicts)
    decided = sum(verdict.outcome != "undecided" for verdict in verdicts)
    return {"passes": passes, "attempts": decided, "undecided": attempts - decided}


def _yes(verdicts: Sequence[Verdict]) -> bool | None:
    """Whether the greedy answer passed; None when nothing was decided."""
    decided = [verdict for verdict in verdicts if verdict.outcome != "undecided"]
    return decided[0].outcome == "pass" if decided else None


def _losses(model: Any, tokenizer: Any, rows: Sequence[Item], max_length: int) -> list[dict[str, Any]]:
    found = likelihood.losses(model, tokenizer, rows, max_length)
    return [
        {"measure": "loss", **_names(row)}
        | {"value": round(loss.value, _DIGITS), "tokens": loss.tokens, "bytes": loss.size}
        for row, loss in zip(rows, found, strict=True)
        if loss is not None
    ]


def _margins(model: Any, tokenizer: Any, pairs: Sequence[Item], max_length: int) -> list[dict[str, Any]]:
    found = likelihood.margins(model, tokenizer, pairs, max_length)
    return [
        {"measure": "margin", **_names(pair), "value": round(margin, _DIGITS)}
        for pair, margin in zip(pairs, found, strict=True)
        if margin is not None
    ]


def _names(item: Item) -> dict[str, Any]:
    return {name: item[name] for name in ("row_id", "content_id", "source")}


def _check_template(tokenizer: Any, held: Held, name: str) -> None:
    """Raise ConfigError when the chat template raises on everything that is tried first."""
    if not tokenizer.chat_template:
        raise ConfigError(
            f"the tokenizer of {name} has no chat template, and shards hold conversations",
            hint="name one with model.chat_template, or evaluate an instruction-tuned model",
        )
    asked = [(row["messages"], row.get("tools"), False) for row in held.rows[:_TRIED]]
    prompts = (*held.tasks, *held.legacy, *held.pairs)[:_TRIED]
    asked += [(item["prompt"], item.get("tools"), True) for item in prompts]
    if asked and all(likelihood.write(tokenizer, said, tools, ask=ask) is None for said, tools, ask in asked):
        raise ConfigError(
            f"the chat template of {name} raises on all of {len(asked)} conversations that were tried",
            hint="give another with model.chat_template; templates differ in the roles and tool calls that they take",
        )
