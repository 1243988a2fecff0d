"""Shapes of published data sets: trees, choices, tool calls, code tasks, and what agents did."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.shapes.test_shapes import ANSWER, DIALOGUE, OTHER, RECORDS, TREE, USER, only, spec

from corpusforge.shapes import Unrepresentable, drafts, find

SERVICE = {
    "service_name": "Tables_1",
    "slots": [
        {"name": "seats", "description": "How many", "is_categorical": True, "possible_values": ["1", "2"]},
        {"name": "day", "description": "When", "is_categorical": False, "possible_values": []},
    ],
    "intents": [
        {"name": "Book", "description": "Book a table", "required_slots": ["seats"], "optional_slots": {"day": "today"}}
    ],
}


def test_messages_of_one_tree_in_lines_are_the_tree() -> None:
    """The flat export, put together by `group`, says what the tree export says."""
    flat: list[dict[str, Any]] = []

    def lay(node: dict[str, Any], parent: str | None) -> None:
        name = f"m{len(flat)}"
        flat.append({**{k: v for k, v in node.items() if k != "replies"}, "message_id": name, "parent_id": parent})
        for reply in node["replies"]:
            lay(reply, name)

    lay(TREE["prompt"], None)
    grouped = {"message_tree_id": "t", "group": flat[::-1]}
    assert find(grouped) == "oasst"
    said = [[(d.kind, d.messages, d.chosen, d.rejected) for d in drafts(record)[1]] for record in (TREE, grouped)]
    assert said[0] == said[1]


@pytest.mark.parametrize(
    "messages",
    [
        [{"message_id": "a", "parent_id": "x", "text": "Q?", "role": "prompter"}],
        [{"message_id": "a", "parent_id": None, "text": "Q?", "role": "prompter"}] * 2,
        [
            {"message_id": "a", "parent_id": None, "text": "Q?", "role": "prompter"},
            {"message_id": "b", "parent_id": "c", "text": "A.", "role": "assistant"},
            {"message_id": "c", "parent_id": "b", "text": "A.", "role": "assistant"},
        ],
    ],
    ids=["no root", "twice", "a ring"],
)
def test_messages_that_are_not_one_tree_are_refused(messages: list[dict[str, Any]]) -> None:
    with pytest.raises(Unrepresentable, match="tree_not_whole"):
        drafts({"message_tree_id": "t", "group": messages})


def test_what_is_known_of_a_trees_messages_is_kept() -> None:
    """Labels, votes and models, in the order of the row's messages and then of its answers."""
    _, pair = drafts(TREE)[1]
    assert pair.extra["nodes"][1:] == [{"rank": 0, "synthetic": True, "model_name": "m"}, {"rank": 1}]


@pytest.mark.parametrize(
    ("more", "letter"),
    [
        ({"choices": ["no", "yes"], "answer": "B"}, "B"),
        ({"choices": ["no", "yes"], "answer": "(b)"}, "B"),
        ({"choices": ["no", "yes"], "answer": "yes"}, "B"),
        ({"choices": ["no", "yes"], "answer": "1"}, "B"),
        ({"choices": json.dumps(["no", "yes"]), "answer": 1}, "B"),
        ({"options": {"A": "no", "B": "yes"}, "answer": "yes", "answer_idx": "B"}, "B"),
        ({"choices": {"label": ["1", "2"], "text": ["no", "yes"]}, "answerKey": "2"}, "B"),
        ({"choices": [{"label": "x", "text": "no"}, {"label": "y", "text": "yes"}], "answer": "y"}, "B"),
        ({"A": "no", "B": "yes", "C": "perhaps", "D": "", "answer": "B"}, "B"),
        ({"choices": [1, 2, 3], "answer": 7}, None),
        ({"choices": ["3", "2", "1"], "answer": "2"}, None),  # the option, or the index?
        ({"choices": ["B", "A"], "answer": "A"}, None),
        ({"choices": ["same", "same"], "answer": "same"}, None),
        ({"choices": ["no", "yes"], "answer": True}, None),
        ({"choices": ["no"], "answer": 0}, None),
        ({"choices": [["no"], ["yes"]], "answer": 0}, None),
    ],
)
def test_the_right_choice_is_told_or_asked_for(more: dict[str, Any], letter: str | None) -> None:
    """However it is written; what could be two of them is nobody's guess."""
    record = {"question": "Q?", **more}
    if letter is None:
        with pytest.raises(Unrepresentable, match=r"answer_ambiguous|answer_not_among_choices|choices_not_texts"):
            drafts(record)
        return
    draft = only(record)
    assert spec(draft)["answer"] == letter
    assert "A. no\nB. yes" in draft.messages[0]["content"]


def test_a_behaviour_is_asked_for_by_letter_or_by_word() -> None:
    assert spec(only(RECORDS["model_written"])) == {"answer": "B", "choices": ["A", "B"]}
    word = {"question": "Is it so?", "answer_matching_behavior": " Yes", "answer_not_matching_behavior": " No"}
    assert spec(only(word)) == {"answer": "Yes", "ignore_case": True}


def test_a_dialogue_of_services_makes_its_calls() -> None:
    """Before the turn that tells of the results; the services' intents are its tools; annotations stay in extra."""
    draft = only({**DIALOGUE, "service_schemas": [SERVICE]})
    assert [message["role"] for message in draft.messages] == ["user", "assistant", "tool", "assistant"]
    (call,) = json.loads(draft.messages[1]["tool_calls"])
    assert call == {"type": "function", "function": {"name": "Book", "arguments": {"seats": "2"}}}
    assert json.loads(draft.messages[2]["content"]) == [{"place": "Sino"}]
    (tool,) = json.loads(draft.tools or "")
    assert tool["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "seats": {"type": "string", "description": "How many", "enum": ["1", "2"]},
            "day": {"type": "string", "description": "When", "default": "today"},
        },
        "required": ["seats"],
    }
    assert draft.extra["turns"][0] == {"frames": [{"service": "Tables_1", "state": {"x": 1}}]}
    assert draft.extra["turns"][1] == {"frames": [{"service": "Tables_1"}]}
    assert only(DIALOGUE).tools is None


