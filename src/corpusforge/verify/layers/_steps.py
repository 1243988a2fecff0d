"""Right and wrong steps of a completion, as every kind of step counts them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from corpusforge.verify._verdict import text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Tally(NamedTuple):
    """Steps that count."""

    right: int
    wrong: int


def messages_of(completion: Any) -> Sequence[Mapping[str, Any]]:
    """The messages of a completion; a text is one of the assistant."""
    return [{"role": "assistant", "content": completion}] if isinstance(completion, str) else completion


def said(completion: Any) -> str:
    """Everything that the assistant says in a completion, its reasoning included."""
    if isinstance(completion, str):
        return completion
    if not any("role" in message for message in completion):  # content parts
        return "".join(str(part.get("text", "")) for part in completion)
    return "\n".join(text_of([message]) for message in completion if message.get("role") == "assistant")
