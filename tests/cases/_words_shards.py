"""Words about the files that shards are, and what their manifest says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from tests.cases._case import CaseError
from tests.cases._words import word
from tests.cases._world import read_back

import corpusforge as cf
from corpusforge.sample import KINDS
from corpusforge.stages.shard import form_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.cases._world import World


@word
def files_at_most(world: World, n: int, per: str | None = None) -> Iterator[str]:
    """There are at most so many shard files."""
    if per is not None:
        raise CaseError(f"the runner does not know files_at_most per {per!r}")
    found = len(_files(world.shards))
    if found > n:
        yield f"there are {found} files, expected at most {n}"


@word
def row_group_bytes_at_most(world: World, mib: float, uncompressed: bool = False) -> Iterator[str]:
    """No row group of any shard is larger (as stored, or before compression), as its own footer says."""
    for path in _files(world.shards):
        footer = pq.read_metadata(path)
        for number in range(footer.num_row_groups):
            group = footer.row_group(number)
            columns = [group.column(place) for place in range(group.num_columns)]
            size = group.total_byte_size if uncompressed else sum(c.total_compressed_size for c in columns)
            if size > mib * 2**20:
                yield f"{path.name}: row group {number} has {size:,} bytes, expected at most {mib} MiB"


@word
def inspect_one_row_reads_at_most(world: World, row_groups: int) -> Iterator[str]:
    """Looking at one row decodes at most so many row groups whole, whichever row it is."""
    for id in (world.ids[0], world.ids[len(world.ids) // 2], world.ids[-1]):
        with _Counted() as counted:
            found = cf.inspect(world.shards, row=id)
        rows = [row for table in found.tables for row in table.samples]
        if [row["record_id"] for row in rows] != [id]:
            yield f"inspect does not show {id!r} alone"
        if counted.groups > row_groups:
            yield f"looking at {id!r} reads {counted.groups} row groups, expected at most {row_groups}"


class _Counted:
    """Counts row groups that pyarrow decodes whole while the block lasts; columns of ids alone do not count."""

    def __init__(self) -> None:
        self.groups = 0
        self._were: dict[str, Callable[..., Any]] = {}

    def __enter__(self) -> _Counted:
        for name in ("read_row_group", "read_row_groups", "read", "iter_batches"):
            self._were[name] = getattr(pq.ParquetFile, name)
            setattr(pq.ParquetFile, name, self._counting(name))
        return self

    def __exit__(self, *_: object) -> None:
        for name, function in self._were.items():
            setattr(pq.ParquetFile, name, function)

    def _counting(self, name: str) -> Callable[..., Any]:
        function = self._were[name]

        def read(file: pq.ParquetFile, *arguments: Any, **options: Any) -> Any:
            if options.get("columns") is None:
                self.groups += 1 if name == "read_row_group" else file.num_row_groups
            return function(file, *arguments, **options)

        return read


@word
def zero_rows_case(
    world: World, files_at_most: int, schema_complete: bool = False, reported: bool = False
) -> Iterator[str]:
    """Shards of no rows at all: few files, every kind's columns told in the manifest, and the emptiness as well."""
    folder = world.folder / "no-rows"
    manifest = cf.write_shards(world.results[-1].kept.slice(0, 0), folder, **world.settings.of("shard"))
    found = len(_files(folder))
    if found > files_at_most:
        yield f"there are {found} files, expected at most {files_at_most}"
    for kind in KINDS:
        entry = manifest["kinds"].get(kind, {"columns": {}})
        if schema_complete and list(entry["columns"]) != form_schema(kind).names:
            yield f"the manifest does not tell the columns of {kind}"
        if reported and not {f"{kind}/train", f"{kind}/heldout"} <= set(manifest["empty"]):
            yield f"the manifest does not say that {kind} is empty"


@word
def read_as_one_dataset(world: World) -> Iterator[str]:
    """`datasets` loads all shards of a kind as one data set, and finds every line that the manifest counts."""
    counted = sum(shard["rows"] for shard in world.manifest["shards"])
    lines = read_back(world.shards, world.folder / "cache")
    if not counted or len(lines) != counted:
        yield f"`datasets` reads {len(lines)} lines, the manifest counts {counted}"


@word
def manifest_has(world: World, fields: list[str]) -> Iterator[str]:
    """The manifest of the shards says these, by their usual names."""
    held = world.manifest
    sources = list(held["sources"].values())
    says: dict[str, Any] = {
        "seed": held["seed"] is not None,
        "input hashes": held["inputs"],
        "tool version": held["tool"].get("corpusforge"),
        "params": held["params"],
        "revision": sources and all(source["revisions"] for source in sources),
        "row count": sources and all(sum(source["rows"].values()) for source in sources),
        "hash per source": sources and all(source["hash"] for source in sources),
        "inexact values": held["inexact_in_datasets"],
    }
    for name in fields:
        if name not in says:
            raise CaseError(f"the runner does not know the field {name!r} of a manifest")
        if not says[name]:
            yield f"the manifest has no {name}"


@word
def no_shard_contains(world: World, text: str, after: str | None = None) -> Iterator[str]:
    """No line of any shard holds this text."""
    if after not in (None, "build with removal on"):
        raise CaseError(f"the runner does not know the moment {after!r}")
    for line in read_back(world.shards, world.folder / "cache"):
        if text in str(line):
            yield f"{line['row_id']} holds it"


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))
