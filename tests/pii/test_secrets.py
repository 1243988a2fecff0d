"""Secrets: each provider's form, with a value that nobody was given, and what only looks like one.

Values are put together here from parts, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

import json
import re

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import row, table

from corpusforge.pii import secrets
from corpusforge.pii.context import View
from corpusforge.pii.recognisers import TRIGGERS, find
from corpusforge.stages.scrub import scrub

HEX = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
MIX = "Zq8Rr41LmXv90TbPw3KdYh7Ns2Gc5Jf6Qe1Uo4Ia9Vx0Wy8Bz3Ct7Dk5Em2Fn6"
VALUES = [
    ("SECRET_OPENAI_KEY", "use {}", "sk-" + "2" + MIX[:47]),
    ("SECRET_AZURE_KEY", "AccountName=x;AccountKey={};Endpoint", MIX + MIX[:22] + "=="),
    ("SECRET_TWILIO_KEY", "sid {}", "AC" + HEX),
    ("SECRET_SENDGRID_KEY", "use {}", f"SG.{MIX[:22]}.{MIX[:43]}"),
    ("SECRET_MAILCHIMP_KEY", "use {}", HEX + "-us12"),
    ("SECRET_MAILGUN_KEY", "use {}", "key-" + HEX),
    ("SECRET_SQUARE_TOKEN", "use {}", "sq0" + "csp-" + MIX[:43]),
    ("SECRET_DISCORD_TOKEN", "use {}", f"M{MIX[:23]}.{MIX[:6]}.{MIX[:27]}"),
    ("SECRET_TELEGRAM_TOKEN", "https://api.telegram.org/bot{}/getMe", "110201543:AA" + MIX[:33]),
    ("SECRET_DIGITALOCEAN_TOKEN", "use {}", "dop_" + "v1_" + HEX * 2),
    ("SECRET_DATABRICKS_TOKEN", "use {}", "da" + "pi" + HEX),
    ("SECRET_SHOPIFY_TOKEN", "use {}", "shp" + "at_" + HEX),
    ("SECRET_PYPI_TOKEN", "use {}", "pypi-" + "AgEIcHlwaS5vcmc" + MIX),
    ("SECRET_DOCKER_TOKEN", "use {}", "dckr_" + "pat_" + MIX[:27]),
    ("SECRET_CLOUDFLARE_TOKEN", "use {}", f"v1.0-{HEX[:24]}-{HEX * 4}"),
    ("SECRET_ARTIFACTORY_KEY", "use {}", "AKCp" + (MIX + MIX)[:69]),
    ("SECRET_GITLAB_TOKEN", "use {}", "GR" + "1348941" + MIX[:20]),
    ("SECRET_URL_PASSWORD", "https://joe:{}@corp.com/x", "hunter2x"),
    ("SECRET_URL_PASSWORD", "postgres://joe:{}@corp.com/x", "hun@ter@2x"),
    ("SECRET_URL_PASSWORD", "mongodb://joe:{}@one:1,joe@two:1", "hunter2x"),
    ("SECRET_ASSIGNMENT", 'password = "{}"', "Tr0ub4dor&3x"),
    ("SECRET_ASSIGNMENT", "PASSWORD_PROD = '{}'", "Tr0ub4dor&3x"),
]
LOOKING_AROUND = r"\(\?<?[=!](?:\[[^\]]*\]|\\.|[^()\[])*\)"  # what hypothesis would rather guess than make
ASCII = st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs"))


@pytest.mark.parametrize(("entity", "text", "value"), VALUES, ids=[f"{one[0]}-{n}" for n, one in enumerate(VALUES)])
def test_found(entity, text, value):
    text = text.format(value)
    assert [(one.entity, text[one.start : one.end]) for one in find(View(text))] == [(entity, value)]
    assert pl.Series([text]).str.contains(TRIGGERS["secret"]).to_list() == [True]


@pytest.mark.parametrize(
    "text",
    [
        f"md5 {HEX}",
        "key-value pairs and key-" + "a" * 32,
        "AC" + "a" * 32,
        'password = "your-password-here"',
        'password = "correct horse battery staple"',
        'password = "Password123!"',
        'secret = os.environ["APP_SECRET"]',
        'pwd = "C:\\Users\\Joe1"',
        'password_hash = "sha256.New()1"',
        "https://user:pass@example.com",
        "12345678:AAshort",
        "Version v1.0-beta",
    ],
)
def test_only_looks_like_it(text):
    assert [one for one in find(View(text)) if one.entity.startswith("SECRET")] == []


@pytest.mark.parametrize("number", range(len(secrets.RULES)), ids=[rule.entity for rule in secrets.RULES])
def test_no_rule_finds_what_the_trigger_passes_over(number):
    pattern = secrets.RULES[number].pattern
    made = re.compile(re.sub(LOOKING_AROUND, "", pattern.pattern), pattern.flags)

    @settings(max_examples=40)
    @given(st.from_regex(made, alphabet=ASCII))
    def passes(text):
        assert not secrets.find(text) or re.search(secrets.TRIGGER, text)

    passes()


def test_every_entity_is_in_the_list():
    assert {entity for entity, _, _ in VALUES} <= set(secrets.ENTITIES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", "Tr0ub4dor&3x"),
        ("api_key", MIX[:20]),
        ("x-api-key", MIX[:20]),
        ("clientSecret", MIX[:20]),
        ("Authorization", "Bearer " + MIX[:20]),
    ],
)
@pytest.mark.parametrize("packed", [0, 1, 2])
def test_a_key_of_json_names_a_secret(key, value, packed):
    """As the same assignment does in a text: the key stands outside of the value's own text."""
    text = json.dumps({key: value, "n": 1})
    for _ in range(packed):
        text = json.dumps({"arguments": text})
    after = scrub(table([row(1, text)]), key="public-demo").kept.to_pylist()[0]["messages"][0]["content"]
    assert after == text.replace(value.rpartition(" ")[2], "<SECRET_ASSIGNMENT>")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("password", "your-password-1A&"),
        ("password", "<SECRET_ASSIGNMENT>"),
        ("token", "tokenization"),
        ("id", MIX[:20]),
        ("api_key", "api_key_goes_here"),
        ("password", 'say "Tr0ub4dor&3x" to me'),
    ],
)
def test_a_key_of_json_names_no_secret(key, value):
    assert secrets.named(f"{key}: ", value) == []


def test_two_keys_of_an_object_never_become_one():
    """Tags are alike; as keys they are numbered, past those that the row has."""
    keys = [f"AKIA{MIX[:16].upper()}", f"AKIA{MIX[16:32].upper()}", "<SECRET_AWS_KEY_2>"]
    kept = scrub(table([row(1, "a", extra=json.dumps(dict.fromkeys(keys, keys[1])))]), key="public-demo").kept
    assert list(json.loads(kept["extra"][0].as_py())) == ["<SECRET_AWS_KEY>", "<SECRET_AWS_KEY_3>", keys[2]]
    assert set(json.loads(kept["extra"][0].as_py()).values()) == {"<SECRET_AWS_KEY>"}
