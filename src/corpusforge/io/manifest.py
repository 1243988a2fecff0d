"""manifest.json beside the shards: what they hold, where it came from, what it was made with, and how to check it.

    {"format": 1, "build": "5f0c…", "shards": [{"path": "sft/train-00000-of-00001.parquet", "sha256": …}], …}

The build id is a hash over the shards' hashes, the params and the methods: two builds with the same id are the same
corpus made the same way. No clock, no host and no absolute path of this machine goes in.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from corpusforge.errors import ProjectError
from corpusforge.sample import canonical_json

if TYPE_CHECKING:
    from pathlib import Path

NAME = "manifest.json"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class ShardFile(_Part):
    """One Parquet file."""

    path: str
    """Relative to the manifest."""
    kind: str
    """sft, preference, task or rated."""
    split: str
    """train or heldout."""
    rows: int
    bytes: int
    sha256: str


class KindEntry(_Part):
    """What one folder of shards holds: a kind, or the rows of a kind that have images."""

    kind: str
    rows: dict[str, int]
    """Rows per split; a split without rows has no file."""
    columns: dict[str, str]
    """Arrow type per column."""


class SourceEntry(_Part):
    """One source's part in the shards."""

    rows: dict[str, int]
    """Rows per split, each counted once."""
    copies: int
    """Lines in the shards: rows times their copies."""
    licenses: dict[str, int]
    """Rows per licence; so with the fields below."""
    restrictions: dict[str, int]
    origins: dict[str, int]
    generators: dict[str, int]
    languages: dict[str, int]
    uris: list[str]
    revisions: list[str]
    hash: str
    """128-bit hash of the source's rows (ids and contents), whatever their order."""


class Inexact(_Part):
    """A number in a row's JSON that `datasets` cannot read as it stands."""

    row_id: str
    column: str
    path: str
    """Where in the JSON: keys and positions, no values."""
    held_as: str
    """`text`: the shard holds its digits as a string; `number`: exactly, but `datasets` rounds it."""


class Manifest(_Part):
    """Everything in manifest.json."""

    format: int
    build: str
    tool: dict[str, str]
    """Name and version of what wrote the shards."""
    seed: int
    """Seed of the order of rows."""
    shards: list[ShardFile]
    kinds: dict[str, KindEntry]
    """Per folder; kinds without rows are here too."""
    empty: list[str]
    """Folder and split of what has no rows, and so no file."""
    sources: dict[str, SourceEntry]
    inputs: dict[str, str]
    """Hashes of the rows and files that the shards were made from."""
    key: str | None
    """Fingerprint of the key that stand-ins for personal data were made with."""
    params: dict[str, Any]
    """All parameters of the build."""
    methods: dict[str, Any]
    """methods.lock.json: versions of methods and libraries per stage."""
    inexact_in_datasets: list[Inexact]


def build_id(shards: list[ShardFile], params: dict[str, Any], methods: dict[str, Any]) -> str:
    """16 hex digits over shard paths and hashes, params and methods."""
    what = {"shards": [[shard.path, shard.sha256] for shard in shards], "params": params, "methods": methods}
    return hashlib.blake2b(canonical_json(what).encode(), digest_size=8).hexdigest()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder of shards as a dict. Raises ProjectError when there is none, or it is not one."""
    path = folder / NAME
    if not path.exists():
        raise ProjectError(f"{folder} has no {NAME}", hint="run `dvc repro shard`, or `write_shards` in Python")
    try:
        loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        shards = [ShardFile.model_validate(shard) for shard in loaded["shards"]]
        str(loaded["build"])
    except (ValueError, KeyError, TypeError):
        raise ProjectError(f"{path} is not a manifest of shards", hint="write the shards again") from None
    return loaded | {"shards": [shard.model_dump() for shard in shards]}


def verify(folder: Path) -> list[str]:
    """Paths of shards that are missing, changed, or not in the manifest; empty when all is as written."""
    listed = {shard["path"]: shard["sha256"] for shard in read_manifest(folder)["shards"]}
    there = {path.relative_to(folder).as_posix() for path in folder.glob("*/*.parquet")}
    wrong = [path for path, digest in listed.items() if path not in there or sha256(folder / path) != digest]
    return sorted({*wrong, *(there - set(listed))})


def sha256(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
