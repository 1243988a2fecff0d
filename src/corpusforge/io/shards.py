"""Write shards: rows after `blend` to `<kind>/<split>-00000-of-00004.parquet`, manifest.json and a dataset card.

Two passes, so that memory holds a slice of a partition or one shard, never the corpus: each partition is turned into
the trainers' form and laid down sorted by the draw of each line; then each shard gathers its range of draws from all
partitions. Which shard a line is in, and where, depends on its content and the seed alone: not on the order of rows,
the cuts between partitions or the number of workers. A row more changes one shard, and in it few bytes (Parquet
content-defined chunking).
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge import graph
from corpusforge.engine.local import LocalEngine, workers_for
from corpusforge.errors import ConfigError, CountError
from corpusforge.io import atomic, card, manifest
from corpusforge.io.manifest import KindEntry, Manifest, ShardFile, build_id, sha256
from corpusforge.sample import KINDS, check_schema
from corpusforge.stages._provenance import Tally, tally
from corpusforge.stages._stage import configure
from corpusforge.stages.shard import (
    DICTIONARY,
    FORMAT,
    ShardConfig,
    folders,
    form_schema,
    kind_of,
    noted_form,
    order,
    row_bytes,
    row_groups,
    shard_count,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpusforge.project import Project

_FILL: Final = 0.9  # of a row group's limit: the rest is for levels, page headers and indexes
_SMALL: Final = 32 * 2**20  # bytes: below it, starting workers takes longer than writing the shards here
SPLITS: Final = ("train", "heldout")
_Sizes = dict[tuple[str, str], tuple[int, int]]  # folder, split -> lines, bytes
_SLICE: Final = 2_000  # rows turned into the trainers' form at once


@dataclass(frozen=True)
class _Spill:
    """One partition's work in the first pass."""

    source: Path
    scratch: Path
    number: int
    config: ShardConfig


@dataclass(frozen=True)
class _Spilled:
    """What the first pass found in one partition."""

    sizes: _Sizes
    sources: Tally
    inexact: list[dict[str, str]]


@dataclass(frozen=True)
class _Gather:
    """One shard's work in the second pass: the lines whose draw is in part `number` of `of`."""

    scratch: Path
    out: Path
    folder: str
    split: str
    number: int
    of: int
    config: ShardConfig

    @property
    def path(self) -> str:
        return f"{self.folder}/{self.split}-{self.number:05d}-of-{self.of:05d}.parquet"


def run(project: Project, out: Path) -> dict[str, Any]:
    """Write the shards of a project to `out`; returns the stage's figures."""
    lock = project.root / "methods.lock.json"
    methods = json.loads(lock.read_text(encoding="utf-8")) if lock.exists() else {}
    stated = (*graph.node("shard").records, "shard")  # what comes later must not change the manifest
    params = project.params.model_dump(mode="json")
    context = _Context(
        {name: params[name] for name in stated},
        {name: methods[name] for name in stated if name in methods},
        _stages(project),
    )
    parts = project.parts("blend")
    with LocalEngine(workers_for(sum(part.stat().st_size for part in parts))) as engine:
        return _figures(_write(parts, out, project.params.shard, context, engine))


def write_shards(
    rows: pa.Table, folder: Path | str, config: ShardConfig | None = None, **options: Any
) -> dict[str, Any]:
    """Write a table of rows as shards into `folder`; returns the manifest.

    Options are the fields of ShardConfig. Rows that have not been through `blend` are all training rows, once. Shards
    that `folder` holds are replaced in one step. Raises ConfigError when it holds anything else.
    """
    config = configure(ShardConfig, config, options)
    check_schema(rows, "write_shards")
    folder = Path(folder).resolve()
    if folder.exists() and not (folder / manifest.NAME).exists() and (folder.is_file() or any(folder.iterdir())):
        raise ConfigError(f"{folder} holds other things than shards", hint="name a new folder, or an empty one")
    with atomic.folder(folder) as out:
        source = out / "rows.parquet"
        pq.write_table(rows, source, compression="lz4")
        context = _Context({"shard": config.model_dump(mode="json")}, {}, {})
        # In this process: spawned workers would run the caller's script again where it has no `__main__` guard.
        held = _write([source], out, config, context, LocalEngine(1))
        source.unlink()
    return held


@dataclass(frozen=True)
class _Context:
    """What the manifest and the card say besides the rows."""

    params: dict[str, Any]
    methods: dict[str, Any]
    stages: dict[str, dict[str, Any]]  # figures of the stages before, for the card


