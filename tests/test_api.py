"""The notebook verbs: the public list, and that they are the stages."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import corpusforge as cf
from corpusforge.errors import ConfigError, MissingKey, SchemaError, SourceError
from tests.projects import chat, make_project, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

PUBLIC = [
    "CorpusForgeError",
    "Project",
    "SketchIndex",
    "Sketcher",
    "StageResult",
    "__version__",
    "blend",
    "check",
    "decontaminate",
    "dedupe",
    "dedupe_files",
    "diff",
    "duplicates",
    "evaluate",
    "export",
    "filter",
    "forget",
    "gate",
    "grade",
    "health",
    "index_files",
    "ingest",
    "inspect",
    "licences",
    "overrule",
    "read",
    "scrub",
    "scrub_report",
    "shape",
    "sources",
    "trace",
    "verify",
    "verify_tasks",
    "write_shards",
]


def test_the_public_surface_is_this_list() -> None:
    assert sorted(cf.__all__) == PUBLIC
    assert dir(cf) == sorted(PUBLIC)
    assert all(getattr(cf, name) is not None for name in PUBLIC)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'dedup'"):
        cf.dedup  # noqa: B018


def test_importing_a_submodule_leaves_the_function_of_its_name() -> None:
    code = """
import corpusforge.check, corpusforge.inspect, corpusforge.trace, corpusforge.diff
import corpusforge as cf
assert all(callable(f) for f in (cf.check, cf.inspect, cf.trace, cf.diff))
from corpusforge.check import CheckConfig
assert callable(cf.check)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    records = [chat(number) for number in range(30)]
    records.append({**chat(4), "id": "again"})
    write_jsonl(tmp_path / "raw.jsonl", records)
    return tmp_path / "raw.jsonl"


def test_the_verbs_chain_from_file_to_shards(raw: Path, tmp_path: Path) -> None:
    rows = cf.read(raw, source={"name": "chats", "origin": "human", "license": "MIT"})
    result = cf.dedupe(rows, threshold=0.9)
    assert result.explain("again").detail["kept"] == "chats#5"
    for stage in (cf.filter, lambda rows: cf.scrub(rows, key="public-demo"), cf.health, cf.grade, cf.blend):
        result = stage(result.kept)
        assert result.kept.num_rows == 30
    manifest = cf.write_shards(result.kept, tmp_path / "shards")
    assert sum(shard["rows"] for shard in manifest["shards"]) == 30
    assert sum(view.rows for view in cf.inspect(tmp_path / "shards").tables) == 30


def test_keyword_arguments_are_the_fields_of_the_config(raw: Path) -> None:
    rows = cf.read(raw)
    with pytest.raises(ConfigError, match="did you mean 'threshold'"):
        cf.dedupe(rows, treshold=0.8)


def test_records_that_are_left_out_are_counted_in_a_warning(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [chat(1)])
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write("{\n")
    with pytest.warns(UserWarning, match=r"records left out: 1 \(broken_json 1\)"):
        assert cf.read(tmp_path / "a.jsonl").num_rows == 1


def test_records_that_are_left_out_are_listed_by_ingest(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [chat(1), [1]])
    result = cf.ingest(tmp_path / "a.jsonl")
    assert result.kept["content_id"] == cf.ingest([chat(1)]).kept["content_id"]
    (line,) = result.dropped.to_pylist()
    assert (line["reason"], json.loads(line["detail"])) == ("not_an_object", {"file": "a.jsonl", "line": 2})


