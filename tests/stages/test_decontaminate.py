"""Benchmark items are found wherever they stand, and nothing else is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.errors import ConfigError
from corpusforge.io.benchmarks import load_benchmarks
from corpusforge.io.ingest import read
from corpusforge.stages.decontaminate import STAGE, DecontaminateConfig, decontaminate
from corpusforge.stages.ingest import SourceConfig
from corpusforge.stages.scrub import scrub

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.result import StageResult

QUESTION = "How many ways can seven different books be placed on a shelf if the red book may not stand at either end?"
SOLUTION = "There are five inner places for the red book and the other six books fill the rest in any order."


def item(
    record: int, question: str, answer: str = "3600", *, source: str = "bench", solution: str | None = None
) -> dict[str, Any]:
    """A benchmark item: a task with a gold answer, and a worked solution where one is given."""
    gold = {"kind": "exact", "spec": json.dumps({"answer": answer})}
    extra = json.dumps({"solution": solution}) if solution else None
    return row(record, question, kind="task", verifier=gold, extra=extra, source=source, record_id=f"{source}/{record}")


def found(result: StageResult) -> dict[str, dict[str, Any]]:
    """Own id -> detail of the rows that were dropped."""
    return {line["record_id"]: json.loads(line["detail"]) for line in result.dropped.to_pylist()}


BENCH = table([item(1, QUESTION, solution=SOLUTION)])
CALL = json.dumps([{"type": "function", "function": {"name": "f", "arguments": {"q": f"First\n{QUESTION}"}}}])


def turns(*messages: dict[str, Any]) -> dict[str, Any]:
    """A row of these messages."""
    return row(1, messages=list(messages))


def pair(chosen: str, rejected: str) -> dict[str, Any]:
    """A preference row."""
    answers = {"chosen": [message("assistant", chosen)], "rejected": [message("assistant", rejected)]}
    return row(1, "Quiz?", kind="preference", **answers)


@pytest.mark.parametrize(
    ("leak", "field"),
    [
        (row(1, QUESTION, "3600"), "messages[0].content"),
        (row(1, "Hi", "Hello", QUESTION, "3600"), "messages[2].content"),
        (turns(message("system", f"Example: {QUESTION} -> 3600"), message("user", "Next")), "messages[0].content"),
        (turns(message("user", "Go"), message("tool", QUESTION)), "messages[1].content"),
        (turns(message("assistant", None, reasoning=QUESTION)), "messages[0].reasoning"),
        (turns(message("assistant", None, tool_calls=CALL)), "messages[0].tool_calls"),
        (pair(QUESTION, "No"), "chosen[0].content"),
        (pair("No", QUESTION), "rejected[0].content"),
        (row(1, "Go", verifier={"kind": "exact", "spec": json.dumps({"answer": QUESTION})}), "verifier.spec"),
    ],
)
def test_an_item_is_found_in_any_field(leak: dict[str, Any], field: str) -> None:
    """System, user, assistant and tool turns, tool calls, both answers and verifiers are all looked at."""
    detail = found(decontaminate(table([leak]), benchmarks=BENCH))["own-1"]
    assert (detail["benchmark"], detail["item"], detail["side"], detail["field"]) == (
        "bench",
        "bench/1",
        "question",
        field,
    )


def test_question_and_answer_are_told_apart() -> None:
    """A question that comes with its answer says so; a worked solution alone is a hit on the answer side."""
    rows = table([row(1, QUESTION, "3600"), row(2, QUESTION, "I do not know."), row(3, "Think aloud.", SOLUTION)])
    result = decontaminate(rows, benchmarks=BENCH)
    details = found(result)
    assert details["own-1"]["answer_found"] is True
    assert details["own-2"]["answer_found"] is False
    assert details["own-3"]["side"] == "answer"
    assert result.reasons() == {"benchmark_question": 2, "benchmark_answer": 1}
    assert result.metrics["benchmarks"]["bench"] == {
        "items": 1, "items_too_short": 0, "items_hit": 1, "rows_hit": 3, "question_rows": 2, "answer_rows": 1,
    }  # fmt: skip


def test_the_span_is_where_the_item_stands() -> None:
    """The span cuts the item out of the row's own text, also behind masked entities and letters of many bytes."""
    text = f"Für a.very.long.address@example.org gilt 👩‍👧: {QUESTION.upper()} Danke!"
    detail = found(decontaminate(table([row(1, text)]), benchmarks=BENCH))["own-1"]
    start, end = detail["span"]
    assert text[start:end] == QUESTION.upper().removesuffix("?")


