"""What a case's inputs become: read, run through the stages that it names, and read back, by the public API alone.

A `World` is one case under one config. Everything is made when it is first asked for, once.
"""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
from tests.cases import _view
from tests.cases._case import Case, CaseError, copy_input, role_of
from tests.cases._config import Settings

import corpusforge as cf
from corpusforge.io.readers import blocks
from corpusforge.sample import ORIGINS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cases._view import View

VERBS: Final = {
    "dedup": ("dedupe",),
    "pii": ("scrub",),
    "contamination": ("decontaminate",),
    "grade": ("health", "grade"),
    "blend": ("blend",),
}
"""The verbs, besides reading and writing, that a stage of a case is."""
_NO_ROWS: Final = ("bench", "ref")  # inputs that are not among the rows


@dataclass(frozen=True)
class Removed:
    """A ledger line: a record or row that is gone, or a note on one that stays."""

    id: str | None
    row_id: str
    source: str
    stage: str
    reason: str
    detail: dict[str, Any]

    @property
    def line(self) -> int | None:
        """The line of the source, where the ledger names it."""
        return self.detail.get("line")


@dataclass(frozen=True)
class Original:
    """A record as the input holds it, and where; `value` may hold what no row can (half a surrogate pair)."""

    value: dict[str, Any]
    line: int


@dataclass
class World:
    """One case, run with one config; `name` restricts it to one input."""

    case: Case
    folder: Path
    settings: Settings = field(default_factory=Settings)
    name: str | None = None
    block: int = blocks.SIZE  # bytes that the reader takes at once
    siblings: list[World] = field(default_factory=list)  # the same case under the configs of its other assertions

    def path(self, name: str) -> Path:
        """An input, copied here."""
        if name not in self.case.inputs:
            raise CaseError(f"{name} is no input of the case")
        there = self.folder / name
        return there if there.exists() else copy_input(self.case, name, self.folder)

    @cached_property
    def rows_from(self) -> list[str]:
        """The inputs whose rows are looked at: `<id>.jsonl`, or (without one) all that are named as sources."""
        if self.name:
            return [self.name]
        main = self.case.input("")
        if main:
            return [main]
        return [name for name in self.case.inputs if role_of(self.case.id, name) not in _NO_ROWS]

    @cached_property
    def read(self) -> cf.StageResult:
        """What `ingest` makes of the rows' inputs."""
        if not self.rows_from:
            raise CaseError("the case has no rows to read")
        with self._environment(), mock.patch.object(blocks, "SIZE", self.block):
            parts = [self.ingested(name) for name in self.rows_from]
        if len(parts) == 1:
            return parts[0]
        joined = {part: pa.concat_tables([getattr(one, part) for one in parts]) for part in ("kept", "dropped")}
        return cf.StageResult("ingest", joined["kept"], joined["dropped"])

    def ingested(self, name: str) -> cf.StageResult:
        """What `ingest` makes of one input. Its rows' source is called as the case is, or by the input's role."""
        role = role_of(self.case.id, name)
        source = {"name": role or self.case.id, "origin": role if role in ORIGINS else "mixed"}
        return cf.ingest(self.path(name), source, **self.settings.of("ingest"))

    @cached_property
    def reference(self) -> pa.Table | None:
        """Rows that are there already."""
        return self.ingested(self.settings.reference).kept if self.settings.reference else None

    @property
    def reference_views(self) -> list[View]:
        """The rows that are there already, as their user would write them down."""
        return [] if self.reference is None else _view.of_rows(self.reference)

    @cached_property
    def results(self) -> list[cf.StageResult]:
        """The result of every stage that the case names, in order, `ingest` first."""
        done = [self.read]
        with self._environment():
            for stage in self.case.stages:
                for verb in VERBS.get(stage, ()):
                    done.append(self._run(verb, done[-1].kept))
        return done

    def _run(self, verb: str, rows: pa.Table) -> cf.StageResult:
        options = self.settings.of(verb)
        if verb == "dedupe":
            return cf.dedupe(rows, reference=self.reference, **options)
        if verb == "scrub":
            return cf.scrub(rows, key="public-demo", **options)
        if verb == "decontaminate":
            benchmark = self.case.input("bench")
            if benchmark is None:
                raise CaseError("the case has no benchmark")
            return cf.decontaminate(rows, self.ingested(benchmark).kept, **options)
        return getattr(cf, verb)(rows, **options)

    @contextmanager
    def _environment(self) -> Iterator[None]:
        before = {name: os.environ.get(name) for name in self.settings.environment}
        os.environ.update(self.settings.environment)
        try:
            yield
        finally:
            for name, value in before.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)

    @cached_property
    def shards(self) -> Path:
        """The folder of shards that the rows after the last stage give."""
        with self._environment():
            cf.write_shards(self.results[-1].kept, self.folder / "shards", **self.settings.of("shard"))
        return self.folder / "shards"

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the shards."""
        return dict(json.loads((self.shards / "manifest.json").read_text(encoding="utf-8")))

    @cached_property
    def views(self) -> list[View]:
        """The rows after the last stage, read back from the shards where the case's stages write some."""
        if "shard" in self.case.stages:
            return _view.of_lines(read_back(self.shards, self.folder / "cache"))
        return _view.of_rows(self.results[-1].kept)

    def view(self, id: str) -> View:
        """The one row of this id. Raises CaseError when there is none, or more than one."""
        found = [view for view in self.views if view.id == id]
        if len(found) != 1:
            raise CaseError(f"expected one row {id!r}, found {len(found)}")
        return found[0]

    @cached_property
    def ids(self) -> list[str]:
        """The user's own ids of the rows that are left, in order, one per row."""
        return [view.id for view in self.views]

    @cached_property
    def ledger(self) -> list[Removed]:
        """Everything that was rejected or removed, by any stage."""
        return [line for result in self.results for line in _lines(result.dropped)]

    @cached_property
    def notes(self) -> list[Removed]:
        """Everything that was noted about rows that stay."""
        return [line for result in self.results for line in _lines(result.changes)]

    @cached_property
    def originals(self) -> dict[str, Original]:
        """The records of the inputs by their own id, as far as they can be read at all."""
        found: dict[str, Original] = {}
        for name in self.rows_from:
            for value, line in originals(self.path(name)):
                if isinstance(value, dict) and "id" in value:
                    found[str(value["id"])] = Original(value, line)
        return found

    def rejected(self, id: str) -> list[Removed]:
        """The ledger lines of a record: by its id, or by its line where the record itself could not be read."""
        place = self.originals[id].line if id in self.originals else 0
        return [one for one in self.ledger if one.id == id or (one.id is None and one.line == place)]


