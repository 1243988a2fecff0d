"""exact: the completion, or its marked final answer, is the gold text. Spec: {"answer": "Paris", "ignore_case"?: true}.

Both sides are brought to Unicode's NFC form, trimmed, and runs of white space become one space. Of a marked answer
(see `_final`) a closing full stop and surrounding quotes or markdown may be left over; of the whole text nothing may.

    gold "Paris"    "Paris"  pass    "The answer is **Paris**."  pass    "Paris or Rome"  fail    "paris"  fail
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any, Final

from corpusforge.verify._final import final, spoken
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

_WRAPPED: Final = re.compile(r"\$?\\(?:text|textbf|textit|mathrm|mathbf|mbox)\s?\{([^{}]*)\}\$?")
_DRESS: Final = "*_`\"'“”‘’ "


def check(task: Task, completion: Any) -> Verdict:
    """Pass when the whole text or what follows the last marker is the gold text."""
    answer, ignore_case = task.spec.get("answer"), task.spec.get("ignore_case", False) is True
    if isinstance(answer, (int, float)) and not isinstance(answer, bool):
        answer = str(answer)
    if not isinstance(answer, str):
        return undecided("exact.unreadable_gold")
    gold = _normal(answer, ignore_case)
    if not gold:
        return undecided("exact.empty_gold")
    text = text_of(completion)
    if _normal(spoken(text)[0], ignore_case) == gold:
        return passed("exact.whole")
    marked = final(text)
    if marked.form in ("whole", "tag"):
        return failed("exact.whole")
    wrapped = _WRAPPED.fullmatch(marked.text.strip())
    said = _normal(wrapped[1] if wrapped else marked.text, ignore_case)
    equal = gold in (
        said,
        said.removesuffix("."),
        said.strip(_DRESS),
        said.strip(_DRESS).removesuffix("."),
        _bare(said),
    )
    return passed(f"exact.{marked.form}") if equal else failed(f"exact.{marked.form}")


def _bare(text: str) -> str:
    return text.removesuffix(".").strip(_DRESS)


def _normal(text: str, ignore_case: bool) -> str:
    folded = " ".join(unicodedata.normalize("NFC", text).split())
    return folded.casefold() if ignore_case else folded
