"""A record's shape is told by its fields, and gives the rows that it means."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpusforge.sample import KINDS
from corpusforge.shapes import SHAPES, Draft, Unrepresentable, drafts, find
from corpusforge.stages._rows import messages_array

USER, ANSWER = {"role": "user", "content": "Q?"}, {"role": "assistant", "content": "A."}
OTHER = {"role": "assistant", "content": "B."}
PUZZLE = {"question": "Q?", "answer": "4", "metadata": {"source_dataset": "gcd", "x": 1}}
BFCL = {"id": "simple_0", "question": [[USER]], "function": [{"name": "f", "parameters": {"type": "dict"}}]}
HARVESTED = {"module": "m", "name": "f", "signature": "def f():", "docstring": "Story.", "code": "c", "bare_code": "b"}
TREE = {
    "message_tree_id": "t",
    "prompt": {
        "text": "Q?", "role": "prompter", "replies": [
            {"text": "worse", "role": "assistant", "rank": 1, "replies": []},
            {"text": "best", "role": "assistant", "rank": 0, "synthetic": True, "model_name": "m", "replies": [
                {"text": "And?", "role": "prompter", "rank": 0, "replies": []}
            ]},
            {"text": "gone", "role": "assistant", "rank": 2, "deleted": True, "replies": []},
        ],
    },
}  # fmt: skip
DIALOGUE: dict[str, Any] = {
    "dialogue_id": "1_0",
    "services": ["Tables_1"],
    "turns": [
        {"speaker": "USER", "utterance": "A table?", "frames": [{"service": "Tables_1", "state": {"x": 1}}]},
        {
            "speaker": "SYSTEM",
            "utterance": "Booked.",
            "frames": [
                {
                    "service": "Tables_1",
                    "service_call": {"method": "Book", "parameters": {"seats": "2"}},
                    "service_results": [{"place": "Sino"}],
                }
            ],
        },
    ],
}
RECORDS: dict[str, dict[str, Any]] = {
    "chat": {"messages": [USER, ANSWER]},
    "sharegpt": {"conversations": [{"from": "human", "value": "Q?"}, {"from": "gpt", "value": "A."}]},
    "dialogue": {"conversation": ["Q?", "A."]},
    "prompt_completion": {"prompt": "Q?", "completion": "A."},
    "prompt": {"prompt": "Q?"},
    "alpaca": {"instruction": "Q?", "input": "", "output": "A."},
    "instances": {"instruction": "Q?", "instances": [{"input": "", "output": "A."}]},
    "text": {"text": "A."},
    "preference": {"prompt": "Q?", "chosen": "A.", "rejected": "B."},
    "hh_rlhf": {"chosen": "\n\nHuman: Q?\n\nAssistant: A.", "rejected": "\n\nHuman: Q?\n\nAssistant: B."},
    "oasst": TREE,
    "arena": {"conversation_a": [USER, ANSWER], "conversation_b": [USER, OTHER], "winner": "model_a"},
    "completions": {"prompt": "Q?", "completions": [{"response": "A.", "overall_score": 8.5, "model": "m"}]},
    "trajectory": {"task_id": 3, "traj": [USER, ANSWER], "reward": 1.0},
    "transcript": {"messages_display": "user: Q?\nassistant: None\ntool: {}\nassistant: A.\nreally: yes\n"},
    "sgd": DIALOGUE,
    "verifier": {"prompt": "Q?", "verifier": {"kind": "math", "answer": "4"}},
    "question_answer": {"question": "Q?", "answer": "4"},
    "math": {"problem": "Q?", "solution": "so \\boxed{\\frac{1}{2}}"},
    "multiple_choice": {"question": "Q?", "choices": ["no", "yes"], "answer": 1},
    "model_written": {
        "question": "Q?\n\nChoices:\n (A) No\n (B) Yes",
        "answer_matching_behavior": " (B)",
        "answer_not_matching_behavior": " (A)",
    },
    "longchat": {"prompt": "What was first?", "topics": ["rivers", "stars"], "prompt_length": -1, "test_id": 0},
    "apps": {"question": "Add.", "input_output": json.dumps({"inputs": ["1 2\n"], "outputs": ["3\n"]})},
    "function_calls": {
        "query": "Q?",
        "tools": json.dumps([{"name": "f", "parameters": {}}]),
        "answers": json.dumps([{"name": "f", "arguments": {"x": 2}}]),
    },
    "mbpp": {"text": "Q?", "code": "def f(): ...", "test_list": ["assert f() is None"], "test_setup_code": ""},
    "humaneval": {
        "prompt": "def f():\n",
        "test": "def check(f): ...",
        "entry_point": "f",
        "canonical_solution": " pass",
    },
    "ifeval": {"prompt": "Q?", "instruction_id_list": ["a:b"], "kwargs": [{}]},
    "reasoning_gym": PUZZLE,
    "doctest": HARVESTED,
    "bfcl": {**BFCL, "ground_truth": [{"f": {"x": [2, 3], "unit": ["", "cm"]}}]},
}


def only(record: dict[str, Any], shape: str = "auto") -> Draft:
    """The only draft of a record."""
    (draft,) = drafts(record, shape)[1]
    return draft


def spec(draft: Draft) -> Any:
    """What the draft's verifier says."""
    assert draft.verifier is not None
    return json.loads(draft.verifier[1])