def test_a_plain_table_of_texts_is_a_corpus_and_says_so(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", [{"id": "a", "text": "Plain words, as they come."}])
    with pytest.warns(UserWarning, match="read as one message each: 1"):
        assert cf.read(tmp_path / "a.jsonl").num_rows == 1


@pytest.mark.parametrize(
    "form", [list, iter, pa.Table.from_pylist, pl.DataFrame, pd.DataFrame], ids=lambda f: f.__name__
)
def test_records_in_memory_become_the_rows_that_a_file_of_them_gives(form: Any, tmp_path: Path) -> None:
    records = [{"id": f"r{n}", "prompt": f"What is {n} and {n}?", "completion": f"It is {2 * n}."} for n in range(5)]
    write_jsonl(tmp_path / "records.jsonl", records)
    ids = ["row_id", "content_id", "language"]
    assert cf.read(form(records)).select(ids) == cf.read(tmp_path / "records.jsonl").select(ids)


def test_no_records_are_no_rows() -> None:
    assert cf.read([]).num_rows == 0


@pytest.mark.parametrize("given", [7, None, {"prompt": "kestrel"}, ["a.jsonl", {"prompt": "kestrel"}], [{"x": {1}}]])
def test_read_refuses_what_holds_no_records_and_shows_no_text(given: Any) -> None:
    with pytest.raises(SchemaError, match="read: ") as caught:
        cf.read(given)
    assert "kestrel" not in str(caught.value)


@pytest.mark.parametrize("frame", [pl.from_arrow, lambda rows: rows.to_pandas()], ids=["polars", "pandas"])
def test_frames_of_rows_go_back_into_the_stages(frame: Any, raw: Path) -> None:
    rows = cf.scrub(cf.read(raw), key="public-demo").kept
    assert cf.dedupe(frame(rows)).kept == cf.dedupe(rows).kept
    assert cf.dedupe(rows, reference=frame(rows)).kept.num_rows == 0
    assert cf.grade(frame(rows)).kept == cf.grade(rows).kept


@pytest.mark.parametrize("given", ["my.jsonl", [{"prompt": "kestrel"}], pl.DataFrame({"prompt": ["kestrel"]}), None])
def test_what_holds_no_rows_is_a_schema_error_that_names_read(given: Any) -> None:
    for verb in (cf.dedupe, cf.filter, cf.grade, cf.blend):
        with pytest.raises(SchemaError, match=f"{verb.__name__}: .*\n  `cf.read` makes rows") as caught:
            verb(given)
        assert "kestrel" not in str(caught.value)


def test_a_result_is_not_rows_and_the_error_says_what_is(raw: Path) -> None:
    with pytest.raises(SchemaError, match=r"cf\.filter\(result\.kept\)"):
        cf.filter(cf.dedupe(cf.read(raw)))  # type: ignore[arg-type]


def test_a_row_is_explained_by_a_number_that_is_its_id() -> None:
    result = cf.dedupe(cf.read([{**chat(4), "id": number} for number in (17, 18)]))
    assert result.explain(18).reason == "exact_duplicate"


def test_a_missing_file_is_a_source_error(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="absent"):
        cf.read(tmp_path / "absent.jsonl")


def test_scrub_without_a_key_refuses(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CORPUSFORGE_KEY", raising=False)
    with pytest.raises(MissingKey):
        cf.scrub(cf.read(raw))


def test_benchmarks_are_rows_or_a_folder(raw: Path, tmp_path: Path) -> None:
    rows = cf.read(raw)
    item = {"id": "i1", "question": chat(7)["messages"][0]["content"], "answer": "none"}
    write_jsonl(tmp_path / "bench" / "b.jsonl", [item])
    by_folder = cf.decontaminate(rows, tmp_path / "bench")
    by_rows = cf.decontaminate(rows, cf.read(tmp_path / "bench" / "b.jsonl", source={"name": "b"}))
    assert by_folder.dropped["row_id"].to_pylist() == by_rows.dropped["row_id"].to_pylist() == ["raw#8"]


def test_trace_takes_a_folder_or_a_project(tmp_path: Path) -> None:
    from corpusforge.shell import run_stage

    project = make_project(tmp_path / "p", {"a": [chat(n) for n in range(5)]})
    run_stage(project, "ingest")
    for place in (project.root, str(project.root), project):
        assert cf.trace("chat-2", project=place).lives[0].row_id == "a#3"


def test_diff_of_two_folders_of_shards_names_the_new_row(raw: Path, tmp_path: Path) -> None:
    rows = cf.read(raw)
    cf.write_shards(rows.slice(0, 29), tmp_path / "a")
    cf.write_shards(rows.slice(0, 30), tmp_path / "b")
    assert cf.diff(tmp_path / "a", tmp_path / "b").added == ["raw#30"]


def test_results_have_a_short_repr_and_a_notebook_form(raw: Path) -> None:
    for result in (cf.check(raw), cf.inspect(raw)):
        assert len(repr(result)) < 300
        assert "<table>" in result._repr_html_()
        assert json.dumps(result.to_dict())


def test_check_and_inspect_take_what_is_in_memory(tmp_path: Path) -> None:
    """Records, rows and frames are looked through as a file of them is."""
    records = [chat(number) for number in range(6)] + [chat(2)]
    rows = cf.read(records)
    write_jsonl(tmp_path / "same.jsonl", records)
    of_file = cf.check(tmp_path / "same.jsonl")
    for data in (records, rows, pl.from_arrow(rows)):
        checked = cf.check(data)
        assert checked.rows == 7
        assert [one.code for one in checked.findings] == [one.code for one in of_file.findings]
    assert cf.read(pl.from_arrow(rows)).equals(rows)
    seen = cf.inspect(rows)
    assert (seen.path, seen.tables[0].rows) == ("Table in memory", 7)
    with pytest.raises(SchemaError, match="expected paths, dicts or a table"):
        cf.check(7)


@pytest.mark.parametrize("option", ["against", "cache"])
def test_options_of_builds_are_refused_for_tables(option):
    """Rather than ignored: nothing would be held against."""
    with pytest.raises(ConfigError, match=option):
        cf.dedupe(pa.table({"text": ["one", "two"]}), **{option: "folder"})
