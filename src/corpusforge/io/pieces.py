"""A source cut into pieces of work: blocks of JSON Lines, or batches of records. Each becomes rows by itself.

    for piece in pieces(source, root):  piece.rows(detect_language=True, strict=False)   -> StageResult

How a source is cut changes no row, no ledger line and no figure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from corpusforge.io.groups import grouped
from corpusforge.io.harvest import READERS
from corpusforge.io.own import load_shape
from corpusforge.io.pictures import pictures
from corpusforge.io.readers import Block
from corpusforge.io.sources import open_source
from corpusforge.stages._trial import tried
from corpusforge.stages.ingest import Record, SourceConfig, ingest, ingest_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from corpusforge.result import StageResult

BATCH: Final = 2000
"""Records of a piece that is no block: what is held in memory at a time."""
PICTURED: Final = 100
"""The same where each record brings its images."""
BYTES: Final = 32 << 20
"""Bytes of such a piece, where its records are large."""


@dataclass(frozen=True)
class Piece:
    """Records of one source that are made into rows at one go."""

    source: SourceConfig
    uri: str
    revision: str
    work: Block | tuple[Record, ...]
    root: Path

    @property
    def may_travel(self) -> bool:
        """Whether another process can make the rows: records of a Python function may hold anything."""
        return self.source.reader not in READERS

    def rows(self, *, detect_language: bool, strict: bool) -> StageResult:
        """Its rows and ledgers. Raises RecordError when strict."""
        options: dict[str, Any] = {
            "uri": self.uri,
            "revision": self.revision,
            "detect_language": detect_language,
            "strict": strict,
        }
        load_shape(self.source, self.root)  # what is known of it does not travel to another process
        if isinstance(self.work, Block):
            return ingest_lines(self.work.data, self.work.lines, self.source, **options)
        return ingest(self.work, self.source, open_image=pictures(self.source, self.root), **options)


def pieces(source: SourceConfig, root: Path) -> Iterator[Piece]:
    """The pieces of a source, in order; one without records where it is empty. Raises SourceError."""
    load_shape(source, root)
    uri, revision, items = open_source(source, root)
    if source.group is not None or source.options.images is not None:
        items = grouped(_records(items), source)
    most = BATCH if source.options.images is None else PICTURED
    waiting: list[Record] = []
    count, held, empty = 0, 0, True
    for item in tried(items, source):
        if isinstance(item, Record):
            waiting.append(item)
            count += len(item.members) or 1
            held += item.size
        if waiting and (isinstance(item, Block) or count >= most or held >= BYTES):
            yield Piece(source, uri, revision, tuple(waiting), root)
            waiting, count, held = [], 0, 0
        if isinstance(item, Block):
            yield Piece(source, uri, revision, item, root)
        empty = False
    if waiting or empty:
        yield Piece(source, uri, revision, tuple(waiting), root)


def _records(items: Iterable[Record | Block]) -> Iterator[Record]:
    for item in items:
        yield from item if isinstance(item, Block) else (item,)
