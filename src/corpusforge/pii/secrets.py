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
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_B: Final = r"(?<![A-Za-z0-9_\-])"
_E: Final = r"(?![A-Za-z0-9_\-])"


@dataclass(frozen=True)
class SecretRule:
    """A named pattern. `group` is the part that is the secret; `random` asks for a value that looks random.

    `strong` asks for one as a person or a program makes them who wants nobody to guess it.
    """

    entity: str
    pattern: re.Pattern[str]
    group: int = 0
    random: bool = False
    strong: bool = False


def _rule(entity: str, pattern: str, group: int = 0, random: bool = False, strong: bool = False) -> SecretRule:
    return SecretRule(entity, re.compile(pattern), group, random, strong)


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
    _rule("SECRET_GITLAB_TOKEN", _B + r"(?:gl(?:pat|dt|rt|ft|soat|ptt|oas)-|GR1348941)[A-Za-z0-9_\-]{20,64}" + _E),
    _rule("SECRET_GITLAB_TOKEN", _B + r"(?:glcbt-[A-Za-z0-9_\-]{20,64}|glimt-[A-Za-z0-9_\-]{25})" + _E),
    _rule("SECRET_SLACK_TOKEN", _B + r"xox[abeoprs]-(?:[A-Za-z0-9]{1,64}-){1,5}[A-Za-z0-9]{8,64}" + _E),
    _rule("SECRET_SLACK_TOKEN", r"hooks\.slack\.com/services/(T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{16,})", 1),
    _rule("SECRET_GOOGLE_KEY", _B + r"AIza[A-Za-z0-9_\-]{35}" + _E),
    _rule("SECRET_STRIPE_KEY", _B + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,128}" + _E),
    _rule("SECRET_HF_TOKEN", _B + r"hf_[A-Za-z]{30,40}" + _E),
    _rule("SECRET_NPM_TOKEN", _B + r"npm_[A-Za-z0-9]{36}" + _E),
    _rule("SECRET_AZURE_KEY", r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{42,86}={1,2})", 1),
    _rule("SECRET_TWILIO_KEY", _B + r"(?:AC|SK)(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{32}" + _E),
    _rule("SECRET_SENDGRID_KEY", _B + r"SG\.[A-Za-z0-9_\-]{22}\.[A-Za-z0-9_\-]{43}" + _E),
    _rule("SECRET_MAILCHIMP_KEY", _B + r"(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{32}-us\d{1,2}" + _E),
    _rule("SECRET_MAILGUN_KEY", _B + r"key-(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{32}" + _E),
    _rule("SECRET_SQUARE_TOKEN", _B + r"(?:sq0csp-[A-Za-z0-9_\-]{43}|sq0atp-[A-Za-z0-9_\-]{22})" + _E),
    _rule(
        "SECRET_DISCORD_TOKEN",
        _B + r"[MNO](?=\w*\d)[A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9][A-Za-z0-9_\-]{26,37}" + _E,
    ),
    _rule("SECRET_TELEGRAM_TOKEN", r"(?:(?<=bot)|(?<![A-Za-z0-9_\-.:]))\d{8,10}:AA[A-Za-z0-9_\-]{33}" + _E),
    _rule("SECRET_DIGITALOCEAN_TOKEN", _B + r"do[opr]_v1_[0-9a-f]{64}" + _E),
    _rule("SECRET_DATABRICKS_TOKEN", _B + r"dapi[0-9a-f]{32}(?:-\d)?" + _E),
    _rule("SECRET_SHOPIFY_TOKEN", _B + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}" + _E),
    _rule("SECRET_PYPI_TOKEN", _B + r"pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)[A-Za-z0-9_\-]{40,400}" + _E),
    _rule("SECRET_DOCKER_TOKEN", _B + r"dckr_(?:pat|oat)_[A-Za-z0-9_\-]{27,40}" + _E),
    _rule("SECRET_CLOUDFLARE_TOKEN", _B + r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,200}" + _E),
    _rule("SECRET_ARTIFACTORY_KEY", _B + r"AKCp[A-Za-z0-9]{69}" + _E),
    _rule("SECRET_JWT", _B + r"eyJ[A-Za-z0-9_\-]{8,4000}\.eyJ[A-Za-z0-9_\-]{8,8000}\.[A-Za-z0-9_\-]{8,2000}" + _E),
    _rule(
        "SECRET_URL_PASSWORD",
        r"\b[A-Za-z][A-Za-z0-9+.\-]{1,20}://[^\s/:@\"'<>]{0,80}:([^\s/\"'<>]{3,120}?)@(?![^\s/\"'<>,;@]{1,80}@)",
        1,
    ),
    _rule(
        "SECRET_ASSIGNMENT",
        r"(?i)(?:api[_\-]?key|apikey|secret(?:[_\-]?(?:access[_\-]?)?key)?|access[_\-]?token|auth[_\-]?token|bearer"
        r"|client[_\-]?secret|passw(?:or)?d|private[_\-]?key|token)[\"']?"
        r"[ \t]{0,8}(?::=|=>|=|:|[ \t])[ \t]{0,8}[\"']?([A-Za-z0-9+/_\-.~]{16,200}={0,2})(?![A-Za-z0-9+/_\-.~(\[])",
        1,
        random=True,
    ),
    _rule(
        "SECRET_ASSIGNMENT",
        r"(?i)(?:passw(?:or)?d|passphrase|pwd|secret)[a-z0-9_\-]{0,16}[\"']?"
        r"[ \t]{0,4}(?::=|=>|=|:)[ \t]{0,4}([\"'])([!#&(-;=?-z|~]{8,64})\1",
        2,
        strong=True,
    ),
)
ENTITIES: Final = tuple(dict.fromkeys(rule.entity for rule in RULES))
# A text in which none of these occurs holds no secret that the rules know. In ASCII: `\w` makes such a search slow.
TRIGGER: Final = (
    r"PRIVATE KEY|A(?:KIA|SIA|IDA|ROA)[A-Z0-9]{16}|sk-[A-Za-z0-9_\-]{20}|gh[pousr]_[A-Za-z0-9]|github_pat_"
    r"|gl(?:pat|dt|rt|ft|soat|ptt|oas|cbt|imt)-|GR1348941|xox[abeoprs]-|hooks\.slack|AIza|[rs]k_(?:live|test)_"
    r"|hf_[A-Za-z]{30}|npm_[A-Za-z0-9]{36}|eyJ[A-Za-z0-9_\-]{8}|(?:Account|SharedAccess)Key=|SG\.[A-Za-z0-9_\-]{22}\."
    r"|(?:AC|SK|key-)[0-9a-f]{32}|[0-9a-f]{32}-us[0-9]|sq0(?:csp|atp)-|[MNO][A-Za-z0-9_\-]{23,25}\.[A-Za-z0-9_\-]{6}\.[A-Za-z0-9]"
    r"|[0-9]{8}:AA[A-Za-z0-9_\-]{33}|do[opr]_v1_|dapi[0-9a-f]{32}|shp(?:at|ca|pa|ss)_|pypi-AgE|dckr_(?:pat|oat)_"
    r"|v1\.0-[0-9a-f]{24}-|AKCp[A-Za-z0-9]{69}|://[^\s/:@]{0,80}:[^\s/]{3,120}@"
    r"|(?i:passwd|password|passphrase|pwd|secret)[A-Za-z0-9_\-]{0,16}[\"']?[ \t]{0,4}[:=]>?=?[ \t]{0,4}"
    r"[\"'][!#&(-;=?-z|~]{8}"
    r"|(?i:key|secret|token|passwd|password|bearer)[\"']?[ \t]{0,8}[:= \t]>?=?[ \t]{0,8}[\"']?[A-Za-z0-9+/_\-.~]{16}"
)

