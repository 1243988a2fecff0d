"""Benchmarks as rows: what `decontaminate` keeps out.

They are read like sources, but only ever matched against, so restrictions such as `no-train` do not hold them back (a
benchmark that must not be trained on is the very thing to look for). `source.name` is the benchmark's name.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pyarrow as pa

from corpusforge.errors import SourceError
from corpusforge.io.ingest import source_rows
from corpusforge.io.readers import COMPRESSED, EXTENSIONS
from corpusforge.sample import SCHEMA, empty
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


def load_benchmarks(sources: Sequence[SourceConfig], root: Path) -> pa.Table:
    """Rows of all benchmarks, paths relative to `root`; no rows without benchmarks.

    Raises SourceError for one that is missing, has no usable item, or shares its name with another.
    """
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise SourceError(f"two benchmarks are called {name!r}", hint="give each its own name")
    return pa.concat_tables([empty(), *(_rows(source, root) for source in sources)])


def load_folder(folder: Path) -> pa.Table:
    """Every data file in `folder` as one benchmark, named by its stem. Raises SourceError."""
    if not folder.is_dir():
        raise SourceError(f"{folder} is not a folder", hint="give a folder that holds one data file per benchmark")
    files = sorted(file for file in folder.iterdir() if file.is_file() and _stem(file.name))
    if not files:
        raise SourceError(f"{folder} holds no data file", hint=f"read are: {', '.join(EXTENSIONS)}")
    return load_benchmarks([SourceConfig(name=name, path=file.name) for file, name in _named(files)], folder)


def _rows(source: SourceConfig, root: Path) -> pa.Table:
    tables = [result.kept for result in source_rows(source, root, detect_language=False)]
    rows = pa.concat_tables([empty(), *tables]).select(SCHEMA.names)
    if rows.num_rows == 0:
        hint = "its records have no shape that is known: state `shape` or `fields`"
        raise SourceError(f"benchmark {source.name!r} has no usable item", hint=hint)
    return rows


def _stem(name: str) -> str:
    """The file's name without its data extension; "" when it has none."""
    endings = sorted((end + packed for end in EXTENSIONS for packed in COMPRESSED), key=len, reverse=True)
    ending = next((end for end in endings if name.lower().endswith(end) and not name.startswith(".")), "")
    return name[: -len(ending)] if ending else ""


def _named(files: Iterable[Path]) -> list[tuple[Path, str]]:
    """Files with their benchmark names; the extension stays where two stems are the same."""
    plain = [(file, re.sub(r"[^A-Za-z0-9._-]+", "-", _stem(file.name))) for file in files]
    stems = [stem for _, stem in plain]
    return [(f, stem if stems.count(stem) == 1 else re.sub(r"[^A-Za-z0-9._-]+", "-", f.name)) for f, stem in plain]
