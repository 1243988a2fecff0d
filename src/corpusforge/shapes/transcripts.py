r"""What an agent did, as it was recorded: lists of messages beside a reward, and transcripts in one text.

    trajectory   {"task_id", "traj": [{"role", "content", "tool_calls"?}, …], "reward"}     tau-bench's results
    transcript   {"messages_display": "user: Hi\nassistant: Hello\ntool: {…}"}              tau-bench's examples

A trajectory is a conversation like any other; its reward stays in `extra`, or rates it with `shape: rated`. In a
transcript a turn that only calls a tool reads "assistant: None": the call itself is not in the data, so the turn is
without content, and the row gets the note `calls_not_recorded`. `filter` takes such rows out (a result of no call).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import Draft, Message, Note, Unrepresentable, string
from corpusforge.shapes.conversations import chat

if TYPE_CHECKING:
    from collections.abc import Mapping

TRAJECTORIES: Final = ("traj", "trajectory")
_TURN: Final = re.compile(r"^(system|user|assistant|tool): ?", re.MULTILINE)
_NOTHING: Final = "None"


def trajectory(record: Mapping[str, Any]) -> list[Draft]:
    """Messages of a recorded run."""
    return chat(record, next(name for name in TRAJECTORIES if name in record))


def transcript(record: Mapping[str, Any]) -> list[Draft]:
    """A dialogue in one text, each turn behind the name of its role."""
    text = string(record, "messages_display")
    pieces = _TURN.split(text)
    if len(pieces) < 3 or pieces[0].strip():
        raise Unrepresentable("not_a_dialogue")
    messages: list[Message] = []
    notes: list[Note] = []
    for role, said in zip(pieces[1::2], pieces[2::2], strict=True):
        content = said.removesuffix("\n")
        if role == "assistant" and content == _NOTHING:
            notes.append(("calls_not_recorded", {}))
            messages.append({"role": role})
        else:
            messages.append({"role": role, "content": content})
    return [Draft("sft", messages, frozenset({"messages_display"}), domain="tools", notes=notes)]
