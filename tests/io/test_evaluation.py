"""The evaluation of a project: which items are taken, which models are judged, and what is left on disk."""

from __future__ import annotations

import json
import shutil

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tests.evaluate import models as tiny
from tests.evaluate.models import turns
from tests.projects import write_jsonl
from tests.sums import SOURCES, TINY, problem
from tests.test_pipeline import edit_params

import corpusforge as cf
from corpusforge import graph, methods
from corpusforge.cli import main
from corpusforge.errors import ConfigError, MissingExtra, ProjectError, SourceError
from corpusforge.io import evaluation
from corpusforge.project import Project
from corpusforge.shell import run_stage
from corpusforge.train import model as models

pytest.importorskip("trl", reason="evaluation needs the extra `train`")
BLOCKS = {
    "blend": {"heldout": 0.2},
    "model": TINY,
    "train_sft": {},
    "train_raw": {},
    "train_dpo": {},
    "evaluate": {"attempts": 2, "max_new_tokens": 4, "legacy": [{"name": "old", "path": "bench/old.jsonl"}]},
}
SEEN = problem(3)[0].upper().replace(" ", "  ")  # a question of a conversation, in other letters and blanks


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """A project with shards, models that know nothing where training would leave them, and its evaluation."""
    from tests.projects import make_project

    root = tmp_path_factory.mktemp("evaluated")
    old = [{"question": question, "answer": "7"} for question in ("How much is 3 plus 4?", "And 1 plus 6?", SEEN)]
    write_jsonl(root / "bench" / "old.jsonl", old)
    project = make_project(root, SOURCES, **BLOCKS)
    for name in graph.DATA:
        run_stage(project, name)
    tokenizer = tiny.tokenizer(TINY["max_length"])
    for seed, place in enumerate(("train_sft/base", "train_sft/model", "train_raw/model", "train_dpo/model")):
        models.save(tiny.model(tokenizer, seed, TINY["max_length"]), tokenizer, root / "data" / place)
    run_stage(project, "evaluate")
    return project


