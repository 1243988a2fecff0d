"""The table of records: every source's line adds up, and what does not says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import corpusforge as cf
from corpusforge.cli import main
from corpusforge.config import load_params
from corpusforge.errors import ProjectError
from corpusforge.io import scaffold
from corpusforge.io.ingest import source_rows
from corpusforge.result import add_up
from corpusforge.shell import run_stage
from corpusforge.sources import SourceLine, SourceTable, _line
from tests.projects import make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.project import Project

CHAT = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}
MANY = {"instruction": "Do", "instances": [{"input": "", "output": "a"}, {"input": "", "output": "b"}]}
PAIR = {"prompt": "Q?", "chosen": "A.", "rejected": "B."}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    root = tmp_path_factory.mktemp("sources")
    write_jsonl(root / "raw/bench.jsonl", [{"question": "1+1?", "answer": "2"}, {"odd": 1}])
    benchmark = {"name": "sums", "path": "raw/bench.jsonl", "license": "MIT", "restrictions": ["no-train"]}
    sources = {"talk": [CHAT, MANY, {"odd": 1}, {"license": "no-train", **CHAT}], "pairs": [PAIR], "none": []}
    made = make_project(root, sources, decontaminate={"benchmarks": [benchmark]})
    run_stage(made, "ingest")
    return made


def test_every_line_adds_up(project: Project) -> None:
    """Records with rows and quarantined, by reason; rows by kind; also of a source without records."""
    table = cf.sources(project)
    talk, pairs, none = table.sources
    assert (talk.records, talk.with_rows, talk.quarantined, talk.rows) == (4, 2, 2, 3)
    assert (talk.reasons, talk.kinds) == ({"unknown_shape": 1, "restricted": 1}, {"sft": 3})
    assert (pairs.kinds, none.records, none.rows) == ({"preference": 1}, 0, 0)
    assert table.adds_up
    assert table.totals() == {"records": 5, "with_rows": 3, "quarantined": 2, "rows": 4}
    assert "every line adds up" in str(table)


def test_benchmarks_are_read_where_asked_for(project: Project) -> None:
    """Whatever their restrictions: they are only compared with."""
    (line,) = cf.sources(project, benchmarks=True).benchmarks
    assert (line.records, line.rows, line.restrictions, line.adds_up) == (2, 1, ("no-train",), True)


def test_the_command_prints_what_the_function_returns(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["sources", "--project", str(project.root), "--benchmarks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == cf.sources(project, benchmarks=True).to_dict()
    monkeypatch.setattr(SourceLine, "adds_up", False)
    assert main(["sources", "--project", str(project.root)]) == 1
    assert "does not add up: talk, pairs, none" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changed",
    [{"records": 4}, {"reasons": {"x": 2}}, {"kinds": {"sft": 1}}, {"rows": 4}],
    ids=["records", "reasons", "kinds", "rows"],
)
def test_a_line_that_does_not_add_up_is_told(changed: dict[str, object]) -> None:
    whole = {"records": 3, "with_rows": 2, "quarantined": 1, "rows": 2, "reasons": {"x": 1}, "kinds": {"sft": 2}}
    assert SourceLine("s", "MIT", (), "human", **whole).adds_up
    assert not SourceTable([SourceLine("s", "MIT", (), "human", **{**whole, **changed})]).adds_up


def test_before_the_first_ingest_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="ingest has not run here"):
        cf.sources(make_project(tmp_path, {"talk": [CHAT]}))


# Records, records with rows, rows by kind: of every source of the recipe over public data sets.
PUBLIC = {
    "gsm8k": (7473, 7473, {"task": 7473}),
    "mbpp": (974, 474, {"task": 474}),
    "reasoning_gym": (1040, 1040, {"task": 1040}),
    "longchat": (150, 150, {"task": 150}),
    "bfcl": (1340, 1340, {"task": 1340, "sft": 1100}),
    "sgd": (128, 128, {"sft": 128}),
    "tau_bench": (69, 69, {"sft": 69}),
    "self_instruct": (175, 175, {"sft": 175}),
    "gpteacher_toolformer": (7673, 7673, {"sft": 7673}),
    "gpteacher_toolformer_09": (5959, 5959, {"sft": 5959}),
    "gpteacher_roleplay": (3146, 3146, {"sft": 3146}),
    "oasst": (100, 100, {"sft": 100, "preference": 212}),
    "oasst_messages": (100, 100, {"sft": 100, "preference": 212}),
    "hh_rlhf": (2312, 2307, {"preference": 2307}),
    "hatecheck": (3728, 3728, {"rated": 3728}),
    "behaviours_human": (1349, 1349, {"task": 1349}),
    "behaviours_lm": (1468, 1468, {"task": 1468}),
    "rephrased": (1483, 1483, {"sft": 1483}),
    "presidio": (2209, 2209, {"sft": 2209}),
    "febrl": (6000, 6000, {"sft": 6000}),
    "nlvr": (989, 39, {"task": 234}),
    "gsm8k_test": (1319, 1319, {"task": 1319}),
    "humaneval": (164, 164, {"task": 164}),
    "humaneval_text": (164, 164, {"sft": 164}),
    "ifeval": (541, 541, {"task": 541}),
    "self_instruct_user_tasks": (252, 252, {"sft": 252}),
}


@pytest.fixture(scope="module")
def raw(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipe's folder, with the public data sets under raw/."""
    root = tmp_path_factory.mktemp("public")
    scaffold.copy_recipe(scaffold.recipe("public_sets"), root)
    (root / "raw").symlink_to(shared / "data")
    return root


@pytest.mark.parametrize("name", PUBLIC)
def test_public_data_sets_add_up_by_their_line_of_the_recipe(raw: Path, name: str) -> None:
    params = load_params(raw / "params.yaml")
    declared = {source.name: source for source in [*params.ingest.sources, *params.decontaminate.benchmarks]}
    assert set(declared) == set(PUBLIC)
    results = list(source_rows(declared[name], raw, detect_language=False))
    line = _line(declared[name], add_up(result.metrics["sources"][name] for result in results))
    assert line.adds_up
    assert (line.records, line.with_rows, line.kinds) == PUBLIC[name]
    if name == "hh_rlhf":
        named = [one["row_id"] for result in results for one in result.dropped.to_pylist()]
        assert len(named) == line.reasons["prompts_differ"] == 5
