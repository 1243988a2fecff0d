"""The reward function, called as TRL calls it."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from corpusforge.errors import SchemaError
from corpusforge.verify.reward import reward

COLUMNS: dict[str, Any] = {
    "verifier_kind": ["numeric", "numeric", "unheard_of"],
    "verifier_spec": ['{"answer": "72"}', '{"answer": "72"}', "{}"],
}
PROMPTS = [[{"role": "user", "content": "48 + 24?"}]] * 3
COMPLETIONS = [[{"role": "assistant", "content": text}] for text in ("It is 72.", "It is 70.", "?")]


def test_a_pass_is_one_a_fail_zero_and_undecided_none() -> None:
    assert reward(prompts=PROMPTS, completions=COMPLETIONS, **COLUMNS) == [1.0, 0.0, None]


def test_what_trl_adds_and_other_columns_change_nothing() -> None:
    more = {"trainer_state": object(), "completion_ids": [[1]] * 3, "answer": [1, 2, 3], "environments": None}
    assert reward(prompts=PROMPTS, completions=COMPLETIONS, **COLUMNS, **more) == [1.0, 0.0, None]


def test_texts_and_whole_rows_work_too() -> None:
    row = {"kind": "numeric", "spec": '{"answer": "72"}'}
    assert reward(prompts=["a", "b"], completions=["72", "73"], verifier=[row, row]) == [1.0, 0.0]


def test_tools_reach_the_verifier() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer", "maximum": 3}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    columns = {"verifier_kind": ["tool_call"] * 2, "verifier_spec": [{"calls": [{"f": {"a": [1]}}]}] * 2}
    asked = reward(prompts=["", ""], completions=["[f(a=1)]", "[f(a=4)]"], tools=[tools, tools], **columns)
    assert asked == [1.0, 0.0]


def test_rules_and_shares_are_logged_without_any_text() -> None:
    logged: dict[str, Any] = {}
    reward(
        prompts=PROMPTS, completions=COMPLETIONS, log_extra=logged.__setitem__, log_metric=logged.__setitem__, **COLUMNS
    )
    assert logged["verdict_rule"] == ["numeric.last_number", "numeric.last_number", "verify.unknown_kind"]
    assert [logged[f"verdicts/{outcome}"] for outcome in ("pass", "fail", "undecided")] == pytest.approx([1 / 3] * 3)


def test_a_dataset_without_verifiers_is_refused() -> None:
    with pytest.raises(SchemaError, match="task shards"):
        reward(prompts=["a"], completions=["b"], answer=["c"])


def test_the_dotted_path_that_trl_is_given_is_the_function() -> None:
    module, _, name = "corpusforge.verify.reward.reward".rpartition(".")
    assert getattr(importlib.import_module(module), name) is reward
    assert reward.__name__ == "reward"  # TRL's name for it in logs and metrics
