"""Which of two duplicates stays: a short list of rules, each a column to sort by.

    origin in [human, synthetic]    listed values first, in this order
    extra.score desc                numbers, highest first; rows without one last
    created asc                     texts (ISO dates too) in code point order
    length desc                     words of the row

Fields: kind, language, domain, length, rating, id (the user's own), source, license, origin, generator, depth, created,
and `extra.NAME` for a field that the row format does not know.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Final

import polars as pl

_RULE: Final = re.compile(r"(?P<field>\S+)\s+(?:(?P<way>asc|desc)|in\s+\[(?P<values>[^\[\]]+)\])")
_EXTRA: Final = "extra."
_SOURCE: Final = {
    "id": "record_id",
    "source": "name",
    "license": "license",
    "origin": "origin",
    "generator": "generator",
    "depth": "depth",
    "created": "created",
}
_COLUMNS: Final = ("kind", "language", "domain")
_FIELDS: Final = (*_COLUMNS, "length", "rating", *_SOURCE)


@dataclass(frozen=True)
class Rule:
    """One sort key: a field, ascending or not, or a list of preferred values."""

    field: str
    descending: bool = False
    values: tuple[str, ...] = ()

    def key(self) -> pl.Expr:
        """Sort key over a frame of rows that has a `length` column; null sorts last."""
        field = self._expression()
        if self.values:
            text = field.cast(pl.String)
            return text.replace_strict(
                list(self.values), list(range(len(self.values))), default=None, return_dtype=pl.Int64
            )
        return field.cast(pl.Float64, strict=False).fill_nan(None) if self.field.startswith(_EXTRA) else field

    def _expression(self) -> pl.Expr:
        if self.field.startswith(_EXTRA):
            return pl.col("extra").str.json_path_match(f"$.{self.field.removeprefix(_EXTRA)}")
        if self.field in _SOURCE:
            return pl.col("source").struct.field(_SOURCE[self.field])
        return pl.col("rating").struct.field("value") if self.field == "rating" else pl.col(self.field)


def parse_rule(text: str) -> Rule:
    """Read one rule. Raises ValueError with the right form."""
    match = _RULE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a rule; write 'FIELD asc', 'FIELD desc' or 'FIELD in [A, B]'")
    field = match["field"]
    if field not in _FIELDS and not re.fullmatch(r"extra\.\w+", field):
        near = difflib.get_close_matches(field, _FIELDS, 1)
        guess = f"{near[0]!r}, or " if near else ""
        raise ValueError(f"{field!r} is no field to prefer by; did you mean {guess}'extra.{field}'?")
    values = tuple(value.strip() for value in match["values"].split(",")) if match["values"] else ()
    return Rule(field, match["way"] == "desc", values)
