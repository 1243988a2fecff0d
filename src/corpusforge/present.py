"""One way to show results: a few titled tables, on a terminal, as plain text, or in a notebook.

    Shown(headline="my.jsonl: 1,200 rows", tables=[Block("kinds", ("kind", "rows"), [("sft", 1200)])])

Cells are strings or numbers; numbers are grouped and set to the right. Nothing here knows what the tables mean.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Cell = str | int | float | None
TEXT_WIDTH = 100  # columns of `str(result)`


@dataclass(frozen=True)
class Block:
    """A titled table; `note` stands below it. Without columns, the note alone is shown."""

    title: str
    columns: tuple[str, ...] = ()
    rows: Sequence[Sequence[Cell]] = ()
    note: str = ""


@dataclass(frozen=True)
class Shown:
    """A headline and tables; `str`, rich and notebook forms of the same thing."""

    headline: str
    blocks: list[Block] = field(default_factory=list)
    verdict: str = ""

    def __rich__(self) -> Any:
        return _rich(self)

    def __str__(self) -> str:
        return plain(self, TEXT_WIDTH)

    def _repr_html_(self) -> str:
        parts = [f"<p><b>{escape(self.headline)}</b></p>", *(_html(block) for block in self.blocks)]
        return "".join([*parts, f"<p>{escape(self.verdict)}</p>" if self.verdict else ""])


class Showable:
    """Mixin: a result that can draw itself through `shown()`."""

    def shown(self) -> Shown:
        """The result as tables."""
        raise TypeError(f"{type(self).__name__} has no tables")

    def __rich__(self) -> Any:
        return self.shown().__rich__()

    def __str__(self) -> str:
        return str(self.shown())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.shown().headline}>"

    def _repr_html_(self) -> str:
        return self.shown()._repr_html_()


def plain(value: Any, width: int) -> str:
    """Anything that rich can draw, as plain text without trailing blanks."""
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=width, highlight=False, force_terminal=False, no_color=True).print(value)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def cell(value: Cell) -> str:
    """A cell as text: thousands grouped, three decimals at most, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return _printable(value)


def _printable(text: str) -> str:
    """Without control characters, which could move the cursor or hide text on a terminal."""
    return "".join(sign if sign.isprintable() or sign == "\n" else " " for sign in text)


def _rich(shown: Shown) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = [Text(_printable(shown.headline), style="bold")]
    for block in shown.blocks:
        parts.append(Text(""))
        if not block.columns:
            parts += [Text(block.title, style="bold cyan"), Text(_printable(block.note))]
            continue
        table = Table(title=block.title, title_justify="left", title_style="bold cyan", box=None, pad_edge=False)
        for number, name in enumerate(block.columns):
            right = all(isinstance(row[number], int | float | None) for row in block.rows)
            table.add_column(name, justify="right" if right else "left", header_style="dim", overflow="fold")
        for row in block.rows:
            table.add_row(*(Text(cell(value)) for value in row))
        parts.append(table)
        if block.note:
            parts.append(Text(_printable(block.note), style="dim"))
    if shown.verdict:
        parts += [Text(""), Text(_printable(shown.verdict), style="bold")]
    return Group(*parts)


def _html(block: Block) -> str:
    title, note = f"<p><b>{escape(block.title)}</b></p>", f"<p>{escape(block.note)}</p>" if block.note else ""
    if not block.columns:
        return title + note
    head = "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in block.columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell(value))}</td>" for value in row) + "</tr>"
        for row in block.rows
    )
    return f"{title}<table><tr>{head}</tr>{body}</table>{note}"
