"""How commands print: tables for people, JSON for programs, and never a row's text unless it was asked for."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
PIPE_WIDTH = 160  # columns of a table that is not shown on a terminal


def emit(value: Any, as_json: bool) -> None:
    """Print a result: JSON of its `to_dict()`, a rich table where it has one, else its text."""
    if as_json:
        data = value.to_dict() if hasattr(value, "to_dict") else value
        sys.stdout.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        return
    if hasattr(value, "__rich__"):
        if sys.stdout.isatty():
            from rich.console import Console

            Console(highlight=False).print(value)
            return
        from corpusforge.present import plain

        value = plain(value, PIPE_WIDTH)
    sys.stdout.write(f"{value}\n")


def line(value: dict[str, Any]) -> None:
    """Print one line of JSON."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def counts(stage: str, metrics: Mapping[str, Any]) -> str:
    """One line: what went in and came out of a stage."""
    if "kept" in metrics:
        line = f"{stage}: {metrics['in']:,} in = {metrics['kept']:,} kept + {metrics['dropped']:,} dropped"
        changed = f"; {metrics['changed']:,} changed" if metrics.get("changed") else ""
        return line + _listed(metrics.get("reasons", {})) + changed
    if "quarantined" in metrics:
        line = f"{stage}: {metrics['records']:,} records = {metrics['with_rows']:,} with rows"
        said = f"{line} + {metrics['quarantined']:,} quarantined; {metrics['rows']:,} rows"
        return said + _listed(metrics.get("quarantine", {}))
    figures = {key: value for key, value in metrics.items() if isinstance(value, int) and not isinstance(value, bool)}
    line = f"{stage}: " + (", ".join(f"{value:,} {key.replace('_', ' ')}" for key, value in figures.items()) or "done")
    idle = figures.get("passed") == figures.get("failed") == 0  # a gate without checks says why
    return f"{line} ({'; '.join(metrics.get('notes', []))})" if idle and metrics.get("notes") else line


def _listed(reasons: Mapping[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return f" ({', '.join(f'{name} {number:,}' for name, number in ordered)})" if ordered else ""


def listing(what: str, items: list[dict[str, Any]]) -> Any:
    """Equal dicts as one table."""
    from corpusforge.present import Block, Shown

    columns = tuple(items[0]) if items else ()
    rows = [[item[column] for column in columns] for item in items]
    return Shown(f"{len(items)} {what}{'' if len(items) == 1 else 's'}", [Block("", columns, rows)] if rows else [])


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """A function that says what is being done, on a terminal only; its line is wiped in the end."""
    terminal = sys.stderr.isatty()

    def say(what: str) -> None:
        if terminal:
            sys.stderr.write(f"\r\033[K{what} …" if what else "\r\033[K")
            sys.stderr.flush()

    try:
        yield say
    finally:
        say("")
