"""Shapes: what a record of some data set's own format means as rows. Pure functions of one record.

`drafts(record)` finds the shape by the fields that the record has and what they hold (`finding`); a shape named in
params is used as it is, and so is a function of one's own (`own`). One file may mix shapes. A record that fits none is
quarantined with the reason `unknown_shape`, one that fits several with `ambiguous_shape`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes import choices, code, conversations, own, preferences, tasks, tools, transcripts, trees
from corpusforge.shapes._draft import Draft, Unrepresentable, maybe_json
from corpusforge.shapes.finding import TELLING, find
from corpusforge.shapes.images import images_of
from corpusforge.shapes.mapping import PROVENANCE
from corpusforge.shapes.messages import MEANT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from corpusforge.shapes._draft import Shape

__all__ = ["PLAIN_CHAT", "PLAIN_MESSAGE", "READS", "SHAPES", "Draft", "Unrepresentable", "drafts", "find"]

SHAPES: Final[dict[str, Shape]] = {
    "chat": conversations.chat,
    "sharegpt": conversations.sharegpt,
    "dialogue": conversations.dialogue,
    "prompt_completion": conversations.prompt_completion,
    "prompt": conversations.prompt_only,
    "alpaca": conversations.alpaca,
    "instances": conversations.instances,
    "text": conversations.text,
    "completions": conversations.completions,
    "preference": preferences.preference,
    "hh_rlhf": preferences.hh_rlhf,
    "arena": preferences.arena,
    "oasst": trees.oasst,
    "trajectory": transcripts.trajectory,
    "transcript": transcripts.transcript,
    "sgd": tools.sgd,
    "verifier": tasks.verified,
    "question_answer": tasks.question_answer,
    "math": tasks.math,
    "multiple_choice": choices.multiple_choice,
    "model_written": choices.model_written,
    "longchat": tasks.longchat,
    "mbpp": code.mbpp,
    "humaneval": code.humaneval,
    "apps": code.apps,
    "doctest": code.doctest,
    "ifeval": tasks.ifeval,
    "reasoning_gym": tasks.reasoning_gym,
    "bfcl": tools.bfcl,
    "function_calls": tools.function_calls,
}
"""Every shape by its name in params."""
_RATED: Final = ("rating", "score", "label", "reward")
_CAN_BE_RATED: Final = frozenset({"chat", "sharegpt", "prompt_completion", "alpaca", "text", "trajectory"})
_AROUND: Final = frozenset({"system", "system_prompt", "tools"})
_TALK: Final = frozenset({"conversations", "conversation", "dialogue", "dialog"})
_CHOICES: Final = frozenset({*choices.QUESTIONS, *choices.OPTIONS, *choices.ANSWERS, *choices.COLUMNS})
READS: Final[dict[str, frozenset[str]]] = {
    "chat": _AROUND | {"messages", "functions"},
    "sharegpt": _AROUND | {"functions"} | _TALK,
    "dialogue": _AROUND | _TALK | {"language"},
    "prompt_completion": _AROUND | {"prompt", "completion", "response"},
    "prompt": _AROUND | {"prompt", "question"},
    "alpaca": _AROUND | {"instruction", "input", "context", "output", "response", "history"},
    "instances": frozenset({"instruction", "instances"}),
    "text": frozenset({"text", "content"}),
    "completions": frozenset({"prompt", "instruction", "completions", "responses"}),
    "preference": _AROUND | {"prompt", "messages", "question", "chosen", "rejected"},
    "hh_rlhf": frozenset({"chosen", "rejected"}),
    "arena": frozenset({"conversation_a", "conversation_b", "winner"}),
    "oasst": frozenset({"prompt", "replies", "text", "role", "message_tree_id", "group"}),
    "trajectory": _AROUND | {"functions", *transcripts.TRAJECTORIES},
    "transcript": frozenset({"messages_display"}),
    "sgd": frozenset({"dialogue_id", "turns", tools.SERVICES}),
    "verifier": _AROUND | {"prompt", "messages", "question", "verifier"},
    "question_answer": frozenset({"question", "prompt", "answer"}),
    "math": frozenset({"problem", "question", "solution", "answer"}),
    "multiple_choice": _CHOICES,
    "model_written": frozenset({"question", "answer_matching_behavior", "answer_not_matching_behavior"}),
    "longchat": frozenset({"prompt", "topics", "prompt_length"}),
    "mbpp": frozenset({"text", "prompt", "code", "test_list", *code.MBPP_TESTS}),
    "humaneval": frozenset({"prompt", "entry_point", "canonical_solution", "test"}),
    "apps": frozenset({"question", "input_output", "starter_code", "solutions"}),
    "doctest": frozenset({"module", "name", "signature", "docstring", "code", "bare_code", "examples"}),
    "ifeval": frozenset({"prompt", "instruction_id_list", "kwargs"}),
    "reasoning_gym": frozenset({"question", "answer", "metadata", "task"}),
    "bfcl": frozenset({"question", "function", "ground_truth", "id"}),
    "function_calls": frozenset({"query", "answers", "tools"}),
}
"""The fields that each shape looks at; a mapping can only mean one of them."""
PLAIN_CHAT: Final = (TELLING | READS["chat"] | {"rating", "image", "images"}) - {"messages"}
"""Fields without which a record of messages is a chat of nothing else, rated by nobody."""
PLAIN_MESSAGE: Final = MEANT
"""Fields without which a message with a role and a text means nothing else; others are its extras."""


def readable(shape: str) -> frozenset[str]:
    """Names that a mapping for this shape may fill, beside those of provenance."""
    fields = READS[shape] if shape in READS else frozenset[str]().union(*READS.values())
    return fields | {*_RATED, "image", "images"}


def drafts(
    record: Mapping[str, Any], shape: str = "auto", meant: frozenset[str] = frozenset()
) -> tuple[str, list[Draft]]:
    """The record's shape and its rows to be. Raises Unrepresentable.

    `meant` are fields that a mapping has filled: where the record fits several shapes, or one that reads none of them,
    they alone tell the shape. A record is rated when `shape` says so, when it has a `rating`, or when it is a prompt
    with a completion and a yes/no `label` (TRL's unpaired preference). A mere `score` or `label` stays in `extra`.
    """
    if own.is_own(shape):
        return _own(record, shape)
    name = _found(record, meant) if shape in ("auto", "rated") else shape
    try:
        made = SHAPES[name](record)
        field = _rating_field(record, name, shape)
        made = conversations.rated(record, made, field) if field else made
    except KeyError as error:
        raise Unrepresentable("field_missing", field=str(error.args[0])) from None
    except StopIteration:
        raise Unrepresentable("field_missing", shape=name) from None
    except (AttributeError, TypeError, ValueError, IndexError, ArithmeticError, RecursionError) as error:
        if isinstance(error, Unrepresentable):
            raise
        # Someone else's data can hold anything anywhere: one odd record must not end the build of all the others.
        raise Unrepresentable("malformed", shape=name, error=type(error).__name__) from None
    if "images" in record or "image" in record:
        _put_images(record, made)
    return ("rated" if field else name), made


def _found(record: Mapping[str, Any], meant: frozenset[str]) -> str:
    if not meant:
        return find(record)
    try:
        name = find(record)
        if READS[name] & meant:
            return name
    except Unrepresentable as fault:
        if fault.reason != "ambiguous_shape":
            raise
    return find({name: record[name] for name in record if name in meant})


def _put_images(record: Mapping[str, Any], made: list[Draft]) -> None:
    images, used = images_of(record)
    for draft in made:
        if images and draft.images is None:
            draft.images = images
            draft.used = draft.used | used


def _own(record: Mapping[str, Any], shape: str) -> tuple[str, list[Draft]]:
    """Rows of what a function of one's own makes of the record."""
    name, gives, rows = own.reshaped(record, shape)
    made: list[Draft] = []
    for row in rows:
        stated = {key: row[key] for key in PROVENANCE if row.get(key) is not None}
        for draft in drafts({key: value for key, value in row.items() if key not in stated}, gives)[1]:
            draft.record, draft.stated = row, stated
            draft.used = draft.used | stated.keys()
            made.append(draft)
    return name, made


def _rating_field(record: Mapping[str, Any], name: str, shape: str) -> str | None:
    if shape == "rated":
        field = next((field for field in _RATED if field in record), None)
        if field is None:
            raise Unrepresentable("field_missing", field="rating")
        return field
    if shape != "auto" or name not in _CAN_BE_RATED:
        return None
    if "rating" in record and _is_rating(record["rating"]):
        return "rating"
    return "label" if name == "prompt_completion" and _is_yes_or_no(record.get("label")) else None


def _is_rating(value: Any) -> bool:
    value = maybe_json(value)
    value = conversations.said_number(value) if isinstance(value, str) else value
    return isinstance(value, (int, float, dict))


def _is_yes_or_no(value: Any) -> bool:
    return isinstance(conversations.said_number(value) if isinstance(value, str) else value, bool)
