"""Blocks of code without fences: all that hangs below a header, and no prose."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpusforge.pii.blocks import blocks

PYTHON = 'def area(shape):\n    """Invented by Hanna."""\n\n    if not shape:\n        raise KeyError\n    return shape'
BRACED = "public int area(Shape shape) {\n  if (shape == Hanna) {\n    return 1;\n  }\n}"
LINES = st.lists(
    st.sampled_from(["def f(x):", "    Anna = 1", "f() {", "}", "class A:", "Anna said:", "", ")"]), max_size=9
)


def covered(text):
    return [text[low:high] for low, high in blocks(text)]


@pytest.mark.parametrize(
    "code", [PYTHON, BRACED, "class Shape:\n    Name = 1", "async def f(\n    a,\n):\n    return -1"]
)
def test_a_block_ends_where_the_code_does(code):
    assert covered(f"Hanna wrote this:\n{code}\nIs it right, Hanna?") == [code]
    assert covered(code) == [code]


@pytest.mark.parametrize(
    "text",
    [
        "for example:\n    Hanna Lee, Bo",
        "In her class:\n    Hanna Lee",
        "She said: {\n Hanna }",
        "Guests (all of them) {\nHanna Lee was one.",
        "If you want to know:\n  - Hanna Lee",
        "This would def (initely) help Hanna",
    ],
)
def test_prose_is_no_block(text):
    assert not any("Hanna" in block for block in covered(text))


@given(LINES.map("\n".join))
def test_blocks_are_in_order_and_apart(text):
    found = list(blocks(text))
    assert all(0 <= low < high <= len(text) for low, high in found)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(found))
