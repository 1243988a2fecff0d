"""Run one case in this process, perhaps again and again; print its outcome, longest seconds and peak memory as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


def peak_mib() -> float:
    """Of this process since it began, and of its children. `ru_maxrss` of a process starts with its parent's."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    status = Path("/proc/self/status")
    lines = status.read_text(encoding="ascii").splitlines() if status.exists() else []
    own = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return max([children, *(own or [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss])]) / 1024


if __name__ == "__main__":
    from tests.cases._case import load_case
    from tests.cases._config import Settings
    from tests.cases._words import load_words
    from tests.cases._words_vary import COMPARED
    from tests.cases._world import World

    told = json.loads(sys.argv[1])
    load_words()
    settings = Settings(told["settings"]["options"], {}, told["settings"]["reference"])
    case, seconds, outcome = load_case(Path(told["case"])), 0.0, None
    for number in range(told["repeat"]):
        folder = Path(told["folder"]) / str(number)
        folder.mkdir()
        world = World(case, folder, settings, told["name"])
        began = time.monotonic()
        outcome = COMPARED[told["compare"]](world)
        seconds = max(seconds, time.monotonic() - began)
    sys.stdout.write(json.dumps({"outcome": outcome, "seconds": seconds, "peak_mib": peak_mib()}) + "\n")
