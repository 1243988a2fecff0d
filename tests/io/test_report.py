"""The report on disk, over a real build."""

from __future__ import annotations

import json

from corpusforge.io.report import gather, run
from corpusforge.stages.report import report


def test_the_same_build_gives_the_same_bytes(corpus, tmp_path):
    run(corpus, tmp_path)
    for name in ("report.json", "index.html"):
        assert (tmp_path / name).read_bytes() == (corpus.data("report") / name).read_bytes()


def test_counts_of_partitions_ledgers_and_shards_agree(corpus):
    found = report(gather(corpus))
    assert found["totals"]["adds_up"]
    assert [(s["stage"], s["dropped"]) for s in found["stages"] if s["dropped"]] == [
        ("ingest", 1),
        ("dedupe", 1),
        ("filter", 1),
        ("decontaminate", 1),
    ]
    assert found["totals"]["rows_in_shards"] == sum(found["kinds"].values()) == 71


def test_personal_data_is_counted_and_never_shown(corpus):
    text = (corpus.data("report") / "report.json").read_text()
    assert json.loads(text)["personal_data"]["entities"] == {"EMAIL_ADDRESS": 1}
    assert "anna" not in text
    assert "anna" not in (corpus.data("report") / "index.html").read_text()


def test_a_leak_is_reported_by_benchmark(corpus):
    exam = json.loads((corpus.data("report") / "report.json").read_text())["contamination"]["benchmarks"]["exam"]
    assert (exam["items"], exam["items_hit"], exam["rows_hit"]) == (1, 1, 1)


def test_samples_are_cut_and_come_from_finished_rows(corpus):
    samples = json.loads((corpus.data("report") / "report.json").read_text())["samples"]
    assert len(samples) == 3
    finished = set(corpus.rows("blend", ["row_id"])["row_id"].to_pylist())
    assert all(sample["row_id"] in finished for sample in samples)
