"""Data sets as the `datasets` library keeps them: folders that `save_to_disk` wrote, and what it loads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge.errors import SourceError
from corpusforge.io.readers.columnar import BATCH, table_records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from corpusforge.stages.ingest import Record


def saved_records(path: Path, label: str, part: str, split: str | None) -> Iterator[Record]:
    """A folder that `Dataset.save_to_disk` or `DatasetDict.save_to_disk` wrote."""
    if not ((path / "state.json").exists() or (path / "dataset_dict.json").exists()):
        raise SourceError(f"{label} is not a saved data set", hint="expected state.json or dataset_dict.json in it")
    import datasets

    try:
        loaded = datasets.load_from_disk(str(path))
    except (FileNotFoundError, LookupError, TypeError, ValueError) as error:  # a file is missing, or it has no shards
        raise SourceError(
            f"{label}: `datasets` cannot load it ({type(error).__name__})",
            hint="is it whole and not empty? save it again",
        ) from None
    yield from dataset_records(loaded, label, part, split)


def dataset_records(loaded: Any, label: str, part: str, split: str | None) -> Iterator[Record]:
    """Records of a Dataset, or of all (or one) of the splits of a DatasetDict, in their order. Raises SourceError."""
    splits = dict(loaded) if hasattr(loaded, "keys") else {"": loaded}
    if split is not None and split not in splits:
        known = ", ".join(name for name in splits if name) or "none (it is a single table)"
        raise SourceError(f"{label} has no split {split!r}", hint=f"it has: {known}")
    start = 0
    for name, data in splits.items():
        if split in (None, name) and data.num_rows:
            at = f"{label}:{name}" if name else label
            yield from table_records(data.with_format("arrow").iter(BATCH), at, part, start)
            start += data.num_rows


def streamed_records(loaded: Any, label: str) -> Iterator[Record]:
    """Records of an IterableDataset, or of the splits of an IterableDatasetDict, as they arrive."""
    position = 0
    for name, data in (dict(loaded) if hasattr(loaded, "keys") else {"": loaded}).items():
        for batch in data.with_format("arrow").iter(BATCH):
            yield from table_records([batch], f"{label}:{name}" if name else label, "", position)
            position += batch.num_rows
