"""The content id is what docs/content-id.md says: fixed vectors, and a second implementation that follows the page."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corpusforge.content import canonical_text, content_id

VECTORS = json.loads((Path(__file__).parent / "content_id.json").read_text(encoding="utf-8"))

# ----------------------------------------------------------------- the page, followed without corpusforge


class Real(float):
    """A number that has a fraction or an exponent."""


def compose(text):
    return unicodedata.normalize("NFC", text)


def written(value):
    """A JSON value as canonical text."""
    if isinstance(value, str):
        short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
        signs = (short.get(ord(c)) or (f"\\u{ord(c):04x}" if ord(c) < 32 else c) for c in compose(value))
        return '"' + "".join(signs) + '"'
    if isinstance(value, dict):
        names = {name: compose(name) for name in value}
        if len(set(names.values())) < len(names):
            return "{" + ",".join(f"{bare(name)}:{written(value[name])}" for name in sorted(value)) + "}"
        pairs = sorted((composed, value[name]) for name, composed in names.items())
        return "{" + ",".join(f"{bare(name)}:{written(inner)}" for name, inner in pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, float):
        return real(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def bare(name):
    """A key, which is composed already or must stay as it is."""
    return json.dumps(name, ensure_ascii=False)


def real(value):
    """Shortest digits that give the double back: `%.{n}e` with the smallest n."""
    shortest = next(s for s in (f"{value:.{n}e}" for n in range(17)) if float(s) == value)
    mantissa, _, exponent = shortest.partition("e")
    sign, digits, at = "-" * mantissa.startswith("-"), mantissa.lstrip("-").replace(".", ""), int(exponent)
    if value == 0:
        return sign + "0.0"
    if not -4 <= at < 16:
        point = f"{digits[0]}.{digits[1:]}" if digits[1:] else digits
        return f"{sign}{point}e{'-' if at < 0 else '+'}{abs(at):02d}"
    if at < 0:
        return f"{sign}0.{'0' * (-at - 1)}{digits}"
    whole = digits.ljust(at + 1, "0")
    return f"{sign}{whole[: at + 1]}.{whole[at + 1 :] or '0'}"


def read(text):
    return json.loads(text, parse_float=Real)


def page(row):
    """The canonical text of a row."""
    content = {"kind": row["kind"]}
    for name in ("messages", "chosen", "rejected"):
        if row.get(name):
            content[name] = [
                {k: read(v) if k in ("parts", "tool_calls", "extra") else v for k, v in m.items() if v is not None}
                for m in row[name]
            ]
    for name in ("rating", "verifier"):
        has = {k: v for k, v in (row.get(name) or {}).items() if v is not None}
        if "spec" in has:
            has["spec"] = read(has["spec"])
        if has:
            content[name] = has
    if row.get("tools"):
        content["tools"] = read(row["tools"])
    if row.get("images"):
        content["images"] = [
            hashlib.blake2b(i["bytes"], digest_size=16).hexdigest() if i["bytes"] else i["path"] for i in row["images"]
        ]
    return written(content)


# ----------------------------------------------------------------- tests

TEXT = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["\n\u0303", "e\u0301", "\u00e9", "\u0344"])
LITERAL = st.sampled_from(
    ["1e16", "1E-7", "123456789012345678901", "-0", "-0.0", "1.50", "0.00001", "9007199254740993.0"]
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = (
    st.recursive(
        st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=8,
    ).map(json.dumps)
    | LITERAL
)
MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.none() | TEXT, "content": st.none() | TEXT}, optional={"name": st.none() | TEXT, "extra": JSON}
    ),
    max_size=3,
)
ROWS = st.fixed_dictionaries(
    {"kind": st.sampled_from(["sft", "task"]), "messages": MESSAGES},
    optional={
        "chosen": st.none() | MESSAGES,
        "tools": st.none() | JSON,
        "rating": st.fixed_dictionaries({"value": st.none() | FLOATS}),
        "verifier": st.fixed_dictionaries({"kind": st.none() | TEXT, "spec": st.none() | JSON}),
        "images": st.lists(
            st.fixed_dictionaries({"bytes": st.none() | st.binary(max_size=3), "path": TEXT}), max_size=2
        ),
    },
)


@pytest.mark.parametrize("vector", VECTORS, ids=[v["name"].replace(" ", "_") for v in VECTORS])
def test_fixed_vectors(vector):
    """Written by hand from the page, hashed by b2sum: these change only with the page."""
    assert canonical_text(vector["row"]).decode() == vector["text"] == page(vector["row"])
    assert content_id(vector["row"]) == vector["id"]


@given(ROWS)
@example({"kind": "sft", "messages": [], "tools": '{"\u00e9":1,"e\u0301":{"e\u0301":2}}'})
def test_the_page_followed_by_hand_gives_the_same_text(row):
    assert canonical_text(row).decode() == page(row)


def test_images_count_by_their_bytes():
    one, other = ({"kind": "sft", "images": [{"bytes": b"1", "path": path}]} for path in ("a", "b"))
    assert content_id(one) == content_id(other) != content_id({"kind": "sft", "images": [{"bytes": b"2", "path": "a"}]})
