"""json_schema: where the JSON stands, how strictly it is read, and schemas that decide nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import Verdict, _limits, verify
from corpusforge.verify.json_schema import read

SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
FENCED = '```json\n{"a": 1}\n```'


def ask(text: str, schema: Any = SCHEMA, **more: Any) -> Verdict:
    return verify({"verifier": {"kind": "json_schema", "spec": {"schema": schema, **more}}}, text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' {"a": 1.0}\n',
        FENCED,
        '```\n{"a": 1}\n```',
        '<think>{"a": 0}</think>{"a": 1}',
        '{"a": 1, "b": "```x```"}',
        '```json\n{"a": 1, "b": "so ```x``` it ```"}\n```',
        '```json\n{"a": 1}```',
    ],
)
def test_json_that_obeys_passes_bare_or_fenced(text: str) -> None:
    assert ask(text).rule == "json_schema.valid"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "no_answer"),
        ('{"a": "1"}', "invalid"),
        ("[1]", "invalid"),
        ('{"a": 1', "malformed"),
        ('{"a": NaN}', "malformed"),
        ('{"a": -Infinity}', "malformed"),
        ("{'a': 1}", "malformed"),
        (f"Sure!\n{FENCED}", "malformed"),
        (f"{FENCED}\nDone.", "malformed"),
        ('```python\n{"a": 1}\n```', "malformed"),
        ('{"a": 1, "a": 2}', "duplicate_key"),
        ('{"b": {"c": 1, "c": 1}, "a": 1}', "duplicate_key"),
        ('{"a": ' + "9" * 5_000 + "}", "too_long"),
        ('{"a": 1e999}', "too_long"),
        ("[" * 1_000_000, "too_deep"),
        ('{"a":' * 101 + "1" + "}" * 101, "too_deep"),
        ("\x00" * 1_000_000, "malformed"),
        ('"' * 1_000_000, "malformed"),
    ],
)
def test_json_that_does_not_obey_fails(text: str, rule: str) -> None:
    verdict = ask(text)
    assert (verdict.outcome, verdict.rule) == ("fail", f"json_schema.{rule}")


def test_large_numbers_and_a_hundred_levels_are_read() -> None:
    assert ask('{"a": ' + "9" * 999 + "}").outcome == "pass"
    assert ask("[" * 100 + "]" * 100, True).outcome == "pass"
    assert ask('"' + "[" * 1_000 + '"', True).outcome == "pass"


def test_words_around_it_are_allowed_where_the_specification_says_so() -> None:
    assert ask(f"Sure!\n```json\n[]\n```\nno:\n{FENCED}\nDone.", around=True).outcome == "pass"
    assert ask('{"a": 1}', around=True).outcome == "pass"
    assert (
        ask('Sure:\n```json\n{"a": 1, "b": "```x``` ```"}\n```\nwith `code` and ```more```.', around=True).outcome
        == "pass"
    )
    assert ask(f"{FENCED}\n```python\n[]\n```", around=True).outcome == "pass"
    assert ask('Sure! {"a": 1}', around=True).outcome == "fail"


@pytest.mark.parametrize(
    ("schema", "rule"),
    [
        (None, "unreadable_schema"),
        ("{}", "unreadable_schema"),
        ({"type": 5}, "unreadable_schema"),
        ({"pattern": "("}, "unreadable_schema"),
        ({"$schema": "https://nobody.example/draft"}, "unreadable_schema"),
        ({"$schema": 5}, "unreadable_schema"),
        ({"$ref": "https://nobody.example/schema"}, "unresolved_ref"),
        ({"$ref": "#/$defs/absent"}, "unresolved_ref"),
        ({"$ref": "file:///etc/hostname"}, "unresolved_ref"),
        ({"$ref": "#"}, "schema_too_deep"),
    ],
)
def test_a_schema_that_decides_nothing_is_undecided(schema: Any, rule: str) -> None:
    verdict = ask("1", schema)
    assert (verdict.outcome, verdict.rule) == ("undecided", f"json_schema.{rule}")


def test_a_pattern_of_a_schema_that_never_ends_is_undecided() -> None:
    assert ask('"' + "x" * 40 + '"', {"pattern": "(x+x+)+y"}).rule == "json_schema.timeout"


def test_without_a_pattern_what_goes_over_a_limit_is_the_texts_own_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def over(*_: Any) -> None:
        raise _limits.Exceeded("memory", own=True)

    def over_by_pattern(*_: Any) -> None:
        raise _limits.Exceeded("timeout")

    monkeypatch.setattr(_limits, "hold", over)
    monkeypatch.setattr(_limits, "call", over_by_pattern)
    assert ask("1", {"type": "integer"}).outcome == "fail"
    assert ask("1", {"items": [{"not": {"pattern": "x"}}], "type": "integer"}).outcome == "undecided"


def test_the_draft_that_a_schema_names_decides() -> None:
    tuples = {"items": [{"type": "string"}]}  # a list of schemas: until draft 2019-09
    assert ask("[1]", tuples).rule == "json_schema.unreadable_schema"
    assert ask("[1]", {"$schema": "http://json-schema.org/draft-07/schema#", **tuples}).rule == "json_schema.invalid"
    assert ask('{"type": 5}', {"$ref": "https://json-schema.org/draft/2020-12/schema"}).outcome == "fail"


def test_a_constant_is_a_gold_value() -> None:
    gold = {"const": {"a": [1, True, "x"]}}
    assert ask('{"a": [1.0, true, "x"]}', gold).outcome == "pass"
    assert ask('{"a": [1, 1, "x"]}', gold).outcome == "fail"


@given(st.text('[]{}":,0123456789.eE-+ntf\\ \n`', max_size=40))
def test_what_is_read_is_what_the_standard_library_reads(text: str) -> None:
    try:
        value = read(text)
    except ValueError:
        value = None
    assert value is None or value == json.loads(text)


@pytest.mark.parametrize(
    ("step", "text", "outcome"),
    [
        (0.01, "0.07", "pass"),
        (0.01, "19.99", "pass"),
        (0.01, "0.075", "fail"),
        (0.1, "1" + "0" * 400, "pass"),
        (0.1, "1" + "0" * 400 + ".5", "fail"),
        (10**400, "0.5", "fail"),
        (10**400, "1e308", "fail"),
        (3, '"three"', "pass"),
    ],
)
def test_multiples_are_told_in_decimals_of_any_size(step: Any, text: str, outcome: str) -> None:
    assert ask(text, {"multipleOf": step}).outcome == outcome


def test_thousands_of_objects_are_told_apart_and_equal_ones_are_found() -> None:
    different = [{"a": number, "b": [number]} for number in range(20_000)]
    assert ask(json.dumps(different), {"uniqueItems": True}).outcome == "pass"
    assert ask(json.dumps([*different, {"b": [7.0], "a": 7}]), {"uniqueItems": True}).outcome == "fail"
    assert ask('[1, true, "1", [1], [true], {"a": 0}, {"a": false}]', {"uniqueItems": True}).outcome == "pass"
    assert ask("[[1, [0]], [1.0, [0.0]]]", {"uniqueItems": True}).outcome == "fail"
