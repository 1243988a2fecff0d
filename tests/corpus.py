"""One small project with a fault of each sort, for tests that look at a finished build (fixture `corpus`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from corpusforge import graph
from corpusforge.shell import run_stage
from tests.projects import chat, make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

QUESTION = (
    "A gardener plants nineteen rows of tulips with forty three bulbs in each row. How many bulbs are there in all?"
)
FORUM = [chat(i) for i in range(40)]
WEB = [
    *[chat(i) for i in range(100, 130)],
    chat(7, id="copy-of-7"),
    {"id": "leak", "messages": [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "It is 817."}]},
    {"id": "silent", "messages": [{"role": "user", "content": "Hello there?"}, {"role": "assistant", "content": " "}]},
    {"id": "mail", "messages": [
        {"role": "user", "content": "Who answers questions about the lighthouse tours in May?"},
        {"role": "assistant", "content": "Write to anna.kowalska@harbour-tours.com and ask for the evening tour."},
    ]},
    {"id": "broken", "messages": "no list"},
]  # fmt: skip


def build(root: Path) -> Project:
    """Build the project in `root`, an empty folder."""
    write_jsonl(root / "bench" / "exam.jsonl", [{"question": QUESTION, "answer": "817"}])
    project = make_project(
        root,
        {"forum": FORUM, "web": WEB},
        decontaminate={"benchmarks": [{"name": "exam", "path": "bench/exam.jsonl"}]},
    )
    for stage in graph.DATA:
        run_stage(project, stage)
    return project
