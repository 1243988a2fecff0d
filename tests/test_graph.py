"""One word, everywhere: file, function, config, params key, DVC stage, docs page and test of a stage."""

from __future__ import annotations

import importlib
import inspect
import json
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from corpusforge import graph
from corpusforge.config import Params
from corpusforge.methods import watched
from corpusforge.project import Project
from corpusforge.result import StageResult
from corpusforge.sample import ADDED
from corpusforge.stages._stage import Decided, RowWise, StageConfig

ROOT = Path(__file__).resolve().parent.parent
# Stages that end the way of the rows: what they have to say in a notebook has its own verb.
VERBS = {"shard": "trainer_form"}
MAPS_ROWS = [node.name for node in graph.GRAPH if node.tables]


def class_name(stage):
    """`gate_data` -> `GateDataConfig`."""
    return "".join(word.title() for word in stage.split("_")) + "Config"


def module(stage):
    return importlib.import_module(f"corpusforge.{graph.node(stage).room}.{stage}")


@pytest.fixture(scope="module")
def dvc_stages():
    return YAML(typ="safe").load((ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


@pytest.mark.parametrize("stage", graph.NAMES)
def test_file_with_a_story_and_a_config(stage):
    config = getattr(module(stage), class_name(stage))
    assert issubclass(config, StageConfig)
    assert len(module(stage).__doc__) > 100
    options = [field for field in config.model_fields.values() if not field.exclude]  # what can change the output
    assert 0 < len(options) <= 10


@pytest.mark.parametrize("stage", graph.NAMES)
def test_function(stage):
    function = getattr(module(stage), VERBS.get(stage, stage))
    assert inspect.getdoc(function)
    assert list(inspect.signature(function).parameters)


@pytest.mark.parametrize("stage", MAPS_ROWS)
def test_function_takes_rows_and_gives_a_result(stage):
    signature = inspect.signature(getattr(module(stage), stage))
    assert list(signature.parameters)[:2] == ["rows", "config"]
    assert signature.return_annotation == StageResult.__name__


@pytest.mark.parametrize("stage", MAPS_ROWS)
def test_stage_object_is_of_that_name_and_config(stage):
    found = graph.stage(stage)
    assert isinstance(found, RowWise | Decided)
    assert (found.name, found.config) == (stage, getattr(module(stage), class_name(stage)))
    assert set(found.columns) <= set(ADDED)


def test_every_added_column_is_added_by_one_stage():
    added = [column for stage in MAPS_ROWS for column in graph.stage(stage).columns]
    assert sorted(added) == sorted(ADDED)


@pytest.mark.parametrize("stage", graph.NAMES)
def test_params_key(stage):
    config = getattr(module(stage), class_name(stage))
    assert Params.model_fields[stage].annotation == (config | None if graph.node(stage).optional else config)


def test_params_blocks_stand_in_the_order_of_the_graph():
    assert tuple(name for name in Params.model_fields if name in graph.NAMES) == graph.NAMES


@pytest.mark.parametrize("stage", graph.NAMES)
def test_docs_page_names_every_option(stage):
    page = (ROOT / "docs" / "stages" / f"{stage}.md").read_text(encoding="utf-8")
    options = getattr(module(stage), class_name(stage)).model_fields
    assert [name for name in options if f"`{name}" not in page] == []


@pytest.mark.parametrize("stage", graph.NAMES)
def test_test_file(stage):
    text = (ROOT / "tests" / graph.node(stage).room / f"test_{stage}.py").read_text(encoding="utf-8")
    assert "def test_" in text


def test_dvc_yaml_is_what_the_graph_says(dvc_stages):
    project = Project(ROOT)
    assert dvc_stages == graph.dvc_stages(watched(project), project.params.training)


def test_dvc_stages_stand_in_the_order_of_the_graph(dvc_stages):
    assert tuple(dvc_stages) == graph.NAMES


@pytest.mark.parametrize("stage", graph.NAMES)
def test_dvc_reruns_a_stage_for_its_own_params_and_its_own_methods(stage, dvc_stages):
    params = dvc_stages[stage]["params"]
    assert stage in params
    locked = next(one for one in params if isinstance(one, dict))["methods.lock.json"]
    assert locked == [*graph.node(stage).records, stage]
    assert all(name in params for name in graph.node(stage).records)


@pytest.mark.parametrize("node", graph.GRAPH, ids=lambda node: node.name)
def test_methods_lock_has_number_and_libraries(node):
    """Which versions depends on the machine, whose they are does not."""
    entry = json.loads((ROOT / "methods.lock.json").read_text(encoding="utf-8"))[node.name]
    assert entry["method"] == node.method
    assert set(node.libraries) <= set(entry.get("libraries", {}))


@pytest.mark.parametrize("stage", [node.name for node in graph.GRAPH if node.private])
def test_rows_with_personal_data_are_not_pushed(stage, dvc_stages):
    assert dvc_stages[stage]["outs"] == [{f"data/{stage}": {"push": False}}]


def test_every_stage_before_scrub_is_private():
    before = graph.NAMES[: graph.NAMES.index("scrub")]
    assert [name for name in before if not graph.node(name).private] == []
    assert graph.node("train_raw").private  # its rows were never scrubbed, and a model can repeat them


def test_a_stage_reads_only_stages_before_it():
    for place, node in enumerate(graph.GRAPH):
        assert {*node.after, *node.may_follow} <= set(graph.NAMES[:place])


def test_a_training_stage_is_in_the_graph_when_params_name_it():
    block = graph.dvc_stages({}, ["train_sft", "evaluate"])
    assert tuple(block) == (*graph.DATA, "train_sft", "evaluate")
    assert "data/train_dpo" not in block["evaluate"]["deps"]
    assert "data/train_dpo" in graph.dvc_stages({}, graph.TRAINING)["evaluate"]["deps"]


def test_the_data_half_never_waits_for_training():
    for name in graph.DATA:
        assert not {*graph.node(name).after, *graph.node(name).may_follow} & set(graph.TRAINING)


def test_a_stage_whose_input_is_not_in_the_graph_is_named():
    assert list(graph.missing(["train_grpo", "train_sft"])) == [("train_grpo", "rollout")]
    assert list(graph.missing(graph.TRAINING)) == []


def test_accepting_another_baseline_does_not_train_again():
    """The verdict of gate_data changes with baseline.json; what training follows of it does not."""
    deps = graph.dvc_stages({}, graph.TRAINING)["train_sft"]["deps"]
    assert deps == ["data/shard", "data/gate_data/passed.json"]
