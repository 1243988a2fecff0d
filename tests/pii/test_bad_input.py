"""Odd input is searched all the same, in bounded time, or the row is not called clean. Every value is invented."""

from __future__ import annotations

import importlib
import json
import logging
import time
import traceback
import unicodedata

import pytest
from tests.rows import message, row, table

from corpusforge.errors import ConfigError, MissingExtra
from corpusforge.pii import names, phones, presidio, recognisers, secrets, standins
from corpusforge.pii.context import View
from corpusforge.pii.presidio import PatternTimeout
from corpusforge.pii.recognisers import find
from corpusforge.stages.scrub import scan, scrub


def values(text):
    return [text[one.start : one.end] for one in find(View(text))]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_text_in_any_unicode_form(form):
    text = unicodedata.normalize(form, "Écrivez à zoé.quill@corp.com, ﬁn, ou +49 171 2345678.")
    assert [value for value in values(text) if "corp.com" in value]
    assert "+49 171 2345678" in values(text)


@pytest.mark.parametrize(
    "hidden", list("\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a\u2066\u2069\u034f\ufe0f\u3164\U000e0041")
)
def test_invisible_characters_inside_a_value(hidden):
    text = f"mail zoe{hidden}.quill@co{hidden}rp.com or 212-4{hidden}56-7890"
    assert values(text) == [f"zoe{hidden}.quill@co{hidden}rp.com", f"212-4{hidden}56-7890"]


@pytest.mark.parametrize("script", ["联系{}谢谢", "연락{}주세요", "お電話{}です", "написать{}сюда", "संपर्क{}करें"])
def test_neighbours_of_another_script(script):
    for value in ("zoe.quill@corp.com", "+49 171 2345678"):
        assert values(script.format(value)) == [value]


@pytest.mark.parametrize("text", ["اتصل بـ +49 171 2345678 الآن", "\u202bכתבו אל zoe.quill@corp.com\u202c היום"])
def test_text_from_right_to_left(text):
    assert len(values(text)) == 1


def test_ten_megabytes_in_seconds():
    text = "Nothing is here, only words and words, line by line.\n" * 190_000 + "zoe.quill@corp.com"
    started = time.process_time()
    assert [one["entity"] for one in scan(table([row(1, text)])).to_pylist()] == ["EMAIL_ADDRESS"]
    assert len(text) > 10_000_000
    assert time.process_time() - started < 60


def test_tool_arguments_that_are_no_json_are_text():
    call = [{"function": {"name": "send", "arguments": '{"to": "zoe.quill@corp.com", '}}]
    one = row(1, "hi")
    one["messages"].append(message("assistant", '{"to": "zoe.quill@corp.com"', tool_calls=json.dumps(call)))
    kept = scrub(table([one]), key="public-demo").kept.to_pylist()[0]["messages"][1]
    arguments = json.loads(kept["tool_calls"])[0]["function"]["arguments"]
    assert arguments.startswith('{"to": "')
    assert "@example." in arguments
    assert "corp.com" not in kept["content"] + kept["tool_calls"]


@pytest.mark.parametrize("form", ["zoe＠corp.com", "zoe﹫corp.com", "zoe@corp﹒com"])
def test_wide_and_small_forms(form):
    assert values(f"联系{form}谢谢") == [form]


def test_a_handle_in_a_url_is_no_address():
    assert values("see https://medium.com/@ann.lee/post-1 or t.me/@ann.lee") == []


def test_half_a_surrogate_pair_in_json_stays_as_it_is():
    """It once ended the stage: what was put back could not be written as UTF-8."""
    one = row(1, r'{"a": "\ud800 zoe.quill@corp.com", "b": "\ud800"}')
    kept = scrub(table([one]), key="public-demo").kept.to_pylist()[0]["messages"][0]["content"]
    assert kept.startswith(r'{"a": "\ud800 ')
    assert kept.endswith(r'.net", "b": "\ud800"}')
    assert "corp.com" not in kept


@pytest.mark.parametrize("column", ["1" * 5000, "[" * 3000 + "]" * 3000, "no json"])
def test_a_column_that_no_stage_can_read_costs_its_row_only(column):
    one = row(1, "mail zoe.quill@corp.com")
    one["messages"][0]["tool_calls"] = column
    result = scrub(table([one, row(2, "clean")]), key="public-demo")
    assert result.reasons() == {"recogniser_failed": 1}
    assert json.loads(result.dropped.to_pylist()[0]["detail"]) == {"recogniser": "ContentId"}


def test_json_with_a_number_of_thousands_of_digits_is_json():
    text = f'{{"n": {"1" * 5000}, "to": "zoe\\u0040corp.com"}}'
    kept = scrub(table([row(1, text)]), key="public-demo").kept.to_pylist()[0]["messages"][0]["content"]
    assert kept.startswith(text[:5010])
    assert "@example." in kept


def test_a_string_of_megabytes_in_json_takes_seconds():
    started = time.process_time()
    text = json.dumps(["word \n" * 500_000, "zoe.quill@corp.com"])
    assert [one["field"] for one in scan(table([row(1, text)])).to_pylist()] == ["messages[0].content#1"]
    assert time.process_time() - started < 30


