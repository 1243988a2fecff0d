"""Policy optimisation on the tasks that rollout chose, rewarded by their verifiers."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sums import GRPO

from corpusforge.errors import ConfigError, ProjectError
from corpusforge.shell import run_stage
from corpusforge.train import model


@pytest.fixture
def tried(edited):
    """A copy in which every task was chosen."""
    project = edited(train_grpo=GRPO)
    run_stage(project, "rollout")
    return project


def choose(project, how):
    path = project.data("rollout") / "attempts.parquet"
    table = pq.read_table(path)
    chosen = pa.array([how(place) for place in range(table.num_rows)])
    pq.write_table(table.set_column(table.schema.get_field_index("chosen"), "chosen", chosen), path)


def test_it_sees_only_tasks_that_rollout_chose(tried):
    choose(tried, lambda place: place < 9)
    found = run_stage(tried, "train_grpo")
    assert found["in"] == 9
    steps = [json.loads(line) for line in (tried.data("train_grpo") / "steps.jsonl").read_text().splitlines()]
    assert all(0 <= entry["reward"] <= 1 for entry in steps)


def test_no_chosen_task_is_an_error_that_says_what_to_do(tried):
    choose(tried, lambda place: False)
    with pytest.raises(ProjectError, match="rollout chose no task") as error:
        run_stage(tried, "train_grpo")
    assert "rollout.min_mixed" in error.value.hint


def test_checkpoints_between_batches_of_answers_are_refused(edited):
    project = edited(train_grpo={"trl": {**GRPO["trl"], "steps_per_generation": 4, "save_steps": 6}})
    run_stage(project, "rollout")
    with pytest.raises(ConfigError, match=r"save_steps: 6 is no multiple of 4") as error:
        run_stage(project, "train_grpo")
    assert "write 4" in error.value.hint


def test_a_task_that_cannot_be_decided_teaches_nothing_and_its_text_is_not_logged(tried, caplog, monkeypatch, capsys):
    """TRL would log the prompt and the completion of a row without a reward."""
    from corpusforge.verify import _verdict, numeric

    monkeypatch.setattr(numeric, "check", lambda task, completion: _verdict.undecided("numeric.unparsable_gold"))
    choose(tried, lambda place: place < 8)
    run_stage(tried, "train_grpo")
    said = caplog.text + "".join(capsys.readouterr())
    assert "asked in round" not in said
    one, other = (model.load(str(tried.data(name) / "model"))[0] for name in ("train_sft", "train_grpo"))
    assert model.state_hash(one) == model.state_hash(other)