@pytest.fixture
def copied(built, tmp_path) -> Project:
    shutil.copytree(built.root, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


def changed(project, **values) -> Project:
    """The project with other values in its evaluate block."""
    edit_params(project, lambda params: params["evaluate"].update(values))
    methods.sync(Project(project.root))
    return Project(project.root)


def test_every_model_is_judged_on_the_same_items(built):
    tasks = pq.read_table(built.data("evaluate") / "tasks.parquet")
    names = {name: tasks.filter(pa.compute.equal(tasks["model"], name)) for name in ("base", "sft", "raw", "dpo")}
    assert tasks.num_rows == sum(part.num_rows for part in names.values())
    assert len({tuple(part["row_id"].to_pylist()) for part in names.values()}) == 1
    figures = built.metrics("evaluate")
    assert list(figures["models"]) == ["base", "sft", "dpo"]
    assert set(figures["curation"]) == {"raw", "curated"}
    assert set(figures["tests"]) == {"sft_vs_base", "dpo_vs_sft", "curated_vs_raw"}
    assert (figures["tasks"], figures["rows"], figures["pairs"], figures["legacy_tasks"]) == (10, 14, 10, 2)


def test_the_headline_has_the_models_and_no_clock_is_in_the_output(built):
    shown = json.loads(built.metrics_path("evaluate").read_text())
    assert {"models", "curation", "build", "seconds"} <= set(shown)
    assert "seconds" not in built.metrics("evaluate")


def test_a_question_that_stands_in_training_is_left_out_whatever_its_case_and_blanks(built):
    assert built.metrics("evaluate")["left_out"]["legacy_tasks_seen_in_training"] == 1


def test_no_text_of_a_row_is_in_the_output(built):
    for name in ("tasks", "rows"):
        assert "plus" not in json.dumps(pq.read_table(built.data("evaluate") / f"{name}.parquet").to_pylist())
    assert "plus" not in built.figures_path("evaluate").read_text()


def test_the_same_project_gives_the_same_bytes(built, copied):
    run_stage(copied, "evaluate")
    for name in ("tasks.parquet", "rows.parquet", "figures.json"):
        one, two = ((project.data("evaluate") / name).read_bytes() for project in (built, copied))
        assert one == two


def test_any_model_is_judged_as_the_stage_judges_its_own(built, copied):
    place = copied.root / "elsewhere"
    shutil.copytree(built.data("train_dpo") / "model", place)
    found = cf.evaluate("./elsewhere", copied)
    assert found.figures["models"]["model"] == built.metrics("evaluate")["models"]["dpo"]
    assert str(found).startswith("./elsewhere: 10 held-out and 2 legacy tasks")


def test_the_command_prints_a_table_and_writes_the_figures(copied, tmp_path, capsys):
    arguments = ["evaluate", "data/train_sft/model", "--project", str(copied.root), "--out", str(tmp_path / "f.json")]
    assert main(arguments) == 0
    assert "preference accuracy" in capsys.readouterr().out
    assert json.loads((tmp_path / "f.json").read_text())["models"]["model"]["attempts"] == 20


def test_nothing_held_out_is_an_error(copied):
    project = changed(copied, legacy=[])
    edit_params(project, lambda params: params["model"].update(where={"domain": ["no such domain"]}))
    with pytest.raises(ProjectError, match="nothing is held out") as caught:
        evaluation.items(Project(project.root))
    assert "blend.heldout" in caught.value.hint


def test_a_legacy_source_without_tasks_is_named(copied):
    write_jsonl(copied.root / "bench" / "old.jsonl", [SOURCES["talk"][0]])
    with pytest.raises(SourceError, match="'old' has no task"):
        evaluation.items(copied)


def test_a_trained_model_that_is_not_there_is_named(copied):
    shutil.rmtree(copied.data("train_dpo") / "model")
    with pytest.raises(ProjectError, match="train_dpo has left no model"):
        run_stage(copied, "evaluate")


@pytest.mark.parametrize("name", ["./nowhere", "package:no_such_module/x.gguf"])
def test_a_model_that_is_not_there_is_named(built, name):
    with pytest.raises(ProjectError, match=name):
        cf.evaluate(name, built)


def test_a_folder_that_holds_no_model_is_refused(built, copied):
    (copied.root / "empty").mkdir()
    with pytest.raises(ProjectError, match="cannot be loaded"):
        cf.evaluate("./empty", copied)
    shutil.copytree(built.data("train_sft") / "model", copied.root / "broken")
    weights = copied.root / "broken" / "model.safetensors"
    held = load_file(weights)
    save_file({name: one for name, one in held.items() if "mlp.up" not in name}, weights, {"format": "pt"})
    with pytest.raises(ProjectError, match="1 of its weights are not in its files"):
        cf.evaluate("./broken", copied)
    weights.write_bytes(b"no weights")
    with pytest.raises(ProjectError, match="cannot be loaded"):
        cf.evaluate("./broken", copied)


def test_a_model_without_a_chat_template_is_refused_unless_params_name_one(built, copied):
    shutil.copytree(built.data("train_sft") / "model", copied.root / "plain")
    (copied.root / "plain" / "chat_template.jinja").rename(copied.root / "mine.jinja")
    with pytest.raises(ConfigError, match=r"tokenizer of '\./plain' has no chat template"):
        cf.evaluate("./plain", copied)
    edit_params(copied, lambda params: params["model"].update(chat_template="mine.jinja"))
    assert cf.evaluate("./plain", Project(copied.root)).figures["models"]["model"]["rows"] == 14


def test_without_torch_the_command_names_what_to_install(built, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    assert main(["evaluate", "data/train_sft/model", "--project", str(built.root)]) == MissingExtra.exit_code
    assert "pip install 'corpusforge[train]'" in capsys.readouterr().err


NAMES = st.lists(st.integers(0, 200), min_size=1, max_size=40)


def rows(numbers):
    return datasets.Dataset.from_list(
        [{"content_id": f"c{number}", "row_id": f"r{place}"} for place, number in enumerate(numbers)]
    )


@given(NAMES, NAMES, st.integers(1, 20))
@settings(max_examples=25)
def test_what_is_drawn_depends_on_content_alone_and_more_rows_only_push_out(some, more, limit):
    drawn = [row["content_id"] for row in evaluation._drawn(rows(some), limit)]
    assert len(drawn) == len(set(drawn)) == min(limit, len(set(some)))
    assert drawn == [row["content_id"] for row in evaluation._drawn(rows(some[::-1]), limit)]
    after = [row["content_id"] for row in evaluation._drawn(rows(some + more), limit)]
    old = {f"c{number}" for number in some}
    assert [name for name in after if name in old] == drawn[: len([name for name in after if name in old])]


def test_a_prompt_is_all_that_the_user_says():
    parts = [{"role": "user", "content": [{"type": "text", "text": "What IS\n2?"}]}]
    assert evaluation.prompt_key(parts) == evaluation.prompt_key(turns("what is 2?")) == "what is 2?"
    assert evaluation.prompt_key(turns("A", "no matter", "B")) == "a\nb"
    assert evaluation.prompt_key([{"role": "system", "content": "Be brief."}]) == ""


def test_training_turns_are_searched_singly_and_up_to_each(built):
    shards = built.data("shard")
    first = SOURCES["pairs"][4]["prompt"].casefold()
    assert evaluation._seen(shards, {first, "never asked", ""}) <= {first}
    asked = {problem(n)[0].casefold() for n in range(60)}
    held = {row["messages"][0]["content"].casefold() for row in evaluation.items(built)[0].rows}
    assert evaluation._seen(shards, asked) == asked - held


def test_copies_of_shards_that_a_killed_run_left_are_removed(copied):
    left = copied.root / evaluation.CACHE / "parquet" / "left.arrow"
    left.parent.mkdir(parents=True)
    left.write_text("texts of rows")
    evaluation.items(copied)
    assert not (copied.root / evaluation.CACHE).exists()


def test_without_a_model_the_figures_of_the_build_are_shown(built, capsys):
    assert cf.evaluate(project=built).to_dict() == built.metrics("evaluate")
    assert main(["evaluate", "--project", str(built.root)]) == 0
    assert "pass rate T=0" in capsys.readouterr().out


def test_nothing_held_out_is_said_before_training(tmp_path):
    from tests.projects import make_project

    project = make_project(tmp_path, SOURCES, **{**BLOCKS, "blend": {"heldout": 0.0}, "evaluate": {}})
    for name in graph.DATA:
        run_stage(project, name)
    with pytest.raises(ProjectError, match="nothing is held out"):
        run_stage(project, "train_sft")
