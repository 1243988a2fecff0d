"""Run one case in this process, perhaps again and again; print its outcome, longest seconds and peak memory as JSON."""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

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
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    sys.stdout.write(json.dumps({"outcome": outcome, "seconds": seconds, "peak_mib": peak / 1024}) + "\n")
