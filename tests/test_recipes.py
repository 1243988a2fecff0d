"""Recipes are complete: checked params, every file explained, terms stated."""

from __future__ import annotations

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from corpusforge.config import Params, load_params, parse_params
from corpusforge.graph import DATA, TRAINING
from corpusforge.licences import NEEDS_ALLOWING, UNKNOWN
from corpusforge.stages.ingest import check_allowed
from corpusforge.train.options import CONFIGS, check_names

ROOT = Path(__file__).resolve().parent.parent
RECIPES = sorted(folder.name for folder in (ROOT / "pipelines").iterdir() if folder.is_dir())


def params(recipe):
    return load_params(ROOT / "pipelines" / recipe / "params.yaml")


def readme(recipe):
    return (ROOT / "pipelines" / recipe / "README.md").read_text(encoding="utf-8")


def test_the_recipes_that_the_readme_lists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(RECIPES) >= 3
    assert [name for name in RECIPES if f"(pipelines/{name}/README.md)" not in text] == []


def test_this_repository_is_the_demo():
    assert (ROOT / "params.yaml").read_bytes() == (ROOT / "pipelines" / "demo" / "params.yaml").read_bytes()


@pytest.mark.parametrize("recipe", RECIPES)
def test_editors_complete_the_params(recipe):
    first = (ROOT / "pipelines" / recipe / "params.yaml").read_text(encoding="utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=schemas/params.schema.json"


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_block_is_there_for_dvc_to_watch(recipe):
    """DVC stops at a params key that the file does not have."""
    blocks = YAML(typ="safe").load((ROOT / "pipelines" / recipe / "params.yaml").read_text(encoding="utf-8"))
    known = [name for name in Params.model_fields if name in ("engine", *DATA)]
    known += [name for name in ("model", *TRAINING) if name in blocks]
    assert list(blocks) == known


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_source_states_its_terms(recipe):
    sources = params(recipe).ingest.sources
    assert [source.name for source in sources if source.license == UNKNOWN] == []
    check_allowed(sources, params(recipe).ingest.allow)


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_allowed_by_name_is_explained(recipe):
    allowed = {one for source in params(recipe).ingest.sources for one in source.allow}
    assert allowed <= set(NEEDS_ALLOWING)
    assert [one for one in sorted(allowed) if one not in readme(recipe)] == []


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_source_is_also_a_benchmark(recipe):
    checked = params(recipe)
    assert checked.decontaminate.benchmarks
    sources = {path for source in checked.ingest.sources for path in source.paths()}
    assert sources.isdisjoint(path for item in checked.decontaminate.benchmarks for path in item.paths())


@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "demo"])
def test_every_file_is_in_raw_and_in_the_readme(recipe, shared):
    """And is there, where the public data sets are."""
    checked = params(recipe)
    paths = [path for one in [*checked.ingest.sources, *checked.decontaminate.benchmarks] for path in one.paths()]
    assert paths
    for path in paths:
        first, _, inside = path.partition("/")
        assert first == "raw"
        assert inside in readme(recipe) or inside.split("/")[0] == "bfcl_v4"
        assert list((shared / "data").glob(inside))


@pytest.mark.parametrize("recipe", [name for name in RECIPES if name != "demo"])
def test_the_training_blocks_that_can_be_uncommented_are_right(recipe):
    """TRL's option names too."""
    text = (ROOT / "pipelines" / recipe / "params.yaml").read_text(encoding="utf-8")
    checked = parse_params(text.replace("#~ ", "").replace("#~\n", "\n"))
    assert {"train_sft", "train_dpo", "evaluate", "gate_models"} <= set(checked.training)
    for name in checked.training:
        if name in CONFIGS:
            check_names(name, getattr(checked, name).trl)
    assert params(recipe).training == ()
