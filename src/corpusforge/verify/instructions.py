r"""instructions: the response follows every instruction. Spec: {"instructions": [{"id": …, "kwargs": {…}}], "loose"?}.

The 25 instructions are those of IFEval (Zhou et al. 2023, arXiv 2311.07911), listed with their meaning in `_ifeval`.
Pass means all of them, the paper's prompt-level accuracy; the score is the share that is followed, its
instruction-level accuracy of one response. A fail is named after the first instruction that is not followed.

    [{"id": "punctuation:no_comma"}, {"id": "startend:quotation"}]    "\"No comma.\""  pass    "No comma."  fail, 0.5

Strict unless `loose` is true: then an instruction is also followed where it is in the text without its first line,
without its last, without both, or in any of these without asterisks (the paper's loose accuracy). Reasoning before
`</think>` is no part of a response. A response that is empty follows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import _ifeval
from corpusforge.verify._final import without_reasoning
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST: Final = 100  # instructions of one task


def check(task: Task, completion: Any) -> Verdict:
    """Pass when all instructions are followed."""
    try:
        asked = _asked(task.spec)
    except _ifeval.Odd as odd:
        return undecided(f"instructions.{odd}")
    texts = _texts(without_reasoning(text_of(completion)), task.spec.get("loose", False) is True)
    followed = [any(text.strip() and follows(text) for text in texts) for _, follows in asked]
    if all(followed):
        return passed("instructions.followed")
    missed = asked[followed.index(False)][0]
    return failed(f"instructions.{missed.partition(':')[2]}", sum(followed) / len(followed))


def _asked(spec: Mapping[str, Any]) -> list[tuple[str, _ifeval.Follows]]:
    """Name and question of each instruction. Raises Odd where one cannot be asked."""
    listed = spec.get("instructions")
    if not isinstance(listed, list) or not 0 < len(listed) <= _MOST or not all(isinstance(one, dict) for one in listed):
        raise _ifeval.Odd("unreadable_instructions")
    return [(one.get("id"), _ifeval.ask(one.get("id"), one.get("kwargs"))) for one in listed]


def _texts(response: str, loose: bool) -> list[str]:
    """The response, and where it is read loosely the seven others of the paper."""
    if not loose:
        return [response]
    lines = response.split("\n")
    cut = ["\n".join(some).strip() for some in (lines[1:], lines[:-1], lines[1:-1])]
    return list(dict.fromkeys([response, *cut, *(text.replace("*", "") for text in (response, *cut))]))
