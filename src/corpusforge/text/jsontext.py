r"""JSON text to values, exactly: no number, character or key changes on the way.

msgspec reads what is valid (integers of any size stay exact). What it rejects is looked at again, so that the
reason is a code and not a library's sentence.

    {"n": 123456789012345678901}  -> the same 21 digits
    {"x": NaN}                    -> JsonFault("nan_or_infinity")
    {"x": "\ud83e"}               -> JsonFault("invalid_unicode")
    {"a": 1}{"b": 2}              -> JsonFault("concatenated_objects")
    {"a": 1, "a": 2}              -> JsonFault("duplicate_key"), from parse_record and parse_text
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final, NoReturn

import msgspec

_SPACED: Final = re.compile(rb'"[ \t\r\n]+:')
DEEPEST: Final = 200
"""Levels of nesting that a record may have: far more than data has, far less than Python's own limit."""


class JsonFault(ValueError):
    """Why a text is not JSON that a row can hold; `reason` is the ledger's code."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse(data: bytes) -> Any:
    """The value of one JSON text. Raises JsonFault."""
    try:
        return msgspec.json.decode(data)
    except RecursionError:
        raise JsonFault("nested_too_deeply") from None
    except msgspec.ValidationError:
        raise JsonFault("number_out_of_range") from None
    except msgspec.DecodeError:
        raise JsonFault(_fault(data)) from None


def parse_record(data: bytes) -> Any:
    """The same, for a text in which no object may have a key twice (of two values, one would be lost unseen).

    Also refuses what is nested more than DEEPEST levels deep, at the same depth wherever it is called from.
    """
    value = parse(data)
    if data.count(b'":') != _count_keys(value, 1) or _SPACED.search(data):
        _refuse_twins(data)
    return value


def _count_keys(value: Any, depth: int) -> int:
    """Keys of all objects in a value."""
    if depth > DEEPEST:
        raise JsonFault("nested_too_deeply")
    if isinstance(value, dict):
        return len(value) + sum([_count_keys(v, depth + 1) for v in value.values() if isinstance(v, (dict, list))])
    if isinstance(value, list):
        return sum([_count_keys(v, depth + 1) for v in value if isinstance(v, (dict, list))])
    return 0


def _refuse_twins(data: bytes) -> None:
    def check(pairs: list[tuple[str, Any]]) -> None:
        if len({key for key, _ in pairs}) < len(pairs):
            raise JsonFault("duplicate_key")

    json.loads(data, object_pairs_hook=check)


def parse_text(text: str) -> Any:
    """The value of a JSON text that is already a string, as `parse_record` reads it. Raises JsonFault."""
    try:
        return parse_record(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise JsonFault("invalid_unicode") from None


def maybe_json(value: Any) -> Any:
    """A list or object that was stored as JSON text (CSV cells, Parquet of other tools), else the value itself."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return parse_text(value)
        except JsonFault:
            return value
    return value


def remnant(data: bytes) -> Any:
    """What can be read of a JSON text that `parse_record` refuses, to say which record it is; None for nothing.

    Halves of surrogate pairs, NaN, and bytes that are no UTF-8 (as such halves) are let through; of a key that stands
    twice, nothing is.
    """
    try:
        return json.loads(data.decode("utf-8", "surrogateescape"), object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = {key for key, count in Counter(key for key, _ in pairs).items() if count > 1}
        found = {key: value for key, value in found.items() if key not in twice}
    return found


def has_surrogate(text: str) -> bool:
    """Whether a string holds half of a surrogate pair, which no file can store as UTF-8."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _fault(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return "invalid_unicode"
    try:
        json.loads(text, parse_constant=_refuse)
    except RecursionError:
        return "nested_too_deeply"
    except JsonFault as fault:
        return fault.reason
    except json.JSONDecodeError as error:
        return "concatenated_objects" if error.msg == "Extra data" and _are_objects(text) else "broken_json"
    return "invalid_unicode"  # the only thing that json takes and msgspec does not: half a surrogate pair


def _are_objects(text: str) -> bool:
    """Whether the text is one whole JSON object after another."""
    decoder, at, text = json.JSONDecoder(), 0, text.strip()
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            return False
        if not isinstance(value, dict):
            return False
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
    return True


def _refuse(_constant: str) -> NoReturn:
    raise JsonFault("nan_or_infinity")
