"""Programs without walls: a process of their own with limits, and all else as whoever runs it may.

For a machine that is itself the wall, say a pod that is thrown away, and only where CORPUSFORGE_SANDBOX says
`unconfined`. Such a program can read, change and send what its user can; what it starts and sends away outlives it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify.sandbox import _scratch
from corpusforge.verify.sandbox._child import Child, boot, payload, told
from corpusforge.verify.sandbox._walls import environment, interpreter, limits_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import CodeType, TracebackType
    from typing import Self

    from corpusforge.verify.sandbox._limits import Limits, Outcome


_TICK: Final = 0.002  # seconds between two looks whether it has ended


class Unconfined(Child):
    """A process with limits and no walls; `given` as for `Confined`."""

    def __init__(self, code: CodeType | str, given: Mapping[str, Any], limits: Limits) -> None:
        super().__init__(payload(code, given), limits)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._scratch = _scratch.Scratch()
        self.folder = self._scratch.path
        acts = f"hold({limits_of(self.limits)!r}); obey()"
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our interpreter
                [interpreter(), *boot(acts)],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
                env=environment(str(self.folder)),
                start_new_session=True,
            )
        except BaseException:
            self._scratch.remove()
            raise
        self.speak_by(self._process.stdin, self._process.stdout)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._process is not None:
            self._kill(self._process)
            for stream in (self.input, self.output):
                stream.close()
        self._scratch.remove()

    def finish(self, deadline: float) -> tuple[Outcome, int | None]:
        """Wait for its end, killing it at `deadline` or if it hit a limit: the outcome and its exit code."""
        assert self._process is not None
        ended = not self.trouble and _over(self._process, deadline)
        self._kill(self._process)
        return told(self._process.returncode) if ended else (self.trouble or "timeout", None)

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """End it with its group, of which it is the leader; once, for then the number may be another's."""
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _over(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Wait for its end; where the system can say so, it keeps its number until its group is killed."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(_TICK, deadline - time.monotonic()))
        return process.returncode is not None
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() >= deadline:
            return False
        time.sleep(_TICK)
    return True
