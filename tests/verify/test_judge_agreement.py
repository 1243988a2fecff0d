"""A judge is measured before it is believed: the figures, the file, and what is refused without them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verify.judges import PAIR, TASK, server

from corpusforge.errors import ConfigError
from corpusforge.verify._agreement import Agreement, Trust
from corpusforge.verify.judge import agreement, grade

if TYPE_CHECKING:
    from pathlib import Path

GOOD = [(TASK, "Hello!", "pass"), (TASK, "Rubbish", "fail")] * 20


def honest(body: dict[str, Any]) -> str:
    """A judge that knows a greeting, and has nothing to say of what is odd."""
    text = body["messages"][1]["content"]
    return "Hm." if "Odd" in text else "Score: 9" if "Hello" in text else "Score: 2"


def counts(true_pass: int, false_pass: int, true_fail: int, false_fail: int, mode: str = "grade") -> Agreement:
    return Agreement("m", "r", mode, "text", true_pass, false_pass, true_fail, false_fail, undecided=0, flips=0)


def test_figures_are_those_of_the_textbook() -> None:
    found = counts(20, 5, 15, 10)
    assert found.accuracy.value == pytest.approx(0.7)
    assert found.false_accept.value == pytest.approx(5 / 20)
    assert found.false_reject.value == pytest.approx(10 / 30)
    assert found.kappa == pytest.approx(0.4)  # Cohen's own kind of table: 0.7 seen, 0.5 by chance
    assert (found.false_accept.low, found.false_accept.high) == pytest.approx((0.1119, 0.4687), abs=1e-4)


@given(*[st.integers(0, 50)] * 4)
def test_figures_stay_within_their_bounds(a: int, b: int, c: int, d: int) -> None:
    found = counts(a, b, c, d)
    for rate in (found.accuracy, found.false_accept, found.false_reject):
        assert rate.value is None or 0 <= rate.low <= rate.value <= rate.high <= 1
    assert found.kappa is None or -1 <= found.kappa <= 1
    if a + c == a + b + c + d and a and c:
        assert found.kappa == 1


def test_verdicts_are_counted_beside_labels_and_undecided_apart() -> None:
    examples = [
        *GOOD[:4],
        (TASK, "Hello, wrongly labelled", False),
        (TASK, "wrongly labelled", True),
        (TASK, "Odd", True),
    ]
    with server(honest) as there:
        found = agreement(examples, there.judge())
    assert (found.true_pass, found.false_pass, found.true_fail, found.false_fail) == (2, 1, 2, 1)
    assert (found.undecided, found.decided) == (1, 6)
    assert dict(found.rules) == {"judge.grade": 6, "judge.unparsable": 1}
    assert found.order_flips is None


def test_flips_of_order_are_told_for_pairs() -> None:
    def say(body: dict[str, Any]) -> str:
        text = body["messages"][1]["content"]
        return "Better: A" if "by place" in text else f"Better: {'A' if text.index('4!') < text.index('four') else 'B'}"

    with server(say) as there:
        found = agreement([(PAIR, "4!", True), (PAIR, "by place", False)], there.judge())
    assert (found.flips, found.undecided, found.true_pass) == (1, 1, 1)
    assert found.order_flips
    assert found.order_flips.value == 0.5
    assert "order flips   0.500" in str(found)


def test_a_judge_is_believed_when_its_measurement_is_good(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    with server(honest) as there:
        agreement(GOOD, there.judge()).save(path)
        (verdict,) = grade([TASK], ["Hello!"], there.judge(Trust(path)))
    assert verdict.outcome == "pass"


def test_a_judge_that_was_not_measured_is_not_even_asked(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    other = {"verifier": {"kind": "judge", "spec": {"rubric": "Is it a farewell?"}}}
    stricter = {"verifier": {"kind": "judge", "spec": {**TASK["verifier"]["spec"], "pass_at": 10}}}
    with server(honest) as there:
        agreement(GOOD, there.judge()).save(path)
        asked = len(there.bodies)
        rules = [v.rule for v in grade([TASK], ["Hello!"], there.judge(Trust()))]
        rules += [v.rule for v in grade([other, stricter], ["Hello!"] * 2, there.judge(Trust(path)))]
        rules += [v.rule for v in grade([TASK], ["Hello!"], there.judge(Trust(path), replies="json"))]
    assert rules == ["judge.unmeasured"] * 4
    assert len(there.bodies) == asked


@pytest.mark.parametrize(
    ("told", "doubt"),
    [
        (counts(20, 0, 20, 0), None),
        (counts(5, 0, 5, 0), "disagrees"),  # the interval reaches too far
        (counts(20, 10, 10, 0), "disagrees"),
        (counts(5, 0, 20, 15), "disagrees"),
        (counts(40, 0, 0, 0), "disagrees"),  # nothing to accept falsely
        (counts(0, 0, 40, 0), "disagrees"),
        (counts(0, 0, 0, 0), "disagrees"),
    ],
)
def test_a_poor_or_empty_measurement_is_not_believed(told: Agreement, doubt: str | None) -> None:
    assert Trust().doubt(told) == doubt


def test_thresholds_and_the_refusal_can_be_set() -> None:
    poor = counts(20, 10, 10, 0)
    assert Trust(min_kappa=0.4, max_false_accept=0.8).doubt(poor) is None
    assert Trust(unmeasured="allow").doubt(None) is None
    with pytest.raises(ConfigError, match="threshold"):
        Trust(min_kappa=7)


def test_the_file_holds_several_measurements_and_no_texts(tmp_path: Path) -> None:
    path = tmp_path / "judge.json"
    with server(honest) as there:
        first = agreement(GOOD, there.judge())
        second = agreement(GOOD, there.judge(replies="json"))
    for found in (first, second, first):
        found.save(path)
    assert Trust(path).measured() == {first.fingerprint: first, second.fingerprint: second}
    assert not any(word in path.read_text(encoding="utf-8") for word in ("Hello", "Rubbish", "greeting"))
    assert [one.name for one in tmp_path.iterdir()] == ["judge.json"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"format": 2, "records": {}}',
        '{"format": 1, "records": []}',
        '{"format": 1, "records": {"x": {}}}',
    ],
)
def test_a_file_that_is_none_stops_the_run(tmp_path: Path, text: str) -> None:
    path = tmp_path / "judge.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"judge\.json is no file of measurements"):
        Trust(path).measured()


def test_a_file_that_is_absent_or_has_odd_counts_stops_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file of measurements"):
        Trust(tmp_path / "absent.json").measured()
    told = {"format": 1, "records": {"x": counts(1, 1, 1, 1).to_dict() | {"false_pass": -1}}}
    (tmp_path / "odd.json").write_text(json.dumps(told), encoding="utf-8")
    with pytest.raises(ConfigError, match="no file of measurements"):
        Trust(tmp_path / "odd.json").measured()


def test_several_rubrics_are_measured_apart() -> None:
    other = {"verifier": {"kind": "judge", "spec": {"rubric": "Is it a farewell?"}}}
    with server(honest) as there, pytest.raises(ConfigError, match="several rubrics"):
        agreement([GOOD[0], (other, "Bye!", True)], there.judge())
    assert there.bodies == []
