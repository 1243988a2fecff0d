r"""What a row says, as one hash: the content id, defined in docs/content-id.md.

    {"kind": "sft", "messages": [{"role": "user", "content": "2 + 2?"}]}
    -> {"kind":"sft","messages":[{"content":"2 + 2?","role":"user"}]}      the canonical text
    -> dcd85c90bae0deed5d1dd24c9f5f9542                                    its BLAKE2b of 128 bits

Most rows are encoded by msgspec, which writes what `json` would, save for numbers with an exponent: these are handed
to it as text. What msgspec refuses (half a surrogate pair, which only a table made by hand can hold) `json` writes.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

_CONVERSATIONS: Final = frozenset({"messages", "chosen", "rejected"})
_STRUCTS: Final = frozenset({"rating", "verifier"})
_JSON_FIELDS: Final = ("parts", "tool_calls", "extra")
Parse = Callable[[str], Any]
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def _number(digits: str) -> msgspec.Raw:
    """A number with fraction or exponent as the canonical text has it. Raises ValueError for infinity."""
    return msgspec.Raw(_float_text(float(digits)).encode())


def _float_text(value: float) -> str:
    return json.dumps(value, allow_nan=False)


_decode: Final = msgspec.json.Decoder(float_hook=_number).decode


def content_id(row: Mapping[str, Any]) -> str:
    """128-bit BLAKE2b of the canonical text, as 32 hex digits.

    `row` is a row of the schema as a Python dict (JSON columns as text). Equal for rows that differ only in key
    order, in NFC/NFD form, or in null against absent. Raises ValueError for a JSON column that is not JSON, and
    RecursionError for one that is nested too deeply.
    """
    return _hashed(canonical_text(row))


def id_of_text(text: bytes) -> str:
    """The content id of a canonical text of which only the normalisation form of its strings may be another."""
    return _hashed(_normalised(text))


def _hashed(text: bytes) -> str:
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def _normalised(text: bytes) -> bytes:
    if text.isascii() or unicodedata.is_normalized("NFC", text.decode()):
        return text
    return _encode(_composed(_decode(text)))


def canonical_text(row: Mapping[str, Any]) -> bytes:
    """What is hashed: the row's content as JSON text in UTF-8."""
    try:
        return _normalised(_encode(_content(row, _decode, _number_of)))
    except ValueError:
        return canonical_json(_content(row, json.loads, float)).encode("utf-8", "surrogatepass")


def _number_of(value: float) -> msgspec.Raw:
    return msgspec.Raw(_float_text(value).encode())


def canonical_json(value: Any) -> str:
    """A JSON value as canonical text: keys sorted, compact, strings in NFC. Raises ValueError for NaN."""
    text = _dumps(value)
    return text if text.isascii() or unicodedata.is_normalized("NFC", text) else _dumps(_composed(value))


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def _composed(value: Any) -> Any:
    """A JSON value with every string in NFC; keys of an object that would become one key stay as they are."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, dict):
        names = [unicodedata.normalize("NFC", name) for name in value]
        names = names if len(set(names)) == len(names) else list(value)
        return {name: _composed(inner) for name, inner in zip(names, value.values(), strict=True)}
    return [_composed(inner) for inner in value] if isinstance(value, list) else value


def _content(row: Mapping[str, Any], parse: Parse, number: Callable[[float], Any]) -> dict[str, Any]:
    """The fields that count, without what is null or empty; JSON text parsed."""
    content: dict[str, Any] = {"kind": row["kind"]}
    for name, given in row.items():
        if not given:
            continue
        if name in _CONVERSATIONS:
            content[name] = [
                turn
                if len(turn) == 2 and turn.get("role") is not None and turn.get("content") is not None
                else _message(turn, parse)
                for turn in given
            ]
        elif name in _STRUCTS:
            stated = {key: value for key, value in given.items() if value is not None}
            if stated:
                content[name] = stated
        elif name == "tools":
            content[name] = parse(given)
        elif name == "images":
            content[name] = [_image(image) for image in given]
    if "value" in content.get("rating", ()):
        content["rating"]["value"] = number(content["rating"]["value"])
    if content.get("verifier", {}).get("spec"):
        content["verifier"]["spec"] = parse(content["verifier"]["spec"])
    return content


def _message(message: Mapping[str, Any], parse: Parse) -> dict[str, Any]:
    return {key: parse(value) if key in _JSON_FIELDS else value for key, value in message.items() if value is not None}


def _image(image: Mapping[str, Any]) -> str | None:
    """What stands for an image: the hash of its bytes, else its path."""
    data, path = image.get("bytes"), image.get("path")
    return hashlib.blake2b(data, digest_size=16).hexdigest() if data else path
