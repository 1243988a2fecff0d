"""What stages need beyond rows and config: benchmarks, the scrubbing key, a tokenizer, pass rates, other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.io import attempts, cache, encoders, index, overrides, parquet
from corpusforge.io.benchmarks import load_benchmarks
from corpusforge.io.keys import load_key
from corpusforge.io.settle import REFUSED

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.config import Params


def load(names: tuple[str, ...], params: Params, root: Path) -> dict[str, Any]:
    """The inputs called `names`, by name. Raises the loaders' own errors."""
    loaded: dict[str, Any] = {}
    for name in names:
        if name == "benchmarks":
            loaded[name] = load_benchmarks(params.decontaminate.benchmarks, root)
        elif name == "key":
            loaded[name] = load_key(params.scrub.key, root)
        elif name == "tokenizer":
            from corpusforge.io.tokenizer import load_tokenizer

            loaded[name] = load_tokenizer(params.grade.counter, root)
        elif name == "rollouts":
            rollouts = params.blend.rollouts
            loaded[name] = attempts.read(root / rollouts.path) if rollouts else None
        else:
            loaded[name] = _of_dedupe(name, params, root)
    return loaded


def _of_dedupe(name: str, params: Params, root: Path) -> Any:
    """An input of dedupe. Raises KeyError for what is none."""
    config = params.dedupe
    if name == "refused":
        files = sorted((root / "data" / "ingest" / REFUSED).glob("part-*.parquet"))
        return parquet.Gather(files) if files else None
    if name == "reference":
        return index.IndexFolder(root / config.against) if config.against else None
    if name == "encoder":
        return encoders.of(config.semantic, root) if config.semantic else None
    if name == "overrides":
        return overrides.read(root)
    if name == "cache":
        return cache.of(config, root)
    raise KeyError(name)
