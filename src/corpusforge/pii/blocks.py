"""Blocks of code in a text without fences: a header that only code has, and what hangs below it.

    def area(shape):                     the header, and every line that is indented deeper, docstrings too
        return KeyError
    public int area(Shape shape) {       the header, and all lines up to the brace that closes it

Prose that looks like a header (`for example:`) begins no block: what the named-entity tier passes over must be code.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_INDENTED: Final = re.compile(
    r"(?m)^[ \t]*(?:(?:async[ \t]+)?def[ \t]+\w+[ \t]*\([^\n]*"
    r"|class[ \t]+\w+[ \t]*(?:\([^\n]*\))?[ \t]*:[ \t]*(?:#[^\n]*)?\r?)$"
)
_BRACED: Final = re.compile(
    r"(?m)^[^\n]*\)[ \t]*(?:(?:const|noexcept|throws \w+|(?:->|:)[ \t]*[\w<>\[\]]+)[ \t]*)?\{[ \t]*\r?$"
    r"|^[ \t]*(?:(?:export|public|private|abstract|final|static)[ \t]+)*(?:class|interface|struct|enum)[ \t]+\w[^\n]*"
    r"\{[ \t]*\r?$"
)
_LINE: Final = re.compile(r"[^\n]*(?:\n|\Z)")
_LONGEST: Final = 50_000  # characters in which a brace must close


def blocks(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of every block, in order of their headers; they do not overlap."""
    if "def" not in text and "class" not in text and "{" not in text:
        return
    done = 0
    for start, header, braced in sorted(_headers(text)):
        if start >= done:
            done = _closed(text, header) if braced else _dedented(text, start, header)
            yield start, done


def _headers(text: str) -> Iterator[tuple[int, int, bool]]:
    for pattern, braced in ((_INDENTED, False), (_BRACED, True)):
        yield from ((match.start(), match.end(), braced) for match in pattern.finditer(text))


def _dedented(text: str, start: int, header: int) -> int:
    """Where the first line begins that is not deeper than the header, blank lines and closing brackets aside."""
    depth = _depth(text[start:header])
    end = at = header
    while at < len(text):
        at += text[at] == "\n"
        line = _LINE.match(text, at)
        body = line.group() if line else ""
        if body.strip():
            if _depth(body) <= depth and body.lstrip()[0] not in ")]}":
                break
            end = at + len(body.rstrip("\r\n"))
        if not body:
            break
        at += len(body.removesuffix("\n"))
    return end


def _closed(text: str, header: int) -> int:
    """Where the brace that the header opens is closed; the header's own end where it never is."""
    level = 1
    for match in re.finditer("[{}]", text[header : header + _LONGEST]):
        level += 1 if match.group() == "{" else -1
        if not level:
            return header + match.end()
    return header


def _depth(line: str) -> int:
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip(" "))
