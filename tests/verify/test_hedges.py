"""hedges: the shortcuts find what the patterns find."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from corpusforge.verify import _hedges
from corpusforge.verify.numeric import _NUMBER, _value, parse_number

WORDS = (
    *(
        "at least",
        "at most",
        "more than",
        "less than or equal to",
        "exceeds",
        "exceeding",
        "upwards of",
        "one of",
        "is",
    ),
    *("up to", "between", "anywhere from", "over", "under", "not", "isn't", "isn’t", "never", "cannot be", "equal to"),
    *(
        "rather than",
        "instead of",
        "anything but",
        "except for",
        "excluding",
        "neither",
        "it is",
        "the answer",
        "x",
        "…",
    ),
)
GAPS = (" ", "  ", "\n", "\u00a0", "\u2009", "\u3000", " $", " **", ' "', " ({[", "", "$", "\x1c", "\x85")


@given(st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(GAPS), st.booleans()), max_size=6))
def test_words_before_a_number_are_found_with_and_without_shortcuts(parts: list[tuple[str, str, bool]]) -> None:
    text = "".join((word.upper() if loud else word) + gap for word, gap, loud in parts)
    near = text[-_hedges._NEAR :]
    bound = _hedges._BOUND.search(near if len(text) <= _hedges._NEAR else f"…{near}")
    assert _hedges.before(text) == ("several" if bound else "negated" if _hedges._NEGATED.search(near) else "")


def test_every_blank_of_a_pattern_is_one_of_the_shortcut() -> None:
    blanks = {chr(code) for code in range(0x110000) if chr(code).isspace()}
    assert blanks <= set(_hedges._BLANKS)


@given(st.from_regex(r"[-+]?(\d{1,12}|\d{1,3}(,\d{3}){1,3})(\.\d{1,6})?([eE][-+]?\d{1,2})?", fullmatch=True))
def test_a_number_is_worth_what_it_says(text: str) -> None:
    said = Fraction(text.replace(",", ""))
    match = _NUMBER.fullmatch(text)
    if match is not None:
        assert _value(match) == said
        assert parse_number(text) == parse_number(f" {text} ") == said
