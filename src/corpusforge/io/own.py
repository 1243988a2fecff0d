"""Functions of the project that a source names: `shape: module:function`, and the callable of `reader: python`.

The project's folder can be imported from. What is imported is the project's own code; its file is one more thing that
`ingest` depends on (`module_file`), so that DVC runs it again when the code changes.
"""

from __future__ import annotations

import difflib
import importlib
import sys
from typing import TYPE_CHECKING, Any

from corpusforge.errors import SourceError
from corpusforge.shapes import own

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.stages.ingest import SourceConfig


_loaded: dict[str, tuple[str, bytes]] = {}  # modules of projects that were imported here: their file, as it was then


def load_shape(source: SourceConfig, root: Path) -> None:
    """Make the source's own shape known, where it has one. Raises SourceError when it cannot be imported."""
    if not own.is_own(source.shape):
        return
    function = load(source.shape, source.name, root)
    if not own.is_shape(function):
        name = source.shape.partition(":")[2]
        raise SourceError(
            f"source {source.name!r}: {source.shape} is no shape",
            hint=f'write @corpusforge.shape("{name}") above the function',
        )
    own.REGISTERED[source.shape] = function


def load(where: str, name: str, root: Path) -> Any:
    """What `module:function` names; `root` can be imported from. Raises SourceError, naming the source `name`."""
    module_name, _, function_name = where.partition(":")
    sys.path.insert(0, str(root))
    written, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # nothing is put into the project's folder
    try:
        module = _module(module_name, root)
    except Exception as error:  # noqa: BLE001 - whatever their module raises is told as what it is
        raise SourceError(
            f"source {name!r}: {module_name} cannot be imported ({type(error).__name__})",
            hint="modules of the project are found beside params.yaml, and need a name of their own",
        ) from None
    finally:
        sys.path.remove(str(root))
        sys.dont_write_bytecode = written
    function = getattr(module, function_name, None)
    if not callable(function):
        near = difflib.get_close_matches(function_name, [n for n in vars(module) if not n.startswith("_")], 1, 0.6)
        raise SourceError(
            f"source {name!r}: {module_name} has no function {function_name!r}",
            hint=f"did you mean {near[0]!r}?" if near else "",
        )
    return function


def _module(name: str, root: Path) -> Any:
    """The module as its file is now: another project may have had one of this name, and a file may have changed."""
    here = module_file(name, root)
    state = (str(here.resolve()), here.read_bytes()) if here else None
    if name in sys.modules and state and _loaded.get(name) != state:
        if name not in _loaded:
            raise ImportError(f"{name} is the name of another module")
        del sys.modules[name]
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    if state:
        _loaded[name] = state
    return module


def module_file(name: str, root: Path) -> Path | None:
    """The file of a module in the project's folder; None for one that is installed or missing."""
    place = root.joinpath(*name.split("."))
    return next((file for file in (place.with_suffix(".py"), place / "__init__.py") if file.is_file()), None)
