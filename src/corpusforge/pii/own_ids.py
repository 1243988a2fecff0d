"""Own ids that are personal data themselves: `ana@corp.com` as the id of a row. They are counted, and left as they are.

Ledgers, shards and `trace` know rows by these ids. Most ids are digits and letters, which recognisers of numbers would
spend a millisecond each on to believe none of them: an id is asked for numbers only where it is written like a phone
number or a social security number. Names of people, streets, bank accounts and wallets are not looked for.

    ["ana@corp.com", "conv-20240101-000123", "+12124567890"]   ->   {"EMAIL_ADDRESS": 1, "PHONE_NUMBER": 1}
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import polars as pl

from corpusforge.pii import recognisers
from corpusforge.pii.context import View
from corpusforge.pii.recognisers import BITS, TRIGGERS

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBER: Final = r"\+[0-9]|\([0-9]{3}\)|(?:^|[^0-9])[0-9]{3}[-. ][0-9]{2,3}[-. ][0-9]{4}(?:[^0-9]|$)"
_OF_NUMBERS: Final = ("digits", "ids")
_GROUPS: Final = ("at", "ip", "mac", "secret", *_OF_NUMBERS)


def count(ids: pa.ChunkedArray) -> Counter[str]:
    """Per entity, how many of `ids` (strings or null) hold a finding; no id leaves this function."""
    counts: Counter[str] = Counter()
    texts = pl.Series(values=ids).drop_nulls()
    if not len(texts):
        return counts
    numbers = texts.str.contains(_NUMBER)
    masks = pl.zeros(len(texts), pl.UInt32, eager=True)
    for group in _GROUPS:
        hits = texts.str.contains(TRIGGERS[group])
        hits = hits & numbers if group in _OF_NUMBERS else hits
        masks = masks | (hits.cast(pl.UInt32) * BITS[group])
    some = masks > 0
    for text, mask in zip(texts.filter(some).to_list(), masks.filter(some).to_list(), strict=True):
        counts.update({span.entity for span in _found(text, mask)})
    return counts


def _found(text: str, mask: int) -> list[recognisers.Span]:
    """Findings; an id that a recogniser fails on is not counted: nothing in the row depends on it."""
    try:
        return recognisers.find(View(text), mask)
    except recognisers.RecogniserFailed:
        return []
