"""forget.csv: what must not be in the corpus any more, kept in git beside params.yaml, a dependency of `ingest`.

    action,row,source,revision,own,content,because,why,by,when
    forget,forum#17,forum,5f0c…,9a1b…,77ab…,named,request 114,Ann Smith,2026-11-30
    hold,web#9,web,…,…,…,near copy of forum#17 (0.91),…

A line holds ids and hashes, never a text: the row id in a revision of its source, a hash of the user's own id, the
content id. `corpusforge forget` writes lines; a person decides those that wait (`hold`, `ask`) by writing `forget` or
`keep` in their place.
"""

from __future__ import annotations

import csv
import io
import subprocess
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq

from corpusforge.errors import ConfigError
from corpusforge.io import atomic
from corpusforge.stages._forget import ACTIONS, Entry
from corpusforge.stages._settle import facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    import polars as pl

    from corpusforge.stages._forget import Frames

NAME: Final = "forget.csv"
_COLUMNS: Final = tuple(one.name for one in fields(Entry))
_IDS: Final = ("row_id", "content_id", "source.name", "source.revision", "source.record_id", "source.parents")


def read(root: Path) -> list[Entry]:
    """The entries of a project; none where there is no file. Raises ConfigError, naming the line."""
    path = root / NAME
    if not path.exists():
        return []
    try:
        lines = list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8")), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{NAME} cannot be read ({type(error).__name__})", hint="`git log forget.csv`") from None
    return [_entry(line, number) for number, line in enumerate(lines, 2)]


def _entry(line: dict[str, str | None], number: int) -> Entry:
    if set(line) != set(_COLUMNS) or None in line.values():
        raise ConfigError(f"{NAME}:{number}: expected the columns {','.join(_COLUMNS)}")
    entry = Entry(**{name: (line[name] or "").strip() for name in _COLUMNS})
    if entry.action not in ACTIONS:
        raise ConfigError(f"{NAME}:{number}: action {entry.action!r} is not one of {', '.join(ACTIONS)}")
    if not (entry.row or entry.source or entry.own or entry.content):
        raise ConfigError(f"{NAME}:{number}: names nothing: row, source, own and content are all empty")
    return entry


def write(root: Path, entries: Iterable[Entry]) -> None:
    """Replace the file."""
    text = io.StringIO()
    table = csv.DictWriter(text, _COLUMNS, lineterminator="\n")
    table.writeheader()
    table.writerows(asdict(entry) for entry in entries)
    atomic.write_text(root / NAME, text.getvalue())


def frames_of(parts: list[Path]) -> Frames:
    """The ids of all rows in these partitions, a partition at a time, as often as they are asked for."""

    def frames() -> Iterator[pl.DataFrame]:
        for part in parts:
            with pq.ParquetFile(part) as file:  # (read_table would flatten the struct)
                rows = file.read(columns=list(_IDS))
            yield facts(rows)

    return frames


def who(root: Path) -> str:
    """Who git thinks is at work here; nobody where it does not know."""
    try:
        said = subprocess.run(["git", "config", "user.name"], cwd=root, capture_output=True, text=True, check=False)  # noqa: S607
    except OSError:
        return ""
    return said.stdout.strip()
