"""A web server on this machine for files held in memory: ranges, ETags, passwords, and servers that do none of it."""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class Server:
    """What is served, how, and what was asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.headers: dict[str, dict[str, str]] = {}
        self.ranges = True
        self.token: str | None = None
        self.cut: int | None = None  # bytes of a body that are sent before the line goes dead
        self.asked: list[tuple[str, str, str]] = []  # method, path, range
        self.sent = 0
        self.url = ""


@contextmanager
def serve() -> Iterator[Server]:
    """A server on a port of its own, until the block ends."""
    served = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, *, body: bool) -> None:
            path, wanted = self.path.partition("?")[0], self.headers.get("Range", "")
            served.asked.append((self.command, self.path, wanted))
            if served.token and self.headers.get("Authorization") != f"Bearer {served.token}":
                return self.reply(401, b"", {}, body)
            if path not in served.files:
                return self.reply(404, b"", {}, body)
            data, extra = served.files[path], dict(served.headers.get(path, {}))
            span = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted)
            if served.ranges and span:
                start, end = int(span[1]), min(int(span[2] or len(data) - 1), len(data) - 1)
                extra["Content-Range"] = f"bytes {start}-{end}/{len(data)}"
                return self.reply(206, data[start : end + 1], extra, body)
            return self.reply(200, data, extra, body)

        def reply(self, status: int, data: bytes, extra: dict[str, str], body: bool) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(data)), **extra}.items():
                self.send_header(name, value)
            if not served.ranges:
                self.send_header("Accept-Ranges", "none")
            self.end_headers()
            if body:
                self.wfile.write(data[: served.cut])
                served.sent += len(data[: served.cut])
                if served.cut is not None and len(data) > served.cut:
                    self.close_connection = True

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
