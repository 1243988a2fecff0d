"""Files by URL: read as streams, told apart by their versions, and never with a credential in what is written."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import fsspec
import pyarrow as pa
import pytest
from tests.io.readers.packing import TABLES
from tests.io.served import Server, serve

from corpusforge.errors import ConfigError, MissingExtra, SourceError
from corpusforge.io.ingest import build_rows, read, read_with_ledger
from corpusforge.stages.ingest import IngestConfig, SourceConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINES = b"".join(json.dumps({"id": f"r{n}", "text": f"text {n}"}).encode() + b"\n" for n in range(3))


@pytest.fixture
def web() -> Iterator[Server]:
    with serve() as server:
        yield server
    fsspec.filesystem("http").clear_instance_cache()


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def ids(table: pa.Table) -> list[str]:
    """Row ids."""
    return list(table["row_id"].to_pylist())


@pytest.mark.parametrize("ranges", [True, False], ids=["ranges", "no ranges"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gz"])
def test_over_http(web: Server, tmp_path: Path, pack: Any, ranges: bool) -> None:
    """From servers that send parts of a file, and from those that send it from its beginning only."""
    web.ranges = ranges
    web.files["/data/a.jsonl"] = pack(LINES)
    rows = read(f"{web.url}/data/a.jsonl", name="s", root=tmp_path)
    assert ids(rows) == ["s#1", "s#2", "s#3"]
    assert rows["source"][0]["uri"].as_py() == f"{web.url}/data/a.jsonl"


@pytest.mark.parametrize("form", TABLES)
def test_tables_over_http(web: Server, tmp_path: Path, form: str) -> None:
    """Parquet is read from its end, by ranges."""
    web.files["/a"] = TABLES[form](pa.table({"id": ["x"], "text": ["one"]}))
    assert ids(read(f"{web.url}/a", name="s", root=tmp_path)) == ["s#1"]


def test_a_large_file_is_a_stream(web: Server, tmp_path: Path) -> None:
    """Ten records of a file of 60 MB need a part of it."""
    line = json.dumps({"text": "x" * 60_000}).encode() + b"\n"
    web.files["/a.jsonl"] = line * 1000
    web.headers["/a.jsonl"] = {"ETag": '"one"'}
    assert read(f"{web.url}/a.jsonl", name="s", limit=10, root=tmp_path).num_rows == 10
    assert web.sent < 30_000_000


def test_folders_globs_and_lists(memory: Any, tmp_path: Path) -> None:
    """Row ids as for files here."""
    for name in ("d/b.jsonl", "d/a.jsonl", "d/sub/c.jsonl.gz", "d/LICENSE"):
        memory.pipe(f"/{name}", gzip.compress(LINES[:31]) if name.endswith("gz") else LINES[:31])
    one = ["s/a.jsonl#1", "s/b.jsonl#1"]
    assert ids(read("memory://d/*.jsonl", name="s", root=tmp_path)) == one
    assert ids(read("memory://d", name="s", root=tmp_path)) == [*one, "s/sub/c.jsonl.gz#1"]
    assert ids(read("memory://d/a.jsonl", name="s", root=tmp_path)) == ["s#1"]
    both = read(["memory://d/b.jsonl", "memory://d/a.jsonl"], name="s", root=tmp_path)
    assert ids(both) == ["s/memory/d/b.jsonl#1", "s/memory/d/a.jsonl#1"]


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    """DVC watches it as one."""
    from corpusforge.methods import _paths

    (tmp_path / "a.jsonl").write_bytes(LINES)
    assert ids(read(f"file://{tmp_path}/a.jsonl", name="s", root=tmp_path)) == ["s#1", "s#2", "s#3"]
    source = SourceConfig(name="s", path=[f"file://{tmp_path}/a.jsonl", "memory://b.jsonl"])
    assert _paths([source], tmp_path) == [f"{tmp_path}/a.jsonl"]


@pytest.mark.parametrize("header", ["ETag", "Last-Modified", None])
def test_the_revision_follows_the_version(web: Server, tmp_path: Path, header: str | None) -> None:
    """An ETag, else a time, else the bytes."""
    revisions = []
    for version in ("one", "one", "two"):
        web.files["/a.jsonl"] = LINES.replace(b"text 1", f"text {version}".encode())
        web.headers["/a.jsonl"] = {header: version} if header else {}
        rows = read(f"{web.url}/a.jsonl", name="s", root=tmp_path)
        revisions.append(rows["source"][0]["revision"].as_py())
    assert revisions[0] == revisions[1] != revisions[2]


def test_a_file_that_changes_while_it_is_read(web: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    web.files["/a.jsonl"] = LINES
    web.headers["/a.jsonl"] = {"ETag": "one"}
    rows = build_rows(IngestConfig(sources=[SourceConfig(name="s", path=f"{web.url}/a.jsonl")]), tmp_path)
    monkeypatch.setattr("corpusforge.io.readers.blocks.SIZE", 1)
    next(rows)
    web.headers["/a.jsonl"] = {"ETag": "two"}
    with pytest.raises(SourceError, match=r"a\.jsonl changed while it was read"):
        list(rows)


def test_a_line_that_goes_dead(web: Server, tmp_path: Path) -> None:
    """A part of a file is not the file."""
    web.files["/a.jsonl"] = LINES
    web.cut = 30
    web.headers["/a.jsonl"] = {"ETag": "one"}
    with pytest.raises(SourceError, match=r"a\.jsonl cannot be read"):
        read(f"{web.url}/a.jsonl", name="s", root=tmp_path)


def test_credentials_come_from_the_environment(web: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As fsspec reads them; without, the server's refusal is told."""
    web.files["/a.jsonl"] = LINES
    web.token = "hush-hush"
    with pytest.raises(SourceError, match=r"may not be read[\s\S]*environment"):
        read(f"{web.url}/a.jsonl", name="s", root=tmp_path)
    headers = {"client_kwargs": {"headers": {"Authorization": "Bearer hush-hush"}}}
    monkeypatch.setitem(fsspec.config.conf, "http", headers)
    result = read_with_ledger(f"{web.url}/a.jsonl", name="s", root=tmp_path)
    assert result.kept.num_rows == 3
    assert "hush" not in repr(result.kept.to_pylist())


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@example.org/a.jsonl",
        "s3://AKIAHUNTER2:hunter2@bucket/a.jsonl",
        "https://example.org/a.jsonl?X-Amz-Signature=hunter2",
        "https://example.org/a.jsonl?sv=1&sig=hunter2",
        "https://example.org/a.jsonl?api_key=hunter2",
        "https://example.org/a.jsonl?download=1&access_token=hunter2",
        "zip://a.jsonl::https://user:hunter2@example.org/a.zip",
    ],
)
def test_a_url_with_a_secret_is_refused_and_not_shown(url: str, tmp_path: Path) -> None:
    """Params are written into locks and manifests, so it must not even be read from them."""
    from corpusforge.config import parse_params

    with pytest.raises(ConfigError, match="credentials come from the environment") as told:
        read(url, name="s", root=tmp_path)
    with pytest.raises(ConfigError, match="credentials come from the environment") as told_too:
        parse_params(f"ingest: {{sources: [{{name: s, path: '{url}'}}]}}")
    assert "hunter2" not in f"{told.value}{told_too.value}"


