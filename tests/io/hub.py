"""A hub on this machine: the answers of the Hugging Face hub that reading a data set needs, and its refusals."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Hub:
    """Data sets by name: files by commit, the commit that `main` is at, and the status that is answered instead."""

    def __init__(self) -> None:
        self.files: dict[str, dict[str, dict[str, bytes]]] = {}
        self.main: dict[str, str] = {}
        self.refused: dict[str, int] = {}  # everything of it
        self.gated: set[str] = set()  # its files, not its page
        self.asked: list[str] = []
        self.url = ""

    def put(self, name: str, commit: str, files: dict[str, bytes]) -> None:
        """Move a data set's main branch to a commit."""
        self.files.setdefault(name, {})[commit] = {"README.md": b"# A data set\n", **files}
        self.main[name] = commit


@contextmanager
def serve_hub() -> Iterator[Hub]:
    """A hub on a port of its own, until the block ends."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            hub.asked.append(f"{self.command} {path}")
            found = re.fullmatch(r"(/api)?/datasets/([\w.-]+/[\w.-]+)(?:/(revision|tree|resolve)/([^/]+)/?(.*))?", path)
            name = found[2] if found else ""
            if found is None or name not in hub.files or name in hub.refused:
                status = hub.refused.get(name, 404)
                return self.reply(
                    status, {"error": "no"}, {"X-Error-Code": "RepoNotFound"} if status == 404 else {}, body
                )
            commit = hub.main[name] if found[4] in (None, "main") else found[4]
            files = hub.files[name].get(commit)
            if files is None:
                return self.reply(404, {"error": "no"}, {"X-Error-Code": "RevisionNotFound"}, body)
            if found[3] == "tree":
                return self.reply(200, listing(files, found[5], "recursive=true" in self.path.lower()), {}, body)
            if found[3] != "resolve":
                return self.reply(200, about(name, commit, files), {}, body)
            if name in hub.gated:
                return self.reply(403, {"error": "ask"}, {"X-Error-Code": "GatedRepo"}, body)
            if found[5] not in files:
                return self.reply(404, {"error": "no"}, {"X-Error-Code": "EntryNotFound"}, body)
            return self.part(files[found[5]], commit, body)

        def part(self, data: bytes, commit: str, body: bool) -> None:
            extra = {"X-Repo-Commit": commit, "ETag": f'"{oid(data)}"', "Accept-Ranges": "bytes"}
            span = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
            if span is None:
                return self.reply(200, data, extra, body)
            start, end = int(span[1]), min(int(span[2] or len(data) - 1), len(data) - 1)
            extra["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
            return self.reply(206, data[start : end + 1], extra, body)

        def reply(self, status: int, data: Any, extra: dict[str, str], body: bool) -> None:
            packed = data if isinstance(data, bytes) else json.dumps(data).encode()
            self.send_response(status)
            kind = "application/octet-stream" if isinstance(data, bytes) else "application/json"
            for key, value in {"Content-Length": str(len(packed)), "Content-Type": kind, **extra}.items():
                self.send_header(key, value)
            self.end_headers()
            if body:
                self.wfile.write(packed)

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def oid(data: bytes) -> str:
    """What git calls a file's content, nearly."""
    return hashlib.sha1(data).hexdigest()


def listing(files: dict[str, bytes], folder: str, recursive: bool) -> list[dict[str, Any]]:
    """What lies in a folder: files, and the folders in it."""
    start = f"{folder}/" if folder else ""
    inside = {name: data for name, data in files.items() if name.startswith(start)}
    found = [entry(name, data) for name, data in inside.items() if recursive or "/" not in name.removeprefix(start)]
    folders = {start + name.removeprefix(start).split("/")[0] for name in inside if "/" in name.removeprefix(start)}
    return [*found, *({"type": "directory", "oid": oid(name.encode()), "size": 0, "path": name} for name in folders)]


def entry(name: str, data: bytes) -> dict[str, Any]:
    """One line of a listing."""
    return {"type": "file", "oid": oid(data), "size": len(data), "path": name}


def about(name: str, commit: str, files: dict[str, bytes]) -> dict[str, Any]:
    """A data set's page."""
    day = "2024-01-01T00:00:00.000Z"
    flags = {"private": False, "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0}
    listed = [{"rfilename": one} for one in files]
    return {"_id": "1", "id": name, "sha": commit, "lastModified": day, "createdAt": day, "siblings": listed, **flags}
