"""Strategies for records of any shape that hold any JSON, where anything can stand."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

ODD_TEXTS = (
    "",
    " ",
    "null",
    "NA",
    "NaN",
    "None",
    "true",
    "0042",
    "1e5",
    "\0",
    "\ufeff",
    "\r",
    "\r\n",
    "a\u2028b",
    "\x85",
)
ODD_NUMBERS = (
    0,
    -1,
    2**53 + 1,
    2**63,
    2**64 - 1,
    2**64 + 1,
    -(2**63) - 1,
    10**30,
    0.1,
    -0.0,
    5e-324,
    1.7976931348623157e308,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(ODD_TEXTS)
NUMBER = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(ODD_NUMBERS)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
# Names that no shape and no provenance reads.
NAME = TEXT.map(lambda text: f"x{text}") | st.sampled_from(
    ("", " ", "0", "a.b", "a[0]", "$", "Ä", "\0", "__index_level_0__")
)
UNKNOWN = st.dictionaries(NAME, JSON, max_size=3)
ID = st.none() | TEXT | st.integers()


def _call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = st.lists(st.builds(_call, TEXT.filter(bool), OBJECT), min_size=1, max_size=2)
PARTS = st.lists(st.builds(lambda text: {"type": "text", "text": text}, TEXT), min_size=1, max_size=2)


def _turn(role: str, content: Any, calls: Any, unknown: dict[str, Any]) -> dict[str, Any]:
    made = {"role": role, "content": content, **unknown}
    return made | {"tool_calls": calls} if calls else made


TURN = st.builds(
    _turn, st.sampled_from(("user", "assistant", "system", "tool", "critic")), TEXT | PARTS, st.none() | CALLS, UNKNOWN
)
BODY = st.one_of(
    st.builds(lambda text: {"text": text}, TEXT | st.none()),
    st.builds(lambda turns: {"messages": turns}, st.lists(TURN, max_size=3)),
    st.builds(lambda asked, said: {"prompt": asked, "completion": said}, TEXT, TEXT),
    st.builds(
        lambda asked, kind, spec: {"prompt": asked, "verifier": {**spec, "kind": f"k{kind}"}}, TEXT, TEXT, UNKNOWN
    ),
)


def _record(id: Any, body: dict[str, Any], unknown: dict[str, Any]) -> dict[str, Any]:
    return ({"id": id} if id is not None else {}) | body | unknown


RECORD = st.builds(_record, ID, BODY, UNKNOWN)
"""A record whose shape is clear: nothing in it may change on the way, but for the documented changes of form."""