_ASSIGNMENTS: Final = tuple(rule for rule in RULES if rule.entity == "SECRET_ASSIGNMENT")
_NAMING: Final = re.compile(r"(?i)key|secret|token|passw|passphrase|pwd|bearer")
_LONGEST_NAMED: Final = 256

_PLACEHOLDER: Final = re.compile(
    r"(?i)your|example|placeholder|changeme|xxxx|\.\.\.|<|insert|dummy|redacted|sample|my[_\-]"
)


def find(text: str, rules: Sequence[SecretRule] = RULES) -> list[tuple[int, int, str]]:
    """Start, end and entity of every secret in `text`."""
    found = []
    for rule in rules:
        for match in rule.pattern.finditer(text):
            value = match.group(rule.group)
            if rule.random and (not looks_random(value) or _is_hash(match.group(), value)):
                continue
            if rule.strong and not looks_strong(value):
                continue
            if rule.entity == "SECRET_URL_PASSWORD" and (_PLACEHOLDER.search(value) or value.lower() in _NO_PASSWORD):
                continue
            found.append((match.start(rule.group), match.end(rule.group), rule.entity))
    return found


def named(lead: str, text: str) -> list[tuple[int, int, str]]:
    """What the key of a JSON value (`password: `) says about the value, as an assignment in quotes would."""
    if not lead or len(text) > _LONGEST_NAMED or not _NAMING.search(lead):
        return []
    at = len(lead) + 1
    found = find(f'{lead}"{text}"', _ASSIGNMENTS)
    return [(start - at, end - at, name) for start, end, name in found if start >= at]


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


def looks_strong(value: str) -> bool:
    """Three of the four kinds of characters, at least 2.8 bits for each, and no placeholder or word of a program."""
    kinds = sum(bool(re.search(kind, value)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^\w]"))
    if kinds < 3 or _PLACEHOLDER.search(value) or _CODE.search(value):
        return False
    return entropy(value) >= 2.8


# A call, an index, a path, an address, a name with dots: what programs write where a password could stand.
_CODE: Final = re.compile(r"(?i)[(\[/\\]|\w\.\w|://|passw|secret|^\W|abc|123456|qwert")


def entropy(value: str) -> float:
    """Shannon entropy of the characters, in bits per character."""
    total = len(value)
    return -sum(n / total * math.log2(n / total) for n in Counter(value).values())
