"""Words about runs that fail, and about what their messages say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.cases._case import CaseError
from tests.cases._words import word

import corpusforge as cf

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import World


@word
def run_succeeds(world: World) -> Iterator[str]:
    """Everything that the case's stages do ends without an error, and its rows can be looked at."""
    try:
        _ = world.views
    except cf.CorpusForgeError as error:
        yield f"it ends with {type(error).__name__}: {error.message}"


@word
def strict_fails(world: World, names: list[str]) -> Iterator[str]:
    """Read strictly, the rows are refused with a coded error that names all of these."""
    try:
        for name in world.rows_from:
            cf.read(world.path(name), **world.settings.of("ingest") | {"strict": True})
    except cf.CorpusForgeError as error:
        yield from _unnamed(str(error), names)
    else:
        yield "reading strictly does not fail"


@word
def lenient_kept(world: World, ids: list[str], bad_lines: list[int]) -> Iterator[str]:
    """Read leniently, these ids are left and these lines are in the ledger: no others, either."""
    if world.name is None:
        raise CaseError("lenient_kept needs an input")
    if world.ids != ids:
        yield f"left are {world.ids}, expected {ids}"
    found = [line.line for line in world.ledger]
    if found != bad_lines:
        yield f"in the ledger are the lines {found}, expected {bad_lines}"


@word
def default_fails(world: World, names: list[str]) -> Iterator[str]:
    """Without any option the run is refused, with a message that names all of these."""
    yield from fails_naming(world, names)


@word
def fails_naming(world: World, names: list[str]) -> Iterator[str]:
    """The run is refused with a coded error that names all of these."""
    try:
        _ = world.views
    except cf.CorpusForgeError as error:
        yield from _unnamed(str(error), names)
    else:
        yield "the run does not fail"


def _unnamed(message: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if name.lower() not in message.lower():
            yield f"the message does not name {name!r}: {message!r}"
