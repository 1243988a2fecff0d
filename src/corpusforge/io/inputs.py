"""What stages need beyond rows and config: benchmarks, the scrubbing key, a tokenizer, pass rates, other rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.io import attempts, encoders, index, overrides, parquet
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
        elif name == "refused":
            files = sorted((root / "data" / "ingest" / REFUSED).glob("part-*.parquet"))
            loaded[name] = parquet.Gather(files) if files else None
        elif name == "reference":
            against = params.dedupe.against
            loaded[name] = index.IndexFolder(root / against) if against else None
        elif name == "encoder":
            loaded[name] = encoders.of(params.dedupe.semantic, root) if params.dedupe.semantic else None
        elif name == "overrides":
            loaded[name] = overrides.read(root)
        elif name == "rollouts":
            rollouts = params.blend.rollouts
            loaded[name] = attempts.read(root / rollouts.path) if rollouts else None
        else:
            raise KeyError(name)
    return loaded