def test_an_unknown_entity_in_the_options_is_named():
    with pytest.raises(ConfigError, match="unknown entity 'POSTAL'"):
        scrub(table([row(1, "a")]), key="public-demo", actions={"POSTAL": "tag"})


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"actions": {"EMAIL_ADDRESS": "mask"}}, r"actions.EMAIL_ADDRESS.*'stand_in', 'tag', 'drop' or 'keep'"),
        ({"names": "spacey"}, "'names'.*'off' or 'spacy'"),
        ({"scopes": "corpus"}, "unknown option 'scopes'; did you mean 'scope'"),
    ],
)
def test_options_that_are_none_are_named(options, named):
    with pytest.raises(ConfigError, match=named):
        scrub(table([row(1, "a")]), key="public-demo", **options)


def test_a_key_in_place_of_where_it_is_is_not_repeated():
    given = "hunter2" * 3
    with pytest.raises(ConfigError, match="option 'key'") as error:
        scrub(table([row(1, "a")]), key=given)
    assert "hunter2" not in "".join(traceback.format_exception(error.value))


def test_a_model_that_is_not_installed_is_named(monkeypatch):
    def absent(name):
        raise ImportError(name)

    names.model.cache_clear()
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=names.MODEL):
        names.model()


def test_a_text_with_endless_candidates_costs_its_row_only(monkeypatch):
    monkeypatch.setattr(phones, "TRIES", 50)
    many = "call " + "".join(f"12 34 {number:03d}, " for number in range(100, 400))
    with pytest.raises(PatternTimeout, match=r"^PhoneRecognizer$"):
        phones.find(many)
    result = scrub(table([row(1, many), row(2, "clean")]), key="public-demo")
    assert result.reasons() == {"recogniser_failed": 1}
    assert result.kept.num_rows == 1


def test_a_model_that_fails_on_a_text_costs_its_row_only(monkeypatch):
    def find(texts):
        for text in texts:
            if "Thompson" in text:
                raise ValueError(text)
            yield []

    monkeypatch.setattr(names, "model", lambda: None)
    monkeypatch.setattr(names, "find", find)
    rows = [row(1, "by Ann Thompson"), row(2, "to zoe.quill@corp.com")]
    result = scrub(table(rows), key="public-demo", names="spacy")
    assert json.loads(result.dropped.to_pylist()[0]["detail"]) == {"recogniser": "SpacyRecognizer"}
    assert result.kept["row_id"].to_pylist() == ["test#2"]
    assert [one["entity"] for one in scan(table(rows), names="spacy").to_pylist()] == ["FAILED", "EMAIL_ADDRESS"]


@pytest.mark.parametrize(
    ("module", "name", "recogniser"),
    [
        (secrets, "find", "SecretRules"),
        (recognisers.plausible, "_is_ours", "PhoneRecognizer"),
        (standins, "analyse", "PhoneRecognizer"),
    ],
)
def test_rules_that_raise_cost_the_row_and_say_nothing_of_its_text(monkeypatch, module, name, recogniser):
    def broken(*_):
        raise ValueError("zoe")

    monkeypatch.setattr(module, name, broken)
    monkeypatch.setattr(standins, "is_standin_phone", lambda _: False)
    result = scrub(table([row(1, "zoe, call (212) 456-7890, AKIAQ3EGRPJ7XK2M4TBD"), row(2, "b")]), key="public-demo")
    assert result.kept["row_id"].to_pylist() == ["test#2"]
    assert json.loads(result.dropped.to_pylist()[0]["detail"])["recogniser"] == recogniser


def test_a_pattern_that_runs_away_costs_its_row_only(monkeypatch):
    """Presidio logs that a pattern ran out of time, and goes on as if there were nothing."""
    email = presidio.recogniser("EmailRecognizer")
    kind = type(email.patterns[0])
    monkeypatch.setattr(email, "patterns", [kind("endless", "(?:a|aa|a!?)+@$", 0.5)])
    monkeypatch.setattr(importlib.import_module("presidio_analyzer.pattern_recognizer"), "REGEX_TIMEOUT_SECONDS", 0.2)
    result = scrub(table([row(1, "a" * 60 + "!@b.com"), row(2, "b")]), key="public-demo")
    assert result.reasons() == {"recogniser_failed": 1}


@pytest.mark.parametrize(
    ("name", "module"),
    [("EmailRecognizer", "pattern_recognizer"), ("IbanRecognizer", "predefined_recognizers.generic.iban_recognizer")],
)
@pytest.mark.parametrize("quiet", ["disabled", "level"])
def test_a_pattern_that_runs_away_is_noticed_where_nothing_is_logged(name, module, quiet, monkeypatch):
    """Whoever finds Presidio too loud, or all of logging, must not lose the row's warning with it."""
    made = presidio.recogniser(name)
    kind = type(made.patterns[0])
    monkeypatch.setattr(made, "patterns", [kind("endless", "(?:a|aa|a!?)+@$", 0.5)])
    monkeypatch.setattr(importlib.import_module(f"presidio_analyzer.{module}"), "REGEX_TIMEOUT_SECONDS", 0.2)
    if quiet == "disabled":
        monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    else:
        monkeypatch.setattr(logging.getLogger("presidio-analyzer"), "level", logging.ERROR)
    logging.getLogger("presidio-analyzer").manager._clear_cache()
    with pytest.raises(presidio.PatternTimeout):
        presidio.analyse(name, "X", "a" * 60 + "!@b.com")


@pytest.mark.parametrize("unit", ["a@", "1.", "1:", "a-", "AKIA", "eyJ", "12 34 ", "((((", "+", "DE89 ", "$x ", "` "])
def test_repeated_beginnings_of_patterns_take_seconds(unit):
    started = time.process_time()
    find(View(unit * (60_000 // len(unit))))
    assert time.process_time() - started < 20
