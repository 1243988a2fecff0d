"""Shapes of one's own: a function of one record, in a module of the project, that gives records of known shapes.

    # curation.py, beside params.yaml; in params.yaml:  shape: curation:ticket
    import corpusforge

    @corpusforge.shape("ticket")
    def ticket(record):
        return {"prompt": record["subject"], "completion": record["reply"], "origin": "human"}

It returns one dict, a list of them (one record, many rows), or None for a record that gives no row. Each dict is a
record of any built-in shape, found as always, or the one that `gives` names; names of provenance in it (`origin`,
`license`, …) say where that row comes from. What it leaves out of the record is not kept. Where it raises, the record
is quarantined as `shape_failed` with the exception's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from corpusforge.shapes._draft import Unrepresentable

Function = TypeVar("Function", bound=Callable[..., Any])
_NAME: Final = "__corpusforge_shape__"
_GIVES: Final = "__corpusforge_gives__"
REGISTERED: Final[dict[str, Callable[..., Any]]] = {}
"""Functions by their name in params (`module:function`), put here by whoever may import them."""


def shape(name: str, *, gives: str = "auto") -> Callable[[Function], Function]:
    """Make a function of one record a shape; figures call it `name`, its dicts are of the shape `gives`."""
    if not isinstance(name, str) or not name:
        raise TypeError('a shape needs a name: @corpusforge.shape("name")')

    def mark(function: Function) -> Function:
        setattr(function, _NAME, name)
        setattr(function, _GIVES, gives)
        return function

    return mark


def is_own(name: str) -> bool:
    """Whether a shape in params is a function of one's own (`module:function`)."""
    return ":" in name


def is_shape(function: Any) -> bool:
    """Whether a function was decorated."""
    return callable(function) and isinstance(getattr(function, _NAME, None), str)


def reshaped(record: Mapping[str, Any], name: str) -> tuple[str, str, list[dict[str, Any]]]:
    """The shape's own name, the shape of what it gives, and the dicts that it gives. Raises Unrepresentable."""
    function = REGISTERED[name]
    try:
        made = function(dict(record))
    except Exception as error:  # noqa: BLE001 - one odd record must not end the build of all the others
        raise Unrepresentable("shape_failed", shape=getattr(function, _NAME), error=type(error).__name__) from None
    rows = [] if made is None else made if isinstance(made, list) else [made]
    if not all(isinstance(row, dict) and all(isinstance(key, str) for key in row) for row in rows):
        raise Unrepresentable("shape_gave_no_dict", shape=getattr(function, _NAME))
    return getattr(function, _NAME), getattr(function, _GIVES), rows
