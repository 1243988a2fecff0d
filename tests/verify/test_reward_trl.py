"""Layers as TRL calls them: one reward each, and every value logged for every completion."""

from __future__ import annotations

from typing import Any

import pytest

from corpusforge.errors import ConfigError, SchemaError
from corpusforge.verify.layers.trl import reward_function
from corpusforge.verify.reward import reward

COLUMNS: dict[str, Any] = {
    "verifier_kind": ["numeric", "numeric", "unheard_of"],
    "verifier_spec": ['{"answer": "72"}', '{"answer": "72"}', "{}"],
    "completion_ids": [[1] * 9, [1] * 4, [1]],
}
PROMPTS = [[{"role": "user", "content": "48 + 24?"}]] * 3
COMPLETIONS = [[{"role": "assistant", "content": text}] for text in ("48+24 = 72.", "It is 70.", "?")]


def called(function: Any) -> tuple[list[float | None], dict[str, Any]]:
    logged: dict[str, Any] = {}
    log = {"log_extra": logged.__setitem__, "log_metric": logged.__setitem__}
    return function(prompts=PROMPTS, completions=COMPLETIONS, **log, **COLUMNS), logged


def test_every_layers_value_is_logged_for_every_completion() -> None:
    rewards, logged = called(reward_function(process={"weight": 0.2}, length={"at_most": 5}))
    assert rewards == [pytest.approx(1.2), pytest.approx(0.1), None]
    assert logged["layer_outcome"] == [1.0, 0.0, None]
    assert logged["layer_process"] == [1.0, None, None]
    assert logged["layer_length"] == [0.0, 1.0, 1.0]
    assert logged["verdict_rule"] == ["numeric.last_number", "numeric.last_number", "verify.unknown_kind"]


def test_means_are_over_the_completions_where_a_layer_had_something_to_say() -> None:
    _, logged = called(reward_function(process={}))
    assert (logged["layers/process"], logged["layers/process/none"]) == (1.0, pytest.approx(2 / 3))
    assert "layers/process/faults" not in logged


def test_no_text_is_logged() -> None:
    _, logged = called(reward_function(process={}, format={}, repetition={}))
    texts = [value for values in logged.values() if isinstance(values, list) for value in values]
    assert {type(value) for value in texts} <= {float, type(None), str}
    assert not any(isinstance(value, str) and "48" in value for value in texts)


def test_without_layers_it_is_the_reward_of_the_verifiers() -> None:
    assert called(reward_function())[0] == called(reward)[0] == [1.0, 0.0, None]


def test_its_name_in_logs_is_that_of_the_reward() -> None:
    assert reward_function().__name__ == reward.__name__


def test_wrong_layers_are_told_when_it_is_made() -> None:
    with pytest.raises(ConfigError, match="no layer 'unheard_of'"):
        reward_function(own={"unheard_of": {}})


def test_a_dataset_without_verifiers_is_refused() -> None:
    with pytest.raises(SchemaError, match="task shards"):
        reward_function()(prompts=["a"], completions=["b"])


def test_batches_are_handed_on() -> None:
    kept: list[Any] = []
    reward_function(process={}, keep=lambda rewards, columns: kept.append((rewards, columns)))(
        prompts=PROMPTS, completions=COMPLETIONS, **COLUMNS
    )
    [(rewards, columns)] = kept
    assert [one.total for one in rewards] == [pytest.approx(1.2), 0.0, None]
    assert columns["completion_ids"] == COLUMNS["completion_ids"]
