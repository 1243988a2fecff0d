"""`corpusforge dedupe NEW --against OLD`: duplicates of plain files, without a project.

    $ corpusforge dedupe new.parquet --against old.parquet --out clean
    new.parquet: 1,000,000 rows, 791,204 stay
    reason           rows   where it stays
    exact_duplicate  61,002 …

Parquet with a text column is taken as it is, however large, and comes out with all its columns. Everything else that
`ingest` reads (conversations, pairs, tasks; JSON Lines, CSV, …) becomes rows first, in memory, and comes out as rows.
OLD, files or an index of them, is there already: its rows never go, and what repeats one of them does.
"""

from __future__ import annotations

import glob
import os
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.engine.local import workers_from_environment
from corpusforge.errors import ConfigError, SourceError, storage_told
from corpusforge.io import atomic, index, lock, parquet
from corpusforge.io.texts import Texts, id_column, is_plain
from corpusforge.present import Block, Showable, Shown
from corpusforge.stages._index import SignatureIndex, method_of
from corpusforge.stages._index import check as check_index
from corpusforge.stages._stage import configure
from corpusforge.stages.dedupe import DedupeConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FIGURES: Final = "metrics.json"
OUT: Final = "deduped"


@dataclass(frozen=True, repr=False)
class Deduped(Showable):
    """What stayed, what went, and where it is written."""

    name: str
    out: str
    form: str
    """`texts` (Parquet taken as it is) or `rows`."""
    metrics: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def shown(self) -> Shown:
        """Reasons and counts, and what to look at next."""
        found = self.metrics
        rows = [(reason, number) for reason, number in found["reasons"].items()]
        note = f"kept rows: {self.out}/kept; who went, for whom and how similar: {self.out}/dropped.parquet"
        against = f" held against {found['against']:,} that are there already" if found.get("against") else ""
        head = f"{self.name}: {found['in']:,} rows{against}: {found['kept']:,} stay, {found['dropped']:,} go"
        return Shown(head, [Block("", ("reason", "rows"), rows, note)])


@dataclass(frozen=True, repr=False)
class Indexing(Showable):
    """An index that was written."""

    index: str
    rows: int
    method: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def shown(self) -> Shown:
        """Its size and method."""
        rows = [(key, str(value)) for key, value in self.method.items()]
        return Shown(f"{self.index}: an index of {self.rows:,} rows", [Block("", ("method", ""), rows)])


def dedupe_files(
    new: str | Path | Sequence[str | Path],
    out: str | Path = OUT,
    *,
    against: str | Path | Sequence[str | Path] = (),
    columns: tuple[str, str | None] = ("text", None),
    config: DedupeConfig | None = None,
    **options: Any,
) -> Deduped:
    """Write the rows of `new` that repeat neither another of them nor one of `against`, and the ledger of the others.

    `against` names files, or one index; `columns` are those of the text and of the users' own ids (`id` where there is
    one); `options` are fields of DedupeConfig. The folder `out` appears when all is written; one that is no earlier
    result is not replaced. Raises ConfigError, SourceError, SchemaError, StorageError, BusyError.
    """
    chosen = configure(DedupeConfig, config, options)
    if chosen.cache:
        raise ConfigError("cache: files have none", hint="a project's stage has: dedupe.cache in params.yaml")
    if chosen.semantic:
        raise ConfigError("semantic: files are compared by their words", hint="cf.dedupe(cf.read(FILE), semantic={…})")
    target = Path(out).resolve()
    if target.exists() and not (target / FIGURES).is_file():
        raise ConfigError(f"{target.name} is there and no result of dedupe", hint="name another folder: --out DIR")
    files, old = files_of(new), files_of(against) if against else []
    _must_be_ours(target, {FIGURES, "kept", "dropped.parquet"}, [*files, *old])
    known = _index_of(old, chosen, "texts" if _plain(files, columns) else "rows")
    with storage_told("dedupe"), lock.hold_folder(target), atomic.folder(target) as place:
        if _plain([*files, *([] if known else old)], columns):
            form, metrics = "texts", _texts(files, [] if known else old, columns, chosen, known, place)
        else:
            form, metrics = "rows", _rows(files, [] if known else old, chosen, known, place)
        atomic.write_json(place / FIGURES, metrics)
    name = files[0].name if len(files) == 1 else f"{len(files)} files"
    return Deduped(name, str(out), form, metrics)


def index_files(
    rows: str | Path | Sequence[str | Path],
    folder: str | Path,
    *,
    columns: tuple[str, str | None] = ("text", None),
    config: DedupeConfig | None = None,
    **options: Any,
) -> Indexing:
    """Write an index of files (see `dedupe_files`), or of rows that a stage wrote.

    Raises ConfigError, SourceError, StorageError, BusyError.
    """
    from corpusforge.io import dedupe as plain

    chosen = configure(DedupeConfig, config, options)
    if chosen.exact_only:
        raise ConfigError("exact_only: an index is of bands and sets", hint="leave exact_only out")
    target, files = Path(folder).resolve(), files_of(rows)
    if target.exists() and not index.is_index(target):
        raise ConfigError(f"{target.name} is there and no index", hint="name another folder")
    _must_be_ours(target, index.files(target) if target.exists() else set(), files)
    with storage_told("index"), lock.hold_folder(target):
        if _plain(files, columns):
            with _scratch(target) as scratch:
                work = plain.Work([_corpus(files, columns)], chosen, scratch, workers_from_environment())
                count = plain.write_index(work, target)
            view = "texts"
        else:
            from corpusforge.stages.dedupe import index_parts

            view, table = "rows", _read(files)
            facts, bands, lookups, sets = index_parts(table, chosen)
            index.write(target, method_of(chosen, view), facts, bands, lookups, sets)
            count = table.num_rows
    return Indexing(str(folder), count, method_of(chosen, view))


