"""s3:// against a server of the same protocol on this machine; needs `pip install s3fs 'moto[server]'`."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from corpusforge.errors import SourceError
from corpusforge.io.ingest import read

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("s3fs", reason="s3:// needs the extra `remote`")
server = pytest.importorskip("moto.server", reason="a server for s3:// needs moto")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
LINES = b"".join(json.dumps({"id": n, "text": f"text {n}"}).encode() + b"\n" for n in range(3))


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket with two files in a folder, known by the environment alone."""
    import s3fs

    started = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    started.start()
    host, port = started.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "hush-hush")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        system = s3fs.S3FileSystem(skip_instance_cache=True)
        system.mkdir("s3://bucket")
        system.pipe("s3://bucket/chats/a.jsonl", LINES)
        system.pipe("s3://bucket/chats/b.jsonl.gz", gzip.compress(LINES))
        yield "s3://bucket"
    started.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def test_files_folders_and_globs(bucket: str, tmp_path: Path) -> None:
    """Ids as for files here, the ETag's revision, and nothing of the environment in any row."""
    a, b = ([f"s/{name}#{n}" for n in (1, 2, 3)] for name in ("a.jsonl", "b.jsonl.gz"))
    one = read(f"{bucket}/chats/a.jsonl", name="s", root=tmp_path)
    assert one["row_id"].to_pylist() == ["s#1", "s#2", "s#3"]
    for path in (f"{bucket}/chats", f"{bucket}/chats/*"):
        rows = read(path, name="s", root=tmp_path)
        assert rows["row_id"].to_pylist() == [*a, *b]
        assert "hush" not in repr(rows.to_pylist())
    again = read(f"{bucket}/chats/a.jsonl", name="s", root=tmp_path)
    assert again["source"].to_pylist() == one["source"].to_pylist()


@pytest.mark.parametrize("path", ["none.jsonl", "chats/*.csv"])
def test_what_is_not_there(bucket: str, tmp_path: Path, path: str) -> None:
    with pytest.raises(SourceError, match=r"does not exist|matches no file"):
        read(f"{bucket}/{path}", name="s", root=tmp_path)
