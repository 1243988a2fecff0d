"""Put the real output of a command into a page, between two markers.

    python scripts/fill.py README.md demo python -m corpusforge.demo.found

replaces what stands between `<!-- demo:begin -->` and `<!-- demo:end -->` by a code block with the command's standard
output. A command that fails changes nothing.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def filled(page: str, name: str, output: str) -> str:
    """The page with `output` as a code block between the markers called `name`."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if page.count(begin) != 1 or page.count(end) != 1:
        raise SystemExit(f"the page needs {begin} and {end}, each once")
    lines = "\n".join(line.rstrip() for line in output.strip("\n").splitlines())
    block = f"{begin}\n```text\n{lines}\n```\n{end}"
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: block, page, flags=re.DOTALL)


def main(page: str, name: str, *command: str) -> None:
    """Run the command and fill the page."""
    path = Path(page)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8")  # noqa: S603
    path.write_text(filled(path.read_text(encoding="utf-8"), name, done.stdout), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
