"""Words about licences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.cases import _view
from tests.cases._words import word

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cases._world import World


@word
def licence_counts(world: World, counts: dict[str, int]) -> Iterator[str]:
    """So many rows came in under each licence; `several` are under more than one at once."""
    licences = [view.facts["license"] for view in _view.of_rows(world.read.kept)]
    found = Counter("several" if " AND " in licence else licence for licence in licences)
    if found != counts:
        yield f"found {dict(found)}, expected {counts}"
