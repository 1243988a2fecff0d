r"""Where the final answer of a completion stands: one rule for all kinds that compare an answer.

Reasoning is left out first: what stands before `</think>`, and a `<think>` that is never closed. Inside the last
`<answer>…</answer>`, where there is one, the first form that is present decides:

    hash      what follows the last "####" (GSM8K, Cobbe et al. 2021)   "…<<16-7=9>>9\n#### 18"    ->  "18"
    box       the last \boxed{…}, braces matched (MATH, Hendrycks 2021) "so $\boxed{\frac{3}{7}}$" ->  "\frac{3}{7}"
    marker    what follows the last "answer is" or "answer:"            "The answer is 18."        ->  "18."
    whole     none of these: the whole text                             "18"                       ->  "18"

Boxes that are joined by a comma, "or" or "and" are one answer that names several candidates. All is linear in the
length of the text.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_MARKER: Final = re.compile(
    r"\banswers?(?:[\s*_]{0,4}[:=]|\b[^.\n:=]{0,40}?\b(?:is|was|are)\b(?!\s+not\b|n['’]t\b)\s*:?)", re.IGNORECASE
)
_BOXES: Final = ("\\boxed{", "\\fbox{")
_JOINED: Final = re.compile(r"[\s$*]*(?:,|;|/|\bor\b|\band\b)[\s$*]*(?:or\b|and\b)?[\s$*]*")
_MOST_BOXES: Final = 20  # boxes looked at, from the end
_LONGEST_BOX: Final = 20_000  # characters; a box that does not close by then is none
_LEAD: Final = 60  # characters before a box that are kept
_LINE: Final = 2_000  # characters of what follows a marker that are looked at
_QUOTED: Final = re.compile(r"\n[ \t]*>[ \t]+(?=\S)")
_DRESS: Final = " \t\r\n*_:`"  # what may stand between a marker and the answer


class FinalAnswer(NamedTuple):
    """The text of the final answer, the form that gave it, what follows it, and what stands before a box."""

    text: str
    form: str
    rest: str = ""
    lead: str = ""


def final(completion: str) -> FinalAnswer:
    """The final answer of a completion, and how it was marked: `hash`, `box`, `marker`, `tag` or `whole`."""
    text, tagged = spoken(completion)
    at = text.rfind("####")
    if at >= 0:
        return FinalAnswer(line_after(text, at + 4), "hash", _rest(text, at + 4))
    found = boxes(text)
    if found:
        start, end, _ = found[0]
        return FinalAnswer(_joined(text, found), "box", text[end : end + _LINE], text[max(0, start - _LEAD) : start])
    ends = marker_ends(text)
    if ends:
        return FinalAnswer(line_after(text, ends[-1]), "marker", _rest(text, ends[-1]))
    return FinalAnswer(text.strip(), "tag" if tagged else "whole")


def spoken(completion: str) -> tuple[str, bool]:
    """The completion without its reasoning, or the inside of its last <answer>…</answer>; and whether there is one."""
    text = without_reasoning(completion)
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else -1
    return (text[start + 8 : end], True) if start >= 0 else (text, False)


def without_reasoning(completion: str) -> str:
    """What stands after the last </think> and before a <think> that is not closed."""
    text = completion[completion.rfind("</think>") + 8 :] if "</think>" in completion else completion
    opened = text.find("<think>")
    return text[:opened] if opened >= 0 else text


def marker_ends(text: str) -> list[int]:
    """Where each "answer is" or "answer:" ends."""
    return [match.end() for match in _MARKER.finditer(text)]


def line_after(text: str, at: int) -> str:
    """The first line with anything in it after a marker, without the marks and colons before it."""
    lines = _following(text, at).splitlines()
    return lines[0].strip() if lines else ""


def _rest(text: str, at: int) -> str:
    """What follows that line."""
    return "\n".join(_following(text, at).splitlines()[1:])


def _following(text: str, at: int) -> str:
    """A piece of text after a marker, without the marks before it; a line may begin with the mark of a quotation."""
    return unquoted(text[at : at + _LINE]).lstrip(_DRESS)


def unquoted(text: str) -> str:
    """A text without the marks that make lines of it quotations in Markdown: "> 72" behind a line end."""
    return _QUOTED.sub("\n", text)


def boxes(text: str) -> list[tuple[int, int, str]]:
    r"""Start, end and inside of every closed \boxed{…}, last first; a box inside a box is not one of its own."""
    found: list[tuple[int, int, str]] = []
    before = len(text)
    for _ in range(_MOST_BOXES):
        start, mark = max((text.rfind(mark, 0, before), mark) for mark in _BOXES)
        if start < 0:
            break
        end = _closing(text, start + len(mark))
        if end is not None:
            found = [box for box in found if box[0] > end]
            found.append((start, end + 1, text[start + len(mark) : end]))
        before = start
    return found


def _closing(text: str, at: int) -> int | None:
    """Where the brace that was opened before `at` closes."""
    depth = 1
    for match in re.finditer(r"\\.|[{}]", text[at : at + _LONGEST_BOX], re.DOTALL):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return at + match.start()
    return None


def _joined(text: str, found: list[tuple[int, int, str]]) -> str:
    """The last box, and before it those that are joined to it: an answer that names several is no answer."""
    start, _, inside = found[0]
    for earlier, end, content in found[1:]:
        if end > start or not _JOINED.fullmatch(text[end : min(start, end + 40)]) or start - end > 40:
            break
        inside, start = f"{content} or {inside}", earlier
    return inside.strip()
