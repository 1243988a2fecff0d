"""regex: what matches where, and patterns that would never end."""

from __future__ import annotations

from typing import Any

import pytest

from corpusforge.verify import verify, verify_many


def ask(spec: dict[str, Any], completion: str) -> str:
    return verify({"verifier": {"kind": "regex", "spec": spec}}, completion).rule


def outcome(spec: dict[str, Any], completion: str) -> str:
    return verify({"verifier": {"kind": "regex", "spec": spec}}, completion).outcome


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("AB1234", "pass"),
        ("The answer is AB1234.", "pass"),
        ("**Answer:** **AB1234**", "pass"),
        ("so \\boxed{AB1234}", "pass"),
        ("<think>XY0000</think>AB1234", "pass"),
        ("The answer is AB12345.", "fail"),
        ("It may be AB1234, who knows", "fail"),
        ("", "fail"),
    ],
)
def test_the_whole_answer_has_to_match(text: str, expected: str) -> None:
    assert outcome({"pattern": "[A-Z]{2}\\d{4}"}, text) == expected


@pytest.mark.parametrize(
    ("spec", "text", "expected"),
    [
        ({"pattern": "b.c", "where": "search"}, "abxcd", "pass"),
        ({"pattern": "b.c", "where": "search"}, "ab\ncd", "fail"),
        ({"pattern": "b.c", "where": "search", "flags": "s"}, "ab\ncd", "pass"),
        ({"pattern": "a+", "where": "whole"}, " aaa\n", "pass"),
        ({"pattern": "a+", "where": "whole"}, "The answer is aaa", "fail"),
        ({"pattern": "A", "flags": "i"}, "a", "pass"),
        ({"pattern": "secret", "where": "search"}, "<think>secret</think>no", "fail"),
    ],
)
def test_where_and_flags(spec: dict[str, Any], text: str, expected: str) -> None:
    assert outcome(spec, text) == expected


@pytest.mark.parametrize(
    ("spec", "rule"),
    [
        ({}, "regex.unreadable_pattern"),
        ({"pattern": "("}, "regex.unreadable_pattern"),
        ({"pattern": ""}, "regex.unreadable_pattern"),
        ({"pattern": "a{99999999999999999999}"}, "regex.unreadable_pattern"),
        ({"pattern": "(" * 4_000 + ")" * 4_000}, "regex.unreadable_pattern"),
        ({"pattern": "a", "flags": "L"}, "regex.unreadable_flags"),
        ({"pattern": "a", "flags": ["i"]}, "regex.unreadable_flags"),
        ({"pattern": "a", "where": "nowhere"}, "regex.unreadable_where"),
        ({"pattern": "a", "where": []}, "regex.unreadable_where"),
    ],
)
def test_a_pattern_that_cannot_be_tried_is_undecided(spec: dict[str, Any], rule: str) -> None:
    assert (outcome(spec, "a"), ask(spec, "a")) == ("undecided", rule)


def test_a_pattern_that_never_ends_is_undecided_and_the_next_one_is_checked() -> None:
    runaway = {"verifier": {"kind": "regex", "spec": {"pattern": "(x+x+)+y"}}}
    good = {"verifier": {"kind": "regex", "spec": {"pattern": "x+"}}}
    verdicts = verify_many([runaway, good], ["x" * 40, "x" * 40])
    assert [verdict.rule for verdict in verdicts] == ["regex.timeout", "regex.answer"]


def test_a_megabyte_is_matched_and_more_is_refused() -> None:
    spec = {"pattern": "(?:a|b)*", "where": "whole"}
    assert outcome(spec, "ab" * 500_000) == "pass"
    assert ask(spec, "ab" * 2_500_000) == "regex.too_long"
