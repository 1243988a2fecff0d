"""Sources to rows: finds the files, fingerprints them, opens the reader, and hands the records to the stage in pieces.

    for result in build_rows(params.ingest, root): …       piece by piece, in the order of the sources
    read("chats/*.jsonl.zst", source={"name": "support"})  one table, for notebooks
    read_with_ledger("my.jsonl")                           the table and what was quarantined, for `check`

Row ids: `name#record` for a source that is one file, `name/file#record` for one of several, so that a file added to a
folder moves no id of its neighbours. `source.uri` is the path as declared; `source.revision` is a hash of the files'
bytes, a package's version, or the hub's commit.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.errors import SchemaError
from corpusforge.io import hub
from corpusforge.io.files import find_files
from corpusforge.io.pieces import pieces
from corpusforge.io.sources import check_readable
from corpusforge.result import StageResult
from corpusforge.sample import check_schema
from corpusforge.stages._settle import settle_result
from corpusforge.stages._stage import concat, configure
from corpusforge.stages.ingest import IngestConfig, Policy, SourceConfig, check_allowed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def build_rows(config: IngestConfig, root: Path) -> Iterator[StageResult]:
    """Rows of all sources, batch by batch, in their order. Raises SourceError (RecordError when strict).

    Names, restrictions and files of every source are checked before the first row is made.
    """
    check_allowed(config.sources, config.allow, config.policy)
    for source in config.sources:
        check_readable(source, root)
    for source in config.sources:
        yield from source_rows(source, root, detect_language=config.detect_language, strict=config.strict)


def source_rows(
    source: SourceConfig, root: Path, *, detect_language: bool = True, strict: bool = False
) -> Iterator[StageResult]:
    """Rows of one source, batch by batch, whatever its restrictions (benchmarks are read and never trained on).

    At least one result comes, also from an empty source. Raises SourceError (RecordError when strict).
    """
    for piece in pieces(source, root):
        yield piece.rows(detect_language=detect_language, strict=strict)


def read_with_ledger(
    path: str | Path | list[str | Path],
    source: Mapping[str, Any] | SourceConfig | None = None,
    *,
    root: Path | None = None,
    detect_language: bool = True,
    strict: bool = False,
    policy: Policy | Mapping[str, Any] | None = None,
    **options: Any,
) -> StageResult:
    """Rows of files, and the ledger of what could not be read.

    `source` and keyword arguments are fields of SourceConfig; without a name, the file's own is used. Restrictions
    are refused unless allowed, and licences as `policy` says (deny, allow, unknown), as in a build. Raises
    SourceError, ConfigError, and RecordError when strict.
    """
    paths = [str(p) for p in path] if isinstance(path, list) else [str(path)]
    config = source_of(paths, source, options)
    said = policy if isinstance(policy, Policy) else configure(Policy, None, policy or {})
    terms = check_allowed([config], policy=said)
    base = root or Path.cwd()
    ready = _rows_already(config, base)
    if ready is not None:
        return StageResult("ingest", ready)
    read_in = concat("ingest", list(source_rows(config, base, detect_language=detect_language, strict=strict)))
    return settle_result(read_in, terms, strict=strict)


def read(
    path: str | Path | list[str | Path], source: Mapping[str, Any] | SourceConfig | None = None, **options: Any
) -> pa.Table:
    """Rows of files as one table; what cannot be read is left out (`read_with_ledger` tells what).

    Raises SourceError, ConfigError, and RecordError with `strict=True`.
    """
    return read_with_ledger(path, source, **options).kept


def source_of(
    paths: list[str], source: Mapping[str, Any] | SourceConfig | None, options: Mapping[str, Any]
) -> SourceConfig:
    """A source of plain files, named after the first of them unless it is given a name. Raises ConfigError."""
    import re

    stated = source.model_dump(exclude_unset=True) if isinstance(source, SourceConfig) else dict(source or {})
    stem = Path(paths[0]).name.partition(".")[0] if paths else ""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", stem).strip("-") or "rows"
    merged = {"name": name, "path": paths[0] if len(paths) == 1 else paths, **stated, **options}
    return configure(SourceConfig, None, merged)


def _rows_already(source: SourceConfig, root: Path) -> pa.Table | None:
    """The table itself, where the files are in the row format already (a stage's own output)."""
    files = row_files(source, root)
    try:
        return pa.concat_tables([pq.read_table(file) for file in files]) if files else None
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError):
        return None  # the reader says what is wrong with it


def row_files(source: SourceConfig, root: Path) -> list[Path]:
    """The files of a source, where all are Parquet in the row format, by the same schema; else none."""
    if source.reader not in ("auto", "parquet") or hub.is_hub(source) or not source.paths():
        return []
    files = [file.path for file in find_files(source, root) if isinstance(file.path, Path)]
    if not files or not all(file.is_file() and file.suffix == ".parquet" for file in files):
        return []
    try:
        schemas = [pq.read_schema(file) for file in files]
        if any(not schema.equals(schemas[0]) for schema in schemas):
            return []
        check_schema(schemas[0].empty_table(), "rows")
    except (pa.ArrowException, SchemaError, OSError, UnicodeDecodeError):
        return []
    return files
