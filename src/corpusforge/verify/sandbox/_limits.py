"""What a program may use, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["ok", "error", "crashed", "killed", "timeout", "output", "disk"]


@dataclass(frozen=True)
class Limits:
    """What one confined program may use."""

    seconds: float = 5.0
    """Of processor time for each process, in whole seconds (rounded up)."""
    patience: float = 3.0
    """Times `seconds`, of wall time for the whole run: more than 1, so that a busy machine changes no verdict."""
    memory_mib: int = 512
    """Of all its processes together; also the address space of each."""
    processes: int = 1
    """At a time; threads do not count, their stacks count as memory. With more than one a program can fork.
    Its children die with the run, but may live on, confined, if whoever called `run` is killed first."""
    files: int = 64
    """Open at a time, per process."""
    output_kib: int = 64
    """On standard output; of one answer where a program is asked several times."""
    scratch_mib: int = 16
    """In its folder, of which one file may hold a sixteenth; a file counts at least 4 KiB, and folders in folders in
    folders, thirty deep, are too much. The folder is looked at every 20 ms."""


@dataclass(frozen=True)
class Ran:
    """What became of a program."""

    outcome: Outcome
    """`ok`: it ended with code 0; `error`: with another; `crashed`: by a signal; `killed`: by SIGKILL, which is how
    processes end that together ask for too much memory (one alone gets a MemoryError); else the limit that it hit."""
    stdout: bytes = b""
    """What it wrote, cut at the limit."""
    exit_code: int | None = None
    """None when it did not end by itself."""
    seconds: float = 0.0
