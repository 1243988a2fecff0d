"""Finding single rows in a build: in its partitions, its ledgers and its shards, reading only what the answer needs.

A build is a project folder (its last run) or a release folder, which keeps ledgers and shards but no partitions.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge import graph
from corpusforge.errors import ProjectError
from corpusforge.project import Project
from corpusforge.result import LEDGER

NOTHING_RAN: Final = "run `dvc repro` first"


@dataclass(frozen=True)
class Build:
    """Where the tables of a build lie."""

    root: Path
    release: bool = False

    @property
    def shards(self) -> Path:
        """Folder of the shards and their manifest."""
        return self.root / ("shards" if self.release else "data/shard")

    def parts(self, stage: str) -> list[Path]:
        """Partitions of the rows after a stage; none in a release, or when the stage has not run."""
        return [] if self.release else sorted((self.root / "data" / stage / "rows").glob("part-*.parquet"))

    def ledger(self, stage: str, name: str) -> Path:
        """The ledger file of a stage: `dropped` or `changes`."""
        if self.release:
            return self.root / "ledgers" / f"{stage}.{name}.parquet"
        return self.root / "data" / stage / f"{name}.parquet"

    def stages(self) -> list[str]:
        """Stages with a ledger here, in the order of the graph."""
        return [name for name in graph.NAMES if self.ledger(name, "dropped").exists()]


def open_build(place: Path | str | Project) -> Build:
    """The build of a project (or of a folder inside it), or a release. Raises ProjectError for anything else."""
    if isinstance(place, Project):
        return Build(place.root)
    path = Path(place)
    if (path / "ledgers").is_dir() and (path / "shards").is_dir():
        return Build(path.resolve(), release=True)
    return Build(Project.find(path).root)


def identify(build: Build, identifier: str) -> dict[str, dict[str, Any]]:
    """Row id -> its source (name, record, record_id, …) for every row that has this row id or user's own id.

    An own id may stand behind the name of its source (`support:1042`), as `corpusforge diff` tells it.

    Quarantined records, which never became rows, are found in the ledger of `ingest`.
    """
    if not build.stages():
        raise ProjectError(f"no stage has run in {build.root.name}", hint=NOTHING_RAN)
    found: dict[str, dict[str, Any]] = {}
    for part in build.parts("ingest"):
        with pq.ParquetFile(part) as file:  # (read_table would flatten the struct)
            ids = file.read(columns=["row_id", "source.name", "source.record_id"])
        name, own = (pc.struct_field(ids["source"], each) for each in ("name", "record_id"))
        mask = pc.fill_null(called(ids["row_id"], own, name, [identifier]), False)
        places = pc.indices_nonzero(mask)
        if len(places):
            for row in pq.read_table(part, columns=["row_id", "source"]).take(places).to_pylist():
                found[row["row_id"]] = row["source"]
    for stage in build.stages():
        for name in ("dropped", "changes"):
            path = build.ledger(stage, name)
            for line in (
                pq.read_table(path, schema=LEDGER, filters=these([identifier])).to_pylist() if path.exists() else ()
            ):
                found.setdefault(line["row_id"], {"name": line["source"], "record_id": line["record_id"]})
    if build.release:
        found |= _shipped(build, identifier)
    return dict(sorted(found.items()))


def _shipped(build: Build, identifier: str) -> dict[str, dict[str, Any]]:
    """Row id -> what the shards say of the source, for rows in shards with this row id or user's own id."""
    found = {}
    for path in _shards(build):
        columns = ["row_id", "record_id", "source", "license", "restrictions", "origin", "generator"]
        for line in pq.read_table(path, columns=columns, filters=these([identifier])).to_pylist():
            found[line.pop("row_id")] = {"name": line.pop("source"), **line}
    return found


def _shards(build: Build) -> list[Path]:
    return sorted(build.shards.glob("*/*.parquet"))


def called(row_id: Any, own: Any, source: Any, identifiers: list[str]) -> Any:
    """Which rows have one of these row ids, own ids, or own ids behind the name of their source; null where not."""
    wanted = pa.array(identifiers, pa.string())
    named = pc.binary_join_element_wise(source, own, ":")
    return pc.or_kleene(pc.or_kleene(pc.is_in(row_id, wanted), pc.is_in(own, wanted)), pc.is_in(named, wanted))


def these(identifiers: list[str]) -> pc.Expression:
    """The same as a filter on a ledger or a shard."""
    expression: pc.Expression = called(pc.field("row_id"), pc.field("record_id"), pc.field("source"), identifiers)
    return expression


def ledger_lines(build: Build, stage: str, name: str, row_ids: list[str]) -> list[dict[str, Any]]:
    """Ledger lines of these rows, details opened."""
    path = build.ledger(stage, name)
    if not path.exists():
        return []
    lines = pq.read_table(path, schema=LEDGER, filters=pc.field("row_id").isin(row_ids)).to_pylist()
    return [line | {"detail": json.loads(line["detail"] or "{}")} for line in lines]


def rows_after(build: Build, stage: str, row_ids: list[str]) -> dict[str, dict[str, Any]]:
    """What later stages wrote beside these rows after a stage: split, copies, difficulty, and so on."""
    wanted = ("row_id", "kind", "cluster", "split", "copies", "difficulty", "contamination", "tokens")
    found = {}
    for part in build.parts(stage):
        columns = [name for name in wanted if name in pq.read_schema(part).names]
        for row in pq.read_table(part, columns=columns, filters=pc.field("row_id").isin(row_ids)).to_pylist():
            found[row["row_id"]] = {key: value for key, value in row.items() if value is not None and key != "row_id"}
    return found


def in_shards(build: Build, row_ids: list[str]) -> dict[str, dict[str, int]]:
    """Row id -> shard files that hold it, and how often."""
    found: dict[str, dict[str, int]] = {}
    for path in _shards(build):
        held = pq.read_table(path, columns=["row_id"], filters=pc.field("row_id").isin(row_ids))
        for row_id in held["row_id"].to_pylist():
            files = found.setdefault(row_id, {})
            name = path.relative_to(build.shards).as_posix()
            files[name] = files.get(name, 0) + 1
    return found
