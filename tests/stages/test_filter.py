"""Filter rules drop what they name, and only that."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rows import message, row, table

from corpusforge.errors import ConfigError
from corpusforge.stages.filter import RULES, filter

if TYPE_CHECKING:
    from collections.abc import Sequence


def pair(record: int, chosen: str, rejected: str) -> dict[str, Any]:
    """A preference row."""
    answers = {"chosen": [message("assistant", chosen)], "rejected": [message("assistant", rejected)]}
    return row(record, "Say something.", kind="preference", **answers)


def call(arguments: Any, name: str = "find", **more: Any) -> dict[str, Any]:
    """An assistant turn with one tool call."""
    function = {"name": name, "arguments": arguments}
    return message("assistant", None, tool_calls=json.dumps([{"type": "function", "function": function, **more}]))


ASK = message("user", "Where is it?")
END = message("assistant", "It is there.")
REFUSES = "I'm sorry, but I can't help with that."
LOOP = "this goes round and round again and " * 12

FAULTS = [
    (row(1, messages=[]), "empty", "no_text"),
    (row(1, "Hi", " \n"), "empty", "no_answer"),
    (pair(1, "", "no"), "empty", "no_chosen"),
    (pair(1, "yes", "  "), "empty", "no_rejected"),
    (row(1, messages=None, kind="task", chosen=[END]), "empty", "no_prompt"),
    ({**pair(1, "yes", "no"), "messages": [message("user", " ")]}, "empty", "no_prompt"),
    (row(1, messages=[ASK, message("critic", "Too short."), END]), "broken_roles", "unknown_role"),
    (row(1, messages=[message("system", "a"), message("system", "b"), ASK, END]), "broken_roles", "two_system_turns"),
    (row(1, "Hi", "Hello", "And you?"), "broken_roles", "user_last"),
    (row(1, messages=[ASK, message("tool", "42"), END]), "broken_roles", "tool_without_call"),
    (
        row(1, messages=[ASK, call({}, id="c1"), message("tool", "42", tool_call_id="c2"), END]),
        "broken_roles",
        "orphan_tool_call_id",
    ),
    (row(1, messages=[ASK, call('{"city": Bergen}')]), "tool_arguments", "arguments_not_an_object"),
    (row(1, messages=[ASK, call({}, name="")]), "tool_arguments", "call_without_name"),
    (row(1, "Hi", LOOP), "repetition", "duplicate_ngrams"),
    (row(1, "Hi", "one line of this\n" * 3 + " ".join(f"w{i}\n" for i in range(10))), None, None),
]


@pytest.mark.parametrize(("faulty", "reason", "fault"), FAULTS)
def test_faults_are_named(faulty: dict[str, Any], reason: str | None, fault: str | None) -> None:
    """A broken row goes with its rule and the name of the fault; a sound one stays."""
    result = filter(table([faulty, row(2, "Hi", "Hello there.")]))
    lines = [(line["reason"], json.loads(line["detail"])["fault"]) for line in result.dropped.to_pylist()]
    assert lines == ([(reason, fault)] if reason else [])
    assert result.kept["row_id"].to_pylist()[-1] == "test#2"


@pytest.mark.parametrize(
    "sound",
    [
        row(1, messages=[message("assistant", "Welcome!"), ASK, END]),
        row(1, messages=[ASK, ASK, END]),
        row(1, messages=[ASK, call({"q": "x"})]),
        row(1, messages=[ASK, call({}, id="c1"), message("tool", "42", tool_call_id="c1"), END]),
        row(1, "Where?", kind="task", verifier={"kind": "exact", "spec": '{"answer":"there"}'}),
    ],
)
def test_unusual_but_sound_rows_stay(sound: dict[str, Any]) -> None:
    """A greeting first, two questions in a row, a final tool call: unusual, not broken."""
    assert filter(table([sound])).kept.num_rows == 1


@pytest.mark.parametrize(
    "text",
    [
        REFUSES,
        "I\u2019m sorry, I can\u2019t help you.",
        "As an AI language model, I cannot provide medical advice.",
        "Unfortunately, I am not able to assist with this.",
        "I won't do that.",
    ],
)
def test_answers_that_only_refuse_go(text: str) -> None:
    """Short answers that open with a refusal are dropped, with their length in characters."""
    [line] = filter(table([row(1, "Do it.", text)])).dropped.to_pylist()
    assert line["reason"] == "refusal"
    assert json.loads(line["detail"])["measured"] == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry to hear that. Have you tried turning it off and on?",
        "Sorry, I did not understand. Can you say that again?",
        "The sign says: I can't help with that.",
        REFUSES + " Here is what I can do instead. " + " ".join(f"Idea {n} may help." for n in range(40)),
    ],
)
def test_answers_with_something_to_say_stay(text: str) -> None:
    """Sympathy, questions, quotations and long answers are no refusals."""
    assert filter(table([row(1, "Do it.", text)])).kept.num_rows == 1


def test_rejected_answers_may_be_bad() -> None:
    """What `rejected` and rated rows are there to show is not held against them; `chosen` must be good."""
    rated = row(3, "Do it.", REFUSES, kind="rated", rating={"value": 0.0, "scale": "0-1", "by": "human"})
    result = filter(table([pair(1, "Gladly, here it is.", REFUSES), pair(2, REFUSES, "no"), rated]))
    assert result.kept["row_id"].to_pylist() == ["test#1", "test#3"]
    assert result.reasons() == {"refusal": 1}


def test_listed_words_count_by_share() -> None:
    """An insult goes, one quoted word in a long answer stays, and so does everyday and identity speech."""
    long = " ".join(["She called it bullshit."] + ["It was a long and quiet evening at the office."] * 15)
    plain = "My uncle is gay, and the stroke did not change that."
    rows = table([row(1, "Hi", "You piece of shit."), row(2, "Hi", long), row(3, "Hi", plain)])
    result = filter(rows, rules=["word_list"])
    assert result.dropped["row_id"].to_pylist() == ["test#1"]


def test_equal_answers_go() -> None:
    """A pair whose answers differ in outer white space only teaches nothing."""
    assert filter(table([pair(1, "Yes. ", "Yes."), pair(2, "Yes.", "No.")])).reasons() == {"equal_answers": 1}


def test_too_long_goes_with_its_length() -> None:
    """The detail of a figure rule holds what was measured and the limit."""
    [line] = filter(table([row(1, "ask", "x" * 100)]), max_chars=100).dropped.to_pylist()
    assert json.loads(line["detail"]) == {"rule": "over_long", "measured": 103, "limit": 100}


def test_other_failing_rules_are_listed() -> None:
    """The first rule is the reason, the others stand in the detail."""
    [line] = filter(table([row(1, "ask", REFUSES)]), max_chars=5).dropped.to_pylist()
    assert line["reason"] == "over_long"
    assert json.loads(line["detail"])["also"] == ["refusal"]


@pytest.mark.parametrize("rule", [r for r in RULES if r != "toxicity_model"])
def test_each_rule_can_be_left_out(rule: str) -> None:
    """A rule that is not named does not run and is not counted as run."""
    rules = [r for r in RULES if r != rule]
    rows = table(
        [fault for fault, _, _ in FAULTS] + [pair(1, "same", "same"), row(1, "q", REFUSES), row(1, "q", "shit")]
    )
    result = filter(rows, rules=rules)
    assert rule in filter(rows).reasons() or rule == "over_long"
    assert rule not in result.reasons()
    assert result.metrics["checked"][rule] == 0


def test_unknown_rule_is_a_config_error() -> None:
    """A misspelt rule is refused."""
    with pytest.raises(ConfigError, match="rules"):
        filter(table([]), rules=["refusals"])


@given(
    st.lists(st.sampled_from([fault for fault, _, _ in FAULTS] + [row(9, "Hi", "Hello.")]), max_size=8),
    st.integers(0, 8),
)
def test_partitions_and_repeats_change_nothing(picked: list[dict[str, Any]], cut: int) -> None:
    """Rows are conserved, a second pass drops nothing, and where the table is cut does not matter."""
    rows = table([{**r, "row_id": f"test#{n}"} for n, r in enumerate(picked)])
    whole = filter(rows)
    assert whole.kept.num_rows + whole.dropped.num_rows == rows.num_rows
    assert filter(whole.kept).dropped.num_rows == 0
    parts = [filter(rows.slice(0, cut)), filter(rows.slice(cut))]
    assert pa.concat_tables([p.kept for p in parts]).to_pylist() == whole.kept.to_pylist()
    assert pa.concat_tables([p.dropped for p in parts]).to_pylist() == whole.dropped.to_pylist()


class HashedWords:
    """Logistic regression over hashed words: a real, small model behind the one-method protocol."""

    size = 2048

    def __init__(self, texts: Sequence[str], labels: Sequence[bool]) -> None:
        """Train by 150 full gradient steps."""
        features, wanted = self._features(texts), np.array(labels, float)
        self.weights, self.bias = np.zeros(self.size), 0.0
        for _ in range(150):
            error = self._sigmoid(features @ self.weights + self.bias) - wanted
            self.weights -= features.T @ error / len(wanted) * 4
            self.bias -= float(error.mean())

    def score(self, texts: Sequence[str]) -> Sequence[float]:
        """Probability that each text is hateful."""
        return list(self._sigmoid(self._features(texts) @ self.weights + self.bias))

    def _features(self, texts: Sequence[str]) -> Any:
        from corpusforge.text.ngrams import tokenise

        tokens = tokenise(pa.array(texts, pa.string()))
        features = np.zeros((len(texts), self.size))
        texts_of = np.repeat(np.arange(len(texts)), np.diff(tokens.bounds))
        features[texts_of, (tokens.hashes % np.uint64(self.size)).astype(int)] = 1
        return features

    @staticmethod
    def _sigmoid(values: Any) -> Any:
        return 1 / (1 + np.exp(-values))


def hatecheck(shared: Path) -> tuple[list[str], list[bool]]:
    """Texts and whether they are hateful."""
    with (shared / "data/hatecheck/test_suite_cases.csv").open(encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return [line["test_case"] for line in lines], [line["label_gold"] == "hateful" for line in lines]


def test_a_model_is_a_rule(shared: Path) -> None:
    """A model trained on half of HateCheck finds most of the hateful half it has not seen, where the list does not."""
    texts, labels = hatecheck(shared)
    model = HashedWords(texts[::2], labels[::2])
    rows = table([row(n, "Say it.", text) for n, text in enumerate(texts[1::2])])
    hateful = {f"test#{n}" for n, label in enumerate(labels[1::2]) if label}
    by_model = set(filter(rows, toxicity_model=model, rules=["toxicity_model"]).dropped["row_id"].to_pylist())
    by_list = set(filter(rows, rules=["word_list"]).dropped["row_id"].to_pylist())
    assert len(by_model & hateful) / len(hateful) > 0.8
    assert len(by_model & hateful) / len(by_model) > 0.8
    assert len(by_list & hateful) / len(hateful) < 0.2


def test_without_a_model_its_rule_says_it_did_not_run() -> None:
    """No model, no claim."""
    assert filter(table([row(1, "Hi", "Hello.")])).metrics["checked"]["toxicity_model"] == 0


def test_word_list_figures_in_the_docs_are_true(shared: Path) -> None:
    """Precision and recall of the word list on HateCheck are what docs/stages/filter.md states."""
    texts, labels = hatecheck(shared)
    rows = table([row(n, "Say it.", text) for n, text in enumerate(texts)])
    gone = set(filter(rows, rules=["word_list"]).dropped["row_id"].to_pylist())
    hateful = {f"test#{n}" for n, label in enumerate(labels) if label}
    precision, recall = len(gone & hateful) / len(gone), len(gone & hateful) / len(hateful)
    docs = (Path(__file__).parents[2] / "docs/stages/filter.md").read_text(encoding="utf-8")
    assert f"precision {precision:.2f}, recall {recall:.2f}" in docs
