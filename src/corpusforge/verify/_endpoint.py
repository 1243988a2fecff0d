"""A chat-completions endpoint, as OpenAI has it and vLLM, llama.cpp, Ollama and others offer it too.

    ask(Endpoint("http://127.0.0.1:8000/v1", "my-judge"), [Question([{"role": "user", "content": "…"}])])
        ->  [Reply("Score: 7")]

Where it is and which key it wants stands in the environment or in what a programme hands over, never in a task: data
must not choose where texts are sent. Each request has a limit of time, of retries and of size; redirects are not
followed. The key is read from the environment for each request and is kept, logged and written nowhere.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from corpusforge.errors import ConfigError, MissingExtra

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    import httpx

    from corpusforge.verify._rubric import Form, Question

PREFIX: Final = "CORPUSFORGE_JUDGE_"
_AGAIN: Final = (408, 409, 425, 429, 500, 502, 503, 504, 529)  # what may be otherwise a moment later
_LARGEST: Final = 4 << 20  # bytes of a response
_LONGEST_WAIT: Final = 30.0  # seconds before a request is tried again, whatever the server asks for


class Reply(NamedTuple):
    """What the endpoint said; or why nothing, as the last part of a rule."""

    text: str = ""
    fault: str | None = None


@dataclass(frozen=True)
class Endpoint:
    """Where a judge is asked, and within which limits. Raises ConfigError for values that cannot be."""

    url: str
    """Base, `/chat/completions` is added: `https://api.openai.com/v1`."""
    model: str
    key_env: str = PREFIX + "KEY"
    """Environment variable that holds the key; where it is empty, none is sent."""
    timeout: float = 60.0
    """Seconds of one request, from its start to the last byte."""
    attempts: int = 4
    backoff: float = 0.5
    """Seconds before the second attempt; twice as long before each further one."""
    concurrency: int = 8
    """Requests under way at once."""
    max_tokens: int = 1024
    """Tokens of a reply, reasoning included; a reply that is cut off is undecided."""
    replies: Form = "text"
    """`json` has the server hold the model to a JSON Schema (`response_format`): for small models, without reasons."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url) if isinstance(self.url, str) else None
        if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError("the URL of the judge is none", hint="set it to something like http://127.0.0.1:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            hint = f"put a key into the environment variable {self.key_env}"
            raise ConfigError("the URL of the judge holds more than a place", hint=hint)
        if not isinstance(self.model, str) or not self.model.strip():
            raise ConfigError("the judge has no model", hint=f"name one in {PREFIX}MODEL")
        if self.replies not in ("text", "json"):
            raise ConfigError("`replies` of the judge is neither text nor json", hint="text is the default")
        for name, low, high in _LIMITS:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
                raise ConfigError(f"{name} of the judge is not between {low} and {high}", hint=f"change {name}")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Endpoint | None:
        """The endpoint of `CORPUSFORGE_JUDGE_URL`, `_MODEL` and the limits; None where no URL is set."""
        url = environment.get(PREFIX + "URL", "").strip()
        if not url:
            return None
        replies = environment.get(PREFIX + "REPLIES", "").strip()
        given: dict[str, Any] = {"replies": replies} if replies else {}
        for name, kind in (("timeout", float), ("attempts", int), ("concurrency", int), ("max_tokens", int)):
            given |= number(environment, name, kind)
        return cls(url, environment.get(PREFIX + "MODEL", ""), **given)


_LIMITS: Final = (
    ("timeout", 0.01, 3600),
    ("attempts", 1, 20),
    ("backoff", 0, 30),
    ("concurrency", 1, 256),
    ("max_tokens", 1, 131_072),
)


def number(environment: Mapping[str, str], name: str, kind: type[float] | type[int]) -> dict[str, Any]:
    """`{name: value}` of a variable that is set. Raises ConfigError where it holds no number."""
    told = environment.get(PREFIX + name.upper(), "").strip()
    if not told:
        return {}
    try:
        return {name: kind(told)}
    except ValueError:
        raise ConfigError(f"{PREFIX}{name.upper()} is no number", hint="set it to a number, or unset it") from None


def ask(endpoint: Endpoint, questions: Sequence[Question]) -> list[Reply]:
    """One reply for each question, in order. Raises MissingExtra without httpx, ConfigError for an odd key."""
    httpx, headers = _httpx(), _headers(endpoint)
    line = _Line(httpx, endpoint, headers, list(questions))
    with ThreadPoolExecutor(1, "judge") as pool:  # in this thread the caller may have a loop of its own
        done = pool.submit(lambda: asyncio.run(line.run()))
        try:
            return done.result()
        except BaseException:
            line.stop()
            raise


def _httpx() -> ModuleType:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("httpx is not installed", hint="pip install 'corpusforge[verify]'") from None
    return httpx


@cache
def _certificates() -> ssl.SSLContext:
    """What HTTPS is checked against; a third of a second to make."""
    return _httpx().create_ssl_context()  # type: ignore[no-any-return]


def _headers(endpoint: Endpoint) -> dict[str, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    key = os.environ.get(endpoint.key_env, "").strip()
    if not key.isascii() or not key.isprintable():
        raise ConfigError(f"the key in {endpoint.key_env} is no key", hint="it holds what no header may hold")
    return headers | ({"Authorization": f"Bearer {key}"} if key else {})


class _Line:
    """Questions that wait for the endpoint, and the replies that are there."""

    def __init__(
        self, httpx: ModuleType, endpoint: Endpoint, headers: Mapping[str, str], waiting: list[Question]
    ) -> None:
        self.httpx, self.endpoint, self.headers, self.waiting = httpx, endpoint, headers, waiting
        self.replies: list[Reply] = [Reply(fault="unreachable")] * len(waiting)
        self.numbers = iter(range(len(waiting)))
        self.task: asyncio.Task[Any] | None = None
        self.silent = 0  # questions in a row for which nothing answered at all

    def stop(self) -> None:
        """End what is under way; for another thread."""
        if self.task is not None:
            self.task.get_loop().call_soon_threadsafe(self.task.cancel)

    async def run(self) -> list[Reply]:
        """All replies."""
        self.task = asyncio.current_task()
        most = self.endpoint.concurrency
        own = not _is_here(self.endpoint.url)  # a proxy has no business with this machine
        limits = self.httpx.Limits(max_connections=most)
        made = {"timeout": self.endpoint.timeout, "limits": limits, "trust_env": own, "verify": _certificates()}
        async with self.httpx.AsyncClient(**made) as client:
            await asyncio.gather(*(self._work(client) for _ in range(min(most, len(self.waiting)))))
        return self.replies

    async def _work(self, client: httpx.AsyncClient) -> None:
        for number in self.numbers:
            if self.silent >= self.endpoint.concurrency:
                return  # nobody is there: what waits stays unreachable
            self.replies[number] = await self._asked(client, self.waiting[number])

    async def _asked(self, client: httpx.AsyncClient, question: Question) -> Reply:
        body = self._body(question)
        answered = False
        for attempt in range(self.endpoint.attempts):
            wait = min(self.endpoint.backoff * 2**attempt, _LONGEST_WAIT)
            try:
                async with asyncio.timeout(self.endpoint.timeout):
                    status, asked, data = await self._sent(client, body)
            except (self.httpx.HTTPError, self.httpx.InvalidURL, OSError, TimeoutError):
                status, asked, data = 0, None, b""
            if status and status not in _AGAIN:
                self.silent = 0
                return read(data) if status == 200 else Reply(fault="refused")
            answered = answered or status > 0
            if attempt + 1 < self.endpoint.attempts:
                await asyncio.sleep(wait if asked is None else min(asked, _LONGEST_WAIT))
        self.silent = 0 if answered else self.silent + 1
        return Reply(fault="unreachable")

    def _body(self, question: Question) -> bytes:
        told: dict[str, Any] = {
            "model": self.endpoint.model,
            "messages": question.messages,
            "max_tokens": self.endpoint.max_tokens,
            "temperature": 0,
            "seed": 0,
            "stream": False,
        }
        if question.schema is not None:
            schema = {"name": "judgement", "strict": True, "schema": question.schema}
            told["response_format"] = {"type": "json_schema", "json_schema": schema}
        return json.dumps(told).encode()

    async def _sent(self, client: httpx.AsyncClient, body: bytes) -> tuple[int, float | None, bytes]:
        """Status, seconds that the server asks to wait, and the body as far as it is read."""
        url = self.endpoint.url.rstrip("/") + "/chat/completions"
        data = bytearray()
        async with client.stream("POST", url, content=body, headers=self.headers) as response:
            if response.status_code == 200:
                async for chunk in response.aiter_raw():
                    data += chunk
                    if len(data) > _LARGEST:
                        break
            asked = response.headers.get("retry-after", "")
        seconds = float(asked) if asked.isascii() and asked.isdigit() else None
        return response.status_code, seconds, bytes(data)


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def read(data: bytes) -> Reply:
    """The text of a response of chat completions. What its reasoning is apart from the text is not read."""
    try:
        choice = json.loads(data)["choices"][0]
        text, reason = choice["message"]["content"], choice.get("finish_reason")
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError):
        return Reply(fault="unreadable_reply")
    if reason in ("length", "content_filter"):
        return Reply(fault="cut")  # "Score: 1" may be the beginning of 10
    return Reply(text) if isinstance(text, str) else Reply(fault="unparsable")
