"""Read back what a stage left, or say which file is missing or damaged, and how to get it again.

data/evaluate/tasks.parquet, cut short  ->  ProjectError: data/evaluate/tasks.parquet cannot be read (ArrowInvalid)
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from corpusforge.errors import ProjectError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what pyarrow and json raise in the block into ProjectError about `path`."""
    name = "/".join(path.parts[-3:])
    try:
        yield
    except FileNotFoundError as error:
        if isinstance(error, ProjectError):
            raise
        raise ProjectError(f"{name} does not exist", hint="run `dvc repro` first, or `dvc checkout`") from None
    except (pa.ArrowException, OSError, ValueError, KeyError) as error:  # OSError: a broken page; KeyError: no column
        hint = "`dvc checkout` brings it back; else `dvc repro --force` the stage that wrote it"
        raise ProjectError(f"{name} cannot be read ({type(error).__name__})", hint=hint) from None


def read_table(path: Path, columns: list[str] | None = None, schema: pa.Schema | None = None) -> pa.Table:
    """A Parquet file that a stage wrote. Raises ProjectError when it is missing or damaged."""
    with reading(path):
        return pq.read_table(path, columns=columns, schema=schema)


def read_json(path: Path, *keys: str) -> dict[str, Any]:
    """A JSON object that a stage wrote, with `keys` in it. Raises ProjectError when it is missing or damaged."""
    with reading(path):
        loaded = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(loaded, dict) or not loaded.keys() >= set(keys):
            raise ValueError
        return loaded
