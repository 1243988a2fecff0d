"""Triage never passes over a row in which something would be found."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.pii import addresses, ids, phones
from corpusforge.pii.context import View
from corpusforge.pii.leaves import leaves
from corpusforge.pii.recognisers import ALL, BITS, find
from corpusforge.pii.triage import triage

ADDRESS_TRIGGER = phones.python(addresses.TRIGGER)
ADDRESS_NEEDED = phones.python(addresses.NEEDED)
PERSONAL = ["zoe@corp.com", "(212) 456-7890", "call ２１２-４５６-７８９０", "zo\u00ade@\u200bcorp.com", "5.61.32.77"]
MORE = [
    "AKIAQ3EGRPJ7XK2M4TBD",
    "DE89 3704 0044 0532 0130 00",
    "4111 1111 1111 1111",
    "my ssn 219-09-9998",
    "at 44 Elm Street Apt. 7",
    "live at 7 Elm 9",
    "my BSN is 111222333",
    "529.982.247-25",
    "the corner of Elm and Oak",
    "44 Elm  Street",
    "on Main Street",
    "APO AE",
    "my BSN is",
]
FRAGMENTS = st.sampled_from([*PERSONAL, *MORE, "words", "谢", "12", "@", "1.2", "\n"])


@given(st.lists(st.lists(FRAGMENTS, max_size=4), min_size=1, max_size=4))
def test_masks_cover_every_finding(texts):
    joined = [" ".join(parts) for parts in texts]
    masks = triage(table([row(i, text) for i, text in enumerate(joined)]))
    for text, mask in zip(joined, masks.tolist(), strict=True):
        assert find(View(text), mask) == find(View(text), ALL)


@given(st.lists(st.lists(FRAGMENTS, max_size=4), min_size=2, max_size=3))
def test_a_trigger_counts_for_all_texts_of_its_row(texts):
    """Addresses are looked for in each text of a row in which one has the trigger, whichever has the digits."""
    joined = [" ".join(parts) or "a" for parts in texts]
    mask = int(triage(table([{**row(1, "a"), "messages": [message("user", text) for text in joined]}]))[0])
    asked = any(ADDRESS_TRIGGER.search(text) for text in joined)
    for text in joined:
        expected = find(View(text), (mask | BITS["address"]) if asked else mask)
        assert find(View(text), mask) == expected


@given(st.sampled_from(ids.KINDS).flatmap(lambda kind: st.from_regex(re.compile(kind.form, re.ASCII), fullmatch=True)))
def test_no_national_number_has_fewer_digits_than_triage_asks_for(value):
    assert sum(character.isdecimal() for character in value) >= ids.DIGITS


@given(st.lists(FRAGMENTS | st.text(alphabet="Elm Street 4,\n", max_size=12), max_size=6).map(" ".join))
def test_no_address_without_what_triage_asks_for(text):
    assert not addresses.find(text) or ADDRESS_NEEDED.search(text)


def test_every_text_column_is_looked_at():
    hidden = "zoe@corp.com"
    rows = [
        row(1, "a", extra='{"x":"zoe@corp.com"}'),
        row(2, "a", tools='[{"x":"zoe@corp.com"}]'),
        row(3, "a", verifier={"kind": "exact", "spec": '{"answer":"zoe@corp.com"}'}),
        row(4, "a", chosen=[message("assistant", hidden)], rejected=[message("assistant", "b")]),
        row(5, "a", rejected=[message("assistant", None, reasoning=hidden)]),
        {**row(6, "a"), "messages": [message("user", None, name=hidden)]},
        {**row(7, "a"), "messages": [message("user", None, tool_calls='[{"x":"zoe@corp.com"}]')]},
        row(8, "a", rating={"value": 1.0, "scale": None, "by": hidden}),
        {**row(9, "a"), "messages": [message("tool", "a", tool_call_id=hidden)]},
        row(10, "clean"),
    ]
    assert [mask > 0 for mask in triage(table(rows)).tolist()] == [True] * 9 + [False]


ESCAPED = st.sampled_from(
    ["call 212\u00a0456\u00a07890", 'password = "Tr0ub4dor&3x"', "live at\n7 Elm 9", "a\\/b", "\\ud83d", "C:\\Users"]
)


@given(st.lists(st.lists(FRAGMENTS | ESCAPED, max_size=4).map("".join), max_size=3), st.integers(1, 3))
def test_masks_cover_what_json_hides_by_escapes(strings, depth):
    """However deep strings are packed in others: `\\u0040` is an at sign, a backslash before a quote no part of it."""
    text = strings
    for _ in range(depth):
        text = json.dumps([text])
    text = text.replace("zoe@", "zoe\\u0040")
    one = table([row(1, text)])
    parts = leaves(one.to_pylist()[0])
    masks = triage(one).tolist()
    assert [find(View(leaf.text, leaf.lead), masks[0]) for leaf in parts] == [
        find(View(leaf.text, leaf.lead), ALL) for leaf in parts
    ]