def _stages(project: Project) -> dict[str, dict[str, Any]]:
    return {name: project.metrics(name) for name in project.table_stages() if project.figures_path(name).exists()}


def _write(parts: list[Path], out: Path, config: ShardConfig, context: _Context, engine: LocalEngine) -> dict[str, Any]:
    scratch = out / "scratch"
    scratch.mkdir()
    spilled = engine.map(_spill, [_Spill(part, scratch, number, config) for number, part in enumerate(parts)])
    sizes: _Sizes = {}
    for one in spilled:
        _add(sizes, one.sizes)
    if sum(size for _, size in sizes.values()) < _SMALL:
        engine = LocalEngine(1)
    jobs = []
    for (folder, split), (lines, size) in sorted(sizes.items()):
        (out / folder).mkdir(exist_ok=True)
        of = shard_count(lines, size, config)
        jobs += [_Gather(scratch, out, folder, split, number, of, config) for number in range(of)]
    shards = engine.map(_gather, jobs)
    shutil.rmtree(scratch)
    if sum(shard.rows for shard in shards) != sum(lines for lines, _ in sizes.values()):
        raise CountError("shard: the shards do not hold as many lines as rows and copies ask for")
    held = _manifest(shards, spilled, config, context).model_dump(mode="json")
    atomic.write_json(out / manifest.NAME, held)
    atomic.write_text(out / "README.md", card.render(held, context.stages))
    return held


def _add(total: _Sizes, more: _Sizes) -> None:
    for key, (lines, size) in more.items():
        before = total.get(key, (0, 0))
        total[key] = (before[0] + lines, before[1] + size)


def _spill(job: _Spill) -> _Spilled:
    """Lay one partition's lines down in the trainers' form, a sorted file per folder and split."""
    pieces: dict[tuple[str, str], list[pa.Table]] = {}
    sizes: _Sizes = {}
    sources, inexact = Tally(), []
    for rows in _slices(job.source):
        sources.add(tally(rows))
        for (folder, split), lines in _by_folder(rows):
            form, found = noted_form(lines, folder)
            inexact += found
            size = row_bytes(form)
            _add(sizes, {(folder, split): (form.num_rows, int(size.sum()))})
            keyed = form.append_column("draw", pa.array(order(lines, job.config.seed)))
            pieces.setdefault((folder, split), []).append(keyed.append_column("size", pa.array(size)))
    for (folder, split), tables in pieces.items():
        table = pa.concat_tables(tables)
        table = table.take(pc.sort_indices(table["draw"]))
        path = str(job.scratch / f"{folder}.{split}.{job.number:05d}.arrow")
        with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=_SLICE)
    return _Spilled(sizes, sources, inexact)


def _slices(path: Path) -> Iterator[pa.Table]:
    """The rows of a partition, with `split` and `copies`, a few at a time."""
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_SLICE):
            table = pa.Table.from_batches([batch])
            if "split" not in table.column_names:
                table = table.append_column("split", pa.array(["train"] * table.num_rows, pa.string()))
            if "copies" not in table.column_names:
                table = table.append_column("copies", pa.array(np.ones(table.num_rows, np.int32)))
            yield table


def _by_folder(rows: pa.Table) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """The lines of a table, copies written out, per folder and split."""
    copies = rows["copies"].to_numpy()
    places = np.repeat(np.arange(rows.num_rows), copies)
    starts = np.cumsum(copies) - copies
    copy = (np.arange(len(places)) - np.repeat(starts, copies)).astype(np.int32)
    lines = rows.drop_columns(["copies"]).take(pa.array(places)).append_column("copy", pa.array(copy))
    where = folders(lines)
    for folder in sorted(pc.unique(where).to_pylist()):
        for split in SPLITS:
            chosen = lines.filter(pc.and_(pc.equal(where, folder), pc.equal(lines["split"], split)))
            if chosen.num_rows:
                yield (folder, split), chosen


