"""Do walls hold? A program tries them: a file, a socket, a signal, a folder outside."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from corpusforge.verify.sandbox._limits import Ran


def open_walls(run_confined: Callable[[str], Ran], more: str = "", refusal: str = "PermissionError") -> str | None:
    """None if a program that tries them finds all walls shut, run by `run_confined`; else what it said.

    `refusal`: the exception that says so; in a container, what is outside is not even there.
    """
    with tempfile.TemporaryDirectory(prefix="corpusforge-") as folder, socket.create_server(("127.0.0.1", 0)) as server:
        secret = Path(folder, "secret")
        secret.write_text("secret", encoding="utf-8")
        told = _PROBE.format(path=str(secret), port=server.getsockname()[1], refusal=refusal)
        ran = run_confined(told + more + _TOLD)
        kept = secret.read_text(encoding="utf-8") == "secret"
    if ran.stdout != b"confined" or not kept:
        return f"a confined program was not confined, or did not run: {ran.outcome}, {ran.stdout[:40].decode()!r}"
    return None


_PROBE: Final = """
import os, socket
def refused(name, act):
    try:
        act()
    except {refusal}:
        return
    os.write(1, name.encode() + b" is open ")
    os._exit(1)
refused("reading", lambda: open({path!r}))
refused("writing", lambda: open({path!r}, "w"))
refused("mode", lambda: os.chmod({path!r}, 0o777))
refused("network", lambda: socket.create_connection(("127.0.0.1", {port}), 1))
refused("signals", lambda: os.kill(os.getppid(), 0))
refused("the folder around", lambda: open("../left", "w"))
"""
_TOLD: Final = 'os.write(1, b"confined")'
