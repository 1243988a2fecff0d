"""Triage never passes over a row in which something would be found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.pii.context import View
from corpusforge.pii.recognisers import ALL, find
from corpusforge.pii.triage import triage

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
]
FRAGMENTS = st.sampled_from([*PERSONAL, *MORE, "words", "谢", "12", "@", "1.2", "\n"])


@given(st.lists(st.lists(FRAGMENTS, max_size=4), min_size=1, max_size=4))
def test_masks_cover_every_finding(texts):
    joined = [" ".join(parts) for parts in texts]
    masks = triage(table([row(i, text) for i, text in enumerate(joined)]))
    for text, mask in zip(joined, masks.tolist(), strict=True):
        assert find(View(text), mask) == find(View(text), ALL)


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
        row(8, "clean"),
    ]
    assert [mask > 0 for mask in triage(table(rows)).tolist()] == [True] * 7 + [False]
