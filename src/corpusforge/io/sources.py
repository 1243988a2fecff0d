"""A declared source, opened: where it is, in which version, and its records one after another.

    open_source(source, root)  -> ("raw/a.jsonl", "9f0c2a61d3b4e857", iterator of Records)

The revision is that of what is read: files are fingerprinted first, and compared when they have been read.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import SourceError
from corpusforge.io import harvest, hub, sql
from corpusforge.io.files import Found, Snapshot, files_of, find_files, shown
from corpusforge.io.own import load_shape
from corpusforge.io.pictures import pictures
from corpusforge.io.readers import Block, read_blocks, read_file
from corpusforge.shapes.tools import SERVICES
from corpusforge.stages.ingest import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from corpusforge.stages.ingest import SourceConfig


_LOOK: Final = 10_000
"""Records between two looks at whether a file is still the same."""


def open_source(source: SourceConfig, root: Path) -> tuple[str, str, Iterator[Record | Block]]:
    """Uri, revision and records of a source, at most as many as its limit. Raises SourceError.

    Records of JSON Lines come in blocks that are not parsed yet.
    """
    if source.reader in harvest.READERS:
        uri, revision = harvest.place(source)
        return uri, revision, itertools.islice(harvest.harvest(source, root), source.limit)
    if source.reader == "sql":
        uri, revision, records = sql.open_sql(source, root)
        return uri, revision, itertools.islice(records, source.limit)
    if hub.is_hub(source):
        pinned = hub.pin(source)
        if pinned.files is None:
            return pinned.uri, pinned.commit, itertools.islice(hub.open_hub(source, pinned), source.limit)
        return pinned.uri, pinned.commit, _of_files(source, files_of(source, pinned.files, root))
    files, answers = find_files(source, root), files_of(source, source.options.answers, root)
    schemas = files_of(source, source.options.schemas, root)
    snapshot = Snapshot([*files, *answers, *schemas])
    items = _of_files(source, files, snapshot)
    if answers:
        items = _joined(items, answers, snapshot)
    if schemas:
        items = _with_services(items, schemas, snapshot)
    paths = [source.path] if isinstance(source.path, str) else source.path
    return ", ".join(shown(path, root) for path in paths), snapshot.revision, items


def _of_files(source: SourceConfig, files: list[Found], snapshot: Snapshot | None = None) -> Iterator[Record | Block]:
    """Records of files, at most as many as the source's limit; each file is compared when it has been read."""
    options = source.options
    left = source.limit
    for file in files:
        items = read_blocks(
            file.path, file.label, source.reader, file.part, split=options.split, records=options.records
        )
        unseen = 0
        while left != 0 and (item := next(items, None)) is not None:
            item = item.first(left) if isinstance(item, Block) else item
            count = item.records if isinstance(item, Block) else 1
            left = None if left is None else left - count
            unseen += count
            if unseen >= _LOOK and snapshot is not None and isinstance(file.path, Path):
                snapshot.check(file)  # a log that is written to while it is read could go on for ever
                unseen = 0
            yield item
        if snapshot is not None:
            snapshot.check(file)


def check_readable(source: SourceConfig, root: Path) -> int:
    """Find out what can be found out at once: that the files of a source, and its own shape, are there.

    Returns the bytes of its files, as far as they lie on this machine. Raises SourceError.
    """
    load_shape(source, root)
    pictures(source, root)
    if source.reader == "sql":
        sql.check_query(source, root)
    elif source.reader not in harvest.READERS and not hub.is_hub(source):
        files_of(source, source.options.answers, root)
        files_of(source, source.options.schemas, root)
        paths = [file.path for file in find_files(source, root)]
        return sum(path.stat().st_size for path in paths if isinstance(path, Path) and path.is_file())
    return 0


def _joined(items: Iterable[Record | Block], answers: list[Found], snapshot: Snapshot) -> Iterator[Record]:
    """Records with the fields of the answers file's record of the same id; a record's own fields stay."""
    known: dict[Any, Mapping[str, Any]] = {}
    for file in answers:
        for answer in read_file(file.path, file.label):
            if answer.value is None or "id" not in answer.value:
                raise SourceError(f"{file.label}, line {answer.line}: no answer record with an id ({answer.error})")
            known[answer.value["id"]] = answer.value
        snapshot.check(file)
    for record in (record for item in items for record in (item if isinstance(item, Block) else [item])):
        extra = known.get(record.value.get("id")) if record.value is not None else None
        if extra is None or record.value is None:
            yield record
        else:
            yield Record(
                record.position, {**extra, **record.value}, record.file, record.line, None, record.part, record.detail
            )


def _with_services(items: Iterable[Record | Block], schemas: list[Found], snapshot: Snapshot) -> Iterator[Record]:
    """Dialogues with the schemas of the services that they name, in that order."""
    known: dict[str, Mapping[str, Any]] = {}
    for file in schemas:
        for schema in read_file(file.path, file.label):
            name = schema.value.get("service_name") if schema.value is not None else None
            if schema.value is None or not isinstance(name, str):
                raise SourceError(f"{file.label}, line {schema.line}: no schema with a service_name ({schema.error})")
            known[name] = schema.value
        snapshot.check(file)
    for record in (record for item in items for record in (item if isinstance(item, Block) else [item])):
        named = record.value.get("services") if record.value is not None else None
        if record.value is None or not isinstance(named, list) or not named:
            yield record
        elif not all(isinstance(name, str) and name in known for name in named):
            yield replace(record, value=None, error="service_unknown")
        else:
            yield replace(record, value={**record.value, SERVICES: [known[name] for name in named]})
