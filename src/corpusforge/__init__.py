"""Versioned, provable curation of post-training data.

    import corpusforge as cf

    rows = cf.read("chats/*.jsonl")
    result = cf.dedupe(rows, threshold=0.8)
    result.kept, result.dropped, result.explain("r1042")

Names are loaded when they are first used: importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Final

_PUBLIC: Final = {
    "CorpusForgeError": "corpusforge.errors",
    "Project": "corpusforge.project",
    "SketchIndex": "corpusforge.text.sketches",
    "Sketcher": "corpusforge.text.sketches",
    "StageResult": "corpusforge.result",
    "blend": "corpusforge.api",
    "check": "corpusforge.api",
    "decontaminate": "corpusforge.api",
    "dedupe": "corpusforge.api",
    "dedupe_files": "corpusforge.api",
    "diff": "corpusforge.api",
    "duplicates": "corpusforge.api",
    "evaluate": "corpusforge.api",
    "export": "corpusforge.api",
    "filter": "corpusforge.api",
    "forget": "corpusforge.api",
    "gate": "corpusforge.api",
    "grade": "corpusforge.api",
    "health": "corpusforge.api",
    "index_files": "corpusforge.api",
    "ingest": "corpusforge.api",
    "inspect": "corpusforge.api",
    "licences": "corpusforge.api",
    "overrule": "corpusforge.api",
    "read": "corpusforge.api",
    "scrub": "corpusforge.api",
    "scrub_report": "corpusforge.api",
    "shape": "corpusforge.shapes.own",
    "sources": "corpusforge.api",
    "trace": "corpusforge.api",
    "verify": "corpusforge.verify",
    "verify_tasks": "corpusforge.api",
    "write_shards": "corpusforge.api",
}
__all__ = sorted([*_PUBLIC, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("corpusforge")
    if name not in _PUBLIC:
        raise AttributeError(f"module 'corpusforge' has no attribute {name!r}")
    module = importlib.import_module(_PUBLIC[name])
    value = module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)


class _Package(ModuleType):
    """Keeps `cf.check` the function: importing the submodule of that name would put the module in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _PUBLIC and isinstance(value, ModuleType)) or callable(value):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
