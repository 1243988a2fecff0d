"""Secrets: keys of the large providers, tokens, private keys, passwords in URLs, high-entropy assignments.

Each rule is a regular expression over the form that the provider documents; assignments (`api_key = "…"`) also need
a value that looks random, so that `api_key = "your-key-here"`, a hash or a sentence about keys stays as it is.

    export AWS_ACCESS_KEY_ID=AKIA…          SECRET_AWS_KEY
    postgres://demo:s3cret@db/app           SECRET_URL_PASSWORD (the password only)
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final

_B: Final = r"(?<![A-Za-z0-9_\-])"
_E: Final = r"(?![A-Za-z0-9_\-])"


@dataclass(frozen=True)
class SecretRule:
    """A named pattern. `group` is the part that is the secret; `random` asks for a value that looks random."""

    entity: str
    pattern: re.Pattern[str]
    group: int = 0
    random: bool = False


def _rule(entity: str, pattern: str, group: int = 0, random: bool = False) -> SecretRule:
    return SecretRule(entity, re.compile(pattern), group, random)


RULES: Final = (
    _rule(
        "SECRET_PRIVATE_KEY",
        r"-----BEGIN (?:[A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----[\s\S]{1,20000}?"
        r"(?:-----END (?:[A-Z]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _rule("SECRET_AWS_KEY", _B + r"(?:AKIA|ASIA|AIDA|AROA)[A-Z0-9]{16}" + _E),
    _rule("SECRET_ANTHROPIC_KEY", _B + r"sk-ant-[A-Za-z0-9_\-]{20,200}" + _E),
    _rule("SECRET_OPENAI_KEY", _B + r"sk-(?:proj-|svcacct-|admin-)?(?=[A-Za-z_\-]*\d)[A-Za-z0-9_\-]{20,200}" + _E),
    _rule("SECRET_GITHUB_TOKEN", _B + r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})" + _E),
    _rule("SECRET_GITLAB_TOKEN", _B + r"gl(?:pat|dt|rt)-[A-Za-z0-9_\-]{20,64}" + _E),
    _rule("SECRET_SLACK_TOKEN", _B + r"xox[abeoprs]-(?:[A-Za-z0-9]{1,64}-){1,5}[A-Za-z0-9]{8,64}" + _E),
    _rule("SECRET_SLACK_TOKEN", r"hooks\.slack\.com/services/(T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,})", 1),
    _rule("SECRET_GOOGLE_KEY", _B + r"AIza[A-Za-z0-9_\-]{35}" + _E),
    _rule("SECRET_STRIPE_KEY", _B + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,128}" + _E),
    _rule("SECRET_HF_TOKEN", _B + r"hf_[A-Za-z]{30,40}" + _E),
    _rule("SECRET_NPM_TOKEN", _B + r"npm_[A-Za-z0-9]{36}" + _E),
    _rule("SECRET_JWT", _B + r"eyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,8000}\.[A-Za-z0-9_\-]{8,2000}" + _E),
    _rule("SECRET_URL_PASSWORD", r"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s/:@\"'<>]{0,80}:([^\s/@\"'<>]{3,120})@", 1),
    _rule(
        "SECRET_ASSIGNMENT",
        r"(?i)(?:api[_\-]?key|apikey|secret(?:[_\-]?(?:access[_\-]?)?key)?|access[_\-]?token|auth[_\-]?token|bearer"
        r"|client[_\-]?secret|passw(?:or)?d|private[_\-]?key|token)[\"']?"
        r"[ \t]{0,8}(?::=|=>|=|:|[ \t])[ \t]{0,8}[\"']?([A-Za-z0-9+/_\-.~]{16,200}={0,2})(?![A-Za-z0-9+/_\-.~(\[])",
        1,
        random=True,
    ),
)
ENTITIES: Final = tuple(dict.fromkeys(rule.entity for rule in RULES))
# A text in which none of these occurs holds no secret that the rules know.
TRIGGER: Final = (
    r"PRIVATE KEY|A(?:KIA|SIA|IDA|ROA)[A-Z0-9]{16}|sk-[A-Za-z]|gh[pousr]_[A-Za-z0-9]|github_pat_|gl(?:pat|dt|rt)-"
    r"|xox[abeoprs]-"
    r"|hooks\.slack|AIza|[rs]k_(?:live|test)_|hf_[A-Za-z]{30}|npm_[A-Za-z0-9]{36}|eyJ[A-Za-z0-9_\-]{8}"
    r"|://[^\s/:@]{0,80}:[^\s/@]{3,120}@"
    r"|(?i:key|secret|token|passwd|password|bearer)[\"']?[ \t]{0,8}[:= \t]>?=?[ \t]{0,8}[\"']?[A-Za-z0-9+/_\-.~]{16}"
)

_PLACEHOLDER: Final = re.compile(
    r"(?i)your|example|placeholder|changeme|xxxx|\.\.\.|<|insert|dummy|redacted|sample|my[_\-]"
)


def find(text: str) -> list[tuple[int, int, str]]:
    """Start, end and entity of every secret in `text`."""
    found = []
    for rule in RULES:
        for match in rule.pattern.finditer(text):
            value = match.group(rule.group)
            if rule.random and (not looks_random(value) or _is_hash(match.group(), value)):
                continue
            if rule.entity == "SECRET_URL_PASSWORD" and (_PLACEHOLDER.search(value) or value.lower() in _NO_PASSWORD):
                continue
            found.append((match.start(rule.group), match.end(rule.group), rule.entity))
    return found


def _is_hash(whole: str, value: str) -> bool:
    """A password that is given as its hash, in hexadecimal of a usual length."""
    return len(value) in (32, 40, 56, 64, 96, 128) and "passw" in whole.lower() and not re.search("[^0-9a-fA-F]", value)


_NO_PASSWORD: Final = frozenset({"pass", "password", "pwd", "passwd", "secret", "user", "token"})


def looks_random(value: str) -> bool:
    """Letters and digits mixed, at least 3.3 bits per character, and no placeholder, path, or dotted name."""
    letters = sum(character.isalpha() for character in value)
    digits = sum(character.isdigit() for character in value)
    if letters < 4 or digits < 3 or _PLACEHOLDER.search(value) or value.count("/") > 2 or value.count(".") > 1:
        return False
    return entropy(value) >= 3.3


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
