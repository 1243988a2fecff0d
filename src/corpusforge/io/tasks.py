"""Tasks of plain files, laid down in partitions: what `read_with_ledger` reads, a part in memory at a time.

    laid = Laid(folder, limit=None)
    laid.add("mbpp.jsonl", {"name": "mbpp"}, Path())      parts [part-00000.parquet], kinds {"task": 974}, left_out {}

Rows that are no tasks are counted and go no further.
"""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge.io import parquet, partitions
from corpusforge.io.ingest import row_files, source_of
from corpusforge.io.stored import read_table
from corpusforge.sample import SCHEMA
from corpusforge.stages.ingest import IngestConfig, check_allowed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_ROWS: Final = 5_000  # rows of a partition at most


@dataclass
class Laid:
    """Partitions of tasks in a folder, which is the caller's to remove; `limit` takes the first of each kind."""

    folder: Path
    limit: int | None = None
    parts: list[Path] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    """Rows that were read, by kind of row."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Records that gave no row, by reason."""
    tasks: int = 0
    _seen: Counter[str] = field(default_factory=Counter)

    def add(self, path: str, source: Mapping[str, Any], root: Path) -> None:
        """Read the files of a path. Raises what `read_with_ledger` raises."""
        config = source_of([path], source, {})
        check_allowed([config])
        files = row_files(config, root)
        if files and self._copied(files):
            return
        out = self.folder / "read"
        out.mkdir()
        partitions.run_here(IngestConfig(sources=[config], detect_language=False), root, out, _ROWS)
        for part in parquet.parts(out / "rows"):
            self._take(read_table(part))
        self.left_out.update(read_table(out / "dropped.parquet", ["reason"])["reason"].to_pylist())
        shutil.rmtree(out)

    def _copied(self, files: list[Path]) -> bool:
        """Whether files in the row format could be taken as they are; if not, the reader says what is wrong."""
        before = (list(self.parts), self.kinds.copy(), self.tasks, self._seen.copy())
        try:
            for file in files:
                with pq.ParquetFile(file) as opened:
                    for batch in opened.iter_batches(_ROWS, columns=SCHEMA.names):
                        self._take(pa.Table.from_batches([batch]))
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError):
            self.parts, self.kinds, self.tasks, self._seen = before
            return False
        return True

    def _take(self, rows: pa.Table) -> None:
        """Lay down the tasks among these rows."""
        self.kinds.update(rows["kind"].to_pylist())
        tasks = rows.select(SCHEMA.names).filter(pc.equal(rows["kind"], "task"))
        tasks = tasks if self.limit is None else self._first(tasks, self.limit)
        if not tasks.num_rows:
            return
        self.parts.append(self.folder / parquet.part_name(len(self.parts)))
        self.tasks += tasks.num_rows
        parquet.write(tasks, self.parts[-1])

    def _first(self, tasks: pa.Table, limit: int) -> pa.Table:
        """Those that are still among the first of their kind of verifier."""
        chosen = []
        for at, kind in enumerate(pc.struct_field(tasks["verifier"], "kind").to_pylist()):
            self._seen[kind] += 1
            if self._seen[kind] <= limit:
                chosen.append(at)
        return tasks.take(pa.array(chosen, pa.int64()))
