"""The family of problems that the demo trains on: sound where it says so, faulty where it says so, nothing twice."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from corpusforge.demo import digits
from corpusforge.io.ingest import source_rows
from corpusforge.stages._stage import concat
from corpusforge.stages.dedupe import dedupe
from corpusforge.stages.filter import filter as drop_faulty
from corpusforge.stages.ingest import SourceConfig
from corpusforge.verify import verify

RECORDS = list(digits.records())
DIGEST = (
    "import hashlib, json; from corpusforge.demo import digits;"
    "print(hashlib.sha256(json.dumps(list(digits.records())).encode()).hexdigest())"
)


def asked(record):
    return record["prompt"] if "prompt" in record else record["messages"][0]["content"]


def number(record):
    return asked(record).rstrip(".?").rpartition(" ")[2]


def of(name):
    """Records whose id is `name` and a number."""
    return [record for record in RECORDS if record["id"].rpartition("-")[0] == name]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The source as `ingest` reads it."""
    source = SourceConfig.model_validate(
        {"name": "digits", "reader": "python", "options": {"function": "corpusforge.demo.digits:records"}}
    )
    return concat("ingest", list(source_rows(source, tmp_path_factory.mktemp("digits")))).kept


def ids(table):
    return table["source"].combine_chunks().field("record_id").to_pylist()


def test_there_is_as_much_of_each_as_is_stated():
    counted = Counter(record["id"].rpartition("-")[0] for record in RECORDS)
    stated = {name: digits.COUNTS[name] for name in ("sort", "largest")} | dict(digits.FAULTS)
    assert {name: counted[name] for name in stated} == stated
    assert counted["sort-task"] == digits.COUNTS["task"]
    assert digits.COUNTS["pair"] * 0.99 <= counted["sort-pair"] <= digits.COUNTS["pair"]


def test_no_problem_is_asked_twice_but_by_the_stuck_generator():
    numbers = [number(record) for record in [*RECORDS, *digits.legacy()] if not record["id"].startswith("stuck-")]
    assert len(set(numbers)) == len(numbers)


def test_every_task_takes_the_right_answer_and_no_other():
    for task in of("sort-task"):
        right = "".join(sorted(number(task)))
        assert verify(task, right).outcome == "pass"
        assert verify(task, right + "9").outcome == "fail"


def test_every_legacy_task_asks_for_the_largest_digit():
    for task in digits.legacy():
        assert [verify(task, digit).outcome == "pass" for digit in "123456789"].index(True) == int(
            max(number(task))
        ) - 1


def test_chosen_answers_are_right_and_rejected_ones_are_wrong_and_in_order():
    for pair in of("sort-pair"):
        assert pair["chosen"] == "".join(sorted(number(pair)))
        assert pair["rejected"] != pair["chosen"]
        assert list(pair["rejected"]) == sorted(pair["rejected"])


def test_two_pairs_in_three_or_fewer_are_about_the_slip():
    slips = [pair for pair in of("sort-pair") if pair["rejected"] == "".join(sorted(set(number(pair))))]
    assert 0.4 < len(slips) / len(of("sort-pair")) < 0.67


def test_a_fifth_of_the_conversations_with_a_repeated_digit_slips():
    answers = [(number(record), record["messages"][1]["content"]) for record in of("sort")]
    repeated = [(asked_for, said) for asked_for, said in answers if len(set(asked_for)) < len(asked_for)]
    slips = [(asked_for, said) for asked_for, said in repeated if said == "".join(sorted(set(asked_for)))]
    assert len(slips) / len(repeated) == pytest.approx(digits.SLIPS, abs=0.03)
    assert [pair for pair in answers if pair not in slips and pair[1] != "".join(sorted(pair[0]))] == []


def test_dedupe_takes_the_stuck_copies_and_no_other_row(rows):
    gone = dedupe(rows).dropped["record_id"].to_pylist()
    assert sorted(gone) == sorted(fact["id"] for fact in digits.truth()["stuck"])


def test_filter_takes_refusals_and_blanks_and_no_other_row(rows):
    gone = drop_faulty(rows).dropped
    reasons = dict(zip(gone["record_id"].to_pylist(), gone["reason"].to_pylist(), strict=True))
    wanted = {"refusal": "refusal", "blank": "empty"}
    assert reasons == {fact["id"]: wanted[name] for name in wanted for fact in digits.truth()[name]}


def test_every_record_becomes_a_row(rows):
    assert sorted(ids(rows)) == sorted(record["id"] for record in RECORDS)


def test_the_records_do_not_depend_on_the_hash_seed():
    ran = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == hashlib.sha256(json.dumps(RECORDS).encode()).hexdigest()
