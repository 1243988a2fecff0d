"""The images of a record: bytes, or the paths of files. No file is opened here; `ingest` is handed what opens them.

{"image": "train/000.png", "conversations": […]}              one path
{"images": [{"bytes": b"…", "path": null}], "messages": […]}  as `datasets` stores images
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from corpusforge.shapes._draft import maybe_json

if TYPE_CHECKING:
    from collections.abc import Mapping

Image = dict[str, Any]
_FILE: Final = re.compile(r"(?!\w+:)[^\0\n]+\.(?:png|jpe?g|webp|gif|bmp|tiff?)", re.IGNORECASE)
_KEYS: Final = {"bytes", "path"}
_NONE: Final[frozenset[str]] = frozenset()


def images_of(record: Mapping[str, Any]) -> tuple[list[Image] | None, frozenset[str]]:
    """Images (`bytes`, `path`) of the field `images` or `image`, and which field they came from; None without any.

    A field that holds anything but images is left alone: it is one more unknown field.
    """
    for field in ("images", "image"):
        value = maybe_json(record.get(field))
        if value is None or value == []:
            continue
        made = [image(one) for one in (value if isinstance(value, list) else [value])]
        if None not in made:
            return [one for one in made if one is not None], frozenset({field})
    return None, _NONE


def image(value: Any) -> Image | None:
    """One image: bytes, the path of a file, or an object with either; None for anything else."""
    if isinstance(value, bytes):
        return {"bytes": value, "path": None}
    if isinstance(value, str):
        return {"bytes": None, "path": value} if _FILE.fullmatch(value) else None
    if not isinstance(value, dict) or not set(value) <= _KEYS:
        return None
    data, path = value.get("bytes"), value.get("path")
    if not isinstance(data, (bytes, type(None))) or not isinstance(path, (str, type(None))):
        return None
    return {"bytes": data, "path": path} if data is not None or path is not None else None
