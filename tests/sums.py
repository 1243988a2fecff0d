"""A small project that trains: sums as conversations, pairs and tasks, and a model that is made in no time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from corpusforge import graph
from corpusforge.shell import run_stage
from tests.projects import make_project

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

TINY = {
    "name": "from_scratch",
    "max_length": 48,
    "from_scratch": {"vocab_size": 330, "hidden_size": 16, "layers": 1, "heads": 2},
}
STEPS = {"per_device_train_batch_size": 4, "learning_rate": 2.0e-3, "logging_steps": 2, "save_steps": 4}
SFT = {"trl": {**STEPS, "max_steps": 12}}
DPO = {"trl": {**STEPS, "max_steps": 8}}
GRPO = {"trl": {**STEPS, "max_steps": 8, "per_device_train_batch_size": 8, "num_generations": 4}}
GRPO["trl"]["max_completion_length"] = 6


def problem(number: int) -> tuple[str, int]:
    """A question, unlike the others, and its answer."""
    a, b = 10 + number * 7 % 89, 10 + number * 13 % 83
    return f"What is {a} plus {b}, asked in round {number}?", a + b


def conversation(number: int) -> dict[str, Any]:
    """Every fifth answer is a long one."""
    question, answer = problem(number)
    said = str(answer) if number % 5 else f"It is {answer}, and that is all that there is to say about it, for now."
    return {
        "id": f"s{number}",
        "messages": [{"role": "user", "content": question}, {"role": "assistant", "content": said}],
    }


def pair(number: int) -> dict[str, Any]:
    question, answer = problem(number)
    return {"id": f"p{number}", "prompt": question, "chosen": str(answer), "rejected": str(answer + 3)}


def task(number: int) -> dict[str, Any]:
    question, answer = problem(number)
    return {"id": f"t{number}", "question": question, "answer": str(answer)}


SOURCES = {
    "talk": [conversation(n) for n in range(60)],
    "pairs": [pair(n) for n in range(100, 150)],
    "tasks": [task(n) for n in range(200, 250)],
}


def make(root: Path, **blocks: Any) -> Project:
    """A project with every training stage, built up to the data gate; `blocks` replace blocks of its params."""
    project = make_project(
        root,
        SOURCES,
        **{
            "blend": {"heldout": 0.2},
            "model": TINY,
            "train_sft": SFT,
            "train_raw": {},
            "train_dpo": DPO,
            "rollout": {"attempts": 4, "max_new_tokens": 6, "min_mixed": 0.0},
            "train_grpo": GRPO,
            "evaluate": {"attempts": 2, "max_new_tokens": 6},
            "gate_models": {},
            **blocks,
        },
    )
    for name in graph.DATA:
        run_stage(project, name)
    return project