def test_a_query_is_asked_and_not_shown(web: Server, tmp_path: Path) -> None:
    web.files["/a.jsonl"] = LINES + b"broken\n"
    result = read_with_ledger(f"{web.url}/a.jsonl?download=1", name="s", root=tmp_path)
    assert ("GET", "/a.jsonl?download=1") in {asked[:2] for asked in web.asked}
    assert "download" not in repr([result.kept.to_pylist(), result.dropped.to_pylist()])


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_a_missing_package_is_named(tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the command that installs it."""
    import sys

    monkeypatch.setitem(sys.modules, {"s3": "s3fs", "gs": "gcsfs"}[scheme], None)
    with pytest.raises(MissingExtra, match=r"pip install 'corpusforge\[remote\]'"):
        read(f"{scheme}://bucket/a.jsonl", name="s", root=tmp_path)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("memory://d/*.csv", r"memory://d/\*\.csv matches no file"),
        ("memory://nowhere/a.jsonl", "does not exist, or holds no data file"),
        ("gopher://d/a.jsonl", "no file system that is known"),
        ("http://127.0.0.1:9/a.jsonl", "cannot be reached"),
        ("{web}/nowhere.jsonl", r"nowhere\.jsonl does not exist"),
    ],
)
def test_what_is_not_there(web: Server, memory: Any, tmp_path: Path, path: str, says: str) -> None:
    """Told before the first row is made."""
    memory.pipe("/d/a.jsonl", LINES)
    with pytest.raises(SourceError, match=says):
        read(path.replace("{web}", web.url), name="s", root=tmp_path)


def test_a_locked_zip(tmp_path: Path, memory: Any) -> None:
    """Zip archives are read by a chained URL; a locked one is told as such."""
    import io
    import zipfile

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.jsonl", LINES)
    memory.pipe("/a.zip", packed.getvalue())
    assert read("zip://a.jsonl::memory://a.zip", name="s", root=tmp_path).num_rows == 3
    locked = bytearray(packed.getvalue())
    for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(header) + flags] |= 1
    memory.pipe("/b.zip", bytes(locked))
    with pytest.raises(SourceError, match="locked with a password"):
        read("zip://a.jsonl::memory://b.zip", name="s", root=tmp_path)
