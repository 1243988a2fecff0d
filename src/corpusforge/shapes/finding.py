"""Which shape a record has: told by its fields, and where that is not enough by what they hold.

    {"messages": […], "text": "…"}                      chat: the text is most likely that conversation once more
    {"problem": "…", "answer": "4", "messages": […]}    ambiguous: a task, or a conversation about it?

A record that fits several shapes, of which none takes in the others, is nobody's guess: it is quarantined as
`ambiguous_shape` with their names, until params say `shape`. Records of one file have few sets of fields, so what the
fields alone say is kept in mind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from corpusforge.shapes import choices, preferences
from corpusforge.shapes._draft import Unrepresentable, maybe_json


def _turns(record: Mapping[str, Any]) -> Any:
    return maybe_json(next((record[f] for f in ("conversation", "dialogue", "dialog") if f in record), None))


def _is_dialogue(record: Mapping[str, Any]) -> bool:
    turns = _turns(record)
    return isinstance(turns, list) and bool(turns) and all(isinstance(turn, str) for turn in turns)


def _is_talk(record: Mapping[str, Any]) -> bool:
    return isinstance(_turns(record), list) and not _is_dialogue(record)


def _is_verified(record: Mapping[str, Any]) -> bool:
    return isinstance(maybe_json(record.get("verifier")), dict)


def _is_pair(record: Mapping[str, Any]) -> bool:
    return not preferences.is_hh(record)


def _is_flat_tree(record: Mapping[str, Any]) -> bool:
    group = record["group"]
    named = ("message_id", "parent_id", "text")
    return isinstance(group, list) and all(isinstance(one, dict) and all(n in one for n in named) for one in group)


def _is_run(record: Mapping[str, Any]) -> bool:
    turns = maybe_json(next(record[name] for name in ("traj", "trajectory") if name in record))
    return isinstance(turns, list) and bool(turns) and all(isinstance(turn, dict) and "role" in turn for turn in turns)


def _is_schema_guided(record: Mapping[str, Any]) -> bool:
    turns = maybe_json(record["turns"])
    first = turns[0] if isinstance(turns, list) and turns else None
    return isinstance(first, dict) and "utterance" in first and "speaker" in first


def _are_answers(record: Mapping[str, Any]) -> bool:
    answers = maybe_json(next(record[name] for name in ("completions", "responses") if name in record))
    return isinstance(answers, list) and bool(answers) and all(isinstance(answer, dict) for answer in answers)


def _are_calls(record: Mapping[str, Any]) -> bool:
    return isinstance(maybe_json(record["answers"]), list)


def _is_tree(record: Mapping[str, Any]) -> bool:
    prompt = maybe_json(record.get("prompt"))
    tree = prompt if isinstance(prompt, dict) else record
    return "replies" in tree and "text" in tree


def _are_options(record: Mapping[str, Any]) -> bool:
    """Whether the columns A and B hold options: a question beside C and D, or one that has an answer."""
    meant = {"C", "D"} <= record.keys() or any(name in record for name in choices.ANSWERS)
    return meant and all(record[name] not in (None, "") for name in ("A", "B"))


def _is_puzzle(record: Mapping[str, Any]) -> bool:
    metadata = maybe_json(record.get("metadata"))
    return isinstance(metadata, dict) and "source_dataset" in metadata


Told = Callable[[Mapping[str, Any]], bool]
_SIGNS: Final[tuple[tuple[str, set[str], Told | None], ...]] = (
    ("verifier", {"prompt", "verifier"}, None),
    ("verifier", {"messages", "verifier"}, _is_verified),
    ("preference", {"chosen", "rejected"}, _is_pair),
    ("hh_rlhf", {"chosen", "rejected"}, preferences.is_hh),
    ("chat", {"messages"}, None),
    ("sharegpt", {"conversations"}, None),
    ("sharegpt", {"conversation"}, _is_talk),
    ("sharegpt", {"dialogue"}, _is_talk),
    ("sharegpt", {"dialog"}, _is_talk),
    ("dialogue", {"conversation"}, _is_dialogue),
    ("dialogue", {"dialogue"}, _is_dialogue),
    ("dialogue", {"dialog"}, _is_dialogue),
    ("oasst", {"prompt", "message_tree_id"}, _is_tree),
    ("oasst", {"replies", "text"}, None),
    ("oasst", {"group"}, _is_flat_tree),
    ("trajectory", {"traj"}, _is_run),
    ("trajectory", {"trajectory"}, _is_run),
    ("transcript", {"messages_display"}, None),
    ("sgd", {"dialogue_id", "turns"}, _is_schema_guided),
    ("arena", {"conversation_a", "conversation_b", "winner"}, None),
    ("completions", {"prompt", "completions"}, _are_answers),
    ("completions", {"prompt", "responses"}, _are_answers),
    ("completions", {"instruction", "completions"}, _are_answers),
    ("completions", {"instruction", "responses"}, _are_answers),
    ("instances", {"instruction", "instances"}, None),
    ("alpaca", {"instruction", "output"}, None),
    ("alpaca", {"instruction", "response"}, None),
    ("mbpp", {"test_list", "text"}, None),
    ("mbpp", {"test_list", "prompt"}, None),
    ("humaneval", {"entry_point", "test", "prompt"}, None),
    ("apps", {"question", "input_output"}, None),
    ("bfcl", {"question", "function"}, None),
    ("function_calls", {"query", "answers", "tools"}, _are_calls),
    ("ifeval", {"instruction_id_list", "prompt"}, None),
    ("doctest", {"docstring", "bare_code", "signature"}, None),
    ("multiple_choice", {"question", "choices"}, None),
    ("multiple_choice", {"question", "options"}, None),
    ("multiple_choice", {"query", "choices"}, None),
    ("multiple_choice", {"ctx", "endings"}, None),
    ("multiple_choice", {"question", "A", "B"}, _are_options),
    ("model_written", {"question", "answer_matching_behavior", "answer_not_matching_behavior"}, None),
    ("longchat", {"prompt", "topics", "prompt_length"}, None),
    ("reasoning_gym", {"question", "answer", "metadata"}, _is_puzzle),
    ("math", {"problem", "solution"}, None),
    ("math", {"problem", "answer"}, None),
    ("question_answer", {"question", "answer"}, None),
    ("question_answer", {"prompt", "answer"}, None),
    ("prompt_completion", {"prompt", "completion"}, None),
    ("prompt_completion", {"prompt", "response"}, None),
    ("text", {"text"}, None),
    ("text", {"content"}, None),
    ("prompt", {"prompt"}, None),
    ("prompt", {"question"}, None),
)
"""Fields that a record of a shape has, and what they must hold where their names do not tell it. Of a shape that
stands here several times, one line is enough."""
_WEAK: Final = frozenset({"text", "prompt"})  # a field that many records have beside what they are
_ANSWERED: Final = frozenset({"question_answer", "prompt"})
_TAKES_IN: Final[dict[str, frozenset[str]]] = {
    "verifier": frozenset(name for name, _, _ in _SIGNS),
    "preference": frozenset({"chat", "prompt_completion", "question_answer"}),
    "hh_rlhf": frozenset({"chat", "prompt_completion", "question_answer"}),
    **dict.fromkeys(("multiple_choice", "bfcl", "reasoning_gym", "apps"), _ANSWERED),
}
"""Shapes that a shape is more than, beside the weak ones."""
TELLING: Final = frozenset[str]().union(*(needed for _, needed, _ in _SIGNS)) - {
    *("messages",),
    *(name for shape, needed, _ in _SIGNS if shape in _WEAK for name in needed),
}
"""Fields without which a record that has messages is a chat, whatever else it has."""
_MOST: Final = 4096  # sets of fields that are kept in mind
Sign = tuple[str, frozenset[str], Told | None]  # a shape, fields of it that the record has, what they must hold
_known: dict[tuple[str, ...], str | tuple[Sign, ...]] = {}  # by names of fields: the shape, or those to choose from


def find(record: Mapping[str, Any]) -> str:
    """The name of the record's shape. Raises Unrepresentable: `unknown_shape`, or `ambiguous_shape` with `shapes`.

    In a table every record has the columns of all the others: a shape whose fields are all empty is not meant.
    """
    names = tuple(record)
    known = _known.get(names)
    if known is None:
        if len(_known) >= _MOST:
            _known.clear()
        known = _known[names] = _fitting(frozenset(names))
    if isinstance(known, str):
        return known
    signs = [sign for sign in known if sign[2] is None or sign[2](record)]
    empty = {name for name in names if record[name] is None or record[name] == ""}
    if empty:
        signs = [sign for sign in signs if not sign[1] <= empty] or signs
    shapes = _narrowed(signs)
    if len(shapes) > 1 and empty:
        shapes = _narrowed([sign for sign in signs if not sign[1] & empty]) or shapes
    if not shapes:
        raise Unrepresentable("unknown_shape")
    if len(shapes) > 1:
        raise Unrepresentable("ambiguous_shape", shapes=sorted(shapes))
    return shapes[0]


def _fitting(fields: frozenset[str]) -> str | tuple[Sign, ...]:
    """The shape that these fields mean whatever they hold, or every shape that they fit."""
    signs = tuple((name, frozenset(needed), told) for name, needed, told in _SIGNS if needed <= fields)
    shapes = _narrowed(signs)
    if len(shapes) == 1 and all(told is None for _, _, told in signs):
        needed = frozenset[str]().union(*(inner for name, inner, _ in signs if name == shapes[0]))
        if all(inner <= needed for _, inner, _ in signs):
            return shapes[0]
    return signs


def _narrowed(signs: Sequence[Sign]) -> tuple[str, ...]:
    """The shapes, without those that another of them takes in."""
    shapes = list(dict.fromkeys(name for name, _, _ in signs))
    strong = [name for name in shapes if name not in _WEAK] or shapes
    taken = frozenset[str]().union(*(_TAKES_IN.get(name, frozenset()) - {name} for name in strong))
    return tuple(name for name in strong if name not in taken)
