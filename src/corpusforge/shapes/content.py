"""The content of a message: a text, or a list of parts (text, images, audio, refusals).

    [{"type": "text", "text": "a "}, {"type": "text", "text": "b"}]   -> content "a b"
    [{"type": "text", "text": "What is it?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,…"}}]
        -> content "What is it?", parts [{text}, {"type": "image"}], and the image's bytes in the column `images`

Images inside a message (OpenAI's, Anthropic's and `datasets`' forms) move to the row's `images` column, in their order,
unless the record has a column of images of its own, to which its parts then refer. Images that are addresses stay.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from corpusforge.shapes._draft import Message, Note, Notes, Unrepresentable, json_text
from corpusforge.shapes.images import Image, image

_DATA: Final = "data:image/"


def put_content(message: Message, content: Any, notes: list[Note]) -> None:
    """Give a message its content, and its `parts` where text alone does not say it. Raises Unrepresentable."""
    if isinstance(content, str):
        message["content"] = content
    elif isinstance(content, list):
        texts = [_text(part) for part in content]
        message["content"] = "".join(text for text in texts if text is not None)
        if not all(isinstance(p, str) or (p.get("type") == "text" and _bare(p)) for p in content):
            parts = [{"type": "text", "text": p} if isinstance(p, str) else _lifted(p, notes) for p in content]
            message["parts"] = json_text(parts)
    elif content is not None:
        raise Unrepresentable("content_not_text", type=type(content).__name__)


def _bare(part: dict[str, Any]) -> bool:
    return all(value is None for key, value in part.items() if key not in ("type", "text"))


def _text(part: Any) -> str | None:
    """What a part says: its text, or the text of a refusal."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict):
        raise Unrepresentable("content_part_not_an_object")
    kind = part.get("type", "text")
    text = part.get("refusal") if kind == "refusal" else part.get("text") if kind == "text" else None
    return text if isinstance(text, str) else None


def _lifted(part: dict[str, Any], notes: list[Note]) -> dict[str, Any]:
    """The part without its image, which goes to the column; the part itself where it holds none."""
    if not isinstance(notes, Notes) or notes.images is None:
        return part
    found = _image(part)
    if found is None:
        return part
    notes.images.append(found)
    inner = part.get("image_url")
    detail = {"detail": inner["detail"]} if isinstance(inner, dict) and inner.get("detail") else {}
    left = {k: v for k, v in part.items() if k not in ("type", "image_url", "source", "image", "path", "bytes")}
    return {"type": "image", **left, **detail}


def _image(part: dict[str, Any]) -> Image | None:
    kind = part.get("type")
    if kind == "image_url":
        inner = part.get("image_url")
        return _decoded(inner.get("url") if isinstance(inner, dict) else inner)
    if kind != "image":
        return None
    source = part.get("source")
    if isinstance(source, dict):
        return _bytes(source.get("data")) if source.get("type") == "base64" else None
    held = part.get("image")
    if isinstance(held, str) and held.startswith(_DATA):
        return _decoded(held)
    return image(held if held is not None else {k: part[k] for k in ("bytes", "path") if k in part})


def _decoded(address: Any) -> Image | None:
    if not isinstance(address, str) or not address.startswith(_DATA):
        return None
    head, _, data = address.partition(",")
    return _bytes(data) if head.endswith(";base64") else None


def _bytes(data: Any) -> Image | None:
    if not isinstance(data, str):
        return None
    try:
        return {"bytes": base64.b64decode(data, validate=True), "path": None}
    except (binascii.Error, ValueError):
        return None