@pytest.mark.parametrize(
    ("stood", "stands"),
    [
        ("Write to ana.berg@mail.se about", "Write to user7@example.com about"),
        ("Call +46 70 123 45 67 about", "Call <PHONE> about"),
        ("Card 4111 1111 1111 1111 paid for", "Card [CREDIT_CARD_1] paid for"),
        ("From 10.20.30.40 came", "From 192.0.2.7 came"),
    ],
)
def test_scrubbed_items_are_still_found(stood: str, stands: str) -> None:
    """Entities are one word on both sides, so stand-ins do not hide an item."""
    rest = "the red book that nobody wanted on the shelf"
    bench = table([item(1, f"{stood} {rest}")])
    detail = found(decontaminate(table([row(1, f"{stands} {rest}")]), benchmarks=bench, threshold=1.0))["own-1"]
    assert detail["coverage"] == 1.0


def test_what_scrub_wrote_is_still_found() -> None:
    """A row that went through scrub, with all its addresses and numbers replaced, still is the benchmark item."""
    question = (
        "Ana wrote from ana.berg@mail-server.se because her card 4111 1111 1111 1111 was refused twice; "
        "her number is (415) 555-2671, her address 81.2.69.142. How much does she owe?"
    )
    scrubbed = scrub(table([row(1, question)]), key=b"k" * 32).kept
    assert scrubbed["content_id"] != table([row(1, question)])["content_id"]
    detail = found(decontaminate(scrubbed, benchmarks=table([item(1, question)])))["own-1"]
    assert (detail["coverage"], detail["method"]) == (1.0, "exact")


def test_flag_keeps_the_row_and_says_so() -> None:
    """With action flag nothing goes; the row is noted and its coverage stored."""
    result = decontaminate(table([row(1, QUESTION), row(2, "Hi", "Hello")]), benchmarks=BENCH, action="flag")
    assert result.dropped.num_rows == 0
    assert result.changes["reason"].to_pylist() == ["benchmark_question"]
    assert result.kept["contamination"].to_pylist() == [1.0, 0.0]


def test_without_benchmarks_nothing_is_claimed() -> None:
    """No benchmark: no figure, and every check is listed as not run."""
    result = decontaminate(table([row(1, QUESTION)]))
    assert result.kept["contamination"].to_pylist() == [None]
    assert result.metrics["checks_run"] == []
    assert "clean" not in json.dumps(result.metrics)


def test_thresholds_per_benchmark() -> None:
    """A benchmark can have its own threshold."""
    half = " ".join(QUESTION.split()[:16]) + " "
    bench = table(
        [
            item(1, QUESTION, source="a"),
            item(1, half + "that somebody else had written down long before now", source="b"),
        ]
    )
    rows = table([row(1, half)])
    assert found(decontaminate(rows, benchmarks=bench, threshold=0.3))["own-1"]["other_items"] == 1
    assert found(decontaminate(rows, benchmarks=bench, threshold=0.3, thresholds={"a": 0.9, "b": 0.9})) == {}
    assert (
        found(decontaminate(rows, benchmarks=bench, threshold=0.9, thresholds={"b": 0.3}))["own-1"]["benchmark"] == "b"
    )


