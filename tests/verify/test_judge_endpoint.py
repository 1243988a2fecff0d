"""The endpoint of a judge: what is sent, how often and for how long; a bad one costs verdicts, and nothing else."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from typing import Any

import pytest
from tests.verify.judges import ANYHOW, PAIR, TASK, completion, server

from corpusforge.errors import ConfigError
from corpusforge.verify.judge import Endpoint, Judge, Trust, grade

GREAT = "Score: 10"


def rules(judge: Judge, count: int = 1) -> list[str]:
    return [verdict.rule for verdict in grade([TASK] * count, ["Hello!"] * count, judge)]


def test_requests_are_deterministic_and_bounded() -> None:
    with server(lambda _: GREAT) as there:
        rules(there.judge(max_tokens=77))
    body = there.bodies[0]
    assert {name: body[name] for name in ("model", "temperature", "seed", "max_tokens", "stream")} == {
        "model": "m",
        "temperature": 0,
        "seed": 0,
        "max_tokens": 77,
        "stream": False,
    }
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert "response_format" not in body


def test_the_same_question_is_the_same_bytes_and_begins_like_others() -> None:
    with server(lambda _: GREAT) as there:
        grade([TASK] * 3, ["Hello!", "Hello!", "Bye!"], there.judge(concurrency=1))
    assert there.bodies[0] == there.bodies[1] != there.bodies[2]
    assert len({body["messages"][0]["content"] for body in there.bodies}) == 1


def test_a_reply_may_be_held_to_a_schema() -> None:
    def say(body: dict[str, Any]) -> str:
        (field,) = body["response_format"]["json_schema"]["schema"]["properties"]
        return '{"score": 9}' if field == "score" else '{"better": "A"}'

    with server(say) as there:
        graded, paired = grade([TASK, PAIR], ["Hello!", "4"], there.judge(replies="json", concurrency=1))
    assert (graded.outcome, paired.rule) == ("pass", "judge.order")
    schema = there.bodies[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"] == {"score": {"type": "integer", "enum": list(range(1, 11))}}


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_what_may_pass_is_tried_again(status: int) -> None:
    def say(_: Any) -> Any:
        return (status, {"Retry-After": "0"}, b"") if len(there.bodies) < 3 else GREAT

    with server(say) as there:
        assert rules(there.judge(attempts=3)) == ["judge.grade"]
    assert len(there.bodies) == 3


def test_attempts_end() -> None:
    with server(lambda _: (503, {}, b"")) as there:
        assert rules(there.judge(attempts=2), 5) == ["judge.unreachable"] * 5
    assert len(there.bodies) == 10


@pytest.mark.parametrize("status", [400, 401, 404, 302])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with server(lambda _: (status, {"Location": "http://127.0.0.1:9/"}, completion(GREAT))) as there:
        assert rules(there.judge()) == ["judge.refused"]
    assert len(there.bodies) == 1


def test_waits_grow_and_the_server_may_ask_for_one() -> None:
    with server(lambda _: (429, {}, b"")) as there:
        began = time.monotonic()
        rules(there.judge(attempts=3, backoff=0.1))
        assert time.monotonic() - began >= 0.3
    with server(lambda _: (429, {"Retry-After": "1"}, b"")) as there:
        began = time.monotonic()
        rules(there.judge(attempts=2))
        assert time.monotonic() - began >= 1


def test_nobody_there_is_unreachable_and_not_asked_for_ever() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    began = time.monotonic()
    judge = Judge(Endpoint(url, "m", attempts=2, backoff=0.1, concurrency=2), ANYHOW)
    assert rules(judge, 500) == ["judge.unreachable"] * 500
    assert time.monotonic() - began < 10


def test_a_server_that_drips_is_left() -> None:
    """Each byte comes in time, all of them never do."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(5)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        began = time.monotonic()

        def drip() -> None:
            there, _ = listening.accept()
            with there:
                try:
                    there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                    for _ in range(100):
                        there.sendall(b" ")
                        time.sleep(0.1)
                except OSError:
                    pass

        thread = threading.Thread(target=drip)
        thread.start()
        assert rules(Judge(Endpoint(url, "m", attempts=1, timeout=0.5), ANYHOW)) == ["judge.unreachable"]
        assert time.monotonic() - began < 5
        thread.join()


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "unreadable_reply"),
        (b"<html>", "unreadable_reply"),
        (b"\xff\xfe", "unreadable_reply"),
        (b"[" * 100_000, "unreadable_reply"),
        (b'{"choices": []}', "unreadable_reply"),
        (b'{"choices": [{"message": null}]}', "unreadable_reply"),
        (b'{"error": {"message": "Score: 10"}}', "unreadable_reply"),
        (b"x" * (5 << 20), "unreadable_reply"),
        (completion(None), "unparsable"),
        (completion([{"text": GREAT}]), "unparsable"),
        (completion("Score: 1", finish="length"), "cut"),
        (completion("Score: 10", finish="content_filter"), "cut"),
        (b'{"choices": [{"message": {"content": "", "reasoning_content": "Score: 10"}}]}', "unparsable"),
    ],
)
def test_what_is_no_whole_reply_is_undecided(data: bytes, rule: str) -> None:
    with server(lambda _: (200, {}, data)) as there:
        assert rules(there.judge()) == [f"judge.{rule}"]


