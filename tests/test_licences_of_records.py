"""Terms that records state, however they spell them: what is understood holds, and a prohibition is never nothing."""

from __future__ import annotations

from typing import Any

import pytest

from corpusforge.licences import implied_by_record, normalise, of_record, restrictions_of_record
from corpusforge.stages._record import Record
from corpusforge.stages.ingest import SourceConfig, ingest


@pytest.mark.parametrize(
    "said",
    [
        "禁止训练",
        "обучение запрещено",
        "⛔",
        "-",
        ["禁止訓練"],
        {"禁止訓練": True},
        "none; 禁止",
        "none、禁止",
        "none ⛔",
        '["禁止"]',
    ],
)
def test_a_prohibition_in_any_script_is_one(said: Any) -> None:
    assert restrictions_of_record(said) == ["other-terms"]


@pytest.mark.parametrize("said", ["ＮＯ－ＴＲＡＩＮ", "no‑train", "No training!", '["no-train"]', '{"no-train": true}'])
def test_spellings_of_a_restriction(said: str) -> None:
    assert restrictions_of_record(said) == ["no-train"]


@pytest.mark.parametrize(
    "said", ["", "  ", "None", "n/a", "no restrictions", "[]", "{}", {"no-train": 0}, [None], "Ｎｏｎｅ"]
)
def test_nothing_is_said_in_so_many_words(said: Any) -> None:
    assert restrictions_of_record(said) == []


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("CC‑BY‑NC‑4.0", "CC-BY-NC-4.0"),
        ("ＣＣ－ＢＹ－ＮＣ－４．０", "CC-BY-NC-4.0"),
        ("CC BY-NC-SA 4.0 International", "CC-BY-NC-SA-4.0"),
        ("CC_BY_ND_4.0", "CC-BY-ND-4.0"),
        ("https://creativecommons.org/licenses/by-nc/4.0/", "CC-BY-NC-4.0"),
        ("http://creativecommons.org/licenses/by-nc-nd/3.0/legalcode", "CC-BY-NC-ND-3.0"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("Creative Commons Attribution-NonCommercial 4.0 International", "CC-BY-NC-4.0"),
        ("Creative Commons Attribution Share-Alike 4.0 International Public License", "CC-BY-SA-4.0"),
        ("CC-BY-NC", None),
        ("CC-BY-SA-3.0-DE", "CC-BY-SA-3.0-DE"),
    ],
)
def test_spellings_of_creative_commons(said: str, means: str | None) -> None:
    assert normalise(said) == means


@pytest.mark.parametrize(
    ("said", "licence", "follows"),
    [
        (["CC-BY-NC-4.0", "see README"], "unknown", ["non-commercial"]),
        (["CC-BY-NC-4.0", None], "unknown", ["non-commercial"]),
        (["CC-BY-NC-4.0", ["MIT"]], "CC-BY-NC-4.0 AND MIT", ["non-commercial"]),
        ("CC-BY-NC-4.0 AND Foo", "unknown", ["non-commercial"]),
        ("llama3.1 AND Foo", "unknown", ["provider-terms"]),
        ('["MIT", "CC-BY-NC-4.0"]', "MIT AND CC-BY-NC-4.0", ["non-commercial"]),
        ("CC BY-NC", "unknown", ["non-commercial"]),
        ("cc-by-nc-sa", "unknown", ["non-commercial", "share-alike"]),
        ("https://creativecommons.org/licenses/by-nc-nd/3.0/us/", "unknown", ["no-derivatives", "non-commercial"]),
        ("Creative Commons Attribution-NonCommercial (see LICENSE)", "unknown", ["non-commercial"]),
        ({"name": "CC-BY-NC-4.0"}, "CC-BY-NC-4.0", ["non-commercial"]),
        ({"id": "x", "spdx": "CC-BY-NC-4.0"}, "CC-BY-NC-4.0", ["non-commercial"]),
        ("no-train", "unknown", ["no-train"]),
        (["MIT", "ＮＯ－ＴＲＡＩＮ"], "unknown", ["no-train"]),
        ("MIT OR CC-BY-NC-4.0", "MIT OR CC-BY-NC-4.0", []),
        ("CC-BY", "unknown", []),
        ("CC BY Sandy", "unknown", []),
        ("see README", "unknown", []),
        ({}, "unknown", []),
    ],
)
def test_what_is_understood_of_a_licence_holds(said: Any, licence: str, follows: list[str]) -> None:
    assert (of_record(said), implied_by_record(said)) == (licence, follows)


def terms(*records: dict[str, Any], **more: Any) -> tuple[str, list[str]]:
    """Licence and restrictions of the one row of `records`, of a source of no known licence."""
    config = SourceConfig.model_validate({"name": "s", "path": "a", "license": "unknown", **more})
    values = [{"prompt": "a", "completion": "b", **one} for one in records]
    members = tuple(Record(n, one, "a", n, None) for n, one in enumerate(values, 1))
    whole = Record(1, {}, "a", 1, None, "", members=members) if len(members) > 1 else members[0]
    (row,) = ingest([whole], config, detect_language=False).kept.to_pylist()
    return row["source"]["license"], row["source"]["restrictions"]


def test_both_spellings_of_the_field_count() -> None:
    assert terms({"license": "MIT", "licence": "CC-BY-NC-4.0"}) == ("MIT AND CC-BY-NC-4.0", ["non-commercial"])
    assert terms({"license": "", "licence": "CC-BY-NC-4.0"}) == ("CC-BY-NC-4.0", ["non-commercial"])
    assert terms({"license": "CC-BY-NC-4.0"}, fields={"license": "licence"}) == ("CC-BY-NC-4.0", ["non-commercial"])


def test_a_row_of_a_licence_half_understood_is_restricted() -> None:
    assert terms({"license": ["CC-BY-NC-4.0", "see README"]}) == ("unknown", ["non-commercial"])
    assert terms({"license": "no-train"}) == ("unknown", ["no-train"])


def test_terms_of_one_record_hold_for_its_group() -> None:
    fields = {"text": {"path": "group[0].prompt"}}
    found = terms({"license": ["CC-BY-NC-4.0", "see README"]}, {"licence": "MIT"}, fields=fields, shape="text")
    assert found == ("unknown", ["non-commercial"])


def test_words_that_nobody_understands_lift_nothing() -> None:
    source = SourceConfig(name="s", path="x", license="CC-BY-NC-4.0")
    record = Record(1, {"text": "a", "license": "see README"}, "x", 1)
    (row,) = ingest([record], source).kept.to_pylist()
    assert (row["source"]["license"], row["source"]["restrictions"]) == ("unknown", ["non-commercial"])
