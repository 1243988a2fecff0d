"""Read the lines of a folder of shards as a `datasets.Dataset`: what TRL's trainers take.

The Parquet files are converted once into a memory-mapped cache, so that a corpus larger than memory can be read. Only
lines that `where` selects are in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ProjectError
from corpusforge.io import manifest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FORM: Final = {
    "sft": ("messages", "tools"),
    "preference": ("prompt", "chosen", "rejected", "tools"),
    "task": ("prompt", "verifier_kind", "verifier_spec", "answer", "tools"),
}
"""The columns of each kind that a trainer reads."""
_AGAIN: Final = "`dvc checkout` brings them back; else `dvc repro --force shard`"
NAMED: Final = ("row_id", "record_id", "source")
"""Columns that say which row a line is; never handed to a trainer."""


def files(shards: Path, kind: str, split: str) -> list[Path]:
    """Parquet files of a kind and split, in order. Raises ProjectError for a folder that holds no shards."""
    held = manifest.read_manifest(shards)
    listed = [one for one in held["shards"] if one["path"].startswith(f"{kind}/") and one["split"] == split]
    return [shards / one["path"] for one in sorted(listed, key=lambda one: str(one["path"]))]


def lines(shards: Path, kind: str, split: str, where: Mapping[str, list[str]], cache: Path) -> Any:
    """The lines of one kind and split that `where` selects: the columns of FORM and NAMED, and `content_id`.

    `cache` is a folder for the memory-mapped copy. None when there is no such line. Raises ProjectError when `shards`
    holds no shards, or shards that are not what the manifest says.
    """
    import datasets
    import pyarrow as pa

    from corpusforge.train.model import quiet

    paths = files(shards, kind, split)
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise ProjectError(f"{shards}: {missing[0]} is missing", hint="run `dvc repro shard`, or `dvc checkout`")
    if not paths:
        return None
    columns = [*NAMED, "content_id", *FORM[kind]]
    chosen = [(column, "in", values) for column, values in sorted(where.items())] or None
    with quiet():
        try:
            found = datasets.load_dataset(
                "parquet",
                data_files=[str(path) for path in paths],
                split="train",
                columns=columns if chosen is None else [*columns, *(c for c in where if c not in columns)],
                filters=chosen,
                cache_dir=str(cache),
            )
        except (datasets.exceptions.DatasetGenerationError, pa.ArrowException, ValueError) as error:
            if "corresponds to no data" in str(error.__cause__ or error):
                return None
            raise ProjectError(
                f"{shards}: {kind} shards cannot be read ({type(error).__name__})", hint=_AGAIN
            ) from None
    return found.select_columns(columns) if len(found) else None
