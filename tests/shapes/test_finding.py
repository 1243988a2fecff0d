"""A shape is told where it is clear, and asked for where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from corpusforge.shapes import READS, SHAPES, Unrepresentable, find
from corpusforge.shapes.finding import _SIGNS

TALK = [{"role": "user", "content": "Q?"}, {"role": "assistant", "content": "A."}]


@pytest.mark.parametrize(
    ("record", "shape"),
    [
        ({"messages": TALK, "prompt": "Q?", "text": "Q? A."}, "chat"),
        ({"instruction": "Q?", "output": "A.", "text": "### Instruction: Q? A."}, "alpaca"),
        ({"prompt": "Q?", "chosen": TALK, "rejected": TALK, "messages": TALK}, "preference"),
        ({"question": "Q?", "choices": ["a", "b"], "answer": 0}, "multiple_choice"),
        ({"question": "Q?", "A": "a", "B": "b", "answer": "A"}, "multiple_choice"),
        ({"question": "Q?", "A": 1, "B": 0, "C": 2, "answerKey": "A"}, "multiple_choice"),
        ({"question": "Q?", "A": "a", "B": "b", "C": "c", "D": "d"}, "multiple_choice"),
        ({"question": "Q?", "A": "a", "B": "b"}, "prompt"),
        ({"prompt": "Q?", "completion": "A.", "verifier": {"kind": "exact"}}, "verifier"),
        ({"prompt": "Q?", "language": "en"}, "prompt"),
    ],
    ids=["talk", "rendered", "pair", "choice", "columns", "three", "four", "a question", "verifier", "prompt"],
)
def test_what_takes_in_the_others_is_clear(record: dict[str, Any], shape: str) -> None:
    assert find(record) == shape


@pytest.mark.parametrize(
    ("record", "shapes"),
    [
        ({"problem": "Q?", "answer": "4", "messages": TALK}, ["chat", "math"]),
        ({"messages": TALK, "conversations": TALK}, ["chat", "sharegpt"]),
        ({"prompt": "Q?", "response": "A.", "answer": "4"}, ["prompt_completion", "question_answer"]),
        ({"text": "T", "question": "Q?"}, ["prompt", "text"]),
    ],
    ids=["task or talk", "two talks", "answer or response", "text or question"],
)
def test_what_could_be_two_things_is_asked_for(record: dict[str, Any], shapes: list[str]) -> None:
    """The reason names them, so that params can choose one."""
    with pytest.raises(Unrepresentable, match="ambiguous_shape") as caught:
        find(record)
    assert caught.value.detail == {"shapes": shapes}


@pytest.mark.parametrize("nothing", [None, ""], ids=["null", "empty"])
@pytest.mark.parametrize(
    ("full", "shape"),
    [
        ({"messages": TALK}, "chat"),
        ({"prompt": "Q?", "chosen": "A.", "rejected": "B."}, "preference"),
        ({"prompt": "Q?", "completion": "A."}, "prompt_completion"),
        ({"text": "T"}, "text"),
        ({"question": "Q?", "answer": "4"}, "question_answer"),
    ],
    ids=["chat", "preference", "prompt_completion", "text", "question_answer"],
)
def test_a_row_of_a_table_has_the_columns_of_all(nothing: Any, full: dict[str, Any], shape: str) -> None:
    """Empty columns belong to the rows of other shapes."""
    columns = ["messages", "prompt", "chosen", "rejected", "completion", "text", *("A", "B", "C", "D")]
    assert find({**dict.fromkeys(columns, nothing), **full}) == shape


def test_a_field_that_is_empty_in_a_record_of_one_shape_stays_what_it_is() -> None:
    """A pair without its rejected side is a broken pair, not a prompt."""
    assert find({"prompt": "Q?", "chosen": "A.", "rejected": None}) == "preference"
    assert find({"text": None}) == "text"


def test_every_shape_says_what_it_reads() -> None:
    """The fields it is told by are among them."""
    assert set(READS) == set(SHAPES)
    assert [(name, needed - READS[name]) for name, needed, _ in _SIGNS if needed - READS[name]] == []