def test_every_shape_has_an_example_here() -> None:
    """A new shape brings one."""
    assert set(RECORDS) == set(SHAPES)


@pytest.mark.parametrize("name", RECORDS)
def test_a_shape_is_found_and_gives_rows(name: str) -> None:
    """Detection and the named shape agree."""
    assert find(RECORDS[name]) == name
    assert drafts(RECORDS[name]) == drafts(RECORDS[name], name)
    assert drafts(RECORDS[name])[1]


@pytest.mark.parametrize("name", ["chat", "sharegpt", "dialogue", "prompt_completion", "alpaca", "instances"])
def test_a_conversation_is_the_same_in_every_shape(name: str) -> None:
    """Six ways to write one exchange."""
    assert only(RECORDS[name]).messages == [USER, ANSWER]


@pytest.mark.parametrize("name", ["preference", "hh_rlhf"])
def test_a_pair_is_the_same_in_every_shape(name: str) -> None:
    """Texts, dialogues in one string, and messages that hold the prompt."""
    both = {"chosen": [USER, ANSWER], "rejected": [USER, OTHER]}
    for record in (RECORDS[name], both, {"prompt": [USER], **both}, {"prompt": "Q?", **both}):
        draft = only(record)
        assert (draft.messages, draft.chosen, draft.rejected) == ([USER], [ANSWER], [OTHER])


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"chosen": [USER, ANSWER], "rejected": [{**USER, "content": "Z?"}, ANSWER]}, "no_common_prompt"),
        ({"chosen": "\n\nHuman: Q?\n\nAssistant: A.", "rejected": "\n\nHuman: Z?\n\nAssistant: A."}, "prompts_differ"),
        ({"prompt": "Z?", "chosen": [USER, ANSWER], "rejected": [USER, OTHER]}, "prompts_differ"),
        ({"chosen": "\n\nHuman: Q?", "rejected": "\n\nHuman: Q?"}, "no_final_answer"),
        ({"passes": 3}, "unknown_shape"),
        ({"question": "Q?", "choices": ["a", "b"], "answer": "c"}, "answer_not_among_choices"),
        ({**BFCL, "ground_truth": None}, "no_accepted_answer"),
        ({"text": 7}, "field_not_text"),
        ({"prompt": "Q?", "verifier": {"answer": "4"}}, "verifier_without_kind"),
    ],
)
def test_what_is_no_row_is_refused(record: dict[str, Any], reason: str) -> None:
    """Two answers to two prompts are no pair; a choice outside the list is no gold."""
    with pytest.raises(Unrepresentable) as caught:
        drafts(record)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("answer", "kind", "gold"),
    [
        ("so <<2+2=4>>4\n#### 1,234", "numeric", "1234"),
        ("-3.50", "numeric", "-3.50"),
        (72, "numeric", "72"),
        ("$5", "numeric", "5"),
        ("blue", "exact", "blue"),
        (None, "exact", None),
        ("12,34", "exact", "12,34"),
    ],
)
def test_gold_answers(answer: Any, kind: str, gold: Any) -> None:
    """Numbers are numbers, everything else is compared as it stands."""
    draft = only({"question": "Q?", "answer": answer})
    assert (draft.verifier or ("",))[0] == kind
    assert spec(draft)["answer"] == gold


