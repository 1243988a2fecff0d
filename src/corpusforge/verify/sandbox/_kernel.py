"""Programs behind the kernel's own walls (see `_walls`), each in a fresh process; no root and no container is needed.

The program's folder is watched while it runs, its output is cut, and at the end it is dead with everything that it
started, and its folder is gone. Where confinement does not work, `available` says why and nothing is run.
"""

from __future__ import annotations

import functools
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from corpusforge.errors import MissingExtra, ProjectError
from corpusforge.verify.sandbox import _filters, _scratch
from corpusforge.verify.sandbox._child import Child, boot, payload, run_in, told, wants_random
from corpusforge.verify.sandbox._proof import open_walls
from corpusforge.verify.sandbox._walls import bound, interpreter, policy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, TracebackType
    from typing import Self

    from corpusforge.verify.sandbox._limits import Limits, Outcome, Ran


def run(program: str, *, stdin: bytes = b"", limits: Limits | None = None) -> Ran:
    """Run a Python program confined, and wait for its end. Standard error is thrown away.

    Raises ProjectError where confinement does not work (see `available`), MissingExtra without the package.
    """
    require()
    return run_in(Confined, program, stdin, limits)


def require() -> None:
    """Nothing if programs can be confined here; else raises MissingExtra or ProjectError."""
    if reason := available():
        if "corpusforge[verify]" in reason:
            raise MissingExtra("confining code needs sandlock", hint="pip install 'corpusforge[verify]'")
        raise ProjectError(f"code cannot be confined here: {reason}", hint="run code tasks on Linux 6.12 or later")


@functools.cache
def available() -> str | None:
    """None if programs are really confined here, found out once by trying; else the reason."""
    if sys.platform != "linux":
        return f"confinement needs Linux, this is {sys.platform}"
    try:
        import sandlock
    except ImportError:
        return "sandlock is not installed: pip install 'corpusforge[verify]'"
    if (found := sandlock.landlock_abi_version()) < (needed := sandlock.min_landlock_abi()):
        return f"the kernel's Landlock is version {found}, {needed} is needed"
    try:
        return open_walls(functools.partial(run_in, Confined))
    except (OSError, RuntimeError) as error:
        return f"a confined program does not start: {type(error).__name__}"


class Confined(Child):
    """A fresh confined process.

    `given` are the names that its code finds: plain data and code objects, whatever marshal can write.
    """

    def __init__(self, code: CodeType | str, given: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(payload(code, given), limits)
        self._random = wants_random(self.outbox)

    def __enter__(self) -> Self:
        import sandlock

        self._scratch = _scratch.Scratch()
        self.folder = self._scratch.path
        self._process: Any = None
        try:
            self._box = sandlock.Sandbox(**policy(self.folder, self.limits, self._random))
            piped, null = sandlock.StdioMode.PIPED, sandlock.StdioMode.NULL
            self._process = self._box.popen(command(_filters.narrow()), piped, piped, null)
            bound(self._process.pid, self.limits)  # before it is sent anything to run
        except BaseException:
            self.__exit__(None, None, None)
            raise
        self.speak_by(self._process.stdin, self._process.stdout)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._process.__exit__(kind, error, at)
        self._scratch.remove()

    def finish(self, deadline: float) -> tuple[Outcome, int | None]:
        """Wait for its end, killing it at `deadline` or if it hit a limit: the outcome and its exit code."""
        from sandlock import ExitReason

        left = 0.001 if self.trouble else max(0.001, deadline - time.monotonic())
        result = self._process.wait(left)
        if self.trouble or result.reason is ExitReason.TIMEOUT:
            return self.trouble or "timeout", None
        if result.reason is ExitReason.EXITED:
            return told(result.exit_code)
        killed = result.reason is ExitReason.KILLED
        return told(-(signal.SIGKILL if killed else max(result.signal, 1)))


def command(steps: bytes) -> list[str]:
    """What starts a confined interpreter that puts a filter over itself and then reads what it is to run."""
    return [interpreter(), *boot(f"disown(); shut(bytes.fromhex('{steps.hex()}')); obey()")]
