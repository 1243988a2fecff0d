"""Kinds of verifiers that users add: registered by a decorator, or found among the installed packages.

    [project.entry-points."corpusforge.verifiers"]         in the pyproject.toml of a package
    palindrome = "my_checks:palindrome"                    kind = module:function

A decorator is known to the process that ran it; an entry point to every process of the installation, workers and
`dvc repro` included. The group is looked at when a kind is asked for that is neither built in nor registered, and the
module is imported then.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from corpusforge.errors import ConfigError, MissingExtra
from corpusforge.verify._verdict import Task, Verdict

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "corpusforge.verifiers"
Check = Callable[[Task, Any], Verdict]
CheckMany = Callable[[list[Task], list[Any]], list[Verdict]]
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,59}")
_RESERVED: Final = ("verify", "unreadable")


class Kind(NamedTuple):
    """How a kind is checked: one at a time, and many at once where that is cheaper."""

    check: Check
    check_many: CheckMany | None = None


_own: dict[str, Kind] = {}
_loading = threading.RLock()


def add(name: Any, kind: Kind, built_in: Sequence[str]) -> None:
    """Make a kind known. Raises ConfigError for a name that is no name, or that another function has."""
    _demand_free(name, built_in)
    if not callable(kind.check) or not (kind.check_many is None or callable(kind.check_many)):
        raise ConfigError(f"the verifier `{name}` is no function", hint="register a function of task and completion")
    known = _own.get(name)
    if known is not None and _origin(known.check) != _origin(kind.check):
        raise ConfigError(f"the kind `{name}` is registered already", hint="give one of the two another name")
    _own[name] = kind


def find(name: str, built_in: Sequence[str]) -> Kind | None:
    """The kind of a name, its entry point loaded; None where nobody has registered it.

    Raises MissingExtra when the entry point cannot be imported, ConfigError when two packages have the same name.
    """
    if name not in _own and (points := _points().get(name)):
        with _loading:
            if name not in _own:
                _load(name, points, built_in)
    return _own.get(name)


def names(built_in: Sequence[str]) -> list[str]:
    """Every name that is registered or has an entry point, sorted."""
    return sorted({*_own, *_points()} - set(built_in))


def _demand_free(name: Any, built_in: Sequence[str]) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _RESERVED:
        hint = "a kind is named in small letters, digits and underscores, and begins with a letter"
        raise ConfigError("the name of a verifier is not one", hint=hint)
    if name in built_in:
        raise ConfigError(f"the kind `{name}` is built in", hint="register yours under another name")


def _origin(function: Any) -> tuple[Any, Any]:
    """Where a function is written: a cell that is run again registers the same one anew."""
    return getattr(function, "__module__", None), getattr(function, "__qualname__", id(function))


@cache
def _points() -> dict[str, list[EntryPoint]]:
    from importlib.metadata import entry_points

    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        if point.value not in [known.value for known in found.get(point.name, [])]:
            found.setdefault(point.name, []).append(point)
    return found


def _load(name: str, points: list[EntryPoint], built_in: Sequence[str]) -> None:
    if len(points) > 1:
        hint = f"uninstall one of the packages with the entry point `{name}` in the group {GROUP}"
        raise ConfigError(f"two packages bring the verifier `{name}`", hint=hint)
    try:
        function = points[0].load()
    except ConfigError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a module of somebody's raises when it is imported
        hint = f"its entry point is `{points[0].value}`: import it by hand and see what it says"
        raise MissingExtra(f"the verifier `{name}` cannot be loaded ({type(error).__name__})", hint=hint) from None
    if name not in _own:  # its module may have registered it itself, with a function for many
        add(name, Kind(function, getattr(function, "check_many", None)), built_in)
