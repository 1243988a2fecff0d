"""Odd input is searched all the same, in bounded time, or the row is not called clean. Every value is invented."""

from __future__ import annotations

import importlib
import json
import time
import unicodedata

import pytest
from tests.rows import message, row, table

from corpusforge.errors import ConfigError, MissingExtra
from corpusforge.pii import names, phones
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


@pytest.mark.parametrize("hidden", ["\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad"])
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


def test_an_unknown_entity_in_the_options_is_named():
    with pytest.raises(ConfigError, match="unknown entity 'POSTAL'"):
        scrub(table([row(1, "a")]), key="public-demo", actions={"POSTAL": "tag"})


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


@pytest.mark.parametrize("unit", ["a@", "1.", "1:", "a-", "AKIA", "eyJ", "12 34 ", "((((", "+", "DE89 ", "$x ", "` "])
def test_repeated_beginnings_of_patterns_take_seconds(unit):
    started = time.process_time()
    find(View(unit * (60_000 // len(unit))))
    assert time.process_time() - started < 20