def _texts(
    files: list[Path],
    old: list[Path],
    columns: tuple[str, str | None],
    config: DedupeConfig,
    known: SignatureIndex | None,
    place: Path,
) -> dict[str, Any]:
    from corpusforge.io import dedupe as plain

    if config.prefer != DedupeConfig().prefer:
        raise ConfigError(
            "prefer: plain texts have no fields to prefer by", hint="longer texts stay, then earlier rows"
        )
    corpora = [_corpus(part, columns) for part in (files, old) if part]
    scratch = place / "scratch"
    scratch.mkdir()
    work = plain.Work(corpora, config, scratch, workers_from_environment(), known)
    metrics = plain.run(work, place)
    shutil.rmtree(scratch)
    return metrics


def _rows(
    files: list[Path], old: list[Path], config: DedupeConfig, known: SignatureIndex | None, place: Path
) -> dict[str, Any]:
    from corpusforge.io.ingest import read_with_ledger
    from corpusforge.stages.dedupe import dedupe

    read = read_with_ledger([str(file) for file in files], root=Path())
    there = _read(old) if old else None
    result = dedupe(read.kept, config, reference=known or there)
    (place / "kept").mkdir()
    parquet.write(result.kept, place / "kept" / parquet.part_name(0))
    ledger = pa.concat_tables([read.dropped, result.dropped])
    pq.write_table(ledger, place / "dropped.parquet", compression="zstd")
    reasons = dict(sorted({**read.reasons(), **result.reasons()}.items()))
    records = read.dropped.num_rows
    counted = {"in": read.kept.num_rows + records, "kept": result.kept.num_rows, "dropped": ledger.num_rows}
    size = known.rows if known else there.num_rows if there is not None else 0
    return {**counted, "reasons": reasons, "against": size, **result.metrics}


def _read(files: list[Path]) -> pa.Table:
    """The rows of files. Raises SourceError where none of their records gives one."""
    from corpusforge.io.ingest import read_with_ledger

    found = read_with_ledger([str(file) for file in files], root=Path())
    if not found.kept.num_rows:
        why = ", ".join(f"{reason} {count:,}" for reason, count in sorted(found.reasons().items()))
        raise SourceError(
            f"{files[0].name}{' and others' if files[1:] else ''}: no row to hold others against"
            + (f" ({why})" if why else ""),
            hint="`corpusforge check FILE` tells what it makes of its records",
        )
    return found.kept


def _corpus(files: list[Path], columns: tuple[str, str | None]) -> Texts:
    return Texts(files, columns[0], id_column(files[0], columns[1]))


def files_of(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that paths mean; an index stands for itself."""
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if any(index.is_index(Path(path)) for path in given):
        return [Path(path) for path in given]
    if all(Path(path).is_file() for path in given):
        return [Path(path) for path in given]
    from corpusforge.io.files import find_files
    from corpusforge.stages._source import SourceConfig

    source = SourceConfig(name="files", path=[str(path) for path in given])
    return [Path(str(found.path)) for found in find_files(source, Path())]


def _index_of(old: list[Path], config: DedupeConfig, view: str) -> SignatureIndex | None:
    """The index that `old` is, if it is one. Raises ConfigError where it is of another method, or one of several."""
    if not any(index.is_index(path) for path in old):
        return None
    if len(old) > 1:
        raise ConfigError("an index is held against by itself, not beside files", hint="make one index of all")
    known = index.read(old[0])
    check_index(known, config, view)
    return known


def _plain(files: list[Path], columns: tuple[str, str | None]) -> bool:
    """Whether all are Parquet with this text column. Raises ConfigError where columns were named and one is not."""
    other = next((file.name for file in files if not is_plain(file, columns[0])), None)
    if other and columns != ("text", None):
        raise ConfigError(
            f"{other} is not Parquet with a text column {columns[0]!r} and no conversation",
            hint="text and id columns are named for such files only; others are read as `ingest` reads them",
        )
    return other is None


def _must_be_ours(target: Path, known: set[str], inputs: list[Path]) -> None:
    """Raise ConfigError where a folder to be replaced holds an input, or anything but what was written there."""
    given = next((file for file in inputs if target in (file.resolve(), *file.resolve().parents)), None)
    if given:
        raise ConfigError(f"{target.name} is replaced, and {given.name} lies in it", hint="name another folder")
    other = sorted(file.name for file in target.iterdir() if file.name not in known) if target.is_dir() else []
    if other:
        raise ConfigError(
            f"{target.name} holds what was not written by this command: {', '.join(other[:3])}",
            hint="it would be removed: name another folder, or move it away",
        )


@contextmanager
def _scratch(target: Path) -> Iterator[Path]:
    """A folder beside `target` that is gone at the end of the block."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{glob.escape(target.name)}.scratch-*"):  # of a run that was killed
        shutil.rmtree(left, ignore_errors=True)
    place = target.with_name(f".{target.name}.scratch-{os.getpid()}")
    place.mkdir()
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
