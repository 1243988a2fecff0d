"""Looking for what must be forgotten: rows by id or by what they say, their near copies, and the builds that held them.

Texts are read from `data/ingest`, a partition at a time; releases keep no unscrubbed text and are searched by ids.
"""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corpusforge.errors import ConfigError
from corpusforge.io import evaluation, forgotten, manifest, model_gate, releases
from corpusforge.io.lookup import these
from corpusforge.io.stored import read_json, read_table
from corpusforge.result import LEDGER
from corpusforge.stages._lookalikes import Lookalikes
from corpusforge.stages._settle import base
from corpusforge.stages.shard import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from corpusforge.project import Project

_SAYS: Final = ("messages", "chosen", "rejected", "tools", "verifier", "extra", "source")
_COMPARED: Final = ("row_id", "kind", "messages", "chosen", "rejected", "verifier")
# Kinds of rows that a model of each role has seen, its predecessor's included.
_SEEN: Final = {"sft": {"sft"}, "dpo": {"sft", "preference"}, "grpo": {"sft", "task"}}


@dataclass(frozen=True)
class Holder:
    """A build that holds rows: a release, or the shards of the project. `models` were trained on them."""

    build: str
    place: str
    rows: int
    heldout: int
    current: bool
    models: dict[str, str] = field(default_factory=dict)  # role -> fingerprint

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dict(vars(self))


def by_id(project: Project, ids: Iterable[str]) -> set[str]:
    """Bases of the records that have one of these row ids or own ids."""
    wanted = list(ids)
    called = _named(wanted) | pl.col("base").is_in(wanted)
    return {at for frame in forgotten.frames_of(project.parts("ingest"))() for at in frame.filter(called)["base"]}


def _named(wanted: list[str]) -> pl.Expr:
    """Rows that have one of these row ids, own ids, or own ids behind the name of their source (`support:1042`)."""
    own = pl.col("own").is_in(wanted) | (pl.col("name") + ":" + pl.col("own")).is_in(wanted)
    return pl.col("row_id").is_in(wanted) | own.fill_null(False)


def quarantined(project: Project, ids: Iterable[str]) -> list[dict[str, Any]]:
    """Ledger lines of the records that never became rows and have one of these ids."""
    path = project.data("ingest") / "dropped.parquet"
    lines: list[dict[str, Any]] = (
        pq.read_table(path, schema=LEDGER, filters=these(list(ids))).to_pylist() if path.exists() else []
    )
    return lines


def only_released(project: Project, ids: Iterable[str]) -> pl.DataFrame:
    """Rows of releases that have one of these ids, with the columns that `holders` looks at."""
    wanted = list(ids)
    found = [pl.DataFrame(schema=dict.fromkeys(("name", "revision", "row_id", "own", "content_id"), pl.String))]
    for one in releases.releases(project):
        shards = project.root / releases.FOLDER / one["build"] / releases.SHARDS
        held = manifest.read_manifest(shards)
        revisions = {name: (entry["revisions"] or [""])[0] for name, entry in held["sources"].items()}
        for shard in held["shards"]:
            table = read_table(shards / shard["path"], ["row_id", "record_id", "source", "content_id"])
            frame = pl.DataFrame(pl.from_arrow(table)).rename({"source": "name", "record_id": "own"})
            hit = frame.filter(_named(wanted))
            revision = pl.col("name").replace_strict(revisions, default="", return_dtype=pl.String)
            found.append(hit.with_columns(revision=revision).select(found[0].columns))
    return pl.concat(found).unique(maintain_order=True)


def by_text(project: Project, text: str, *, regex: bool = False) -> set[str]:
    """Bases of the records of which a text, an id or a value holds `text` (or matches it), case aside.

    Raises ConfigError for what is no regular expression.
    """
    found: set[str] = set()
    for part in project.parts("ingest"):
        rows = pq.read_table(part, columns=["row_id", *_SAYS])
        hit = np.zeros(rows.num_rows, bool)
        for name in _SAYS:
            for chunk_start, chunk in _chunks(rows[name]):
                for texts, at in _leaves(chunk, np.arange(len(chunk))):
                    hit[chunk_start + at[_holds(texts, text, regex)]] = True
        ids = pl.Series("row_id", rows["row_id"].filter(pa.array(hit)), dtype=pl.String)
        found |= set(pl.DataFrame(ids).select(base(pl.col("row_id")))["row_id"])
    return found


