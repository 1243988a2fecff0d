"""What a command costs: seconds, processor seconds and memory, of the whole tree of processes that it starts.

Memory is looked at twice a second: a look takes the processor for some hundredths of a second, which on a small machine
slows whatever uses all of it. `peak` sums the processes that live at one moment and counts pages that they share once
(proportional set size); `largest` is the most that any one process held (resident set size), as the system reports
it at the end or as it was seen. Processor
seconds are what the system reports when the command ends, or the sum of what was last seen of each process where that
is more: a server that outlives the command is not in the system's report.
"""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from pathlib import Path

STEP = 0.5  # seconds between looks
WAIT = 0.02  # seconds between asking whether the command has ended


@dataclass(frozen=True)
class Cost:
    """Of one command, from its start to its end."""

    seconds: float
    busy: float
    """Processor seconds, of all its processes."""
    peak: int
    largest: int


def look(tree: psutil.Process, busy: dict[int, float]) -> tuple[int, int]:
    """Bytes of all processes and of the largest one; notes in `busy` what each has used of the processor."""
    total = largest = 0
    try:
        processes = [tree, *tree.children(recursive=True)]
    except psutil.Error:
        return 0, 0
    for process in processes:
        try:
            held = process.memory_full_info()
            used = process.cpu_times()
        except psutil.Error:
            continue
        total += getattr(held, "pss", held.rss)
        largest = max(largest, held.rss)
        busy[process.pid] = used.user + used.system
    return total, largest


def measure(command: list[str], log: Path, env: dict[str, str] | None = None, fine: tuple[int, ...] = (0,)) -> Cost:
    """Run a command, its output in `log`; RuntimeError with the end of the log where its exit code is not `fine`."""
    busy: dict[int, float] = {}
    peak = largest = 0
    start = looked = time.perf_counter()
    with log.open("wb") as file:
        child = subprocess.Popen(command, stdout=file, stderr=file, env={**os.environ, **(env or {})})
    tree = psutil.Process(child.pid)
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if time.perf_counter() - looked >= STEP:
            total, most = look(tree, busy)
            peak, largest = max(peak, total), max(largest, most)
            looked = time.perf_counter()
        time.sleep(WAIT)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in fine:
        end = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
        raise RuntimeError(f"{' '.join(command)} ended with code {child.returncode}:\n{end}")
    used = max(usage.ru_utime + usage.ru_stime, sum(busy.values()))
    largest = max(largest, usage.ru_maxrss * 1024)
    return Cost(seconds, used, peak, largest)
