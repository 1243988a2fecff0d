"""What dedupe removed, read from its ledger: groups of rows that went for one row, and their texts.

data/dedupe       dropped.parquet, rows/; texts are in data/ingest beside it
DIR               what `corpusforge dedupe FILE --out DIR` wrote: dropped.parquet, kept/; texts are in FILE
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge.errors import ProjectError, SourceError
from corpusforge.io import lookup
from corpusforge.io.dedupe import names
from corpusforge.io.texts import Texts, id_column, is_plain
from corpusforge.text.views import row_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from corpusforge.project import Project

_REASONS: Final = ("exact_duplicate", "near_duplicate")
_DETAIL: Final = pl.Struct({"kept": pl.String, "method": pl.String, "similarity": pl.Float64})
_TEXT: Final = ["row_id", "kind", "messages", "chosen", "rejected", "verifier"]


@dataclass(frozen=True)
class Place:
    """Where a ledger of dedupe is, and what belongs to it."""

    label: str
    ledger: Path
    rows: list[Path] = field(default_factory=list)
    """Rows that stayed; none where plain files were deduped, or in a release."""
    came: list[Path] = field(default_factory=list)
    """Rows as they came, with their texts."""


def open_place(where: Path | str | Project) -> Place:
    """The ledger of a project, a folder of dedupe, or a release. Raises ProjectError where there is none."""
    path = Path(where) if isinstance(where, str | Path) else where.root
    ledger = path / "dropped.parquet"
    if ledger.is_file():
        parts = (sorted((folder / "rows").glob("part-*.parquet")) for folder in (path, path.parent / "ingest"))
        return Place(path.name, ledger, *parts)
    build = lookup.open_build(where)
    ledger = build.ledger("dedupe", "dropped")
    if not ledger.is_file():
        raise ProjectError(f"dedupe has not run in {build.root.name}", hint=lookup.NOTHING_RAN)
    return Place(build.root.name, ledger, build.parts("dedupe"), build.parts("ingest"))


def removals(place: Place) -> pl.DataFrame:
    """A line per duplicate that went: row_id, record_id, source, kept, method, similarity. Raises SourceError."""
    try:
        table = pq.read_table(
            place.ledger,
            columns=["row_id", "record_id", "source", "detail"],
            filters=pc.field("reason").isin(_REASONS),
        )
    except (pa.ArrowException, OSError) as error:
        raise SourceError(f"{place.ledger.name} is no ledger that can be read ({type(error).__name__})") from None
    frame = pl.DataFrame(pl.from_arrow(table)).with_columns(pl.col("detail").str.json_decode(_DETAIL))
    return frame.unnest("detail")


def keepers(place: Place, identifier: str) -> set[str]:
    """Row ids of the rows that stayed and have this row id, own id or cluster."""
    found: set[str] = set()
    for part in place.rows:
        with pq.ParquetFile(part) as file:
            rows = file.read(columns=["row_id", "cluster", "source.name", "source.record_id"])
        name, own = (pc.struct_field(rows["source"], one) for one in ("name", "record_id"))
        hit = pc.or_kleene(
            lookup.called(rows["row_id"], own, name, [identifier]), pc.equal(rows["cluster"], identifier)
        )
        found |= set(rows["row_id"].filter(pc.fill_null(hit, False)).to_pylist())
    return found


def sources_of(place: Place, row_ids: Iterable[str]) -> dict[str, str]:
    """Name of the source of each of these rows that stayed."""
    wanted = pa.array(list(row_ids), pa.string())
    found: dict[str, str] = {}
    for part in place.rows:
        with pq.ParquetFile(part) as file:
            rows = file.read(columns=["row_id", "source.name"])
        rows = rows.filter(pc.is_in(rows["row_id"], wanted))
        source = pc.struct_field(rows["source"], "name").to_pylist()
        found |= dict(zip(rows["row_id"].to_pylist(), source, strict=True))
    return found


def texts_of(place: Place, row_ids: Iterable[str]) -> dict[str, str]:
    """Texts of these rows as they came, where they are on disk."""
    wanted = list(row_ids)
    found: dict[str, str] = {}
    for part in place.came:
        rows = pq.read_table(part, columns=_TEXT, filters=pc.field("row_id").isin(wanted))
        found |= _said(rows)
    return found


def _said(rows: pa.Table) -> dict[str, str]:
    texts = row_text(rows, system=True).to_pylist() if rows.num_rows else []
    return dict(zip(rows["row_id"].to_pylist(), texts, strict=True))


def original_texts(
    files: list[Path],
    columns: tuple[str, str | None],
    row_ids: set[str],
    own: set[str],
    gone: set[str],
    before: Sequence[Path] = (),
) -> tuple[dict[str, str], dict[str, str]]:
    """Texts in the files that `corpusforge dedupe` was given: by row id, and of rows that stayed, by the name it gave.

    `row_ids` are those of rows, `own` the names of rows that stayed (own ids, or row ids where there are none), `gone`
    the row ids of all that went; `before` are files that were named earlier (see `labels` of io/dedupe.py).
    """
    if not all(is_plain(file, columns[0]) for file in files):
        from corpusforge.io.ingest import read_with_ledger

        rows = read_with_ledger([str(file) for file in files], root=Path()).kept
        said = _said(rows.filter(pc.is_in(rows["row_id"], pa.array([*row_ids, *own], pa.string()))))
        return said, {row: text for row, text in said.items() if row in own - gone}
    corpus = Texts(files, columns[0], id_column(files[0], columns[1]))
    ids = names(corpus, before).with_row_index("at").with_columns(pl.coalesce("record_id", "row_id").alias("name"))
    rows_at = ids.filter(pl.col("row_id").is_in(list(row_ids)))
    kept_at = ids.filter(pl.col("name").is_in(list(own)) & ~pl.col("row_id").is_in(list(gone)))
    said_at = _at(corpus, np.unique(np.concatenate([rows_at["at"].to_numpy(), kept_at["at"].to_numpy()])))
    return (
        {row: said_at[at] for at, row in rows_at.select("at", "row_id").iter_rows()},
        {name: said_at[at] for at, name in kept_at.reverse().select("at", "name").iter_rows()},
    )


def _at(corpus: Texts, positions: Any) -> dict[int, str]:
    """Texts at these positions."""
    found: dict[int, str] = {}
    for part in corpus.slices:
        own = positions[(positions >= part.start) & (positions < part.start + part.rows)]
        if len(own):
            texts = corpus.read(part, [corpus.text])[corpus.text].take(pa.array(own - part.start)).to_pylist()
            found |= {int(at): text or "" for at, text in zip(own, texts, strict=True)}
    return found
