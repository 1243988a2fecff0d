"""What makes a task a poor reward though its verifier works: it stays, and a note says so.

guessable                 yes or no, true or false, one letter, or two choices: guessing pays half the time
proof                     asks for a proof, but a final answer is all that is checked
gold_appears_in_prompt    the gold answer, more than a number, stands in the prompt: copying may pay
symbol_not_in_prompt      the gold answer holds a letter that the prompt never introduced: nobody can find it
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from corpusforge.verify._verdict import text_of
from corpusforge.verify.numeric import parse_number

if TYPE_CHECKING:
    from corpusforge.verify._verdict import Task

FLAGS: Final = ("guessable", "proof", "gold_appears_in_prompt", "symbol_not_in_prompt")
_ANSWERED: Final = ("numeric", "exact", "math")
_COIN: Final = re.compile(r"(?:yes|no|true|false|[A-Ea-e])", re.IGNORECASE)
_PROOF: Final = re.compile(r"\b(?:prove|show that|give a proof)\b", re.IGNORECASE)
_SYMBOL: Final = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])")
_KNOWN: Final = frozenset("eiC")  # Euler's number, the imaginary unit, the constant of integration
_SHORTEST: Final = 3  # characters of a gold answer that is looked for in the prompt


def flags(task: Task, gold: str | None) -> list[str]:
    """Names of what is questionable about a task with this gold answer, in the order of FLAGS."""
    if gold is None or task.kind not in (*_ANSWERED, "choice", "reasoning_gym"):
        return []
    plain, prompt = gold.strip().strip("$").strip(), prompt_of(task)
    choices = task.spec.get("choices")
    two = task.kind == "choice" and isinstance(choices, list) and len(choices) <= 2
    checked = task.kind in _ANSWERED
    found = {
        "guessable": two or (task.kind != "choice" and _COIN.fullmatch(plain) is not None),
        "proof": checked and _PROOF.search(prompt) is not None,
        "gold_appears_in_prompt": checked and _stands_in(plain, prompt),
        "symbol_not_in_prompt": task.kind == "math" and bool(_symbols(plain) - _symbols(prompt) - _KNOWN),
    }
    return [name for name in FLAGS if found[name]]


def prompt_of(task: Task) -> str:
    """All that the user's turns say."""
    said = [turn for turn in task.prompt if isinstance(turn, Mapping) and turn.get("role") == "user"]
    turns = [{**turn, "role": "assistant"} for turn in said]
    return "\n".join(text_of([turn]) for turn in turns)


def _stands_in(gold: str, prompt: str) -> bool:
    if len(gold) < _SHORTEST or parse_number(gold) is not None:
        return False
    return re.search(rf"(?<!\w){re.escape(gold)}(?!\w)", prompt, re.IGNORECASE) is not None


def _symbols(text: str) -> set[str]:
    """Letters that stand alone (a number may stand before one): names of quantities."""
    return set(_SYMBOL.findall(text))