def test_a_shared_preamble_is_no_evidence() -> None:
    """N-grams that many rows hold without the item prove nothing; the row that holds the item as well still goes."""
    preamble = "Read the short passage below with care and choose the best of the four answers that follow it"
    bench = table([item(1, f"{preamble}. The weaver of Lund sold nine blue rugs.")])
    others = [row(n, f"{preamble}. Passage number {n} speaks of ships.") for n in range(2, 8)]
    leak = row(1, f"{preamble}. The weaver of Lund sold nine blue rugs. Answer now!")
    result = decontaminate(table([leak, *others]), benchmarks=bench, max_df=3)
    assert set(found(result)) == {"own-1"}
    assert set(result.changes["reason"].to_pylist()) == {"common_text"}
    assert result.kept["row_id"].to_pylist() == [f"test#{n}" for n in range(2, 8)]


def test_many_copies_of_an_item_are_no_common_text() -> None:
    """A leak does not become harmless by being there ten times."""
    rows = table([row(n, f"{QUESTION} Variant {n}.", "3600") for n in range(10)])
    assert decontaminate(rows, benchmarks=BENCH).kept.num_rows == 0


def test_a_template_of_the_benchmark_is_no_evidence() -> None:
    """Words that many items of a benchmark share do not make a row a copy of one of them."""
    frame = "Answer the following riddle in one word and explain in a single sentence how you found it"
    bench = table([item(n, f"{frame}: thing {n} with {n} legs and a colour like {n}") for n in range(6)])
    asked = table([row(1, f"{frame}: what runs but never walks?")])
    assert found(decontaminate(asked, benchmarks=bench, max_df=3)) == {}


def test_verdicts_rest_on_words_not_on_hashes() -> None:
    """A row whose summary claims n-grams that its text does not hold is not dropped."""
    rows, config = (
        table([row(1, "Something else entirely, in as many words as it takes to be read.")]),
        DecontaminateConfig(),
    )
    inputs = {"benchmarks": BENCH}
    honest = STAGE.summarise(table([row(1, QUESTION)]), config, inputs)

    def fetch(positions: Any, columns: list[str]) -> pa.Table:
        return rows.select(columns).take(pa.array(positions))

    decision = STAGE.decide(honest, config, inputs, fetch)
    result = STAGE.apply(rows, decision.verdicts, config, inputs)
    assert result.dropped.num_rows == 0
    assert result.kept["contamination"].to_pylist() == [0.0]


def slow_coverage(text: str, question: str, n: int) -> float:
    """Share of the question's distinct n-grams in the text, by comparing lists."""
    asked, words = question.split(), text.split()
    n = min(n, len(asked))
    wanted = {tuple(asked[i : i + n]) for i in range(len(asked) - n + 1)}
    held = {tuple(words[i : i + n]) for i in range(len(words) - n + 1)}
    return len(wanted & held) / len(wanted)


WORDS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=25).map(" ".join)


@given(WORDS, st.lists(st.sampled_from("abcde"), min_size=2, max_size=15).map(" ".join), st.integers(2, 4))
def test_coverage_is_the_share_of_ngrams(text: str, question: str, n: int) -> None:
    """The kernel's coverage is the slow count's, and the verdict is the threshold's."""
    bench = table([item(1, question, answer="z")])
    result = decontaminate(
        table([row(1, text)]), benchmarks=bench, n=n, min_words=2, threshold=1.0, max_df=99, action="flag"
    )
    score = slow_coverage(text, question, n)
    [value] = result.kept["contamination"].to_pylist()
    assert value == pytest.approx(score) or value >= 0.9  # all of the item's words, in another order
    assert (result.changes.num_rows == 1) == (value >= 0.9)


