"""What surrounds a candidate: the text as recognisers should see it, and prose, code or maths around a span.

Recognisers are made for clean ASCII prose. The *view* of a text takes away what hides a value from them (zero-width
characters, soft hyphens, full-width forms, letters of other scripts glued to an address) and keeps a way back to the
original positions. The *place* of a span says whether it stands in prose, code or maths, because a version number, a
slice or a sum in code looks like an address, a phone or a card.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

Place = Literal["prose", "code", "maths"]

# Characters that nobody sees and that are dropped from the view, as a class: soft hyphen, joiners, zero-width spaces,
# marks and embeddings of direction, fillers, variation selectors, tags, BOM (Unicode's Default_Ignorable_Code_Point).
INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef"
)
# Full-width and small forms of ASCII characters.
WIDE: Final = "\uff01-\uff5e\ufe50-\ufe6b"
_INVISIBLE: Final = re.compile(f"[{INVISIBLE}]")
_VISIBLE: Final = re.compile(f"[^{INVISIBLE}]")
# Latin letters keep their place in words; letters of other scripts become spaces, so that `\b` finds the border.
_LATIN: Final = ((0x0000, 0x024F), (0x0300, 0x036F), (0x1E00, 0x1EFF))

_MATHS: Final = re.compile(
    r"\$\$[\s\S]{1,4000}?\$\$|\\\[[\s\S]{1,4000}?\\\]|\\\([\s\S]{1,2000}?\\\)|<<[^<>\n]{1,200}>>"
    r"|\$(?=[^\s$])(?=[^$\n]{0,400}[\\^_={}+])[^$\n]{1,400}(?<=\S)\$(?!\d)"
)
_MATHS_MARKS: Final = ("$", "\\[", "\\(", "<<")
_CODE: Final = re.compile(r"(?P<fence>`{3,}|~{3,})[\s\S]*?(?:(?P=fence)|\Z)|`[^`\n]{1,400}`")
# A line of code by how it begins, and one by how it ends, which is dear to look for.
_CODE_BEGIN: Final = re.compile(
    r"\s*(?:(?:async )?def \w+|class \w+\b.*[:{]|import \w|from [\w.]+ import"
    r"|return\b.*[\w)\]\"'];?$|#include|assert\b.*[=(]"
    r"|(?:el)?if\b.*:\s*$|(?:for|while)\b.*:\s*$|(?:var|let|const)\s+\w+\s*="
    r"|function\b.*[({]|print\(|console\.|\$ \w|>>> "
    r"|(?:public|private|static|protected)\s+(?:static|class|void|int|final|String)\b|(?:SELECT|INSERT|UPDATE|DELETE)\s"
    r"|(?:use|using|my|require|sudo|git|npm|pip|curl|docker)\s.*[;&|$=/]|@\w+[.(]?)"
    r"|\s*[{}\])]+[;,]?\s*$|\s*[\w.\[\]\"']+\s*(?:[+\-*/]?=|:=|=>|->)\s*[\w\[{('\"]|\s*[\w.]+\([^)]*\)\s*;?\s*$"
)
_CODE_END: Final = re.compile(r"\w\(.*[;{]\s*$|=.*;\s*$")


def is_code(line: str) -> bool:
    """Whether the line (or the sentence) is one of code."""
    if _CODE_BEGIN.match(line):
        return True
    return (";" in line or "{" in line) and bool(_CODE_END.search(line))


class _Letters(dict[int, int | None]):
    """Translation of single characters, filled as they are met; every entry keeps the length."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        mapped = code
        if any(low <= code <= high for low, high in _LATIN):
            mapped = code
        elif 0xFF01 <= code <= 0xFF5E:
            mapped = code - 0xFEE0
        elif 0xFE50 <= code <= 0xFE6B:
            mapped = ord(unicodedata.normalize("NFKC", character)[0])
        elif unicodedata.category(character) == "Nd":
            mapped = ord(str(unicodedata.digit(character)))
        elif unicodedata.category(character)[0] in "LM":
            mapped = 0x20
        self[code] = mapped
        return mapped


_letters: Final = _Letters()


class View:
    """A text as recognisers see it. `back(start, end)` gives the span in the original.

    `lead` is what stands before the text elsewhere (the key of a JSON value), as it is in `label`; `fixed` is the place
    of all of it; `keep_all` leaves every character as it is.
    """

    def __init__(self, original: str, lead: str = "", fixed: Place | None = None, *, keep_all: bool = False) -> None:
        self.original, self.label = original, lead
        self.lead, self._fixed = lead.lower().replace("_", " "), fixed
        self._kept: Sequence[int] | None = None
        self._regions: tuple[list[tuple[int, int]], list[tuple[int, int]]] | None = None
        self._low: str | None = None
        text = original
        if not text.isascii() and not keep_all:
            if _INVISIBLE.search(text):
                self._kept = [match.start() for match in _VISIBLE.finditer(text)]
                text = _INVISIBLE.sub("", text)
            text = text.translate(_letters)
        self.text = text

    def back(self, start: int, end: int) -> tuple[int, int]:
        """The span of the original text that the view's span `start`, `end` stands for."""
        if self._kept is None or start == end:
            return start, end
        return self._kept[start], self._kept[end - 1] + 1

    @property
    def low(self) -> str:
        """The text, and its lead behind it, in lower case: what a word is looked for in that may stand anywhere."""
        if self._low is None:
            self._low = f"{self.text.lower()} {self.lead}"
        return self._low

    @property
    def regions(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Stretches of code and of maths in the view, each in order and disjoint."""
        if self._regions is None:
            text = self.text
            code = _CODE.finditer(text) if "`" in text or "~~~" in text else ()
            maths = _MATHS.finditer(text) if any(mark in text for mark in _MATHS_MARKS) else ()
            self._regions = [match.span() for match in code], [match.span() for match in maths]
        return self._regions

    def place(self, start: int, end: int) -> Place:
        """Where the view's span stands: inside a code region, on a line of code, inside maths, or in prose."""
        if self._fixed:
            return self._fixed
        code, maths = self.regions
        if _inside(code, start, end):
            return "code"
        if _inside(maths, start, end):
            return "maths"
        return "code" if is_code(self.line(start, end)) else "prose"

    def line(self, start: int, end: int) -> str:
        """The line (at most 300 characters on either side) around a span of the view."""
        low, high = max(start - 300, 0), end + 300
        stop = self.text.find("\n", end, high)
        return self.text[max(self.text.rfind("\n", low, start) + 1, low) : stop if stop >= 0 else high]

    def before(self, start: int, size: int = 48) -> str:
        """Lower-case text before a span of the view, not further than its line."""
        low = max(start - size, 0)
        low = max(self.text.rfind("\n", low, start) + 1, low)
        return (self.lead if low == 0 else "") + self.text[low:start].lower()

    def after(self, end: int, size: int = 24) -> str:
        """Lower-case text behind a span of the view."""
        return self.text[end : end + size].lower()


def _inside(regions: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    at = bisect_right(regions, start, key=itemgetter(0))
    return at > 0 and end <= regions[at - 1][1]
