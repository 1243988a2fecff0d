"""Functions with docstrings and doctests, read from the source files of installed packages; nothing is imported or run.

A function at the top of a module whose docstring has examples is a programming task with a checker: write it so that
the examples hold. Only examples that stand on their own are taken for that (they use the function, builtins, and what
they import or assign themselves); whatever has a docstring worth learning from also makes a documentation sample.

    statistics.mean -> signature `def mean(data):`, its story, [(">>> mean([1, 2, 3, 4, 4])", "2.8"), …]
"""

from __future__ import annotations

import ast
import builtins
import doctest
import importlib.util
import inspect
import platform
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.distributions import installed, owner
from corpusforge.errors import SourceError
from corpusforge.stages.ingest import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SHORTEST_STORY: Final = 40  # characters; a shorter docstring says little more than the name
_LONGEST: Final = 120  # lines; a longer function is no task and no sample
_SKIPPED: Final = {"test", "tests", "idlelib", "lib2to3", "turtledemo", "site-packages", "__pycache__", "ensurepip"}
_FLAGS: Final = {"ELLIPSIS", "NORMALIZE_WHITESPACE", "IGNORE_EXCEPTION_DETAIL", "SKIP"}


def functions(packages: list[str]) -> Iterator[Record]:
    """One record per documented public function, by file and line. Raises SourceError for an unknown package."""
    for module, file in _files(packages):
        try:
            text = file.read_text(encoding="utf-8")
            tree = ast.parse(text)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue  # not a module that this Python could import either
        for position, (node, name) in enumerate(_documented(tree), 1):
            yield Record(position, _describe(node, name, module, text), module, node.lineno, part=module)


def revision(packages: list[str]) -> str:
    """Versions of what is harvested: of the distributions, and of Python where its own library is."""
    names = {owner(package) for package in packages or ["sys"]}
    found = {f"{name} {installed(name)}" if name else f"Python {platform.python_version()}" for name in names}
    return ", ".join(sorted(found))


def _files(packages: list[str]) -> Iterator[tuple[str, Path]]:
    for package in packages or sorted(name for name in sys.stdlib_module_names if not name.startswith("_")):
        place = _place(package)
        if place is None:
            if packages:
                raise SourceError(
                    f"no Python source of {package!r} is installed", hint="name importable modules or packages"
                )
            continue
        if place.is_file():
            yield package, place
            continue
        for file in sorted(place.rglob("*.py")):
            parts = file.relative_to(place).with_suffix("").parts
            if not _SKIPPED & set(parts):
                yield ".".join([package, *(p for p in parts if p != "__init__")]), file


def _place(package: str) -> Path | None:
    """The file of a module or the folder of a package; only parents of dotted names are ever imported."""
    if package in _SKIPPED:
        return None
    plain = Path(sysconfig.get_path("stdlib")) / Path(*package.split("."))
    if package.partition(".")[0] in sys.stdlib_module_names:
        return plain if plain.is_dir() else plain.with_suffix(".py") if plain.with_suffix(".py").exists() else None
    try:
        found = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    origin = Path(found.origin)
    return origin.parent if found.submodule_search_locations else origin


def _documented(tree: ast.Module) -> Iterator[tuple[_Function, str]]:
    """Public functions and methods with a docstring worth having."""
    for node in tree.body:
        inner = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
        for one in inner:
            if isinstance(one, _Function) and not one.name.startswith("_"):
                story = ast.get_docstring(one)
                if story and len(story) >= _SHORTEST_STORY and (one.end_lineno or 0) - one.lineno < _LONGEST:
                    yield one, f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name


def _describe(node: _Function, name: str, module: str, text: str) -> dict[str, Any]:
    lines = text.splitlines(keepends=True)
    code = inspect.cleandoc("\n" + "".join(lines[node.lineno - 1 : node.end_lineno])).strip("\n")
    story = ast.get_docstring(node) or ""
    head = lines[node.lineno - 1 : node.body[0].lineno - 1] or [f"def {node.name}({ast.unparse(node.args)}):\n"]
    body = lines[node.body[0].end_lineno or 0 : node.end_lineno]
    bare = inspect.cleandoc("\n" + "".join([*head, *body])).strip("\n")
    if not "".join(body).strip():
        bare += "\n    ..."
    record: dict[str, Any] = {
        "id": f"{module}.{name}",
        "module": module,
        "name": name,
        "signature": inspect.cleandoc("\n" + "".join(head)).strip("\n"),
        "docstring": story,
        "code": code,
        "bare_code": bare,
    }
    if "." not in name:
        examples = _examples(story, name)
        if examples:
            record["examples"] = examples
    return record


def _examples(story: str, name: str) -> list[dict[str, Any]]:
    """The examples of a docstring, if each of them stands on its own and one of them checks the function."""
    try:
        found = doctest.DocTestParser().get_examples(story)
        known, checks = {name, *dir(builtins)}, False
        for example in found:
            tree = ast.parse(example.source)
            used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            known |= _bound(tree)
            if not used <= known:
                return []
            checks |= name in used and bool(example.want) and "SKIP" not in _options(example)
    except (ValueError, SyntaxError):
        return []
    if not checks:
        return []
    return [{"source": e.source, "want": e.want, "options": _options(e)} for e in found]


def _options(example: doctest.Example) -> list[str]:
    """Names of the doctest flags that an example switches on."""
    flags = doctest.OPTIONFLAGS_BY_NAME
    return sorted(name for name in _FLAGS if example.options.get(flags[name]))


def _bound(tree: ast.Module) -> set[str]:
    """Names that an example assigns, imports or defines."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef | ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return names
