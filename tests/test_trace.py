"""A row's whole life, from a project and from a release."""

from __future__ import annotations

import pytest

from corpusforge.errors import ProjectError
from corpusforge.io import releases
from corpusforge.project import Project
from corpusforge.trace import trace
from tests.projects import make_project


def one(identifier, place):
    lives = trace(identifier, place).lives
    assert len(lives) == 1
    return lives[0]


def end(life):
    return life.steps[-1].stage, life.steps[-1].status, life.steps[-1].reason


def test_a_duplicate_names_the_kept_row_its_similarity_and_its_fate(corpus):
    life = one("copy-of-7", corpus)
    assert life.row_id == "web#31"
    assert end(life) == ("dedupe", "dropped", "exact_duplicate")
    assert life.steps[-1].detail == {"kept": "forum#8", "method": "exact", "similarity": 1.0}
    assert life.kept_row is not None
    assert life.kept_row.status == "in shards"


def test_a_contaminated_row_names_benchmark_item_side_and_span(corpus):
    life = one("leak", corpus)
    assert end(life) == ("decontaminate", "dropped", "benchmark_question")
    detail = life.steps[-1].detail
    assert (detail["benchmark"], detail["side"], detail["field"]) == ("exam", "question", "messages[0].content")
    assert detail["item"]
    start, stop = detail["span"]
    assert 0 <= start < stop


def test_a_filtered_row_names_the_rule(corpus):
    assert end(one("silent", corpus)) == ("filter", "dropped", "empty")


def test_a_scrubbed_row_is_told_as_changed_and_its_shard_is_named(corpus):
    life = one("mail", corpus)
    changed = [(step.stage, step.reason) for step in life.steps if step.status == "changed"]
    assert changed == [("scrub", "scrubbed")]
    (shard,) = life.shards
    assert (corpus.data("shard") / shard).is_file()
    assert "anna" not in str(trace("mail", corpus))


def test_a_quarantined_record_names_file_and_line(corpus):
    life = one("broken", corpus)
    assert end(life)[:2] == ("ingest", "quarantined")
    assert (life.steps[-1].detail["file"], life.steps[-1].detail["line"]) == ("raw/web.jsonl", 35)


def test_an_own_id_that_two_rows_share_tells_both(tmp_path):
    same = [{"id": "r", "messages": [{"role": "user", "content": f"Question {i}"}]} for i in range(2)]
    project = make_project(tmp_path, {"forum": same})
    from corpusforge.shell import run_stage

    run_stage(project, "ingest")
    assert [(life.row_id, life.status) for life in trace("r", project).lives] == [
        ("forum#1", "unfinished"),
        ("forum#2", "unfinished"),
    ]


@pytest.mark.parametrize("own", ["broken", "copy-of-7", "chat-3"])
def test_an_own_id_behind_the_name_of_its_source(corpus, own):
    life = one(own, corpus)
    found = trace(f"{life.source['name']}:{own}", corpus).lives
    assert [each.row_id for each in found] == [life.row_id]
    assert not trace(f"elsewhere:{own}", corpus)
    release = releases.publish(Project(corpus.root)).path
    assert [each.row_id for each in trace(f"{life.source['name']}:{own}", release).lives] == [life.row_id]


def test_an_unknown_id_is_false_and_says_so(corpus):
    found = trace("nobody", corpus)
    assert not found
    assert "nobody: no row" in str(found)


def test_before_the_first_stage_there_is_nothing_to_trace(tmp_path):
    with pytest.raises(ProjectError, match="no stage has run"):
        trace("r", make_project(tmp_path, {"forum": []}))


@pytest.mark.parametrize("identifier", ["copy-of-7", "leak", "silent", "mail", "chat-3"])
def test_a_release_tells_the_same_end_as_its_project(corpus, identifier):
    release = releases.publish(Project(corpus.root)).path
    here, there = one(identifier, corpus), one(identifier, release)
    assert (end(there), there.status, there.shards) == (end(here), here.status, here.shards)
    assert there.source["record_id"] == identifier


def test_the_text_has_a_line_per_stage(corpus):
    text = str(trace("chat-3", corpus))
    for stage in ("ingest", "dedupe", "filter", "scrub", "health", "grade", "decontaminate", "blend", "shard"):
        assert f"\n  {stage} " in text
    assert trace("chat-3", corpus).to_dict()["rows"][0]["status"] == "in shards"
