"""Pieces name every text of a row and where it stands."""

from __future__ import annotations

import json

from tests.rows import message, row, table

from corpusforge.text.pieces import pieces


def test_every_text_has_its_field() -> None:
    """Messages, answers, tool calls and verifier specs come with the name of their field."""
    calls = json.dumps([{"type": "function", "function": {"name": "f", "arguments": {"q": "a\nb"}}}])
    rows = [
        row(1, "ask", "tell"),
        row(
            2,
            kind="preference",
            messages=None,
            chosen=[message("assistant", "yes")],
            rejected=[message("assistant", "no")],
        ),
        row(3, messages=[message("assistant", None, tool_calls=calls)], verifier={"kind": "exact", "spec": "{}"}),
    ]
    found = pieces(table(rows))
    named = {(int(found.row[i]), found.field(i)) for i in range(len(found.row))}
    assert named == {
        (0, "messages[0].content"),
        (0, "messages[1].content"),
        (1, "chosen[0].content"),
        (1, "rejected[0].content"),
        (2, "messages[0].tool_calls"),
        (2, "verifier.spec"),
    }


def test_positions_survive_slices() -> None:
    """A slice of a table gives the pieces of its own rows."""
    rows = table([row(n, f"ask {n}", f"tell {n}") for n in range(4)])
    found = pieces(rows.slice(2, 1))
    assert found.text.to_pylist() == ["ask 2", "tell 2"]
    assert found.row.tolist() == [0, 0]
    assert found.message.tolist() == [0, 1]


def test_escaped_breaks_are_blank_at_the_same_offsets() -> None:
    """JSON's escaped white space does not glue words together, and moves nothing."""
    spec = json.dumps({"answer": "one\ntwo"})
    found = pieces(table([row(1, "ask", verifier={"kind": "exact", "spec": spec})]), ("verifier",))
    assert found.text.to_pylist() == [spec.replace("\\n", "  ")]
