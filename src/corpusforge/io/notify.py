"""Telling somebody that a nightly run failed: a command that gets JSON on its standard input, or a webhook."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS: Final = 30  # a command or a server that does not answer must not hold the run


def notify(target: str, message: Mapping[str, Any]) -> str:
    """Hand `message` to `target`: a http(s) address (POST) or a command line. Says how that went; never raises for it.

    Commands are not run through a shell: write `sh -c '…'` where you need one.
    """
    body = json.dumps(message, ensure_ascii=False).encode()
    if target.startswith(("http://", "https://")):
        return _post(target, body)
    try:
        code = _run(shlex.split(target), body)
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return f"failed: {type(error).__name__}"
    return "done" if code == 0 else f"failed: exit code {code}"


def _run(command: list[str], body: bytes) -> int:
    """Run a command to its end; what it started goes with it when it takes too long."""
    child = subprocess.Popen(  # noqa: S603 - the user's own command
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,  # a pipe would be waited for as long as a grandchild holds it
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        child.communicate(body, timeout=SECONDS)
    except BaseException:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        raise
    return child.returncode


def _post(address: str, body: bytes) -> str:
    try:
        request = urllib.request.Request(  # noqa: S310 - only http and https come here
            address, data=body, headers={"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return "done" if answer.status < 300 else f"failed: HTTP {answer.status}"
    except urllib.error.HTTPError as error:
        return f"failed: HTTP {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"failed: {type(error).__name__}"