def read_back(shards: Path, cache: Path) -> list[dict[str, Any]]:
    """All lines of a folder of shards, as `datasets` loads them."""
    import datasets

    datasets.disable_progress_bars()
    lines: list[dict[str, Any]] = []
    for folder in sorted({path.parent for path in shards.glob("*/*.parquet")}):
        files = [str(path) for path in sorted(folder.glob("*.parquet"))]
        lines += datasets.load_dataset("parquet", data_files=files, split="train", cache_dir=str(cache))
    return lines


def originals(path: Path) -> list[tuple[Any, int]]:
    """The values of a file and their lines; what is no JSON by anybody's measure is passed over."""
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if path.suffix in (".csv", ".tsv"):
        rows = csv.reader(
            io.StringIO(data.decode("utf-8", "replace"), newline=""), "excel-tab" if path.suffix == ".tsv" else "excel"
        )
        names = next(rows, [])
        return [(dict(zip(names, row, strict=False)), rows.line_num) for row in rows if row]
    if path.suffix == ".json":
        return [(value, 1) for value in json.loads(data)]
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            found.append((json.loads(line.decode("utf-8", "surrogatepass")), number))
        except ValueError:
            continue
    return found


def _lines(ledger: pa.Table) -> list[Removed]:
    names = ("record_id", "row_id", "source", "stage", "reason", "detail")
    return [
        Removed(*(line[name] for name in names[:-1]), json.loads(line["detail"] or "{}"))
        for line in ledger.select(list(names)).to_pylist()
    ]


def own_ids(table: pa.Table) -> list[str | None]:
    """The user's own ids of rows in the row format."""
    return pc.struct_field(table["source"].combine_chunks(), "record_id").to_pylist()
