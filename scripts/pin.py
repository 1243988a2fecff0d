"""Print constraints.txt: the exact version of everything installed in this environment.

    python scripts/pin.py > constraints.txt

A local version part (`2.13.0+cpu`) is left out, so that any build of that release satisfies the line. Packages that
were installed from a file or a folder have no version an index could serve: they stop the script.
"""

from __future__ import annotations

import platform
import subprocess
import sys

HEADER = """\
# Exact versions of everything that `make setup` installs (extras dev, demo, ner, train); CPython {python}.
# Written by `make constraints`. Any build of the pinned torch will do; what only CUDA builds need is not pinned.
"""
TOOLS = {"pip", "wheel"}  # they install, they are not installed


def pins(frozen: str) -> list[str]:
    """The `name==version` lines of a `pip freeze`, sorted, without local version parts."""
    found = []
    for line in frozen.splitlines():
        name, equal, version = line.strip().partition("==")
        if not equal:
            raise SystemExit(f"{name.split(' ')[0]} was not installed from an index")
        if name.lower() not in TOOLS:
            found.append(f"{name}=={version.partition('+')[0]}")
    return sorted(found, key=str.lower)


if __name__ == "__main__":
    frozen = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    sys.stdout.write(HEADER.format(python=".".join(platform.python_version_tuple()[:2])))
    sys.stdout.write("\n".join(pins(frozen)) + "\n")
