"""Words about sides: training and held-out rows, prompts and answers of preference rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cases import _view
from tests.cases._view import same
from tests.cases._words import word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import World


@word
def same_side(world: World, groups: list[list[str]]) -> Iterator[str]:
    """The rows of a group are all on one side of the held-out split."""
    for group in groups:
        sides = {world.view(id).facts["split"] for id in group}
        if len(sides) != 1:
            yield f"{group} are on the sides {sorted(sides)}"


@word
def sides_disjoint(world: World) -> Iterator[str]:
    """Both sides have rows, and no row or content is on both."""
    sides: dict[str, set[str]] = {}
    for view in world.views:
        sides.setdefault(view.facts["split"], set()).update({view.row_id, view.content_id})
    if len(sides) != 2:
        yield f"there are rows on {sorted(sides)} alone"
    elif set.intersection(*sides.values()):
        yield "a row is on both sides"


@word
def prompt_messages(world: World, id: str, n: int) -> Iterator[str]:
    """The prompt that both answers share has so many messages."""
    found = len(world.view(id).messages)
    if found != n:
        yield f"{id!r}: the prompt has {found} messages, expected {n}"


@word
def rebuilds_exactly(world: World, ids: list[str]) -> Iterator[str]:
    """The prompt and each answer, put together again, are the conversations that came in."""
    for id in ids:
        view, record = world.view(id), world.originals[id].value
        for side in ("chosen", "rejected"):
            if not same([*view.messages, *view.fields[side]], record[side]):
                yield f"{id!r}: prompt and {side} are not what came in"


@word
def text_view_equal(world: World, ids: list[str]) -> Iterator[str]:
    """The rows are compared by the same text."""
    from corpusforge.text.normalise import normalise
    from corpusforge.text.views import compare_text

    rows = world.read.kept
    texts = dict(zip((v.id for v in _view.of_rows(rows)), normalise(compare_text(rows)).to_pylist(), strict=True))
    if not set(ids) <= set(texts):
        yield f"not read: {sorted(set(ids) - set(texts))}"
    elif len({" ".join(texts[id].split()) for id in ids}) > 1:
        yield f"{ids} are compared by different texts"
