"""The shapes a stage can have, and how to run one over a table in memory.

A stage is a pure function over tables and a small frozen config; it opens no file and starts no process. What it
needs beyond rows and config (benchmark items, a key) arrives in `inputs`, loaded by the shell.

    RowWise   one function of a partition                                   filter, scrub, grade
    Decided   summarise each partition -> decide once -> apply to each      dedupe, decontaminate, blend

In a Decided stage `summarise` returns one small row per input row, `decide` sees all summaries in input order and
may `fetch` columns of chosen rows (by position), and returns verdicts aligned with the input rows; `apply` gets the
slice of verdicts that belongs to its partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, get_args, get_origin

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, ValidationError

from corpusforge.errors import ConfigError
from corpusforge.result import LEDGER, StageResult, add_up

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Inputs = Mapping[str, Any]
C = TypeVar("C", bound="StageConfig")
R = TypeVar("R")
SLICE: Final = 16_384  # rows whose texts are in memory at once


class StageConfig(BaseModel):
    """Base of every stage's config: frozen, strict, no unknown keys, every field documented."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True)


class Store(Protocol):
    """Where arrays wait for the others of their batch: in memory, or on disk."""

    def put(self, batch: int, *arrays: npt.NDArray[Any]) -> None:
        """Lay down arrays (one-dimensional, the same number and types each time)."""

    def take(self, batch: int) -> tuple[npt.NDArray[Any], ...]:
        """For each of the arrays, all that was put for a batch, in that order; it is gone then."""


class Fetch(Protocol):
    """Rows by position (global, in input order), and the means to go through many of them."""

    def __call__(self, positions: npt.NDArray[np.int64], columns: list[str]) -> pa.Table:
        """Columns of the rows at `positions`, in the order asked for."""

    def map(
        self, job: Callable[[npt.NDArray[np.int64], pa.Table], R], positions: npt.NDArray[np.int64], columns: list[str]
    ) -> Iterator[R]:
        """`job(positions, rows)` for slices of `positions` (ascending), in their order, perhaps in threads."""

    def spread(self, job: Callable[[int], R], items: Iterable[int]) -> Iterator[R]:
        """`job(item)` for each item, in their order, perhaps in threads."""

    def store(self) -> Store:
        """A new place for what is too much to hold."""


class Memory:
    """A store for what is small."""

    def __init__(self) -> None:
        self._held: dict[int, list[tuple[npt.NDArray[Any], ...]]] = {}

    def put(self, batch: int, *arrays: npt.NDArray[Any]) -> None:
        """Hold arrays."""
        self._held.setdefault(batch, []).append(arrays)

    def take(self, batch: int) -> tuple[npt.NDArray[Any], ...]:
        """Hand out what is held for a batch."""
        import numpy as np

        return tuple(np.concatenate(parts) for parts in zip(*self._held.pop(batch, []), strict=True))


class Held:
    """Rows in memory, as the shell hands over a folder of them."""

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows

    def tables(self) -> Iterator[pa.Table]:
        """All rows, a part at a time; at least one part."""
        yield self.rows

    def __call__(self, positions: npt.NDArray[np.int64], columns: list[str]) -> pa.Table:
        """Columns of the rows at `positions`."""
        return self.rows.select(columns).take(pa.array(positions))

    def map(
        self, job: Callable[[npt.NDArray[np.int64], pa.Table], R], positions: npt.NDArray[np.int64], columns: list[str]
    ) -> Iterator[R]:
        """`job(positions, rows)` for slices of `positions`."""
        for at in range(0, len(positions), SLICE):
            part = positions[at : at + SLICE]
            yield job(part, self(part, columns))

    def spread(self, job: Callable[[int], R], items: Iterable[int]) -> Iterator[R]:
        """`job(item)` for each item."""
        return map(job, items)

    def store(self) -> Store:
        """A store in memory."""
        return Memory()


@dataclass(frozen=True)
class Decision:
    """One verdict per input row, in input order, and figures about the whole."""

    verdicts: pa.Table
    metrics: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class RowWise:
    """A stage that needs nothing but the partition in front of it."""

    name: str
    config: type[StageConfig]
    run: Callable[[pa.Table, Any, Inputs], StageResult]
    needs: tuple[str, ...] = ()  # names of inputs that the shell loads
    columns: tuple[str, ...] = ()  # columns it adds


@dataclass(frozen=True)
class Decided:
    """A stage whose verdict on a row depends on other rows."""

    name: str
    config: type[StageConfig]
    summarise: Callable[[pa.Table, Any, Inputs], pa.Table]
    decide: Callable[[pa.Table, Any, Inputs, Fetch], Decision]
    apply: Callable[[pa.Table, pa.Table, Any, Inputs], StageResult]
    needs: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


Stage = RowWise | Decided


def configure(kind: type[C], config: C | None, options: Mapping[str, Any]) -> C:
    """The config itself, or one made from keyword arguments (which override the config's fields)."""
    values = (config.model_dump() if config is not None else {}) | dict(options)
    try:
        return kind.model_validate(values, strict=False)
    except ValidationError as error:
        raise ConfigError(describe(error, kind)) from None


def describe(error: ValidationError, kind: type[BaseModel]) -> str:
    """The first fault of a validation error: field, what is wrong, and the nearest right name."""
    import difflib

    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = _options(kind, first["loc"][:-1])
        near = difflib.get_close_matches(str(first["loc"][-1]), known, 1)
        return f"unknown option {where!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    if first["type"] == "model_type":
        return f"option {where!r}: expected a block of its options; write {{}} for none"
    return f"option {where!r}: {str(first['msg']).removeprefix('Value error, ')}"


def _options(kind: Any, path: Sequence[Any]) -> list[str]:
    """Names of the options of the block at `path`, through optional blocks and maps of them."""
    if path and not hasattr(kind, "model_fields"):  # `Block | None`: the step is made inside; a map: its values
        inner = get_args(kind)
        return _options(inner[-1], path[1:]) if get_origin(kind) is dict else _first(inner, path)
    if path:
        field = kind.model_fields.get(str(path[0]))
        return _options(field.annotation, path[1:]) if field else []
    return list(kind.model_fields) if hasattr(kind, "model_fields") else _first(get_args(kind), path)


def _first(kinds: Sequence[Any], path: Sequence[Any]) -> list[str]:
    return next((found for kind in kinds if (found := _options(kind, path))), [])


def in_memory(stage: Stage, rows: pa.Table, config: Any, inputs: Inputs | None = None) -> StageResult:
    """Run a stage over one table: what the shell does over partitions, with the same result."""
    inputs = inputs or {}
    if isinstance(stage, RowWise):
        return stage.run(rows, config, inputs)
    summary = stage.summarise(rows, config, inputs)
    decision = stage.decide(summary, config, inputs, Held(rows))
    result = stage.apply(rows, decision.verdicts, config, inputs)
    return StageResult(stage.name, result.kept, result.dropped, result.changes, {**result.metrics, **decision.metrics})


def concat(stage: str, results: list[StageResult]) -> StageResult:
    """One result from the results of partitions, in their order."""
    return StageResult(
        stage,
        pa.concat_tables([r.kept for r in results]),
        pa.concat_tables([LEDGER.empty_table(), *(r.dropped for r in results)]),
        pa.concat_tables([LEDGER.empty_table(), *(r.changes for r in results)]),
        add_up(r.metrics for r in results),
    )
