r"""regex: the answer matches a pattern. Spec: {"pattern": "[A-Z]{2}\\d{4}", "flags"?: "i", "where"?: "answer"}.

Patterns are those of Python's `re`. `where` says what has to match: `answer`, the whole of the final answer (see
`_final`; a closing full stop and marks around it may be left over); `whole`, the whole text, trimmed; `search`, any
part of the text. Reasoning is left out of all three. `flags` are letters of `aimsx`.

    pattern "[A-Z]{2}\d{4}"    "The answer is AB1234."  pass    "AB12345"  fail    "(x+x+)+y"  undecided (regex.timeout)

A pattern can take longer than the universe is old on a text of forty characters, inside C where nothing reaches it. So
it is tried in a worker process with hard limits (`_limits`), where `re` means what it means everywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from corpusforge.verify import _limits
from corpusforge.verify._final import final, without_reasoning
from corpusforge.verify._verdict import Task, Verdict, failed, passed, text_of, undecided

if TYPE_CHECKING:
    from collections.abc import Sequence

_FLAGS: Final = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
_PLACES: Final = ("answer", "whole", "search")
_DRESS: Final = "*_`\"'“”‘’$ "
_LONGEST_PATTERN: Final = 10_000  # characters
_LONGEST: Final = 4_000_000  # characters of a text that are handed to a worker


def check(task: Task, completion: Any) -> Verdict:
    """Pass when the pattern matches where the specification says."""
    pattern, flags, where = (task.spec.get(name) for name in ("pattern", "flags", "where"))
    where = "answer" if where is None else where
    if not isinstance(pattern, str) or not 0 < len(pattern) <= _LONGEST_PATTERN:
        return undecided("regex.unreadable_pattern")
    if not isinstance(flags, (str, type(None))) or not set(flags or "") <= _FLAGS.keys():
        return undecided("regex.unreadable_flags")
    if not isinstance(where, str) or where not in _PLACES:
        return undecided("regex.unreadable_where")
    texts = _texts(text_of(completion), where)
    if max(map(len, texts)) > _LONGEST:
        return failed("regex.too_long")
    try:
        word = _limits.call("corpusforge.verify.regex:decide", pattern, flags or "", where == "search", texts)
    except _limits.Exceeded as over:
        return undecided(f"regex.{over.reason}")
    if word == "unreadable":
        return undecided("regex.unreadable_pattern")
    return passed(f"regex.{where}") if word == "match" else failed(f"regex.{where}")


def check_many(tasks: Sequence[Task], completions: Sequence[Any]) -> list[Verdict]:
    """The verdicts of `check`, over all workers."""
    return _limits.spread(check, tasks, completions)


def _texts(completion: str, where: str) -> list[str]:
    """The texts of which one has to match."""
    if where == "search":
        return [without_reasoning(completion)]
    if where == "whole":
        return [without_reasoning(completion).strip()]
    marked = final(completion)
    if marked.form in ("whole", "tag"):
        return [marked.text]
    bare = marked.text.strip(_DRESS).removesuffix(".").strip(_DRESS)
    return list(dict.fromkeys((marked.text, marked.text.removesuffix("."), bare)))


def prepare() -> None:
    """In the worker, before the first call: nothing but this module is needed."""


def decide(pattern: str, flags: str, anywhere: bool, texts: Sequence[str]) -> str:
    """In the worker: `match`, `none`, or `unreadable` for a pattern that is none."""
    compiled = _compiled(pattern, flags)
    if compiled is None:
        return "unreadable"
    match = compiled.search if anywhere else compiled.fullmatch
    return "match" if any(match(text) for text in texts) else "none"


@lru_cache(maxsize=256)
def _compiled(pattern: str, flags: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, sum({_FLAGS[flag] for flag in flags}))
    except (re.error, OverflowError, RecursionError, ValueError):
        return None
