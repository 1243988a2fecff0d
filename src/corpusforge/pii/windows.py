r"""Which parts of a text a pattern has to see, so that it finds there what it would find in the whole text.

A pattern cannot match across a character that it never consumes: a space for an e-mail address, a letter for a card.
Such characters are its fence. Between two fences stands a run, and since no match leaves its run, searching each run
alone, with the characters at either side in view for `\b` and its kin, gives exactly the matches of the whole text. Of
the runs only those are searched in which the pattern's trigger holds, a necessary condition.

    fence of EMAIL_ADDRESS: blanks and ()<>,;:   "Dear all, (zoe@corp.com) wrote"   ->   the window "(zoe@corp.com)"
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

WHOLE: Final = 400  # characters: a shorter text is one window
_PUNCTUATION: Final = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
_BLANKS: Final = " \t\n\r\x0b\x0c"
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
# ASCII characters that a pattern of the group never consumes.
FENCES: Final = {
    "at": _BLANKS + '"(),:;<>[]\\',
    "digits": _LETTERS + (_PUNCTUATION + _BLANKS).translate(dict.fromkeys(map(ord, "-. "))),
    "ip": _BLANKS + _PUNCTUATION.translate(dict.fromkeys(map(ord, ".:/%"))),
    "mac": _BLANKS + _PUNCTUATION.translate(dict.fromkeys(map(ord, ".:-"))),
    "crypto": _BLANKS + _PUNCTUATION,
    "iban": (_PUNCTUATION + _BLANKS).translate(dict.fromkeys(map(ord, "- "))),
}


@cache
def _run(group: str) -> re.Pattern[str]:
    return re.compile("[^" + re.escape(FENCES[group]) + "]+")


def windows(text: str, trigger: re.Pattern[str], group: str) -> Iterator[tuple[int, int]]:
    """Start and end of each part of the text that a pattern of the group has to see, in order and disjoint."""
    first = trigger.search(text)
    if first is None:
        return
    if len(text) <= WHOLE:
        yield 0, len(text)
        return
    begin = max(text.rfind(fence, 0, first.start()) for fence in ("\n", FENCES[group][0])) + 1
    for run in _run(group).finditer(text, begin):
        if trigger.search(text, run.start(), run.end()):
            yield max(0, run.start() - 1), min(len(text), run.end() + 1)
