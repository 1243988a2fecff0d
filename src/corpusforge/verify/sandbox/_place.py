"""Where the code of completions runs, as CORPUSFORGE_SANDBOX says.

    confined            the kernel's own walls (`_kernel`, `_forks`), on Linux. What holds where nothing is said
    container:IMAGE     a container of an image that is there and holds Python (`_containers`); `container` alone is
                        python:3.11-slim, in the version that runs here
    unconfined          no walls: whatever runs can do what the user can (`_unconfined`)

Where the walls that are asked for are not to be had, code is not run, and `fault` says why. Nothing else is tried.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING, Any, Final, Protocol

from corpusforge.errors import ConfigError
from corpusforge.verify.sandbox import _engines, _forks, _kernel
from corpusforge.verify.sandbox._child import wants_random
from corpusforge.verify.sandbox._containers import Containers
from corpusforge.verify.sandbox._unconfined import Unconfined

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType

    from corpusforge.verify.sandbox._child import Child
    from corpusforge.verify.sandbox._limits import Limits

SETTING: Final = "CORPUSFORGE_SANDBOX"
_BEGIN: Final = "import sys; sys.modules[role].main(plan)"
_SEED: Final = "import random; random.seed(0)\n"  # of `random` itself; not of os.urandom and what comes from it
_IMAGE: Final = re.compile(r"[A-Za-z0-9\[][!-~]*")  # what an engine cannot take for an option
_HINT: Final = "set it to confined, container:IMAGE or unconfined; see docs/verifiers.md"


class Place(Protocol):
    """What runs one side of a trial."""

    name: str

    def fault(self) -> str | None:
        """None if code can run there; else the reason."""

    def child(self, role: str, plan: dict[str, Any], limits: Limits) -> Child:
        """A process with the modules of a role, which starts with a plan."""


def place() -> Place:
    """The one that is asked for. Raises ConfigError for a setting that is none."""
    return _place(os.environ.get(SETTING, "").strip() or "confined", os.environ.get(_engines.SETTING, ""))


def where() -> str:
    """The name of the one that is asked for: `confined`, `container` or `unconfined`. Raises ConfigError."""
    return place().name


def in_vain() -> str | None:
    """Why code cannot run where it was asked to, if a place was named; None where it can, or where none was named."""
    return place().fault() if os.environ.get(SETTING, "").strip() else None


@functools.cache
def _place(told: str, engine: str) -> Place:
    del engine  # it is read where it is used; another one is another place
    name, _, image = told.partition(":")
    if told == "confined":
        return Kernel()
    if told == "unconfined":
        return Unwalled()
    if name == "container" and (_IMAGE.fullmatch(image) or told == "container"):
        return Boxes(image or "python:{}.{}-slim".format(*sys.version_info))
    raise ConfigError(f"{SETTING}: {told[:80]!r} is no place to run code in", hint=_HINT)


class Kernel:
    """Behind the kernel's walls: a fork where that does, else a fresh process."""

    name = "confined"

    def fault(self) -> str | None:
        """None if programs are confined here; else the reason."""
        return _kernel.available()

    def child(self, role: str, plan: dict[str, Any], limits: Limits) -> Child:
        """A process with the modules of a role, which starts with a plan."""
        name = f"corpusforge.verify.trial.{role}"
        if limits.processes == 1 and _forks.available() is None:
            child = _forks.Forked(_begin(), {"role": name, "plan": plan}, limits)
            if not wants_random(child.outbox):
                return child
        modules = _forks.modules("trial._pack", "trial._wire", f"trial.{role}")
        return _kernel.Confined(_forks.compiled("start"), {"modules": modules, "role": name, "plan": plan}, limits)


class Boxes:
    """In containers."""

    name = "container"

    def __init__(self, image: str) -> None:
        engine = _engines.found()
        self._none = None if engine else "no container engine is installed: docker, podman or nerdctl"
        self.containers = Containers(engine or (), image)

    def fault(self) -> str | None:
        """None if programs are shut in; else the reason."""
        return self._none or self.containers.fault

    def child(self, role: str, plan: dict[str, Any], limits: Limits) -> Child:
        """A process with the modules of a role, which starts with a plan."""
        given = {"role": f"corpusforge.verify.trial.{role}", "plan": plan}
        return _seeded(lambda seed: self.containers.child(seed + _BEGIN, given, limits))


class Unwalled:
    """In a process like any other."""

    name = "unconfined"

    def fault(self) -> str | None:
        """Always None; that there are no walls is said once."""
        warned(f"{SETTING}=unconfined: the code of completions can do whatever you can, and can pass by foul means")
        return None

    def child(self, role: str, plan: dict[str, Any], limits: Limits) -> Child:
        """A process with the modules of a role, which starts with a plan."""
        modules = _forks.modules("trial._pack", "trial._wire", f"trial.{role}")
        given = {"modules": modules, "role": f"corpusforge.verify.trial.{role}", "plan": plan}
        return _seeded(lambda seed: Unconfined(seed + _forks.START, given, limits))


def _seeded(make: Callable[[str], Child]) -> Child:
    """A child whose `random` begins the same in every run, if it may be asked for it."""
    child = make("")
    return make(_SEED) if wants_random(child.outbox) else child


SAID: Final[dict[str, object]] = {}


def warned(said: str, about: str = "") -> None:
    """Say so, once in this process: once about one thing, if that is named."""
    mine = object()
    if SAID.setdefault(about or said, mine) is mine:  # which is one step, whatever threads do
        warnings.warn(said, RuntimeWarning, stacklevel=2)


@functools.cache
def _begin() -> CodeType:
    return compile(_BEGIN, "begin.py", "exec", dont_inherit=True)
