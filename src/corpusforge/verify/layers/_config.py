"""What the layers of a reward can be told.

    train_grpo:
      rewards:
        outcome: {weight: 1.0}
        process: {weight: 0.2, clip: [0, 1]}
        format: {weight: 0.1, tags: [think, answer]}
        own: {"my_rewards:polite": {weight: 0.1, params: {words: [please]}}}

A layer is on when its block is there (`{}` is enough); without any block the outcome is the whole reward.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from pydantic import Field, field_validator, model_validator

from corpusforge.stages._stage import StageConfig

MOST: Final = 1e6
"""Largest weight: trainers add rewards up as 32-bit floats, and see nothing of the others beside a larger one."""
_FURTHEST: Final = 1e9  # ends of a range
Pair = Annotated[list[float], Field(min_length=2, max_length=2)]


class LayerConfig(StageConfig):
    """What every layer can be told: its value is put on a scale, clipped, and multiplied by its weight."""

    weight: float = Field(0.1, ge=0, le=MOST, allow_inf_nan=False)
    """What a value of 1 adds to the reward."""
    range: Pair = Field([0.0, 1.0])
    """Values of the layer that become 0 and 1, all others on a straight line: [0.5, 1] gives nothing for a half."""
    clip: Pair = Field([0.0, 1.0])
    """Lowest and highest value after that, within 0 to 1."""

    @field_validator("range", "clip")
    @classmethod
    def _rises(cls, pair: list[float]) -> list[float]:
        if not pair[0] < pair[1]:
            raise ValueError("the first number must be below the second")
        if not all(abs(end) <= _FURTHEST for end in pair):
            raise ValueError(f"both numbers are within {-_FURTHEST:,.0f} and {_FURTHEST:,.0f}")
        return pair

    @field_validator("clip")
    @classmethod
    def _within(cls, clip: list[float]) -> list[float]:
        if not 0 <= clip[0] < clip[1] <= 1:
            raise ValueError("clip is within 0 and 1")
        return clip

    def scaled(self, value: float) -> float:
        """A value of the layer, on the scale from 0 to 1 and clipped."""
        low, high = self.range
        return min(max((value - low) / (high - low), self.clip[0]), self.clip[1])


class OutcomeConfig(LayerConfig):
    """The verdict: 1 for a pass, 0 for a fail; undecided leaves the completion without any reward."""

    weight: float = Field(1.0, gt=0, le=MOST, allow_inf_nan=False)
    """What a pass adds to the reward."""

    @model_validator(mode="after")
    def _tells_apart(self) -> OutcomeConfig:
        if not self.scaled(0) < self.scaled(1):
            raise ValueError("range and clip give a pass no more than a fail")
        return self


class ProcessConfig(LayerConfig):
    """Steps that can be checked: the share of them that is right."""

    weight: float = Field(0.2, ge=0, le=MOST, allow_inf_nan=False)
    """What nothing but right steps adds to the reward."""
    steps: list[Literal["arithmetic", "calls", "code"]] = Field(["arithmetic", "calls", "code"], min_length=1)
    """What counts as a step: equations between numbers, tool calls, the code of a code task."""
    most: int = Field(12, ge=1)
    """Right steps of a completion that count at most: more of them cannot make a wrong one vanish."""


class FormatConfig(LayerConfig):
    """The completion consists of the tags, in this order, each once, with text between and nothing outside."""

    tags: list[Annotated[str, Field(pattern=r"^[A-Za-z_][\w-]{0,40}$")]] = Field(["think", "answer"], min_length=1)
    """Names of the tags: [think, answer] is <think>…</think><answer>…</answer>."""
    opened: bool = False
    """Whether the prompt already ends with the first opening tag, as some chat templates write it."""


class LengthConfig(LayerConfig):
    """The completion is neither too short nor too long."""

    unit: Literal["tokens", "words", "characters"] = "tokens"
    """What is counted; tokens only where a trainer hands them over."""
    at_least: int = Field(0, ge=0)
    """Fewer are too few."""
    at_most: int | None = Field(None, ge=1)
    """More are too many; None for no limit."""
    slack: int = Field(0, ge=0)
    """Units beyond a limit over which the value falls from 1 to 0; 0 lets it fall at once."""

    @model_validator(mode="after")
    def _has_room(self) -> LengthConfig:
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError(f"at_most {self.at_most} is below at_least {self.at_least}")
        return self


class RepetitionConfig(LayerConfig):
    """The completion does not say the same again and again."""

    words: int = Field(4, ge=1, le=20)
    """Words in a row that are compared."""
    at_most: float = Field(0.2, ge=0, lt=1)
    """Share of repeated runs of words that still has the value 1; from there it falls to 0 at a share of 1."""


class OwnConfig(LayerConfig):
    """A layer of your own."""

    params: dict[str, Any] = Field({})
    """Keyword arguments of the function."""


class RewardsConfig(StageConfig):
    """The layers of a reward, and how they become one number."""

    outcome: OutcomeConfig = OutcomeConfig()
    """The verdict of the task's verifier; always on."""
    process: ProcessConfig | None = None
    """Steps that can be checked."""
    format: FormatConfig | None = None
    """Tags that the completion has to consist of."""
    length: LengthConfig | None = None
    """Bounds of its length."""
    repetition: RepetitionConfig | None = None
    """How much of it is said again."""
    own: dict[str, OwnConfig] = Field({})
    """Layers of your own by the name they were registered under, or as module:function."""
    failed_at_most: float | None = Field(0.5, ge=0, lt=1)
    """Highest reward of a failed outcome, as a share of what a pass alone gives; None for no limit."""

    def blocks(self) -> dict[str, LayerConfig]:
        """The layers beside the outcome that are on, by name."""
        built_in = {name: getattr(self, name) for name in ("process", "format", "length", "repetition")}
        return {name: block for name, block in built_in.items() if block is not None} | self.own

    @field_validator("own")
    @classmethod
    def _names(cls, own: dict[str, OwnConfig]) -> dict[str, OwnConfig]:
        taken = sorted(own.keys() & {"outcome", "process", "format", "length", "repetition"})
        if taken:
            raise ValueError(f"{taken[0]} is a layer of its own name, beside `own`")
        return own
