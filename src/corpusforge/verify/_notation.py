r"""How numbers are written, brought to one form: LaTeX, full-width forms, markdown, fractions and powers of ten.

    plain("1½")  ->  "1 1/2"      plain(r"\frac{3}{4}")  ->  "3/4"      plain(r"3 \times 10^{8}")  ->  "3e8"

A power of ten is a way to write a number; other powers (`2^{10}`) stay as they are, and are not worked out. So no text
makes this compute anything. All is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_TEN: Final = r"10\s?\^\s?(?:\{\s?([-+\u2212]?\d{1,3})\s?\}|\(?([-+\u2212]?\d{1,3})\)?)(?![\d^!])"
_WIDE: Final = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}  # full-width forms to ASCII


def _power(size: str, found: re.Match[str]) -> str:
    """A power of ten as it is written in programs: 10^{5} -> 1e5."""
    return f"{size}e{found[1] or found[2]}".replace("\u2212", "-")


def _lowered(found: re.Match[str]) -> str:
    return f"^{{{found[1].translate(_ABOVE)}}}"


_HALVES: Final = {one: unicodedata.normalize("NFKC", one).replace("\u2044", "/") for one in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
_ABOVE: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_RAISED: Final = re.compile(r"(?<=[\d)}])([⁻⁺]?[⁰¹²³⁴-⁹]{1,4})")
_STARS: Final = re.compile(r"(?<=[\d)}])(?:\*\*(?=[-+\d({])|\s\*\*\s(?=[-+\d({]))")
_FORMS: Final[tuple[tuple[str, re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    # what a text must hold for the form to be looked for at all, the form, and what it becomes
    ("", re.compile(r"(?:(\d)\s?)?([¼½¾⅐-⅞])"), lambda found: f"{found[1] or ''} {_HALVES[found[2]]}"[not found[1] :]),
    ("", _RAISED, _lowered),
    ("", re.compile(r"\u2044"), "/"),
    ("**", _STARS, "^"),
    ("^", re.compile(rf"(?<=\d)\s?(?:×|\\times|\\cdot|[·*xX])\s?{_TEN}"), lambda found: _power("", found)),
    ("^", re.compile(rf"(?<![\w.^,/{{])(?<!\^\{{){_TEN}"), lambda found: _power("1", found)),
    ("=", re.compile(r"=\s{0,9}([-\u2212])\s{1,9}(?=[\d.$])"), r"=\1"),
    ("<", re.compile(r"</?[A-Za-z][A-Za-z0-9]{0,15}\s?/?>"), " "),
    ("\\", re.compile(r"\\[dt]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1/\2"),
    ("\\", re.compile(r"\\[dt]?frac\s*(\d)\s*(\d)"), r"\1/\2"),
    ("\\", re.compile(r"\\(?:text|textbf|mathrm|mathbf|mbox)\s*\{([^{}]*)\}"), r" \1 "),
    ("{", re.compile(r"\{,\}"), ","),
    ("\\", re.compile(r"\\(?:pm|mp)(?![A-Za-z])"), "±"),
    ("\\", re.compile(r"\\(?:[lg]eq?|[lg]eqslant|[lg]t|neq?)(?![A-Za-z])"), "<"),
    ("\\", re.compile(r"\\(?:lor|vee|land|wedge|q?quad|cup)(?![A-Za-z])|\\\\"), " or "),
    ("\\", re.compile(r"\\[,!;: ]|\^\{?\\circ\}?|\\left|\\right"), ""),
    ("**", re.compile(r"\*\*"), ""),
    ("__", re.compile(r"__"), ""),
    ("\\", re.compile(r"\\([$%#&_])"), r"\1"),
    ("^", re.compile(r"(?<=[^\W\d_])\s?\^\s?(?:\{\s?[-+\u2212]?\d{1,3}\s?\}|[-+\u2212]?\d{1,3}(?!\d))"), ""),
    ("egative", re.compile(r"\bnegative\s+(?=[$\d.])", re.IGNORECASE), "-"),
)


def plain(text: str) -> str:
    """A text with its numbers in the one form."""
    ascii_only = text.isascii()
    text = text if ascii_only else text.translate(_WIDE)
    for sign, pattern, instead in _FORMS:
        if sign in text if sign else not ascii_only:
            text = pattern.sub(instead, text)
    return text


def powers(text: str) -> str:
    """A text with the exponents behind its numbers in LaTeX's form: "2⁵", "2**5" -> "2^{5}", "2^5"."""
    return _STARS.sub("^", text if text.isascii() else _RAISED.sub(_lowered, text))
