"""How a container is asked for: the command line of Docker, Podman or nerdctl, which take the same words.

    found()                    ->  ("podman",), the first that is installed; or what CORPUSFORGE_CONTAINER_ENGINE says
    start(engine, image, …)    ->  podman run --rm --interactive --network=none --read-only …

Nothing of the machine is mounted into it, no image is fetched, and nothing is written to a log. It may do as little as
an engine lets it: three capabilities are left to its first process, by which it makes children that are somebody else.
"""

from __future__ import annotations

import os
import shlex
import shutil
from typing import TYPE_CHECKING, Final

from corpusforge.errors import ConfigError
from corpusforge.verify.sandbox._child import boot
from corpusforge.verify.sandbox._walls import environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from corpusforge.verify.sandbox._limits import Limits

SETTING: Final = "CORPUSFORGE_CONTAINER_ENGINE"
# Lines that engines and Python end with when they are asked for the wrong thing.
HELP: Final = ("See '", "Run '", "Try `", "usage:", "Usage:")
_HINT: Final = "set it to podman, or to a command with its options; see docs/verifiers.md"
_KNOWN: Final = ("docker", "podman", "nerdctl")
_SCRATCH: Final = "/scratch"
_SHUT: Final = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - where Podman would let everybody write
_BESIDE: Final = 128  # MiB of memory for the first process, beside what a program and its files may take
_PROCESSES: Final = 64  # threads count


def found() -> tuple[str, ...] | None:
    """The command of an engine, with its options; None where none is installed. Raises ConfigError for no command."""
    if told := os.environ.get(SETTING, "").strip():
        try:
            first, *options = shlex.split(told)
        except ValueError as error:
            raise ConfigError(f"{SETTING}: {told[:80]!r} is no command: {error}", hint=_HINT) from None
        if shutil.which(first) is None:
            raise ConfigError(f"{SETTING}: {told[:80]!r} is no command that is here", hint=_HINT)
        return os.path.abspath(first) if os.sep in first else first, *options  # noqa: PTH100 - no link followed
    return next(((name,) for name in _KNOWN if shutil.which(name)), None)


def start(engine: Sequence[str], image: str, name: str, limits: Limits, acts: str) -> list[str]:
    """The command that starts a container under a name, whose interpreter does something of what `_inside` offers."""
    memory = f"{limits.memory_mib + limits.scratch_mib + _BESIDE}m"
    options = {
        "--name": [name],
        "--pull": ["never"],
        "--log-driver": ["none"],
        "--network": ["none"],
        "--ipc": ["none"],
        "--user": ["0:0"],
        "--cap-drop": ["ALL"],
        "--cap-add": ["SETUID", "SETGID", "KILL"],
        "--security-opt": ["no-new-privileges"],
        "--pids-limit": [str(_PROCESSES)],
        "--memory": [memory],
        "--memory-swap": [memory],
        "--tmpfs": [
            f"{_SCRATCH}:rw,noexec,nosuid,nodev,size={limits.scratch_mib}m,mode=1777",
            *(f"{path}:ro,size=4k" for path in _SHUT),
        ],
        "--env": [f"{key}={value}" for key, value in environment(_SCRATCH).items()],
        "--workdir": ["/"],
        "--entrypoint": ["python3"],
    }
    told = [f"{option}={value}" for option, values in options.items() for value in values]
    return [*engine, "run", "--rm", "--interactive", "--read-only", *told, image, *boot(acts)]


def remove(engine: Sequence[str], name: str) -> list[str]:
    """The command that ends a container, whatever it does."""
    return [*engine, "rm", "--force", name]
