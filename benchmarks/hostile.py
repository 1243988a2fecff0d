"""What is left on the machine of hostile code that was checked over and over.

    python benchmarks/hostile.py --runs 1000

One process checks the attacks of tests/verify/attacks, in turn, a good solution after every eighth. This one watches it
from outside: processes, mounts, files, shared memory and queues, a file and sockets that must stay untouched; and, of
the checking process itself, descriptors, threads and memory after a tenth of the runs and after all. Exit code 1 where
anything is left, grew, or passed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from corpusforge.verify import assert_tests, program
from corpusforge.verify._verdict import Task
from corpusforge.verify.sandbox import Limits, _forks, available

FOLDER = Path(__file__).resolve().parent.parent / "tests/verify/attacks"
TESTS = ["assert add(2, 3) == 5", "assert abs(add(0.5, 0.25) - 0.75) < 1e-9", "assert add('a', 'b') in ['ab']"]
ADD = Task("assert_tests", {"tests": TESTS, "setup": ""})
PRINT = Task("program", {"tests": [{"input": "2 3\n", "output": "5\n"}, {"input": "10 20\n", "output": "30\n"}]})
GOOD = "def add(a, b):\n    return a + b"
FEWEST, BATCH, GROWTH = 10, 8, 32  # runs before the first look; checked at once; MiB of memory that may be added


def attacks() -> list[tuple[Task, str, bool]]:
    """Task, code, and whether it is given leave to make processes."""
    rows = tomllib.loads((FOLDER / "code.toml").read_text(encoding="utf-8"))["attack"]
    code = [(ADD, eval(row["text"]) if row.get("eval") else row["text"], bool(row.get("forks"))) for row in rows]
    rows = tomllib.loads((FOLDER / "programs.toml").read_text(encoding="utf-8"))["attack"]
    return code + [(PRINT, row["text"], False) for row in rows]


def check(given: list[tuple[Task, str, bool]]) -> collections.Counter[str]:
    """Check some in one batch of each kind, and a good one alone."""
    found: collections.Counter[str] = collections.Counter()
    for module, kind, forks in itertools.product((assert_tests, program), (ADD, PRINT), (False, True)):
        chosen = [code for task, code, may in given if task is kind and may is forks]
        if chosen and module.__name__.endswith(kind.kind):
            limits = Limits(seconds=1, patience=1.5, processes=8 if forks else 1)
            blocks = [f"```python\n{code}\n```" for code in chosen]
            for block, verdict in zip(blocks, module.check_many([kind] * len(chosen), blocks, limits), strict=True):
                found[verdict.outcome] += 1
                if verdict.outcome != "fail":
                    print(f"{verdict.outcome} ({verdict.rule}):\n{block[:500]}", file=sys.stderr)
    good = assert_tests.check(ADD, f"```python\n{GOOD}\n```", Limits(seconds=5, patience=10)).outcome
    found[f"good {good}"] += 1
    return found


def work(runs: int) -> None:
    """Check, and wait for a line after a tenth and after all."""
    found: collections.Counter[str] = collections.Counter()
    endless, done = itertools.cycle(attacks()), 0
    for until in (max(FEWEST, runs // 10), runs):
        while done < until:
            some = list(itertools.islice(endless, min(BATCH, until - done)))
            found += check(some)
            done += len(some)
        print(json.dumps(found), flush=True)
        sys.stdin.readline()
    _forks.close()


def processes(folder: str) -> list[str]:
    """Processes that live in a folder, or were told of it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            told = (process / "environ").read_bytes()
            if str((process / "cwd").readlink()).startswith(folder) or f"={folder}/corpusforge".encode() in told:
                found.append(process.name)
    return found


def shared_memory() -> set[str]:
    """Names of files in shared memory, without those in which Podman keeps its locks."""
    return {path.name for path in Path("/dev/shm").iterdir() if not path.name.startswith("libpod")}


def mounts() -> set[str]:
    """Where something is mounted, without what container engines mount for others meanwhile."""
    places = {line.split()[1] for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()}
    return {place for place in places if not any(name in place for name in ("/docker", "/containers", "/netns"))}


class Outside:
    """The machine around the checking process."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.canary = folder, folder.parent / "canary"
        self.canary.write_text("untouched", encoding="utf-8")
        self.canary.chmod(0o640)
        self.ears = [
            socket.create_server(("127.0.0.1", 0)),
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM),
        ]
        self.ears[1].bind(("127.0.0.1", 0))
        self.ears[2].bind(str(folder.parent / "ears"))
        self.shared, self.mounts = shared_memory(), mounts()

    def look(self) -> dict[str, object]:
        """What should be the same before and after."""
        queues = [Path(f"/proc/sysvipc/{kind}") for kind in ("shm", "msg", "sem")]
        return {
            "processes": len(processes(str(self.folder))),
            "temporary files": len([*self.folder.iterdir()]),
            "new mounts": len(mounts() - self.mounts),
            "shared memory of System V and its queues": sum(len(q.read_text().splitlines()) - 1 for q in queues),
            "new files in /dev/shm": len(shared_memory() - self.shared),
            "the file's text": self.canary.read_text(encoding="utf-8"),
            "the file's state": str((*(found := self.canary.stat())[:7], found.st_mtime_ns, found.st_ctime_ns)),
            "sockets that heard something": len(select.select(self.ears, [], [], 0)[0]),
        }


def state(process: int) -> dict[str, int]:
    """Descriptors, threads and memory of a process."""
    folder = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return {
        "descriptors": len([*(folder / "fd").iterdir()]),
        "threads": int(status["Threads"]),
        "memory, MiB": int(status["VmRSS"].split()[0]) // 1024,
    }


def watch(runs: int, around: Path) -> bool:
    """Run the checking process and print what was found: whether all is well."""
    folder = around / "tmp"
    folder.mkdir()
    outside, start = Outside(folder), time.monotonic()
    before = outside.look()
    command = [sys.executable, __file__, "--runs", str(runs), "--work"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as checking:
        states, found = [], {}
        for _ in range(2):
            found = json.loads(checking.stdout.readline() or "{}")
            states.append(state(checking.pid))
            checking.stdin.write("\n")
            checking.stdin.flush()
    for _ in range(50):
        if not processes(str(folder)):
            break
        time.sleep(0.1)
    after = outside.look()
    print(f"{runs} hostile runs in {time.monotonic() - start:.0f} s: {found}")
    print(f"{'':45} {'before':>12} {'after':>12}")
    for name, was in before.items():
        same = "same" if was == after[name] else "CHANGED"
        short = name.startswith("the file")
        print(f"{name:45} {'' if short else was:>12} {same if short else after[name]:>12}")
    for name, was in states[0].items():
        print(f"{'checking process: ' + name:45} {was:>12} {states[1][name]:>12}")
    grew = [name for name, was in states[0].items() if states[1][name] > was + (GROWTH if "memory" in name else 0)]
    wrong = [name for name in found if name not in ("fail", "good pass")]
    return before == after and not grew and not wrong and checking.returncode == 0


def main() -> int:
    """Watch, or with --work check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.runs)
        return 0
    if (reason := available()) is not None:
        print(f"nothing to do: {reason}")
        return 0
    with tempfile.TemporaryDirectory() as around:
        return 0 if watch(options.runs, Path(around)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
