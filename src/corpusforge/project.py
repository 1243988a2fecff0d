"""A project folder: params.yaml, dvc.yaml, and what the stages have left under data/ and metrics/.

data/<stage>/rows/part-00000.parquet   rows after the stage
data/<stage>/dropped.parquet           the ledger of the stage
data/<stage>/changes.parquet           what it edited or noted on rows that stayed
data/<stage>/figures.json              all its figures
    metrics/<stage>.json                   the few of them that DVC shows as metrics
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge import graph
from corpusforge.config import Params, load_params
from corpusforge.errors import ProjectError
from corpusforge.io import parquet, stored
from corpusforge.result import LEDGER

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Project:
    """Paths and tables of one project."""

    root: Path

    @classmethod
    def find(cls, start: Path | str = ".") -> Project:
        """The project at `start` or in the nearest folder above it. Raises ProjectError."""
        here = Path(start).resolve()
        for folder in (here, *here.parents):
            if (folder / "params.yaml").is_file() and (folder / "dvc.yaml").is_file():
                return cls(folder)
        raise ProjectError(
            f"{start} is not in a project (no params.yaml and dvc.yaml)", hint="`corpusforge init DIR` makes one"
        )

    @cached_property
    def params(self) -> Params:
        """The checked params.yaml."""
        return load_params(self.root / "params.yaml")

    def data(self, stage: str) -> Path:
        """Output folder of a stage."""
        return self.root / "data" / stage

    def figures_path(self, stage: str) -> Path:
        """File with all figures of a stage."""
        return self.data(stage) / "figures.json"

    def metrics_path(self, stage: str) -> Path:
        """File with the figures of a stage that DVC shows."""
        return self.root / "metrics" / f"{stage}.json"

    def parts(self, stage: str) -> list[Path]:
        """Partition files of the rows after a stage."""
        return parquet.parts(self.data(stage) / "rows")

    def rows(self, stage: str, columns: list[str] | None = None) -> pa.Table:
        """All rows after a stage."""
        return parquet.read(self.data(stage) / "rows", columns)

    def ledger(self, stage: str, name: str = "dropped") -> pa.Table:
        """Ledger of a stage: `dropped` or `changes`. Raises ProjectError when the stage has not run."""
        path = self.data(stage) / f"{name}.parquet"
        if not path.exists():
            raise ProjectError(f"{stage} has not run here", hint="run `dvc repro` first")
        return stored.read_table(path, schema=LEDGER)

    def metrics(self, stage: str) -> dict[str, Any]:
        """Figures of a stage. Raises ProjectError when it has not run."""
        path = self.figures_path(stage)
        if not path.exists():
            raise ProjectError(f"{stage} has not run here", hint="run `dvc repro` first")
        return stored.read_json(path)

    def table_stages(self) -> list[str]:
        """Stages that have rows, in the order of the graph, as far as the build has come."""
        names = ["ingest", *(n.name for n in graph.GRAPH if n.tables)]
        return [name for name in names if (self.data(name) / "rows").is_dir()]