@settings(max_examples=20)
@given(st.permutations(range(8)), st.integers(0, 8))
def test_order_and_partitions_change_nothing(order: list[int], cut: int) -> None:
    """Every row has the verdict that it has in any other order and any other cut."""
    texts = [
        QUESTION,
        f"So: {QUESTION}",
        QUESTION[:60],
        QUESTION[40:],
        SOLUTION,
        "Hi",
        "books on a shelf",
        QUESTION[:80],
    ]
    rows = table([row(n, text, "ok") for n, text in enumerate(texts)])
    whole = decontaminate(rows, benchmarks=BENCH)
    shuffled = rows.take(pa.array(order))
    config, inputs = DecontaminateConfig(), {"benchmarks": BENCH}
    summary = pa.concat_tables(
        [STAGE.summarise(part, config, inputs) for part in (shuffled.slice(0, cut), shuffled.slice(cut))]
    )
    decision = STAGE.decide(summary, config, inputs, lambda at, columns: shuffled.select(columns).take(pa.array(at)))
    parts = [
        STAGE.apply(shuffled.slice(low, high - low), decision.verdicts.slice(low, high - low), config, inputs)
        for low, high in ((0, cut), (cut, len(order)))
    ]
    lines = sorted(tuple(line.values()) for part in parts for line in part.dropped.to_pylist())
    assert lines == sorted(tuple(line.values()) for line in whole.dropped.to_pylist())
    assert decision.metrics == {k: whole.metrics[k] for k in decision.metrics}
    assert sum(part.kept.num_rows for part in parts) + len(lines) == rows.num_rows
    assert decontaminate(whole.kept, benchmarks=BENCH).dropped.num_rows == 0


def test_wrong_options_are_refused() -> None:
    """A threshold of 0 would drop everything that shares a word."""
    with pytest.raises(ConfigError, match="threshold"):
        decontaminate(table([]), threshold=0)


CASES = [
    ("P42", {"n": 13, "threshold": 0.7, "max_df": 3}, {"nn5", "nn11"}, {"nn12", "nn13", "nn14", "nn15"}),
    ("P44", {}, {"pp1", "pp2"}, set()),
    ("P45", {"n": 13, "threshold": 0.7}, {"qq1", "qq2"}, set()),
    ("P45", {"n": 13, "threshold": 0.9}, {"qq1"}, set()),
    ("P45", {"n": 13, "threshold": 0.05}, {"qq1", "qq2", "qq3"}, set()),
    ("P46", {}, set(), set()),
    ("P47", {}, {f"ss{n}" for n in range(1, 8)}, set()),
]


@pytest.mark.parametrize(("case", "options", "leaked", "common"), CASES)
def test_cases_from_other_tools(
    case: str, options: dict[str, Any], leaked: set[str], common: set[str], shared: Path
) -> None:
    """Faults met in other tools: templates, short items, thresholds, honest reports, leaks in odd fields."""
    folder = shared / "cases"
    bench = load_benchmarks([SourceConfig(name="bench", path=f"{case}.bench.jsonl")], folder)
    result = decontaminate(read(folder / f"{case}.jsonl"), benchmarks=bench, **options)
    details = found(result)
    assert {name for name, detail in details.items() if "class" not in detail} == leaked
    assert {name for name, detail in details.items() if detail.get("class") == "common text"} == common
    assert result.metrics["benchmarks"]["bench"]["items_too_short"] == (2 if case == "P44" else 0)
    assert any(check.startswith("semantic") for check in result.metrics["checks_not_run"])


def test_every_test_item_is_found_and_few_train_rows_are(shared: Path) -> None:
    """GSM8K: all 1,319 test questions are found, and at most 1 in 1,000 training rows is dropped for them."""
    folder = shared / "data/gsm8k"
    bench = load_benchmarks([SourceConfig(name="gsm8k_test", path="test.jsonl")], folder)
    train = read(folder / "train.jsonl", detect_language=False)
    leaked = read(folder / "test.jsonl", source={"name": "leaked"}, detect_language=False)
    result = decontaminate(pa.concat_tables([train, leaked]), benchmarks=bench)
    by_source = dict(zip(*np.unique(result.dropped["source"].to_pylist(), return_counts=True), strict=True))
    assert by_source["leaked"] == 1319
    assert by_source["train"] <= 7
