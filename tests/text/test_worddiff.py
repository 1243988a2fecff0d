"""Word diffs: bounded, and true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from corpusforge.text import worddiff
from corpusforge.text.worddiff import Change, word_diff

LISTS = st.lists(st.sampled_from("abcd"), max_size=30)


def test_the_words_that_differ_stand_between_their_neighbours() -> None:
    one = "The ferry leaves the north pier at seven on weekdays."
    changes, more = word_diff(one, one.replace("seven", "eight"))
    assert changes == [Change("… ferry leaves the north pier at", "eight", "seven", "on weekdays.")]
    assert str(changes[0]) == "… ferry leaves the north pier at [-seven-] {+eight+} on weekdays."
    assert more == 0


def test_in_scripts_without_spaces_each_sign_is_a_word() -> None:
    (change,), _ = word_diff("渡轮七点从北码头出发", "渡轮八点从北码头出发")
    assert (change.kept, change.removed) == ("七", "八")


def test_blanks_are_no_difference() -> None:
    assert word_diff("a  b\nc", "a b c ") == ([], 0)


def test_changes_and_their_texts_are_bounded() -> None:
    one = " ".join(f"same{i} odd{i} even{i} plain{i}" for i in range(40))
    changes, more = word_diff(one, one.replace("odd", "other"), changes=8, width=50)
    assert (len(changes), more) == (8, 32)
    assert all(len(text) <= 50 for change in changes for text in vars(change).values())


def test_what_is_too_long_to_align_is_one_change() -> None:
    changes, _ = word_diff(" ".join(f"a{i}" for i in range(9_000)), " ".join(f"b{i}" for i in range(9_000)))
    assert len(changes) == 1


@given(LISTS, LISTS, st.integers(1, 8))
def test_the_changes_make_the_one_text_of_the_other(one: list[str], other: list[str], compared: int) -> None:
    whole, worddiff.COMPARED = worddiff.COMPARED, compared
    try:
        spans = list(worddiff._changes(one, other))
    finally:
        worddiff.COMPARED = whole
    made, at = [], 0
    for a, b, c, d in spans:
        made += [*one[at:a], *other[c:d]]
        at = b
    assert made + one[at:] == other
