"""overrides.csv: rows that somebody keeps or drops, kept in git beside params.yaml, a dependency of `dedupe`.

    action,row,name,reason,when,content
    keep,support:1042,Ann Smith,another year's tide table,2026-12-01,
    drop,web#9,Ann Smith,the transcription is wrong,2026-12-01,77ab…

`row` is a row id, the user's own id, or the own id behind the name of its source. A row id is a place in a file: with
`content` the line holds only for a row of that content. `when` and `content` may be left out. A line without any text
is passed over. `corpusforge overrule` writes lines; whoever takes one out has the row judged as any other.
"""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from corpusforge.errors import ConfigError
from corpusforge.io import atomic
from corpusforge.stages._overrides import ACTIONS, FILE, Override, disagree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NEEDED: Final = ("action", "row", "name", "reason")
_COLUMNS: Final = (*_NEEDED, "when", "content")


def read(root: Path, name: str = FILE) -> list[Override]:
    """The lines of a project's file; none where there is no file. Raises ConfigError, naming the line."""
    path = root / name
    if not path.exists():
        return []
    try:
        table = csv.reader(io.StringIO(path.read_text(encoding="utf-8-sig")), strict=True)
        header = [one.strip() for one in next(table, [])]
        _check_header(header)
        found = [_line(header, cells, table.line_num) for cells in table if any(cell.strip() for cell in cells)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{FILE} cannot be read ({type(error).__name__})", hint=f"`git log {FILE}`") from None
    _check_agreement(found)
    return found


def _check_header(header: list[str]) -> None:
    wrong = [one for one in header if one not in _COLUMNS]
    missing = [one for one in _NEEDED if one not in header]
    if wrong or missing or len(set(header)) < len(header):
        raise ConfigError(
            f"{FILE}:1: expected the columns {','.join(_COLUMNS)}, found {','.join(header)[:80] or 'none'}",
            hint="when and content may be left out",
        )


def _line(header: list[str], cells: list[str], number: int) -> Override:
    if len(cells) != len(header):
        raise ConfigError(f"{FILE}:{number}: {len(cells)} values, expected {len(header)}: {','.join(header)}")
    values = {name: cell.strip() for name, cell in zip(header, cells, strict=True)}
    if values["action"] not in ACTIONS:
        raise ConfigError(f"{FILE}:{number}: action {values['action'][:40]!r} is not one of {', '.join(ACTIONS)}")
    for name, what in (("row", "id of a row"), ("name", "name: who decided?"), ("reason", "reason")):
        if not values[name]:
            raise ConfigError(f"{FILE}:{number}: no {what}")
    return Override(**values, line=number)


def _check_agreement(overrides: Iterable[Override]) -> None:
    """Refuse two lines that name one id and want different things of it."""
    first: dict[str, Override] = {}
    for one in overrides:
        other = first.setdefault(one.row, one)
        if other.action != one.action:
            raise disagree(other, one, one.row)


def write(root: Path, overrides: Iterable[Override]) -> None:
    """Replace the file."""
    overrides = list(overrides)
    _check_agreement(overrides)
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\n", extrasaction="ignore")
    table.writeheader()
    table.writerows(asdict(one) for one in overrides)
    atomic.write_text(root / FILE, text.getvalue())
