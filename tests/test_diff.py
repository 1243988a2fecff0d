"""What changed between two builds, row by row."""

from __future__ import annotations

import shutil

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.diff import _compare, diff
from corpusforge.errors import SourceError
from corpusforge.io import releases
from corpusforge.io.sides import COLUMNS
from corpusforge.project import Project
from tests.corpus import FORUM, WEB
from tests.projects import chat, write_jsonl
from tests.test_pipeline import edit_params


def test_a_build_is_equal_to_itself_and_to_its_release(corpus):
    release = releases.publish(Project(corpus.root)).path
    for other in (corpus, release, release / "shards", str(corpus.data("shard"))):
        found = diff(corpus, other)
        assert found.same, str(found)
        assert found.rows.a == found.rows.b > 60


def test_two_builds_by_row_source_kind_params_and_reason(corpus, tmp_path):
    shutil.copytree(corpus.root, tmp_path / "next", symlinks=True)
    project = Project(tmp_path / "next")
    new = [*FORUM[:-1], chat(500, id="new")]
    new[0] = {**new[0], "messages": [*new[0]["messages"][:1], {"role": "assistant", "content": "Short and new."}]}
    write_jsonl(project.root / "raw" / "forum.jsonl", new)
    write_jsonl(project.root / "raw" / "web.jsonl", WEB[:5])
    run_all_but_gate(project)
    found = diff(corpus, project)
    assert "forum#1" in found.changed
    assert "forum#40" in found.changed
    assert found.sources["web"].removed == found.rows.removed == len(found.removed) > 20
    assert found.reasons == {"not in a ledger": len(found.removed)}


def run_all_but_gate(project):
    from corpusforge import graph
    from corpusforge.shell import run_stage

    for stage in graph.DATA[:-1]:
        run_stage(project, stage)


def test_a_row_that_a_rule_now_drops_comes_with_stage_and_reason(corpus, tmp_path):
    shutil.copytree(corpus.root, tmp_path / "next", symlinks=True)
    project = edit_params(Project(tmp_path / "next"), lambda p: p.update(filter={"max_chars": 300}))
    run_all_but_gate(project)
    found = diff(corpus, project)
    assert found.removed
    assert found.reasons == {"filter over_long": len(found.removed)}
    assert found.params == {"filter.max_chars": (None, 300)}


def test_a_build_without_a_row_is_an_empty_side(corpus, tmp_path):
    shutil.copytree(corpus.root, tmp_path / "next", symlinks=True)
    project = edit_params(Project(tmp_path / "next"), lambda p: p.update(filter={"max_chars": 1}))
    run_all_but_gate(project)
    found = diff(corpus, project)
    assert (found.rows.b, found.rows.removed) == (0, found.rows.a)


def test_plain_files_are_compared_by_the_users_own_ids(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [chat(1), chat(2), chat(3)])
    write_jsonl(tmp_path / "b.jsonl", [chat(3), chat(4), chat(9, id="chat-1")])
    found = diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (found.added, found.removed, found.changed) == (["chat-4"], ["chat-2"], ["chat-1"])


def test_a_row_under_another_id_is_moved(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [chat(1), chat(2)])
    write_jsonl(tmp_path / "b.jsonl", [chat(1), chat(2, id="renamed")])
    found = diff(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert (found.moved, found.added, found.removed) == (1, [], [])


def test_a_place_without_rows_is_named(tmp_path):
    with pytest.raises(SourceError, match="does not exist"):
        diff(tmp_path / "nothing.parquet", tmp_path)
    with pytest.raises(SourceError, match="holds no Parquet file"):
        diff(tmp_path, tmp_path)


ROWS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 3), max_size=8)


def frame(rows):
    return pl.DataFrame(
        {"row_id": list(rows), "content": list(rows.values()), "source": ["s"] * len(rows), "kind": ["k"] * len(rows)},
        schema=COLUMNS,
    )


@given(ROWS, ROWS)
def test_rows_are_conserved_and_a_diff_back_is_its_mirror(a, b):
    there, moved = _compare(frame(a), frame(b))
    back, moved_back = _compare(frame(b), frame(a))
    assert len(a) + there["added"].sum() - there["removed"].sum() == len(b)
    assert (there["added"].sum(), there["removed"].sum()) == (back["removed"].sum(), back["added"].sum())
    assert (moved, there["changed"].sum()) == (moved_back, back["changed"].sum())
    assert there["changed"].sum() == sum(a[key] != b[key] for key in a.keys() & b.keys())
