"""benchmarks/learning.py: what it claims follows from the items that the models were judged on."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from corpusforge.evaluate.results import Results

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "learning.py"
NAMES = ("base", "sft", "dpo", "grpo", "raw")


@pytest.fixture(scope="module")
def learning():
    spec = importlib.util.spec_from_file_location("learning", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def results(passes, margin):
    """A model that passes so many of 8 attempts at each of 40 tasks, and prefers 20 + margin of 40 right answers."""
    tasks = {f"t{number}": (min(8, passes + number % 2), 8) for number in range(40)}
    margins = {f"p{number}": 1.0 if number < 20 + margin else -1.0 for number in range(40)}
    return Results(heldout=tasks, legacy=tasks, greedy=dict.fromkeys(tasks, (1, 1)), loss=margins, margin=margins)


SCORES = ((0, 0), (3, 5), (3, 15), (5, 5), (4, 5))
GROWING = {name: results(*scores) for name, scores in zip(NAMES, SCORES, strict=True)}


def exit_code(learning, monkeypatch, models, *options):
    monkeypatch.setattr(learning, "trained", lambda *_: models)
    return learning.main(["--project", ".", "--seeds", "2", *options])


def test_models_that_grow_are_said_to(learning, monkeypatch, capsys):
    assert exit_code(learning, monkeypatch, GROWING, "--json") == 0
    claims = json.loads(capsys.readouterr().out)["all"]["claims"]
    assert {claim["claim"]: claim["holds"] for claim in claims} == {
        "sft > base": True,
        "dpo > sft": True,
        "grpo > sft": True,
        "sft > raw": False,
    }


@pytest.mark.parametrize("role", ["sft", "dpo", "grpo"])
def test_a_stage_that_gains_nothing_fails_the_benchmark(learning, monkeypatch, role):
    start = {"sft": "base", "dpo": "sft", "grpo": "sft"}[role]
    assert exit_code(learning, monkeypatch, {**GROWING, role: GROWING[start]}) == 1


def test_items_are_averaged_over_the_seeds_that_share_them(learning):
    one = {"sft": {measure: {"a": 0.0, "b": 1.0} for measure in learning.MEASURES}}
    other = {"sft": {measure: {"a": 1.0} for measure in learning.MEASURES}}
    assert learning.averaged([one, other]) == {"sft": {measure: {"a": 0.5} for measure in learning.MEASURES}}


def test_the_seed_is_all_that_changes_in_params(learning, tmp_path):
    text = SCRIPT.parent.parent.joinpath("pipelines/demo/params.yaml").read_text(encoding="utf-8")
    path = tmp_path / "params.yaml"
    path.write_text(text, encoding="utf-8")
    before = YAML(typ="safe").load(text)
    learning.seeded(path, 7)
    after = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    assert after.pop("model") == {**before.pop("model"), "seed": 7}
    assert after == before


def test_the_table_names_every_model_of_every_seed(learning, monkeypatch, capsys):
    exit_code(learning, monkeypatch, GROWING)
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert [[seed, name] for seed in ("0", "1", "all") for name in NAMES if [seed, name] not in lines] == []