def _chunks(column: pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    start = 0
    for chunk in column.chunks:
        yield start, chunk
        start += len(chunk)


def _leaves(array: pa.Array, at: Any) -> Iterator[tuple[pa.Array, Any]]:
    """Every column of texts inside an array, with the position of the row that each text is of."""
    if pa.types.is_list(array.type):
        yield from _leaves(array.flatten(), at[np.asarray(pc.list_parent_indices(array))])
    elif pa.types.is_struct(array.type):
        for inner in array.flatten():
            yield from _leaves(inner, at)
    elif pa.types.is_string(array.type):
        yield array, at


def _holds(texts: pa.Array, text: str, regex: bool) -> Any:
    """Which texts hold `text`: as it is, composed and decomposed, and as JSON text has it."""
    if regex:
        try:
            mask = pc.match_substring_regex(texts, text, ignore_case=True)
        except pa.ArrowInvalid:
            raise ConfigError(
                "--match is no regular expression", hint="RE2 syntax; leave --regex out for plain text"
            ) from None
        return np.asarray(pc.fill_null(mask, False))
    forms = {unicodedata.normalize(form, text) for form in ("NFC", "NFD")} | {text}
    forms |= {json.dumps(one, ensure_ascii=False)[1:-1] for one in forms}
    mask = np.zeros(len(texts), bool)
    for one in sorted(forms):
        mask |= np.asarray(pc.fill_null(pc.match_substring(texts, one, ignore_case=True), False))
    return mask


def rows_of(project: Project, bases: Iterable[str]) -> pl.DataFrame:
    """The ids of all rows of these records, in the order of the corpus."""
    wanted = list(bases)
    frames = [frame.filter(pl.col("base").is_in(wanted)) for frame in forgotten.frames_of(project.parts("ingest"))()]
    return pl.concat(frames)


def near_copies(project: Project, gone: set[str]) -> list[tuple[str, str, float]]:
    """Row id, row id of a row that goes, and similarity, for every other row that is nearly the same text."""
    tables = []
    for part in project.parts("ingest"):
        rows = pq.read_table(part, columns=list(_COMPARED))
        tables.append(rows.filter(_mask(rows, gone)))
    going = pa.concat_tables(tables)
    if not going.num_rows:
        return []
    index = Lookalikes(going, project.params.dedupe)
    found = []
    for part in project.parts("ingest"):
        rows = pq.read_table(part, columns=list(_COMPARED))
        rows = rows.filter(pc.invert(_mask(rows, gone)))
        ids = rows["row_id"].to_pylist()
        found += [(ids[at], going["row_id"][of].as_py(), similarity) for at, of, similarity in index.find(rows)]
    return found


def _mask(rows: pa.Table, bases: set[str]) -> pa.ChunkedArray:
    ids = pl.DataFrame({"row_id": pl.Series(rows["row_id"], dtype=pl.String)}).select(base(pl.col("row_id")))
    return pa.chunked_array([ids["row_id"].is_in(list(bases)).to_arrow()])


def kept_by_dedupe(project: Project, row_ids: Iterable[str]) -> set[str]:
    """Those of the rows that dedupe kept; none where it has not run."""
    wanted = pa.array(list(row_ids), pa.string())
    folder = project.data("dedupe") / "rows"
    kept: set[str] = set()
    for part in sorted(folder.glob("part-*.parquet")):
        ids = read_table(part, ["row_id"])["row_id"]
        kept |= set(ids.filter(pc.is_in(ids, wanted)).to_pylist())
    return kept


def holders(project: Project, rows: pl.DataFrame) -> list[Holder]:
    """The releases, and the shards of the project, that hold any of these rows (frame of `rows_of`)."""
    now = releases.current(project)
    found = []
    for one in releases.releases(project):
        folder = project.root / releases.FOLDER / one["build"]
        held = _held(folder / releases.SHARDS, rows, folder / "ledgers")
        models = _models(folder / model_gate.FIGURES, held)
        place = f"{releases.FOLDER}/{one['build']}"
        found.append(_holder(one["build"], place, held, models, one["build"] == now))
    shards = project.data("shard")
    if (shards / manifest.NAME).exists():
        held = _held(shards, rows, None)
        judged = project.figures_path("evaluate")
        models = _models(judged, held) if judged.exists() else _folders(project, held)
        found.append(_holder(str(manifest.read_manifest(shards)["build"]), "data/shard", held, models, False))
    return [one for one in found if one.rows or one.models]


def _holder(build: str, place: str, held: dict[tuple[str, str], int], models: dict[str, str], current: bool) -> Holder:
    shards = {key: rows for key, rows in held.items() if key[1]}
    heldout = sum(rows for (_, split), rows in shards.items() if split == "heldout")
    return Holder(build, place, sum(shards.values()), heldout, current, models)


def _held(shards: Path, rows: pl.DataFrame, ledgers: Path | None) -> dict[tuple[str, str], int]:
    """Kind and split -> rows that shards hold; ("raw", "") -> rows that were read and dropped later."""
    held = manifest.read_manifest(shards)
    revisions = {name: set(one["revisions"]) for name, one in held["sources"].items()}
    same = [revision in revisions.get(name, ()) for name, revision in rows.select("name", "revision").iter_rows()]
    ids = rows.filter(pl.Series(same, dtype=pl.Boolean))["row_id"].to_list()
    own = rows.drop_nulls("own").select(pl.col("name").alias("source"), pl.col("own").alias("record_id")).unique()
    contents = rows["content_id"].to_list()
    total: dict[tuple[str, str], int] = {}
    for shard in held["shards"]:
        table = read_table(shards / shard["path"], ["row_id", "record_id", "source", "content_id"])
        frame = pl.DataFrame(pl.from_arrow(table))
        named = frame.filter(pl.col("row_id").is_in(ids) | pl.col("content_id").is_in(contents))
        owned = frame.join(own, on=["source", "record_id"], how="semi")
        count = pl.concat([named, owned])["row_id"].n_unique()
        if count:
            key = kind_of(shard["path"].split("/")[0]), shard["split"]
            total[key] = total.get(key, 0) + count
    dropped = _dropped(ledgers, ids, own) if ledgers is not None else 0
    return total | ({("raw", ""): dropped} if dropped else {})


def _dropped(ledgers: Path, ids: list[str], own: pl.DataFrame) -> int:
    """Rows that stages after `ingest` dropped: a model trained on the rows as they came in has seen them."""
    found: set[str] = set()
    for path in sorted(ledgers.glob("*.dropped.parquet")):
        if path.name.startswith("ingest."):
            continue
        frame = pl.DataFrame(pl.from_arrow(read_table(path, ["row_id", "record_id", "source"])))
        owned = frame.join(own, on=["source", "record_id"], how="semi")
        found |= {*frame.filter(pl.col("row_id").is_in(ids))["row_id"], *owned["row_id"]}
    return len(found)


def _models(figures: Path, held: dict[tuple[str, str], int]) -> dict[str, str]:
    """Roles and fingerprints of the judged models that saw a row in training."""
    prints: dict[str, str] = read_json(figures).get("fingerprints", {}) if figures.exists() else {}
    return {role: text for role, text in prints.items() if _saw(role, held)}


def _folders(project: Project, held: dict[tuple[str, str], int]) -> dict[str, str]:
    """Models on disk that nobody has judged yet, where they saw a row."""
    places = {role: project.data(stage) / "model" for role, stage in evaluation.STAGES.items()}
    return {role: "" for role, place in places.items() if place.is_dir() and _saw(role, held)}


def _saw(role: str, held: dict[tuple[str, str], int]) -> bool:
    trained = {kind for kind, split in held if split == "train"}
    return bool(held and (trained or ("raw", "") in held)) if role == "raw" else bool(_SEEN.get(role, set()) & trained)