def test_a_transcript_is_read_by_its_roles() -> None:
    """A call that was not recorded is noted, and a line that begins with another word belongs to the turn."""
    draft = only(RECORDS["transcript"])
    assert [(m["role"], m.get("content")) for m in draft.messages] == [
        ("user", "Q?"), ("assistant", None), ("tool", "{}"), ("assistant", "A.\nreally: yes"),
    ]  # fmt: skip
    assert draft.notes == [("calls_not_recorded", {})]


def test_several_turns_of_a_question_are_a_task_each() -> None:
    """The next follows on the call that was accepted, written as an object or as Python writes it."""
    functions = [{"name": "cd", "parameters": {"properties": {"folder": {}}}}, {"name": "ls", "parameters": {}}]
    turns = [[USER], [{"role": "user", "content": "And now?"}], [{"role": "user", "content": "Thanks."}]]
    record = {"id": "multi_turn_0", "question": turns, "function": functions}
    truth: list[Any] = [["cd('document')", "ls()"], [{"cd": {"folder": ["x", "y"]}}], []]
    made = drafts({**record, "ground_truth": truth})[1]
    assert [d.kind for d in made] == ["task", "task", "task"]
    assert spec(made[0]) == {"calls": [{"cd": {"folder": ["document"]}}, {"ls": {}}]}
    assert [m["role"] for m in made[1].messages] == ["user", "assistant", "user"]
    assert spec(made[2]) == {"calls": []}
    assert [d.kind for d in drafts({**record, "question": turns[:2], "ground_truth": truth[:2]})[1]][-1] == "sft"
    for wrong in (truth[:2], [["cd(document)"], [], []], [["cd('a', 'b')"], [], []], [["1 + 1"], [], []], [7, [], []]):
        with pytest.raises(Unrepresentable, match="accepted_call_not_understood"):
            drafts({**record, "ground_truth": wrong})


def test_calls_beside_a_question() -> None:
    """The accepted call of the task, and the call of the conversation."""
    task, said = drafts(RECORDS["function_calls"])[1]
    assert spec(task) == {"calls": [{"f": {"x": [2]}}]}
    assert json.loads(said.messages[-1]["tool_calls"])[0]["function"] == {"name": "f", "arguments": {"x": 2}}


def test_inputs_and_outputs_are_those_of_a_program_or_of_a_function() -> None:
    draft = only(RECORDS["apps"])
    assert draft.verifier is not None
    assert (draft.verifier[0], spec(draft)) == ("program", {"tests": [{"input": "1 2\n", "output": "3\n"}]})
    given = {"inputs": [[[1, 2], "x"]], "outputs": [[3]], "fn_name": "add"}
    starter = "class Solution:\n    def add(self, xs, y):"
    draft = only({"question": "Add.", "input_output": given, "starter_code": starter, "solutions": ["def f(): ..."]})
    assert spec(draft)["tests"] == ["assert alike(Solution().add([1, 2], 'x'), [3])"]
    assert starter in draft.messages[0]["content"]
    assert draft.extra == {"solution": "def f(): ..."}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "no_tests"),
        ({"inputs": [], "outputs": []}, "no_tests"),
        ({"inputs": [1], "outputs": ["1"]}, "tests_not_understood"),
        ({"inputs": ["1"], "outputs": []}, "tests_not_understood"),
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": "os.system"}, "tests_not_understood"),
        ({"inputs": ["1"], "outputs": ["1"], "fn_name": "f"}, "tests_not_understood"),
    ],
    ids=["empty", "none", "numbers", "uneven", "no name", "no arguments"],
)
def test_tests_that_are_none_are_refused(given: Any, reason: str) -> None:
    with pytest.raises(Unrepresentable, match=reason):
        drafts({"question": "Add.", "input_output": given}, "apps")


def test_the_better_of_two_models() -> None:
    """A tie compares nothing."""
    pair = only(RECORDS["arena"])
    assert (pair.messages, pair.chosen, pair.rejected) == ([USER], [ANSWER], [OTHER])
    assert only({**RECORDS["arena"], "winner": "model_b"}).chosen == [OTHER]
    with pytest.raises(Unrepresentable, match="no_winner"):
        drafts({**RECORDS["arena"], "winner": "tie (bothbad)"})


def test_scored_answers_are_rated_rows() -> None:
    draft = only(RECORDS["completions"])
    assert (draft.kind, draft.rating, draft.generator) == ("rated", {"value": 8.5, "scale": None, "by": None}, "m")
    assert draft.extra == {"answer": {"model": "m"}}


def test_cells_of_a_table_say_numbers_and_yes_or_no() -> None:
    """As a rating or a label; a text that says neither is a field like any other."""
    assert only({"text": "A.", "rating": "4.5"}).rating == {"value": 4.5, "scale": None, "by": None}
    yes_or_no = {"value": 0.0, "scale": "yes/no", "by": None}
    assert only({"prompt": "Q?", "completion": "A.", "label": "False"}).rating == yes_or_no
    assert only({"text": "A.", "rating": "good"}).kind == "sft"
    assert only({"prompt": "Q?", "completion": "A.", "label": "0"}).kind == "sft"
