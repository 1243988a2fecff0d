"""DVC as a child process: `dvc repro`, its output in a log file, and no process left behind when we are stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

# DVC itself must die when we are killed, or it would go on and record stages; its stages watch DVC in turn.
_CHILD: Final = (
    "import sys, runpy; from corpusforge.engine.lifeline import die_with_parent; "
    "die_with_parent(int(sys.argv.pop(1))); runpy.run_module('dvc', run_name='__main__', alter_sys=True)"
)
_RUNNING: Final = re.compile(r"^Running stage '([^']+)'", re.MULTILINE)
_FAILED: Final = re.compile(r"failed to reproduce '([^']+)'")
_OURS: Final = re.compile(r"^error\[[a-z-]+\]: .*(?:\n {2}.*)*", re.MULTILINE)
_SHOWN: Final = 2_000  # characters of an error that are passed on


class Stopped(KeyboardInterrupt):
    """The process was asked to end (SIGTERM, SIGINT)."""


@dataclass(frozen=True)
class Outcome:
    """How `dvc repro` ended: exit code, the stages it ran, and what it said of the one that failed."""

    code: int
    ran: list[str]
    failed_stage: str = ""
    message: str = ""


def repro(root: Path, target: str, log: Path) -> Outcome:
    """Run `dvc repro target` in `root`; everything it prints goes to `log`. No child outlives this call."""
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [sys.executable, "-c", _CHILD, str(os.getpid()), "repro", target]
    log.parent.mkdir(parents=True, exist_ok=True)
    forget_the_dead(root)
    with log.open("wb") as output:
        child = subprocess.Popen(  # noqa: S603 - our own interpreter and DVC
            command,
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = child.wait()
        finally:
            _end(child)
    return _outcome(code, log.read_text(encoding="utf-8", errors="replace"))


def forget_the_dead(root: Path) -> None:
    """Remove DVC's list of what is being read and written, when all processes in it are dead.

    DVC forgets killed processes itself, but takes one that nobody has waited for yet (a zombie, as under the first
    process of many containers) for alive, and then refuses to run.
    """
    path = root / ".dvc" / "tmp" / "rwlock"
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    readers = [entry for entries in held.get("read", {}).values() for entry in entries]
    if all(_is_dead(int(entry["pid"])) for entry in [*readers, *held.get("write", {}).values()]):
        path.unlink(missing_ok=True)


def _is_dead(pid: int) -> bool:
    """Whether there is no such process, or only a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        pass
    else:
        return text[text.rindex(")") + 2 :].startswith(("Z", "X"))
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _outcome(code: int, text: str) -> Outcome:
    ran = _RUNNING.findall(text)
    if code == 0:
        return Outcome(0, ran)
    failed, ours = _FAILED.findall(text), _OURS.findall(text)
    said = ours[-1] if ours else next((line for line in reversed(text.splitlines()) if line.startswith("ERROR")), "")
    return Outcome(code, ran, failed[0] if failed else "", said[:_SHOWN])


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill whatever is left of the child's process group."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


@contextmanager
def stoppable() -> Iterator[None]:
    """Turn SIGTERM and SIGINT into Stopped, so that children are ended and folders cleaned; only in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(f"stopped by {signal.Signals(number).name}")

    before: dict[int, Any] = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
