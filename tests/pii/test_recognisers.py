"""What is found, and what only looks like it. Every value here is invented."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import polars as pl
import pytest

from corpusforge.pii import recognisers
from corpusforge.pii.context import View
from corpusforge.pii.presidio import MODULES, analyse
from corpusforge.pii.recognisers import BY_NAME, PRESIDIO, TRIGGERS, find


def found(text, **options):
    return [(span.entity, text[span.start : span.end]) for span in find(View(text), **options)]


@pytest.mark.parametrize(
    ("text", "entity", "value"),
    [
        ("write to zoe.quill@corp.com!", "EMAIL_ADDRESS", "zoe.quill@corp.com"),
        ("<mailto:zoe@corp.com>", "EMAIL_ADDRESS", "zoe@corp.com"),
        ("https://x.com/?to=zoe@corp.com", "EMAIL_ADDRESS", "zoe@corp.com"),
        ("联系zoe@corp.com谢谢", "EMAIL_ADDRESS", "zoe@corp.com"),
        ("zo\u00ade@\u200bcorp.com", "EMAIL_ADDRESS", "zo\u00ade@\u200bcorp.com"),
        ("call (212) 456-7890", "PHONE_NUMBER", "(212) 456-7890"),
        ("my number: +49 171 2345678", "PHONE_NUMBER", "+49 171 2345678"),
        ("You can call 73 448 266", "PHONE_NUMBER", "73 448 266"),
        ("电话２１２-４５６-７８９０", "PHONE_NUMBER", "２１２-４５６-７８９０"),
        ("pay with 4111 1111 1111 1111", "CREDIT_CARD", "4111 1111 1111 1111"),
        ("IBAN DE89 3704 0044 0532 0130 00", "IBAN_CODE", "DE89 3704 0044 0532 0130 00"),
        ("my SSN is 219-09-9998", "US_SSN", "219-09-9998"),
        ("from host 5.61.32.77 today", "IP_ADDRESS", "5.61.32.77"),
        ("address 2a02:908:1a4::77 was", "IP_ADDRESS", "2a02:908:1a4::77"),
        ("mac 3c:22:fb:7a:10:9e", "MAC_ADDRESS", "3c:22:fb:7a:10:9e"),
        ("key AKIAQ3EGRPJ7XK2M4TBD", "SECRET_AWS_KEY", "AKIAQ3EGRPJ7XK2M4TBD"),
        ("mysql://joe:hunter2x@db/app", "SECRET_URL_PASSWORD", "hunter2x"),
        ('api_key = "q8Zr41LmXv90TbPw3KdY"', "SECRET_ASSIGNMENT", "q8Zr41LmXv90TbPw3KdY"),
    ],
)
def test_found(text, entity, value):
    assert found(text) == [(entity, value)]


@pytest.mark.parametrize(
    "text",
    [
        "job finished at 1735689600005 ms",
        "trace 99173568960000577 done",
        "Upgraded from 2.31.4.7 to 2.31.5.0",
        "bind to 127.0.0.1:8080 or 192.168.1.20",
        "see section 5.61.32.77",
        "std::vector<int> v; using ns = a::b::c;",
        "x = a::b",
        "git clone git@git.corp.com:team/tool.git",
        "@app.route('/x')\ndef y(self): return self.z @ self.w",
        "ssh user@example.com uptime",
        "from 1990-2000 and 2023-01-15 to 15/02/2023",
        "she sold 16128-3294 = 12834 bales, 1 000 000 + 1 500 000",
        "0 1 0 1 1 1 1 0 1 1\n1 1 1 0 0 1 0 1 1 1",
        '{"product_id": "4794339885"}',
        "order number 2124567890",
        "if text in '0123456789': pass",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "data:image/gif;base64,R0lGODlhAQABAAAAACw=",
        "Where do I paste my api key?",
        'api_key = "your-api-key-goes-here"',
        "password: correct horse battery staple",
        "family 👩‍👧 picture, می‌خواهم بروم",
    ],
)
def test_only_looks_like_it(text):
    assert found(text) == []


def test_documentation_networks_count_when_asked():
    text = "Client address 203.0.113.77 was refused."
    assert found(text) == []
    assert found(text, documentation_is_real=True) == [("IP_ADDRESS", "203.0.113.77")]


def test_long_texts_give_the_findings_of_their_parts():
    part = "Nothing here at all, only words and words. " * 40
    text = f"{part}zoe@corp.com {part} call (212) 456-7890 {part}DE89 3704 0044 0532 0130 00"
    assert [value for _, value in found(text)] == ["zoe@corp.com", "(212) 456-7890", "DE89 3704 0044 0532 0130 00"]


def test_a_text_of_megabytes_takes_seconds():
    text = "1 2 3 4 5 6 7 8 9 " * 60_000 + "zoe@corp.com"
    assert found(text)[-1] == ("EMAIL_ADDRESS", "zoe@corp.com")


def test_a_long_number_takes_seconds():
    """It once took time with the square of its length: a minute for this one."""
    started = time.process_time()
    find(View("1" * 120_000))
    assert time.process_time() - started < 10


def test_thousands_of_findings_are_parted_at_once():
    """Each was once held against all others."""
    spans = [recognisers.Span(at, at + 3, "EMAIL_ADDRESS", 1.0, "x") for at in range(0, 60_000, 2)]
    started = time.process_time()
    assert len(recognisers.without_overlaps(spans)) == 15_000
    assert time.process_time() - started < 3


def test_triggers_hold_wherever_presidio_finds_something(shared):
    texts = [
        row["full_text"] for row in json.loads((shared / "data/presidio_synth_pii/generated_small.json").read_text())
    ]
    held = {group: pl.Series(texts).str.contains(pattern).to_list() for group, pattern in TRIGGERS.items()}
    checked = 0
    for number, text in enumerate(texts):
        for entity in map(BY_NAME.get, PRESIDIO):
            for start, end, score in analyse(entity.recogniser, entity.name, text):
                place = View(text).place(start, end)
                if score > 0.3 and entity.plausible(View(text), start, end, place, False):
                    assert held[entity.group][number], (entity.name, number)
                    checked += 1
    assert checked > 10


def test_a_recogniser_that_raises_is_named_and_the_text_is_not(monkeypatch):
    def broken(*_):
        raise ValueError("zoe@corp.com")

    monkeypatch.setattr(recognisers, "analyse", broken)
    with pytest.raises(recognisers.RecogniserFailed, match=r"^EmailRecognizer$") as error:
        find(View("zoe@corp.com"))
    assert error.value.__cause__ is None


def test_recognisers_load_no_spacy_no_torch_and_leave_presidio_whole():
    code = (
        "import sys\nfrom corpusforge.pii.presidio import MODULES, recogniser\n"
        "[recogniser(name) for name in MODULES]\n"
        "assert not {'spacy', 'torch', 'transformers', 'presidio_analyzer'} & set(sys.modules)\n"
        "from presidio_analyzer import PatternRecognizer\n"
        "assert isinstance(recogniser('EmailRecognizer'), PatternRecognizer)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_recogniser_opens_a_connection(monkeypatch):
    """Neither a connection nor a name to be looked up, also where the caller would swallow the refusal."""
    asked = []

    def refuse(*_, **__):
        asked.append("network")
        raise OSError("no network")

    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    text = "zoe@corp.co.uk 212-456-7890 4111 1111 1111 1111 5.61.32.77"
    found = [one for name in MODULES for one in analyse(name, "X", text)]
    assert found
    assert asked == []
