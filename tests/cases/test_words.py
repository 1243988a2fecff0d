"""The runner can fail: each word has an assertion that holds, and one (or a spoilt output) that it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cases import _made as made
from tests.cases._case import HELD, copy_input
from tests.cases._made import BAD, CHAT, LICENCES, PII, TWINS, Example, write_case
from tests.cases._words import WORDS, check, load_words

load_words()
PASSAGE = "How many ways can seven different books be placed on a shelf if the red one may not stand at either end?"
LEAK = [
    {"id": "k1", "prompt": PASSAGE, "completion": "3600"},
    {"id": "k2", "prompt": "Name a wood.", "completion": "Oak"},
]
BENCH: dict[str, Any] = {
    "stage": "contamination",
    "others": {"bench": [{"id": "bench/k", "prompt": PASSAGE, "answer": "3600"}]},
}
GOLD = [
    {
        "id": f"g{n}",
        "prompt": f"How many {what} make up a quire of this paper?",
        "verifier": {"kind": "math", "answer": a},
    }
    for n, what, a in ((1, "sheets", "24"), (2, "sheets", "25"), (3, "pounds", "3"))
]
SIDES = [{"id": f"s{n}", "conversation_id": "c" if n < 2 else f"c{n}", "prompt": f"Name {n}.", "completion": "x"}
         for n in range(40)]  # fmt: skip
PAIRS = [{"id": "p", **{side: [{"role": "user", "content": "a?"}, {"role": "assistant", "content": said}]
                        for side, said in (("chosen", "B"), ("rejected", "C"))}}]  # fmt: skip
MATHS = [
    {"id": "v1", "gold": "$6$", "pred": "$6$", "verdict": "equal"},
    {"id": "v2", "gold": "$6$", "pred": "$7$", "verdict": "unequal or undecided within the limit"},
    {"id": "v3", "gold": "$6$", "pred": "$7$", "verdict": "equal"},
]
REPLIES = [{"id": "r1", "reply": "Two flaws. Score: 8", "score": 8}, {"id": "r2", "reply": "Fine.", "score": None}]
FOUND = {"ids": ["a", "b", "c"]}
EXAMPLES: dict[str, list[Example]] = {
    "kept_exactly": [
        Example(CHAT, FOUND, {"ids": ["a", "b"]}),
        Example(CHAT, FOUND, spoil=made.doubled_row),
        Example([*GOLD[:1], *CHAT[:1]], {"ids": ["g1"], "set": "RL"}, {"ids": ["g1", "a"], "set": "RL"}),
    ],
    "kept_includes": [
        Example(CHAT, {"ids": ["a"]}, {"ids": ["a", "z"]}),
        Example(TWINS[1:], {"ids": ["t1", "t3"]}, {"ids": ["t2"]}, stage="dedup", config={"protect": "M01.ref.jsonl"},
                others={"ref": TWINS[:1]}),
    ],
    "kept_count": [Example(CHAT, {"n": 3}, {"n": 4})],
    "kept_count_at_least": [Example(CHAT, {"n": 3}, {"n": 4})],
    "ids_equal": [Example(CHAT, FOUND, {"ids": ["c", "b", "a"]}), Example(CHAT, FOUND, spoil=made.other_ids)],
    "one_of_each": [
        Example(TWINS, {"groups": [["t1", "t2"]]}, {"groups": [["t1", "t3"]]}, stage="dedup"),
        Example(TWINS, {"groups": [["t1", "t2"]], "stage": "exact dedup"}, {"groups": [["t1", "t2"]]}),
    ],
    "no_duplicate_ids": [Example(CHAT, {}, spoil=made.doubled_row)],
    "accounted": [
        Example(BAD, {"rows_in": 4}, {"rows_in": 5}),
        Example(BAD, {"rows_in": 4}, spoil=made.lost_row),
        Example(BAD, {"rows_in": 4}, spoil=made.lost_ledger),
    ],
    "removed_includes": [
        Example(
            TWINS, {"ids": ["t2"], "partner": {"t2": "t1"}}, {"ids": ["t2"], "partner": {"t2": "t3"}}, stage="dedup"
        ),
        Example(TWINS, {"ids": ["t2"]}, {"ids": ["t3"]}, stage="dedup"),
    ],
    "excluded": [
        Example(BAD, {"ids": ["m"], "reason": "content not text"}, {"ids": ["m"], "reason": "broken json"}),
        Example(BAD, {"ids": ["m"], "reason": "content not text"}, {"ids": ["a"], "reason": "content not text"}),
    ],
    "never_removed_as": [
        Example(BAD, {"ids": ["m"], "reason": "duplicate"}, {"ids": ["m"], "reason": "content"}),
        Example(BAD, {"ids": ["m"], "reason": "duplicate"}, {"ids": ["z"], "reason": "duplicate"}),
    ],
    "each_rejected_has": [
        Example(BAD[:1] + BAD[3:], {"fields": ["id", "line", "reason"]}, spoil=made.no_reasons),
        Example(BAD, {"fields": ["reason"]}, {"fields": ["reason"], "reason": "unverifiable"}),
    ],
    "never_kept_silently_changed": [
        Example(BAD, {"ids": ["a", "m"]}, spoil=made.other_text),
        Example(BAD, {"ids": ["a", "m"]}, spoil=made.lost_ledger),
        Example(CHAT, {"ids": ["a"]}, spoil=made.other_extra),
    ],
    "kept_or_rejected_with_reason": [
        Example(CHAT, {"id": "a", "if_kept": {"path": "tag", "value": "0042"}},
                {"id": "a", "if_kept": {"path": "tag", "value": "42"}}),
        Example(BAD, {"id": "m"}, spoil=made.lost_ledger),
    ],
    "repaired_or_quarantined": [
        Example(BAD, {"ids": ["s"], "repair": "U+FFFD", "reported": True}, spoil=made.lost_ledger),
        Example(BAD, {"ids": ["s"], "repair": "U+FFFD"}, {"ids": ["a"], "repair": "U+FFFD"}),
    ],
    "rejected_or_flagged": [
        Example(BAD, {"id": "m", "reason_mentions": "content"}, {"id": "m", "reason_mentions": "arguments"})
    ],
    "value_equals": [
        Example(CHAT, {"id": "a", "path": "tag", "value": "0042"}, {"id": "a", "path": "tag", "value": 42}),
        Example(CHAT, {"id": "a", "path": "n", "value_text": "9007199254740995"},
                {"id": "a", "path": "n", "value_text": "9007199254740996"}, stage="ingest, shard"),
        Example(CHAT, {"id": "c", "path": "messages[1].tool_calls[0].function.arguments",
                       "value": {"percent": 20, "room": None}},
                {"id": "c", "path": "messages[1].tool_calls[0].function.arguments", "value": {"percent": 20}}),
        Example(CHAT, {"id": "b", "path": "n", "value": 7}, {"id": "b", "path": "n", "value": True}),
    ],
    "value_missing": [Example(CHAT, {"id": "a", "field": "note"}, {"id": "b", "field": "note"})],
    "key_absent": [Example(CHAT, {"id": "b", "path": "tag"}, {"id": "a", "path": "note"})],
    "non_null_count": [Example(CHAT, {"field": "note", "n": 1}, {"field": "note", "n": 2})],
    "fields_kept": [Example(CHAT[:2], {"fields": ["n", "note"]}, spoil=made.other_extra)],
    "normalised": [
        Example([{"id": "k", "conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]}],
                {"id": "k", "roles": ["user", "assistant"]}, {"id": "k", "roles": ["human", "gpt"]})
    ],
    "canonical_equal": [
        Example(TWINS, {"ids": ["t1", "t2"]}, {"ids": ["t1", "t3"]}),
        Example(TWINS, {"ids": ["t1", "t2"]}, {"ids": ["t1", "t9"]}),
    ],
    "text_unchanged": [
        Example(PII, {"ids": ["p2"]}, {"ids": ["p1"]}, stage="pii"),
        Example(CHAT, {"ids": ["a", "c"]}, spoil=made.other_text),
    ],
    "text_masked": [
        Example(PII, {"id": "p1", "path": "text", "must_not_contain": "anna.kowalska"},
                {"id": "p1", "path": "text", "must_not_contain": "Write"}, stage="pii"),
        Example(PII, {"id": "p1", "path": "text", "must_not_contain": "anna.kowalska"},
                {"id": "p2", "path": "text", "must_not_contain": "anna.kowalska"}, stage="pii"),
    ],
    "text_contains": [Example(CHAT, {"id": "a", "text": "kestrel"}, {"id": "a", "text": "heron"})],
    "text_starts_with": [
        Example(CHAT, {"id": "a", "path": "text", "text": "The kes"}, {"id": "a", "path": "text", "text": "kes"})
    ],
    "text_absent": [Example(CHAT, {"id": "a", "text": "heron"}, {"id": "a", "text": "kestrel"})],
    "stand_ins_consistent": [
        Example(PII, {"id": "p1", "distinct_values": 1, "occurrences": [1]},
                {"id": "p1", "distinct_values": 1, "occurrences": [2]}, stage="pii"),
    ],
    "same_rows": [
        Example(CHAT, {"files": ["M01.jsonl", "M01.same.jsonl"]}, {"files": ["M01.jsonl", "M01.other.jsonl"]},
                others={"same": CHAT, "other": CHAT[:2]})
    ],
    "round_trip": [
        Example(CHAT, {"through": ["ingest", "shard", "read_back"]}, spoil=made.other_extra, stage="ingest, shard"),
        Example(CHAT, {"through": ["ingest", "shard", "export jsonl", "ingest"]}, spoil=made.lost_row),
        Example(CHAT, {"through": ["ingest", "shard", "export jsonl", "ingest"]}, {"through": ["ingest", "fax"]}),
    ],
    "run_succeeds": [Example(CHAT, {}, spoil=made.fails)],
    "strict_fails": [
        Example(BAD, {"names": ["M01.jsonl", "line 2"]}, {"names": ["line 9"]}),
        Example(BAD, {"names": ["line 2"]}, {"names": ["line 2"], "input": "M01.good.jsonl"}, others={"good": CHAT}),
    ],
    "lenient_kept": [
        Example(BAD, {"input": "M01.jsonl", "ids": ["a"], "bad_lines": [2, 3, 4]},
                {"input": "M01.jsonl", "ids": ["a"], "bad_lines": [2, 3]}),
        Example(BAD, {"input": "M01.jsonl", "ids": ["a"], "bad_lines": [2, 3, 4]},
                {"input": "M01.jsonl", "ids": ["a", "m"], "bad_lines": [2, 3, 4]}),
    ],
    "default_fails": [Example(CHAT, {"names": ["threshold"]}, {"names": ["mood"]}, stage="dedup",
                              config={"near_dup_similarity": 7})],
    "fails_naming": [Example(CHAT, {"names": ["threshold"], "config": {"near_dup_similarity": 7}},
                             {"names": ["threshold"]}, stage="dedup")],
    "files_at_most": [Example(CHAT, {"n": 4, "config": {"rows_per_shard": 1}},
                              {"n": 1, "config": {"rows_per_shard": 1}}, stage="shard")],
    "row_group_bytes_at_most": [
        Example([{"id": str(n), "text": f"{n} " * 50_000} for n in range(8)],
                {"mib": 0.3, "uncompressed": True, "config": {"row_group_cap_mib": 0.3}},
                {"mib": 0.3, "uncompressed": True}, stage="shard")
    ],
    "inspect_one_row_reads_at_most": [
        Example([{"id": str(n), "text": f"{n} " * 5_000} for n in range(8)],
                {"row_groups": 1, "config": {"row_group_cap_mib": 0.01}}, {"row_groups": 0}, stage="shard")
    ],
    "zero_rows_case": [
        Example(CHAT, {"files_at_most": 1, "schema_complete": True, "reported": True}, {"files_at_most": -1},
                stage="shard")
    ],
    "read_as_one_dataset": [Example(CHAT, {}, stage="shard", spoil=lambda patch: made.lost_shard(patch))],
    "manifest_has": [
        Example(CHAT, {"fields": ["seed", "input hashes", "tool version", "params", "row count", "hash per source"]},
                {"fields": ["inexact values"]}, stage="shard"),
        Example(CHAT, {"fields": ["revision"]}, {"fields": ["the moon"]}, stage="shard"),
    ],
    "no_shard_contains": [Example(CHAT, {"text": "heron"}, {"text": "kestrel"}, stage="shard")],
    "licence_counts": [
        Example(LICENCES, {"counts": {"MIT": 1, "several": 1, "unknown": 1}}, {"counts": {"MIT": 2, "unknown": 1}})
    ],
    "same_output_across": [
        Example(CHAT, {"vary": ["file reversed", "row order"], "compare": "rows as a set"},
                {"vary": ["file reversed"], "compare": "rows"}),
        Example(CHAT, {"vary": ["block size 1 B / 1 MiB", "second run"], "compare": "rows"},
                {"vary": ["block size tiny"], "compare": "rows"}),
        Example(CHAT, {"vary": ["file split", "fresh object"], "compare": "kept ids"},
                {"vary": ["phase of the moon"], "compare": "kept ids"}),
        Example(TWINS, {"vary": ["after a cancelled call"], "compare": "kept ids"},
                {"vary": ["after a cancelled trip"], "compare": "kept ids"}, stage="dedup"),
        Example(CHAT, {"vary": ["PYTHONHASHSEED 1"], "compare": "bytes"},
                spoil=lambda patch: patch.setattr("tests.cases._words_vary._apart", lambda *_: {"outcome": []}),
                stage="shard"),
    ],
    "flagged": [
        Example(LEAK, {"ids": ["k1"], "item": "bench/k", "reason": "benchmark"}, {"ids": ["k2"]}, **BENCH),
        Example(LEAK, {"ids": ["k1"], "item": "bench/k"}, {"ids": ["k1"], "item": "bench/z"}, **BENCH),
    ],
    "reported": [Example(LEAK, {"ids": ["k1"], "reason": "benchmark"}, {"ids": ["k1"], "reason": "moon"}, **BENCH)],
    "counted_as": [Example(LEAK, {"ids": ["k1"], "what": "benchmark"}, {"ids": ["k1"], "what": "moon"}, **BENCH)],
    "not_flagged": [
        Example(LEAK, {"ids": ["k2"]}, {"ids": ["k1"]}, **BENCH),
        Example(LEAK, {"ids": ["k2"]}, {"ids": ["k9"]}, **BENCH),
    ],
    "not_flagged_or_class": [
        Example(LEAK, {"ids": ["k1"], "class": "benchmark"}, {"ids": ["k1"], "class": "common text"}, **BENCH)
    ],
    "flagged_exactly": [Example(LEAK, {"ids": ["k1"]}, {"ids": ["k1", "k2"]}, **BENCH)],
    "report_counts": [Example(LEAK, {"items_too_short": 0}, {"items_too_short": 1}, **BENCH)],
    "report_has": [
        Example(LEAK, {"fields": ["benchmark", "item id", "row id", "side", "score", "matched span"]},
                {"fields": ["phase of the moon"]}, **BENCH)
    ],
    "report_lists": [
        Example(LEAK, {"checks_run": True, "checks_not_run": True}, spoil=made.no_figures("decontaminate"), **BENCH)
    ],
    "conflict_reported": [
        Example(GOLD, {"ids": ["g1", "g2"], "kind": "same prompt, different answer"},
                {"ids": ["g1", "g3"], "kind": "same prompt, different answer"}, stage="dedup")
    ],
    "json_valid": [
        Example(CHAT, {"id": "c", "path": "messages[1].tool_calls"}, {"id": "c", "path": "messages[0].content"})
    ],
    "each_removed_has_kept_partner": [
        Example(TWINS, {"min_similarity": 0.8}, {"min_similarity": 1.1}, stage="dedup"),
        Example(TWINS, {"min_similarity": 0.8}, spoil=made.empty_result("dedupe"), stage="dedup"),
    ],
    "no_two_kept_similar": [Example(TWINS, {"similarity": 0.8}, {"similarity": 0.0}, stage="dedup")],
    "each_reported_pair_similarity_at_least": [Example(TWINS, {"value": 0.8}, {"value": 1.1}, stage="dedup")],
    "ledger_complete": [
        Example(TWINS, {"fields": ["removed id", "kept id", "similarity", "stage", "reason"]}, {"fields": ["mood"]},
                stage="dedup"),
        Example(TWINS, {"fields": ["reason"]}, {"fields": ["reason"], "input": "M01.other.jsonl"}, stage="dedup",
                others={"other": TWINS[:1]}),
    ],
    "ledger_ids_subset_of_input_ids": [Example(TWINS, {}, spoil=made.other_ids, stage="dedup")],
    "ledger_count_equals_rows_removed": [Example(TWINS, {}, spoil=made.lost_row, stage="dedup")],
    "same_side": [
        Example(SIDES, {"groups": [["s0", "s1"]], "config": {"eval_share": 0.4}},
                {"groups": [[f"s{n}" for n in range(40)]], "config": {"eval_share": 0.4}}, stage="blend")
    ],
    "sides_disjoint": [
        Example(SIDES, {"config": {"eval_share": 0.4}}, {"config": {"eval_share": 0.0}}, stage="blend")
    ],
    "prompt_messages": [Example(PAIRS, {"id": "p", "n": 1}, {"id": "p", "n": 2}, stage="train")],
    "rebuilds_exactly": [Example(PAIRS, {"ids": ["p"]}, spoil=made.other_text, stage="train")],
    "text_view_equal": [
        Example(TWINS, {"ids": ["t1", "t2"]}, {"ids": ["t1", "t3"]}),
        Example(TWINS, {"ids": ["t1", "t2"]}, {"ids": ["t1", "t9"]}),
    ],
    "verdicts": [
        Example(MATHS[:2], {"from": "verdict field"}, {"from": "thin air"}, stage="grade"),
        Example(MATHS, {"from": "verdict field", "ids": ["v1"]}, {"from": "verdict field", "ids": ["v3"]},
                stage="grade"),
    ],
    "never_scored": [
        Example([{"id": "n1", "prompt": "Seven squared?", "verifier": {"kind": "math", "answer": None}},
                 {"id": "n2", "prompt": "Seven cubed?", "verifier": {"kind": "math", "answer": "343"}}],
                {"ids": ["n1"]}, {"ids": ["n1", "n2"]}, stage="grade")
    ],
    "no_worker_lost": [Example(MATHS[:2], {}, spoil=made.one_sided, stage="grade")],
    "undecided_counted_apart_from_unequal": [
        Example([*MATHS[:2], {"id": "v4", "gold": "Because short waves scatter.", "pred": "6", "verdict": "-"}], {},
                spoil=made.zero_for_undecided, stage="grade")
    ],
    "symmetric": [Example(MATHS[:2], {}, spoil=made.one_sided, stage="grade")],
    "scores": [Example(REPLIES, {"from": "score field"}, {"from": "thin air"}, stage="grade"),
               Example(REPLIES, {"from": "score field"}, spoil=made.middling, config={"scale": [1, 10]})],
    "missing_counted": [Example(REPLIES, {"n": 1}, {"n": 0}, stage="grade")],
    "no_default_score": [Example(REPLIES, {}, spoil=made.middling, stage="grade")],
    "bounded": [
        Example(CHAT, {"seconds": 60, "peak_mib": 4096}, {"seconds": 60, "peak_mib": 1}),
        Example(CHAT, {"seconds_per_row": 60}, {"seconds_per_row": 0.000001}),
    ],
}  # fmt: skip


def parameters() -> list[Any]:
    """Every example, named by its word and number."""
    return [
        pytest.param(name, example, id=f"{name}-{number}")
        for name, examples in EXAMPLES.items()
        for number, example in enumerate(examples)
    ]


def test_every_word_is_tried() -> None:
    assert set(EXAMPLES) == set(WORDS)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "example"), parameters())
def test_a_word_holds_for_the_right_outcome_and_fails_for_a_wrong_one(
    name: str, example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = write_case(tmp_path / "right", example, {"assert": name, **example.right})
    assert check(case, made.folder(tmp_path / "a")).failures == []
    if example.wrong is not None:
        case = write_case(tmp_path / "wrong", example, {"assert": name, **example.wrong})
    if example.spoil is not None:
        example.spoil(monkeypatch)
    found = check(case, made.folder(tmp_path / "b"))
    assert found.failures
    assert all(line.startswith(f"{name}: ") for line in found.failures)


@pytest.mark.parametrize(
    ("assertion", "more", "says"),
    [
        ({"assert": "smells_nice"}, {}, "smells_nice: the runner does not know this word"),
        ({"assert": "smells_nice", "strength": "should"}, {}, "smells_nice: the runner does not know this word"),
        ({"assert": "kept_count", "n": 3, "colour": 1}, {}, "does not know the field 'colour' of this word"),
        ({"assert": "kept_count"}, {}, "the field 'n' is missing"),
        ({"assert": "kept_count", "n": 3, "config": {"mood": 1}}, {}, "does not know the config phrase 'mood'"),
        ({"assert": "kept_count", "n": 3}, {"config": {"mood": 1}}, "does not know the config phrase 'mood'"),
        ({"assert": "kept_count", "n": 3, "input": "M02.jsonl"}, {}, "M02.jsonl is no input of the case"),
        ({"assert": "kept_count", "n": 3}, {"stage": "bake"}, "does not know the stage 'bake'"),
        ({"assert": "kept_count", "n": 3}, {"stage": ""}, "the case names no stage"),
        ({"assert": "kept_count", "n": 3}, {"surprise": 1}, "does not know the field 'surprise' of a case"),
        ({"assert": "kept_count", "n": 3}, {"inputs": ["M01.jsonl", "M01.gone.csv"]}, "M01.gone.csv is missing"),
        ({"assert": "kept_count", "n": 3}, {"expect": []}, "the case asserts nothing"),
        ({"assert": "kept_count", "n": 3, "strength": "must"}, {}, "does not know the strength 'must'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_runner_does_not_know_is_a_failure(
    assertion: dict[str, Any], more: dict[str, Any], says: str, tmp_path: Path
) -> None:
    case = write_case(tmp_path / "case", Example(CHAT, {}), assertion, **more)
    assert says in "\n".join(check(case, made.folder(tmp_path / "run")).failures)


def test_what_only_should_hold_is_told_and_no_failure(tmp_path: Path) -> None:
    assertion = {"assert": "kept_count", "n": 9, "strength": "should (one day)"}
    found = check(write_case(tmp_path / "case", Example(CHAT, {}), assertion), made.folder(tmp_path / "run"))
    assert (found.failures, found.shoulds) == ([], ["kept_count: 3 rows are left, expected 9"])


def test_generated_fields_are_written_out_and_other_bytes_stay(tmp_path: Path) -> None:
    odd = b'\xef\xbb\xbf{"id": "o",  "text": "\xe2\x80\xa8"}\r'
    lines = [
        odd,
        {"id": "g", "$generate": {"text": [["ab", 2], ["c", 1]]}},
        {"id": "h", "x": {"$generate": [["d", 3]]}},
    ]
    case = write_case(tmp_path, Example(lines, {}), {"assert": "run_succeeds"})
    data = copy_input(case, "M01.jsonl", made.folder(tmp_path / "run")).read_bytes().split(b"\n")
    assert data[0] == odd
    assert [json.loads(line) for line in data[1:3]] == [{"id": "g", "text": "ababc"}, {"id": "h", "x": "ddd"}]


@pytest.mark.parametrize(
    ("told", "stages"),
    [
        ("ingest, shard", ("ingest", "shard")),
        ("ops (hub, nightly)", ("ops (hub, nightly)",)),
        ("shard, ops", ("shard", "ops")),
    ],
)
def test_stages_are_parted_by_commas_outside_brackets(told: str, stages: tuple[str, ...], tmp_path: Path) -> None:
    case = write_case(tmp_path, Example(CHAT, {}, stage=told), {"assert": "run_succeeds"})
    assert case.stages == stages


def test_a_stage_of_a_folder_of_cases_is_counted_in_the_summary(tmp_path: Path) -> None:
    """Expected failures go by stage; whoever has a stage whose depth is here must hold."""
    for number, (stage, n) in enumerate([("ingest", 3), ("ingest, shard", 9), ("grade", 9), ("grade", 3)]):
        assertion = {"assert": "kept_count", "n": n}
        write_case(tmp_path, Example(CHAT, {}, stage=stage), assertion, id=f"M0{number}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/cases/test_cases.py", "-q"]
    done = subprocess.run(
        [*command, "--cases", str(tmp_path)], cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True
    )
    assert done.returncode == 1
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in ("grade 1 xfailed, 1 xpassed", "ingest 1 passed, 1 failed", "shard 1 failed"):
        assert line in lines
    assert "1 failed, 1 passed, 1 xfailed, 1 xpassed" in done.stdout


def test_a_case_whose_words_all_hold_must_hold_though_its_stage_comes_later(tmp_path: Path) -> None:
    """By its words, never by its name."""
    held = write_case(tmp_path, Example(MATHS[:1], {}, stage="grade"), {"assert": "verdicts", "from": "verdict field"})
    later = write_case(tmp_path, Example(MATHS[:1], {}, stage="grade"), {"assert": "ordering"}, id="M02")
    assert held.later() == []
    assert later.later()


def test_every_word_that_is_held_is_known() -> None:
    """A word that nobody mapped could not hold."""
    assert {word for words in HELD.values() for word in words} <= WORDS.keys()
