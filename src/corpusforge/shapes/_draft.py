"""What a shape makes of a record: drafts of rows, before they get an identity and provenance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from corpusforge.sample import dumps
from corpusforge.text.jsontext import has_surrogate, maybe_json

__all__ = [
    "Draft",
    "Message",
    "Note",
    "Notes",
    "Shape",
    "Unrepresentable",
    "assistant",
    "json_text",
    "maybe_json",
    "string",
    "user",
    "verifier",
]

Message = dict[str, Any]
Note = tuple[str, dict[str, Any]]


class Notes(list[Note]):
    """What is noted of a record while it is read, and the images found inside its messages."""

    def __init__(self, *, lift: bool = False) -> None:
        super().__init__()
        self.images: list[dict[str, Any]] | None = [] if lift else None  # None: images stay where they are

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Notes:
        """For a record: its messages' images move to the column, unless it has a column of its own."""
        return cls(lift=record.get("images") is None and record.get("image") is None)


class Unrepresentable(ValueError):
    """The record cannot become a row; `reason` is the ledger's code, `detail` holds no text of the record."""

    def __init__(self, reason: str, **detail: Any) -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


@dataclass(slots=True)
class Draft:
    """One row to be: the columns that the shape decides."""

    kind: str
    messages: list[Message]
    used: frozenset[str]  # top-level fields that went into columns; all others go to `extra`
    chosen: list[Message] | None = None
    rejected: list[Message] | None = None
    rating: dict[str, Any] | None = None
    tools: str | None = None
    verifier: tuple[str, str] | None = None  # kind, spec as JSON text
    extra: dict[str, Any] = field(default_factory=dict)  # further fields for `extra`
    origin: str | None = None
    generator: str | None = None
    domain: str | None = None
    language: str | None = None
    notes: list[Note] = field(default_factory=list)
    images: list[dict[str, Any]] | None = None  # as `datasets` stores them: bytes, or the path of a file
    record: Mapping[str, Any] | None = None  # whose unknown fields go to `extra`, where that is not the source's record
    stated: Mapping[str, Any] | None = None  # provenance of this row alone


Shape = Callable[[Mapping[str, Any]], list[Draft]]

_PLAIN: Final = (str, int, float, bool, type(None))


def json_text(value: Any) -> str:
    """JSON text of a free-form value. Raises Unrepresentable for NaN, half surrogates and bottomless nesting."""
    try:
        text = dumps(value)
    except RecursionError:
        raise Unrepresentable("nested_too_deeply") from None
    except ValueError:
        raise Unrepresentable("nan_or_infinity") from None
    except TypeError:
        raise Unrepresentable("not_json") from None
    if not text.isascii() and has_surrogate(text):
        raise Unrepresentable("invalid_unicode")
    return text


def verifier(kind: str, **spec: Any) -> tuple[str, str]:
    """A verifier's two columns; parts of the spec that are None stay, because None is an answer too."""
    return kind, json_text(spec)


def string(record: Mapping[str, Any], *names: str) -> str:
    """The text of the first of these fields that the record has. Raises Unrepresentable when it is not text."""
    for name in names:
        value = record.get(name)
        if value is not None:
            if not isinstance(value, str):
                raise Unrepresentable("field_not_text", field=name)
            return value
    raise Unrepresentable("field_missing", field=" or ".join(names))


def user(content: str | None) -> Message:
    """A user turn."""
    return {"role": "user", "content": content} if content is not None else {"role": "user"}


def assistant(content: str | None) -> Message:
    """An assistant turn."""
    return {"role": "assistant", "content": content} if content is not None else {"role": "assistant"}
