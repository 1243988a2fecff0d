"""Everything that any recogniser takes for personal data, before a rule of ours says that it is none.

Scrubbing leaves what its rules do not believe: a date that could be a phone number, a bare run of nine digits. Whoever
wants to know what may be left in scrubbed rows asks each recogniser at its lowest threshold and takes away only what is
surely ours: stand-ins, tags, networks that exist for documentation. Most of what is left is harmless; what leaks is
among it, so the count is an upper bound of what these recognisers can see. A text with which a recogniser does not come
to an end counts as one finding.

    "order 219-09-9998, to ana@corp.com"   ->   {"EMAIL_ADDRESS": 1, "US_SSN": 1}
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from corpusforge.pii import addresses, leaves, marks, names, recognisers, secrets
from corpusforge.pii.context import View
from corpusforge.pii.numbers import named_phones
from corpusforge.pii.presidio import PatternTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

_OURS: Final[dict[str, Callable[[str], Any]]] = {
    "EMAIL_ADDRESS": marks.is_standin_email,
    "PHONE_NUMBER": marks.is_standin_phone,
    "ADDRESS": marks.is_standin_address,
    "IP_ADDRESS": re.compile(r"192\.0\.2\.|198\.51\.100\.|203\.0\.113\.|198\.1[89]\.|2001:(?:0?db8|2):|::").match,
    "MAC_ADDRESS": re.compile(r"(?i)00[:\-.]?00[:\-.]?5e[:\-.]?00[:\-.]?53").match,
    "US_SSN": re.compile("000").match,
    "US_ITIN": re.compile("000").match,
}


def of_rows(rows: Sequence[Mapping[str, Any]], *, named: bool) -> list[Counter[str]]:
    """Per row (a dict of the schema), what is found in its texts, verifiers aside; values are not kept.

    `named` asks the named-entity model too, whatever the row's language. Raises what a recogniser raises.
    """
    parts = [[leaf for leaf in leaves.leaves(row) if leaf.column != "verifier"] for row in rows]
    found = [sum((Counter(_of_leaf(leaf)) for leaf in one), Counter[str]()) for one in parts]
    if named:
        prose = [
            (n, leaf.text) for n, one in enumerate(parts) for leaf in one if leaf.field in ("content", "reasoning")
        ]
        for (number, _), spans in zip(prose, names.find([text for _, text in prose]), strict=True):
            found[number].update(span.entity for span in spans)
    return found


def _of_leaf(leaf: leaves.Leaf) -> Iterator[str]:
    view = View(leaf.text, leaf.lead)
    yield from (name for _, _, name in secrets.find(view.text) + secrets.named(view.label, view.text))
    for entity in recognisers.BY_NAME:
        ours = _OURS.get(entity)
        try:
            places = sorted({(low, high) for low, high, *_ in _raw(view.text, entity)})
        except PatternTimeout:  # a table of numbers, say: nobody knows, so it counts
            yield entity
            continue
        for start, end in places:
            value = view.text[start:end].strip()
            whole = _number_around(view.text, start, end) if entity == "PHONE_NUMBER" else value
            if not marks.TAG.fullmatch(value) and not (ours and (ours(value) or ours(whole))):
                yield entity


def _number_around(text: str, start: int, end: int) -> str:
    """The number that a finding is the end of: a region may take `0284201` of `+49 00 0284201` for one."""
    found = re.search(r"\+[\d (.)\-]*$", text[max(0, start - 16) : start])
    return (found.group() if found else "") + text[start:end].strip()


def _raw(text: str, entity: str) -> Iterable[tuple[int, int, float]]:
    if entity == "ADDRESS":
        return addresses.find(text)
    found = recognisers.raw(text, entity)
    return [*found, *named_phones(text)] if entity == "PHONE_NUMBER" else found
