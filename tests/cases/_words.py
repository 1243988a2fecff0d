"""Assertion words: a word is a generator that yields what is wrong, and nothing when it holds.

    @word
    def kept_count(world, n): ...      {"assert": "kept_count", "n": 7}

The fields of an assertion are the function's arguments: one that it does not know is a failure too, because an
assertion that is half read would pass for the wrong reason. Every module `_words_*.py` holds the words of one topic.
"""

from __future__ import annotations

import importlib
import inspect
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.cases._case import CaseError, faults
from tests.cases._config import settings
from tests.cases._world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.cases._case import Case

    Word = Callable[..., Iterator[str]]

WORDS: Final[dict[str, Word]] = {}
"""Every assertion word that the runner knows."""
_AROUND: Final = frozenset({"assert", "strength", "config", "input", "note"})


def word(function: Word) -> Word:
    """Make a function the meaning of the word that it is named after."""
    if function.__name__ in WORDS:
        raise ValueError(f"two meanings for {function.__name__!r}")
    WORDS[function.__name__] = function
    return function


@dataclass
class Found:
    """What is wrong with a case: `failures`, and the `shoulds`, which are told and count as no failure."""

    failures: list[str] = field(default_factory=list)
    shoulds: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)  # words that nobody has mapped; each is a failure as well


def load_words() -> None:
    """Import the modules that hold the words."""
    for path in sorted(Path(__file__).parent.glob("_words_*.py")):
        importlib.import_module(f"tests.cases.{path.stem}")


def check(case: Case, folder: Path) -> Found:
    """Run a case in an empty folder and look at all that it asserts."""
    load_words()
    found = Found(faults(case))
    worlds: dict[str, World] = {}
    for number, assertion in enumerate(case.expect):
        with suppress(CaseError):  # told below, by the assertion that it concerns
            _world(case, assertion, folder, worlds, number)
    for number, assertion in enumerate(case.expect):
        name = str(assertion.get("assert"))
        if name not in WORDS:
            found.unknown.append(name)
            found.failures.append(f"{name}: the runner does not know this word")
            continue
        wrong, foreign = _misread(WORDS[name], assertion), False
        try:
            wrong = wrong or list(WORDS[name](_world(case, assertion, folder, worlds, number), **_arguments(assertion)))
        except CaseError as error:
            wrong, foreign = [str(error)], True
        except Exception as error:  # noqa: BLE001 - whatever goes wrong in one assertion, the others are looked at
            wrong = [f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"]
        strength = str(assertion.get("strength", ""))
        if strength and not strength.startswith("should"):
            wrong, foreign = [f"the runner does not know the strength {strength!r}"], True
        soft = bool(strength) and not foreign
        (found.shoulds if soft else found.failures).extend(f"{name}: {one}" for one in wrong)
    return found


def _world(case: Case, assertion: dict[str, Any], folder: Path, worlds: dict[str, World], number: int) -> World:
    """The world of an assertion's config and input; assertions that share both share it."""
    config = {**case.config, **assertion.get("config", {})}
    name = assertion.get("input")
    key = repr((sorted(config.items(), key=lambda item: item[0]), name))
    if key not in worlds:
        made = settings(case, config)
        place = folder / f"world-{number}"
        place.mkdir()
        worlds[key] = World(case, place, made, name)
        worlds[key].siblings = list(worlds.values())
        for other in worlds.values():
            other.siblings = worlds[key].siblings
    return worlds[key]


def _arguments(assertion: dict[str, Any]) -> dict[str, Any]:
    return {_python(key): value for key, value in assertion.items() if key not in _AROUND}


def _python(name: str) -> str:
    """A field as an argument: `from`, `class` and `if` are no names in Python."""
    return f"{name}_" if name in ("from", "class", "if", "with") else name


def _misread(function: Word, assertion: dict[str, Any]) -> list[str]:
    """Fields of the assertion that the word does not know, or that it needs and has not got."""
    parameters = dict(list(inspect.signature(function).parameters.items())[1:])
    given = _arguments(assertion)
    wrong = [f"the runner does not know the field {name!r} of this word" for name in given if name not in parameters]
    needed = [name for name, parameter in parameters.items() if parameter.default is parameter.empty]
    return wrong + [f"the field {name!r} is missing" for name in needed if name not in given]
