"""Write docs/cli.md from the command line itself; `--check` only says whether it is up to date.

python scripts/write_docs.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from typer.main import get_command

from corpusforge.cli.commands import app

PAGE = Path(__file__).resolve().parent.parent / "docs" / "cli.md"
HEAD = """# The command line

This page is written by `make docs` from the commands themselves.

Data goes to stdout, everything else to stderr; progress shows on a terminal only. Every command has `--json`.

| exit code | meaning |
| --- | --- |
| 0 | yes, or done |
| 1 | the answer is no (a gate failed, something fatal was found, no row has the id) |
| 2 | wrong usage |
| 3 | bad data, or a project that is not as it should be |
| 4 | bad configuration |
| 70 | a fault of CorpusForge itself |
| 130 | interrupted |

Errors are one line, `error[code]: what is wrong`, and a hint. [errors.md](errors.md) lists the codes.
"""


def page() -> str:
    """The text of docs/cli.md."""
    group: Any = get_command(app)
    return "\n".join([HEAD, *_sections(group.commands, "corpusforge")])


def _sections(commands: dict[str, Any], prefix: str) -> list[str]:
    parts: list[str] = []
    for name, command in commands.items():
        if hasattr(command, "commands"):
            parts += _sections(command.commands, f"{prefix} {name}")
            continue
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join([prefix, name, *(_argument(p) for p in arguments), "[OPTIONS]"])
        parts += [f"## `{usage}`", "", " ".join(command.help.split()), ""]
        lines = [_line(p) for p in command.params if p.name != "help"]
        parts += ["| | |", "| --- | --- |", *lines, ""]
    return parts


def _argument(parameter: Any) -> str:
    name = parameter.name.upper()
    return name if parameter.required else f"[{name}]"


def _line(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = parameter.name.upper()
    else:
        kind = "" if parameter.is_flag else f" {(parameter.metavar or parameter.name).upper()}"
        name = f"{', '.join(parameter.opts)}{kind}"
    default = parameter.default
    said = f" Default: `{default}`." if isinstance(default, str | int | Path) and default not in ("", False) else ""
    return f"| `{name}` | {(parameter.help or '').strip()}{said} |"


def main(arguments: list[str]) -> int:
    """Write the page, or with `--check` compare it; exit code 1 when it is out of date."""
    text = page()
    if "--check" in arguments:
        return int(not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
