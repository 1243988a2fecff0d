"""ingest: records of any source to rows, each with its identity, provenance and licence.

Adds everything a row is; removes nothing silently. A record that cannot become a row (a broken line, half a surrogate
pair, a shape that nobody knows) is quarantined: it gets a ledger line with its file, line and a reason code, and costs
nothing but itself. Records in = records that gave rows + records quarantined.

    {"question": "Natalia sold clips to 48 …", "answer": "… <<48/2=24>>24 … #### 72"}      line 1 of gsm8k/train.jsonl
    -> row gsm8k#1, kind task, verifier numeric {"answer":"72"}, domain math, language en, licence MIT, origin human

What a record means is decided by `corpusforge.shapes`; the files are opened by `corpusforge.io.ingest`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from corpusforge.stages._batch import Batch, Lines, refuse
from corpusforge.stages._policy import Policy, Terms, check_allowed
from corpusforge.stages._record import Record
from corpusforge.stages._rows import RowBuffer
from corpusforge.stages._source import Condition, ReaderOptions, Restrictions, SourceConfig
from corpusforge.stages._stage import StageConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from corpusforge.result import StageResult

__all__ = [
    "Condition",
    "IngestConfig",
    "Lines",
    "Policy",
    "ReaderOptions",
    "Record",
    "SourceConfig",
    "Terms",
    "check_allowed",
    "ingest",
    "ingest_lines",
    "load_kernels",
]


class IngestConfig(StageConfig):
    """The sources of a corpus."""

    sources: list[SourceConfig]
    """What the corpus is made of; rows come in this order."""
    allow: Restrictions = Field([])
    """Restrictions that are accepted on purpose for every source."""
    policy: Policy = Policy()
    """Which licences and restrictions rows may have; what a row states of itself counts."""
    strict: bool = False
    """Stop at the first record that cannot become a row, instead of quarantining it."""
    detect_language: bool = True
    """Detect the language of rows whose source does not say it."""


def ingest(
    records: Iterable[Record],
    config: SourceConfig,
    *,
    uri: str = "",
    revision: str = "",
    detect_language: bool = True,
    strict: bool = False,
    open_image: Callable[[str], bytes] | None = None,
) -> StageResult:
    """Rows of the records of one source; the records that gave none are `dropped`, with file, line and reason.

    `open_image` gives the bytes of an image by its path in the record, or raises Unrepresentable; without it, a path
    stays a path. Raises RecordError, naming file and line, when `strict` and a record cannot become a row.
    """
    batch = Batch(config, RowBuffer(config.name, uri, revision), open_image)
    for record in records:
        batch.take(record)
        if strict and batch.fault:
            refuse(record.file, record.line, batch.fault)
    return batch.result(detect_language)


def ingest_lines(
    block: bytes,
    lines: Lines,
    config: SourceConfig,
    *,
    uri: str = "",
    revision: str = "",
    detect_language: bool = True,
    strict: bool = False,
) -> StageResult:
    """What `ingest` makes of the records of a block of whole JSON Lines, which stands where `lines` says; faster.

    Raises RecordError, naming file and line, when `strict` and a record cannot become a row.
    """
    batch = Batch(config, RowBuffer(config.name, uri, revision))
    batch.take_lines(lines, block, strict=strict)
    return batch.result(detect_language)


def load_kernels() -> None:
    """Load what large sources are read by, which takes a while."""
    from corpusforge.text import chatlines, jsonscan, langmodel  # noqa: F401
