"""instructions: each of IFEval's 25 is followed by one text and missed by another; every prompt of it is decided."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.shapes.tasks import ifeval
from corpusforge.verify import Verdict, verify, verify_many
from corpusforge.verify._ifeval import RULES

if TYPE_CHECKING:
    from pathlib import Path

ENGLISH = "this is a plain text about the weather and the people who live by the sea."
GERMAN = "Das Wetter war schön und die Leute saßen am Meer und aßen ihr Brot."
EXAMPLES: list[tuple[str, dict[str, Any], str, str]] = [
    ("keywords:existence", {"keywords": ["sea", "bread"]}, "Bread at the SEASIDE", "bread"),
    ("keywords:frequency", {"keyword": "a.b", "frequency": 2, "relation": "at least"}, "a.b A.B", "a.b axb"),
    ("keywords:frequency", {"keyword": "sea", "frequency": 2, "relation": "less than"}, "sea", "sea, sea"),
    ("keywords:forbidden_words", {"forbidden_words": ["sea", "c++"]}, "seaside", "the Sea"),
    ("keywords:forbidden_words", {"forbidden_words": ["sea", "c++"]}, "c+", "use C++!"),
    ("keywords:letter_frequency", {"letter": "Q", "let_frequency": 2, "let_relation": "at least"}, "Qq", "q"),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": "less than"}, "#", "##"),
    ("language:response_language", {"language": "de"}, GERMAN, ENGLISH),
    ("language:response_language", {"language": "hi"}, "मौसम अच्छा था और लोग समुद्र के किनारे बैठे थे।", ENGLISH),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "at least"}, "One. Two.", "Mr. One."),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "less than"}, "Mr. One.", "One. Two."),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "one\n***\ntwo\n***", "one\n***\n***\ntwo"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "at least"}, "it's me", "two words"),
    ("length_constraints:number_words", {"num_words": 3, "relation": "less than"}, "two words", "it's me"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "Sea"},
        'One.\n\n"Sea, and more.',
        "One.\n\nSeaside.",
    ),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 1, "first_word": "one"},
        "One.\n\nTwo.",
        "One.\n\nTwo.\n\nThree.",
    ),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] and [b]", "[a and\nb] [c]"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "Yours.\np. s. Bye", "Yours. PS Bye"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "P.P.S bye", "P.S. bye"),
    ("detectable_content:postscript", {"postscript_marker": "N.B."}, "n.b. bye", "nxbx bye"),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "Two:\n* one\n  - two", "* one\n** bold **"),
    ("detectable_format:constrained_response", {}, "My answer is maybe.", "My answer is: maybe"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", "*a* and ** ** *"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "SECTION", "num_sections": 2},
        "SECTION 1\nx\nSECTION 2\ny",
        "Section 1\nx\nSection 2\ny",
    ),
    ("detectable_format:json_format", {}, '```json\n{"a": 1}\n```', 'Here: {"a": 1}'),
    ("detectable_format:title", {}, "<<Of the sea>>\nIt is wide.", "<< >> <Of the\nsea>>"),
    ("combination:two_responses", {}, "one ****** two", "one ****** one"),
    ("combination:two_responses", {}, "one\n******\ntwo\n******", "one ****** two ****** three"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Say it. "}, " say it. I did", "I say it."),
    ("startend:end_checker", {"end_phrase": "Any questions?"}, '"So. ANY questions?"', "Any questions? Bye."),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "at least"},
        "WELL-KNOWN, (YES)",
        "WELL-KNOWN, Yes",
    ),
    (
        "change_case:capital_word_frequency",
        {"capital_frequency": 2, "capital_relation": "less than"},
        "only ONE",
        "NOT ONE",
    ),
    ("change_case:english_capital", {}, ENGLISH.upper(), ENGLISH),
    ("change_case:english_capital", {}, ENGLISH.upper(), GERMAN.upper()),
    ("change_case:english_lowercase", {}, ENGLISH, ENGLISH.capitalize()),
    ("change_case:english_lowercase", {}, ENGLISH, GERMAN.lower()),
    ("punctuation:no_comma", {}, "one and two", "one, two"),
    ("startend:quotation", {}, ' "whole"\n', '"part" only'),
]


def ask(text: str, *listed: tuple[Any, Any], **more: Any) -> Verdict:
    spec = {"instructions": [{"id": name, "kwargs": given} for name, given in listed], **more}
    return verify({"verifier": {"kind": "instructions", "spec": spec}}, text)


def test_there_is_an_example_of_each_of_the_25() -> None:
    assert len(RULES) == 25
    assert {name for name, *_ in EXAMPLES} == RULES.keys()


@pytest.mark.parametrize(("name", "given", "follows", "fails"), EXAMPLES)
def test_one_text_follows_and_another_does_not(name: str, given: dict[str, Any], follows: str, fails: str) -> None:
    kept = ask(follows, (name, given))
    assert (kept.outcome, kept.score, kept.rule) == ("pass", 1.0, "instructions.followed")
    missed = ask(fails, (name, given))
    assert (missed.outcome, missed.rule) == ("fail", f"instructions.{name.partition(':')[2]}")


def test_the_score_is_the_share_that_is_followed() -> None:
    listed = [("punctuation:no_comma", {}), ("startend:quotation", None), ("detectable_format:title", {})]
    verdict = ask("no comma and no title", *listed)
    assert (verdict.outcome, verdict.rule) == ("fail", "instructions.quotation")
    assert verdict.score == pytest.approx(1 / 3)
    assert ask('"<<title>>"', *listed).outcome == "pass"


def test_an_empty_response_follows_nothing_and_reasoning_is_no_response() -> None:
    assert ask(" \n", ("punctuation:no_comma", {})).outcome == "fail"
    assert ask("<think>well, well</think>fine", ("punctuation:no_comma", {})).outcome == "pass"


def test_loose_forgives_a_first_line_a_last_line_and_asterisks() -> None:
    asked = ("startend:quotation", {})
    for text in ('Sure:\n"whole"', '"whole"\nBye.', 'Sure:\n"whole"\nBye.', '**"whole"**'):
        assert (ask(text, asked).outcome, ask(text, asked, loose=True).outcome) == ("fail", "pass")
    assert ask('Well:\nSure:\n"whole"', asked, loose=True).outcome == "fail"


@pytest.mark.parametrize(
    ("name", "given", "rule"),
    [
        ("punctuation:no_semicolon", {}, "unknown_instruction"),
        (None, {}, "unknown_instruction"),
        (["x"], {}, "unknown_instruction"),
        ("punctuation:no_comma", {"mood": "firm"}, "unreadable_arguments"),
        ("punctuation:no_comma", [1], "unreadable_arguments"),
        ("length_constraints:number_words", {"num_words": 3}, "unreadable_arguments"),
        ("length_constraints:number_words", {"num_words": -3, "relation": "at least"}, "unreadable_arguments"),
        ("length_constraints:number_words", {"num_words": 2.5, "relation": "at least"}, "unreadable_arguments"),
        ("length_constraints:number_words", {"num_words": True, "relation": "at least"}, "unreadable_arguments"),
        ("length_constraints:number_words", {"num_words": 3, "relation": "about"}, "unreadable_arguments"),
        ("length_constraints:number_words", {"num_words": 3, "relation": ["at least"]}, "unreadable_arguments"),
        ("keywords:existence", {"keywords": []}, "unreadable_arguments"),
        ("keywords:existence", {"keywords": "sea"}, "unreadable_arguments"),
        ("keywords:existence", {"keywords": ["sea", 5]}, "unreadable_arguments"),
        (
            "keywords:letter_frequency",
            {"letter": "ab", "let_frequency": 1, "let_relation": "at least"},
            "unreadable_arguments",
        ),
        ("language:response_language", {"language": "tlh"}, "unreadable_arguments"),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 3, "first_word": "a"},
            "unreadable_arguments",
        ),
        (
            "length_constraints:nth_paragraph_first_word",
            {"num_paragraphs": 2, "nth_paragraph": 0, "first_word": "a"},
            "unreadable_arguments",
        ),
    ],
)
def test_an_instruction_that_cannot_be_asked_is_undecided(name: Any, given: Any, rule: str) -> None:
    for text in ("plain", ""):
        verdict = ask(text, ("startend:quotation", {}), (name, given))
        assert (verdict.outcome, verdict.rule) == ("undecided", f"instructions.{rule}")


@pytest.mark.parametrize("listed", [None, [], {}, "x", [5], [None], [{"id": "punctuation:no_comma"}] * 101])
def test_a_list_of_instructions_that_is_none_is_undecided(listed: Any) -> None:
    task = {"verifier": {"kind": "instructions", "spec": {"instructions": listed}}}
    assert verify(task, "plain").rule == "instructions.unreadable_instructions"


def test_arguments_of_other_instructions_may_be_null_and_counts_may_be_floats() -> None:
    given = {"num_bullets": 1.0, "num_words": None, "keywords": None}
    assert ask("* one", ("detectable_format:number_bullet_lists", given)).outcome == "pass"


@pytest.mark.parametrize("piece", ["[", "*", "\n", " ", "<<", "p.", "a. ", "-\n", "\ud800", "```", "Section "])
def test_every_instruction_is_quick_on_a_megabyte(piece: str) -> None:
    listed = list({name: (name, given) for name, given, *_ in EXAMPLES}.values())
    verdict = ask(piece * (1_000_000 // len(piece)), *listed)
    assert verdict.outcome == "fail"
    assert verdict.seconds < 60  # what is quadratic takes hours


def test_every_prompt_of_ifeval_is_decided(shared: Path) -> None:
    lines = (shared / "data" / "ifeval" / "input_data.jsonl").read_text(encoding="utf-8").splitlines()
    drafts = [draft for line in lines for draft in ifeval(json.loads(line))]
    tasks = [{"verifier_kind": draft.verifier[0], "verifier_spec": draft.verifier[1]} for draft in drafts]
    assert len(tasks) == 541
    for text in ("A plain answer. It says nothing.", "*", "", "नमस्ते"):
        assert {verdict.outcome for verdict in verify_many(tasks, [text] * 541)} <= {"pass", "fail"}
