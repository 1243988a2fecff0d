"""answers: what looks like the gold without being it does not pass, whatever the kind (attacks/answers.toml)."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from corpusforge.verify import verify
from corpusforge.verify._verdict import Task

ROWS = tomllib.loads((Path(__file__).parent / "attacks/answers.toml").read_text(encoding="utf-8"))["attack"]
TOOLS = [{"name": "f", "parameters": {"type": "dict", "properties": {"a": {"type": "integer"}}}}]
ASKED = [(row, kind) for row in ROWS for kind in row["against"]]


@pytest.mark.parametrize(("row", "kind"), ASKED, ids=[f"{kind}-{row['name'].replace(' ', '_')}" for row, kind in ASKED])
def test_no_answer_passes_that_only_looks_right(row: dict[str, Any], kind: str) -> None:
    task = Task(kind, row["spec"], tools=TOOLS if row.get("tools") else ())
    known = row.get("known", {}).get(kind, ())
    verdicts = {text: verify(task, text) for text in row["texts"] if text not in known}
    assert [(text, verdict.rule) for text, verdict in verdicts.items() if verdict.outcome == "pass"] == []
    assert not any("unreadable" in verdict.rule for verdict in verdicts.values())


@pytest.mark.parametrize(("row", "kind"), [pair for pair in ASKED if "right" in pair[0]])
def test_the_right_answer_passes(row: dict[str, Any], kind: str) -> None:
    task = Task(kind, row["spec"], tools=TOOLS if row.get("tools") else ())
    assert verify(task, row["right"]).outcome == "pass"
