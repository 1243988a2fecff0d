r"""The domain of a row by rule, where neither source nor shape say it: `tools`, `code`, `math` or `chat`.

    tools  the row has tool schemas or calls
    code   its verifier runs code, or a message holds a code fence or a line that opens a function or class
    math   its verifier compares numbers or formulas, or a message holds LaTeX mathematics or GSM8K's calculations
    chat   everything else

Few texts hold anything that these rules look for: Arrow finds those of a whole batch, and only they are looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from corpusforge.shapes._draft import Draft, Message

_CODE: Final = re.compile(r"```|^\s*(?:def|class) \w+.*:\s*$|#include <", re.MULTILINE)
_MATH: Final = re.compile(r"\\(?:boxed|frac|sqrt|sum|int)\b|\$\$|\\\[|<<[^<>\n]+=[^<>\n]+>>|####\s*-?\d")
_TELLING: Final = r"```|def |class |#inc|\\|\$\$|<<|####"  # one of these is in every text that either matches
_RUNS: Final = ("assert_tests", "doctest", "program", "unit_tests", "tests", "code")
_COMPARES: Final = ("numeric", "math")


def of_draft(draft: Draft) -> str | None:
    """What tools and verifier say; None where it is for the texts to say."""
    if draft.tools or _calls(draft.messages) or (draft.chosen and _calls(draft.chosen)):
        return "tools"
    kind = draft.verifier[0] if draft.verifier else ""
    return "code" if kind in _RUNS else "math" if kind in _COMPARES else None


def _calls(messages: Iterable[Message]) -> bool:
    return bool([1 for message in messages if "tool_calls" in message])  # a list is made faster than `any` is asked


def of_texts(texts: Iterable[str]) -> str:
    """`code`, `math` or `chat`, as the texts of a row's messages say."""
    known = list(texts)
    if any(_CODE.search(text) for text in known):
        return "code"
    return "math" if any(_MATH.search(text) for text in known) else "chat"


def fill(
    domains: Sequence[str | None],
    messages: pa.ListArray,
    said: Callable[[int], Iterable[str]],
    also: Iterable[int] = (),
) -> list[str]:
    """Domains with the gaps filled by what the texts say.

    `said` gives the texts of a row; it is asked for the few whose messages may tell, and for the rows `also`.
    """
    telling = pc.fill_null(pc.match_substring_regex(messages.values.field("content"), _TELLING), False)
    places = np.flatnonzero(telling.to_numpy(zero_copy_only=False))
    rows = np.searchsorted(messages.offsets.to_numpy(), places, side="right") - 1
    looked_at = {*rows.tolist(), *also}
    return [domain or ("chat" if row not in looked_at else of_texts(said(row))) for row, domain in enumerate(domains)]