def test_no_more_requests_than_allowed_are_under_way() -> None:
    def say(_: Any) -> str:
        time.sleep(0.05)
        return GREAT

    with server(say) as there:
        assert rules(there.judge(concurrency=3), 12) == ["judge.grade"] * 12
    assert 1 < there.most <= 3


def test_verdicts_keep_the_order_of_the_completions() -> None:
    def say(body: dict[str, Any]) -> str:
        number = int(body["messages"][1]["content"].partition("number-")[2].partition("\n")[0])
        time.sleep(0.01 * (10 - number))
        return f"Score: {number}"

    with server(say) as there:
        verdicts = grade([TASK] * 10, [f"number-{n}" for n in range(1, 11)], there.judge())
    assert [round(9 * (verdict.score or 0)) + 1 for verdict in verdicts] == list(range(1, 11))


def test_a_loop_that_runs_already_is_no_hindrance() -> None:
    async def inside() -> list[str]:
        return rules(there.judge())

    with server(lambda _: GREAT) as there:
        assert asyncio.run(inside()) == ["judge.grade"]


def test_the_key_is_sent_and_neither_kept_nor_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-sesame")
    caplog.set_level(logging.DEBUG)
    with server(lambda _: GREAT) as there:
        judge = there.judge(key_env="MY_KEY")
        verdicts = grade([TASK], ["Hello, world!"], judge)
    assert there.headers[0]["Authorization"] == "Bearer sk-sesame"
    assert "sk-sesame" not in caplog.text + repr(judge) + repr(verdicts)
    assert "Hello" not in caplog.text + repr(verdicts)


def test_without_a_key_none_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CORPUSFORGE_JUDGE_KEY", raising=False)
    with server(lambda _: GREAT) as there:
        rules(there.judge())
    assert "Authorization" not in there.headers[0]


def test_a_key_that_no_header_may_hold_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CORPUSFORGE_JUDGE_KEY", "geheim\nX-Other: 1")
    with pytest.raises(ConfigError, match="CORPUSFORGE_JUDGE_KEY") as error:
        rules(Judge(Endpoint("http://127.0.0.1:9", "m"), ANYHOW))
    assert "geheim" not in str(error.value)


def test_a_proxy_is_not_told_what_stays_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with server(lambda _: GREAT) as there:
        assert rules(there.judge()) == ["judge.grade"]


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("", {}),
        ("127.0.0.1:8000", {}),
        ("file:///etc/passwd", {}),
        ("http://user:secret@example.org/v1", {}),
        ("http://example.org/v1?key=secret", {}),
        ("http://127.0.0.1/v1", {"model": ""}),
        ("http://127.0.0.1/v1", {"timeout": 0}),
        ("http://127.0.0.1/v1", {"attempts": 0}),
        ("http://127.0.0.1/v1", {"concurrency": 10_000}),
        ("http://127.0.0.1/v1", {"max_tokens": True}),
        ("http://127.0.0.1/v1", {"replies": "xml"}),
    ],
)
def test_settings_that_cannot_be_are_refused(url: str, more: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as error:
        Endpoint(url, **({"model": "m"} | more))
    assert "secret" not in str(error.value)


def test_settings_of_the_environment() -> None:
    told = {"URL": "http://127.0.0.1/v1", "MODEL": "m", "TIMEOUT": "5", "MAX_TOKENS": "9", "REPLIES": "json"}
    found = Endpoint.from_environment({f"CORPUSFORGE_JUDGE_{name}": value for name, value in told.items()})
    assert found == Endpoint("http://127.0.0.1/v1", "m", timeout=5.0, max_tokens=9, replies="json")
    with pytest.raises(ConfigError, match="CORPUSFORGE_JUDGE_TIMEOUT"):
        Endpoint.from_environment({f"CORPUSFORGE_JUDGE_{n}": v for n, v in (told | {"TIMEOUT": "soon"}).items()})
    with pytest.raises(ConfigError, match="unmeasured"):
        Trust.from_environment({"CORPUSFORGE_JUDGE_UNMEASURED": "please"})