ODD = st.sampled_from(
    [None, 0, True, "x", [], {}, [1], ["x"], [[]], [{}], {"x": 1}, {"x": ["y"]}, 1.5, "[1]", '{"a": []}']
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, one in inner for place in places(one, (*path, key)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of a JSON value with something else at one place."""
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


@settings(max_examples=400)
@given(st.data(), st.sampled_from(sorted(RECORDS)))
def test_an_odd_value_anywhere_is_a_reason_or_a_row(data: st.DataObject, name: str) -> None:
    """No shape stumbles over the types of somebody else's data."""
    record = RECORDS[name]
    for _ in range(3):
        place = data.draw(st.sampled_from(places(record)[1:] or [("x",)]))
        record = changed(record, place, data.draw(ODD))
    try:
        made = SHAPES[name](record)
    except (Unrepresentable, KeyError, StopIteration):
        return
    for draft in made:
        assert draft.kind in KINDS
        messages_array([draft.messages, draft.chosen, draft.rejected])
        json.dumps([draft.tools, draft.verifier, draft.rating, draft.extra])


def test_a_worked_solution_is_kept_apart() -> None:
    """GSM8K's steps go to extra, its final answer to the verifier."""
    draft = only({"question": "Q?", "answer": "steps\n#### 4"})
    assert draft.extra == {"solution": "steps\n#### 4"}


def test_the_last_box_is_the_answer() -> None:
    """Braces inside the box belong to it."""
    assert spec(only(RECORDS["math"]))["answer"] == "\\frac{1}{2}"


def test_mbpp_shows_one_test_and_checks_all() -> None:
    """The prompt names the function through its first assertion."""
    draft = only({**RECORDS["mbpp"], "test_list": ["assert f(1)", "assert f(2)"], "code": "a\r\nb"})
    assert "assert f(1)" in draft.messages[0]["content"]
    assert "assert f(2)" not in draft.messages[0]["content"]
    assert (spec(draft)["tests"], spec(draft)["reference"]) == (["assert f(1)", "assert f(2)"], "a\r\nb")


def test_an_expected_call_is_also_a_conversation() -> None:
    """First accepted value each; an argument that may be left out is left out."""
    task, said = drafts(RECORDS["bfcl"])[1]
    assert (task.kind, said.kind, task.tools) == ("task", "sft", said.tools)
    call = json.loads(said.messages[-1]["tool_calls"])[0]
    assert call == {"type": "function", "function": {"name": "f", "arguments": {"x": 2}}}
    assert json.loads(task.tools or "")[0]["function"]["parameters"] == {"type": "object"}


def test_an_irrelevant_question_expects_no_call() -> None:
    """BFCL's irrelevance part has no answers file."""
    assert spec(only({**BFCL, "id": "irrelevance_0"})) == {"calls": []}


def test_a_tree_gives_its_best_path_and_its_comparisons() -> None:
    """Deleted replies take no part; the path ends with an answer; who wrote it is known per row."""
    path, pair = drafts(TREE)[1]
    assert [m["content"] for m in path.messages] == ["Q?", "best"]
    assert (pair.chosen or [{}])[0]["content"] == "best"
    assert (pair.rejected or [{}])[0]["content"] == "worse"
    assert (path.origin, path.generator) == ("mixed", "m")


def test_a_function_without_doctests_is_only_documented() -> None:
    """With examples it is a task as well."""
    assert only(HARVESTED).kind == "sft"
    examples = [{"source": "f()\n", "want": "1\n", "options": []}]
    task, sample = drafts({**HARVESTED, "examples": examples})[1]
    assert (task.kind, sample.kind) == ("task", "sft")
    assert spec(task) == {"entry_point": "f", "module": "m", "examples": examples}


@pytest.mark.parametrize(("value", "reason"), [(10**400, "number_out_of_range"), (float("inf"), "nan_or_infinity")])
def test_a_rating_that_no_column_holds(value: float, reason: str) -> None:
    """It costs its record, not the build."""
    with pytest.raises(Unrepresentable) as caught:
        drafts({"prompt": "p", "completion": "c", "rating": value})
    assert caught.value.reason == reason


def test_ratings() -> None:
    """A rating makes a rated row, a score beside a text does not unless the shape says so."""
    assert only({"text": "A.", "rating": 4}).rating == {"value": 4.0, "scale": None, "by": None}
    assert only({"prompt": "Q?", "completion": "A.", "label": True}).kind == "rated"
    assert only({"text": "A.", "score": 4}).kind == "sft"
    assert only({"text": "A.", "score": 4}, "rated").kind == "rated"


def test_cells_of_json_are_read() -> None:
    """A CSV or Parquet of another tool may hold messages as text."""
    assert only({"messages": json.dumps([USER, ANSWER]), "tools": "[]"}).messages == [USER, ANSWER]


def test_a_system_prompt_beside_the_messages_goes_first() -> None:
    """ShareGPT and Alpaca files have it as a field."""
    assert only({**RECORDS["sharegpt"], "system": "Be brief."}).messages[0] == {
        "role": "system",
        "content": "Be brief.",
    }
