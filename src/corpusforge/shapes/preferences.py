r"""Shapes of comparisons: chosen and rejected answers, HH-RLHF's one-string dialogues, two models side by side.

    preference  {"prompt"?, "chosen", "rejected"}     texts or messages; a shared prompt inside both is taken out
    hh_rlhf     {"chosen": "\n\nHuman: …\n\nAssistant: …", "rejected": …}
    arena       {"conversation_a", "conversation_b", "winner": "model_a"}       a tie is no pair

A pair compares two answers to one prompt. Where the prompts of the two sides differ, it is no pair, and the record is
quarantined as `prompts_differ` (or `no_common_prompt`, where the two sides share nothing).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import Draft, Message, Note, Unrepresentable, string
from corpusforge.shapes.calls import tool_schemas
from corpusforge.shapes.conversations import side, with_system

if TYPE_CHECKING:
    from collections.abc import Mapping


def preference(record: Mapping[str, Any]) -> list[Draft]:
    """A prompt with a chosen and a rejected answer."""
    notes: list[Note] = []
    chosen = side(record["chosen"], "assistant", notes, "chosen")
    rejected = side(record["rejected"], "assistant", notes, "rejected")
    field = next((name for name in ("prompt", "messages", "question") if record.get(name) is not None), None)
    if field is None:
        prompt, chosen, rejected = _split(chosen, rejected)
    else:
        prompt = side(record[field], "user", notes, field)
        if any(m.get("role") == "user" for m in chosen + rejected):
            prompt, chosen, rejected = _take_out(prompt, chosen, rejected)
    prompt, used = with_system(record, prompt, notes)
    used |= {field or "chosen", "chosen", "rejected", "tools"}
    tools = tool_schemas(record.get("tools"))
    return [Draft("preference", prompt, used, chosen=chosen, rejected=rejected, tools=tools, notes=notes)]


def _split(chosen: list[Message], rejected: list[Message]) -> tuple[list[Message], list[Message], list[Message]]:
    """The shared prompt and the two answers, where each side holds the whole conversation."""
    shared = 0
    while shared < min(len(chosen), len(rejected)) - 1 and chosen[shared] == rejected[shared]:
        shared += 1
    if not shared:
        raise Unrepresentable("no_common_prompt")
    if any(m.get("role") == "user" for m in chosen[shared:] + rejected[shared:]):
        raise Unrepresentable("prompts_differ")
    return chosen[:shared], chosen[shared:], rejected[shared:]


def _take_out(
    prompt: list[Message], chosen: list[Message], rejected: list[Message]
) -> tuple[list[Message], list[Message], list[Message]]:
    """The same, where the record states the prompt once more."""
    inside, chosen, rejected = _split(chosen, rejected)
    if inside[-len(prompt) :] != prompt:
        raise Unrepresentable("prompts_differ")
    return inside, chosen, rejected


_TURN: Final = re.compile(r"\n\n(Human|Assistant):(?: |(?=\n)|$)")


def hh_rlhf(record: Mapping[str, Any]) -> list[Draft]:
    """Two dialogues, each written as one text."""
    chosen, rejected = (_dialogue(string(record, name)) for name in ("chosen", "rejected"))
    if chosen[-1]["role"] != "assistant" or rejected[-1]["role"] != "assistant":
        raise Unrepresentable("no_final_answer")
    if chosen[:-1] != rejected[:-1]:
        raise Unrepresentable("prompts_differ")
    used = frozenset({"chosen", "rejected"})
    return [Draft("preference", chosen[:-1], used, chosen=chosen[-1:], rejected=rejected[-1:])]


def _dialogue(text: str) -> list[Message]:
    pieces = _TURN.split(text)
    if len(pieces) < 3 or pieces[0].strip():
        raise Unrepresentable("not_a_dialogue")
    return [
        {"role": "user" if who == "Human" else "assistant", "content": said}
        for who, said in zip(pieces[1::2], pieces[2::2], strict=True)
    ]


def is_hh(record: Mapping[str, Any]) -> bool:
    """Whether both sides are one-string dialogues and no prompt stands apart."""
    both = (record.get("chosen"), record.get("rejected"))
    return "prompt" not in record and all(isinstance(v, str) and v.startswith("\n\nHuman:") for v in both)


def arena(record: Mapping[str, Any]) -> list[Draft]:
    """Two conversations that begin alike, and who answered better."""
    winner = str(record["winner"]).lower().removeprefix("model_").strip()
    if winner not in ("a", "b"):
        raise Unrepresentable("no_winner")
    notes: list[Note] = []
    sides = {name: side(record[f"conversation_{name}"], "assistant", notes, f"conversation_{name}") for name in "ab"}
    prompt, chosen, rejected = _split(sides[winner], sides["b" if winner == "a" else "a"])
    used = frozenset({"conversation_a", "conversation_b", "winner"})
    return [Draft("preference", prompt, used, chosen=chosen, rejected=rejected, notes=notes)]