def _gather(job: _Gather) -> ShardFile:
    """Write one shard from its range of draws in every partition."""
    low, high = (number * 2**64 // job.of for number in (job.number, job.number + 1))
    pieces = []
    for path in sorted(job.scratch.glob(f"{job.folder}.{job.split}.*.arrow")):
        with pa.memory_map(str(path)) as file:
            table = pa.ipc.open_file(file).read_all()
            draws = table["draw"].to_numpy()
            start = int(np.searchsorted(draws, np.uint64(low)))
            stop = int(np.searchsorted(draws, np.uint64(high))) if job.number + 1 < job.of else len(draws)
            pieces.append(table.slice(start, stop - start))
    table = pa.concat_tables(pieces)
    keys = [("draw", "ascending"), ("row_id", "ascending"), ("copy", "ascending")]
    table = table.take(pc.sort_indices(table.select([name for name, _ in keys]), sort_keys=keys)).combine_chunks()
    cuts = row_groups(table["size"].to_numpy(), int(job.config.row_group_mib * 2**20 * _FILL))
    schema = form_schema(job.folder, job.split)
    form = table.drop_columns(["draw", "size"]).cast(schema)
    target = job.out / job.path
    with pq.ParquetWriter(
        target,
        schema,
        compression="zstd",
        use_dictionary=list(DICTIONARY),
        use_content_defined_chunking=True,
        write_page_index=True,
    ) as writer:
        for start, stop in cuts:
            writer.write_table(form.slice(start, stop - start), row_group_size=stop - start)
    return ShardFile(
        path=job.path,
        kind=kind_of(job.folder),
        split=job.split,
        rows=form.num_rows,
        bytes=target.stat().st_size,
        sha256=sha256(target),
    )


def _manifest(shards: list[ShardFile], spilled: list[_Spilled], config: ShardConfig, context: _Context) -> Manifest:
    sources = Tally()
    for one in spilled:
        sources.add(one.sources)
    rows: dict[str, dict[str, int]] = {}
    for shard in shards:
        counts = rows.setdefault(Path(shard.path).parent.name, dict.fromkeys(SPLITS, 0))
        counts[shard.split] += shard.rows
    for kind in KINDS:
        rows.setdefault(kind, dict.fromkeys(SPLITS, 0))
    entries = sources.entries(SPLITS)
    return Manifest(
        format=FORMAT,
        build=build_id(shards, context.params, context.methods),
        tool={"corpusforge": version("corpusforge"), "pyarrow": pa.__version__},
        seed=config.seed,
        shards=shards,
        kinds={
            folder: KindEntry(
                kind=kind_of(folder),
                rows=rows[folder],
                columns={field.name: str(field.type) for field in form_schema(folder)},
            )
            for folder in sorted(rows)
        },
        empty=[f"{folder}/{split}" for folder in sorted(rows) for split in SPLITS if not rows[folder][split]],
        sources={name: manifest.SourceEntry(**entry) for name, entry in entries.items()},
        inputs={f"source {name}": entry["hash"] for name, entry in entries.items()},
        key=context.methods.get("scrub", {}).get("key"),
        params=context.params,
        methods=context.methods,
        inexact_in_datasets=_distinct(one for spill in spilled for one in spill.inexact),
    )


def _distinct(found: Iterable[dict[str, str]]) -> list[manifest.Inexact]:
    """In order, one entry for all copies of a row."""
    keys = sorted({tuple(one.items()) for one in found})
    return [manifest.Inexact(**dict(key)) for key in keys]


def _figures(held: dict[str, Any]) -> dict[str, Any]:
    """The stage's metrics: all rows that came in are kept; `lines` counts copies."""
    by_source = {
        name: {"in": sum(entry["rows"].values()), "kept": sum(entry["rows"].values()), "dropped": 0}
        for name, entry in held["sources"].items()
    }
    rows = sum(entry["in"] for entry in by_source.values())
    return {
        "in": rows,
        "kept": rows,
        "dropped": 0,
        "changed": 0,
        "reasons": {},
        "by_source": by_source,
        "build": held["build"],
        "lines": sum(shard["rows"] for shard in held["shards"]),
        "copies": sum(entry["copies"] for entry in held["sources"].values()),
        "bytes": sum(shard["bytes"] for shard in held["shards"]),
        "shards": len(held["shards"]),
        "kinds": {folder: entry["rows"] for folder, entry in held["kinds"].items() if any(entry["rows"].values())},
        "inexact_in_datasets": len(held["inexact_in_datasets"]),
    }


def shard_kind(path: Path | str) -> dict[str, Any] | None:
    """What a Parquet file says it is: {"format", "kind", "split"} for a CorpusForge shard, else None."""
    metadata = pq.read_schema(path).metadata or {}
    mark = metadata.get(b"corpusforge")
    return dict(json.loads(mark)) if mark else None
