"""The files of images that records name by path: `options: {images: raw/nlvr/images}`.

Only what lies in that folder is opened; a path that leads out of it, or to nothing, quarantines its record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from corpusforge.errors import SourceError
from corpusforge.shapes import Unrepresentable

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.stages.ingest import SourceConfig


@dataclass(frozen=True)
class Pictures:
    """Opens images by their path below a folder."""

    folder: Path

    def __call__(self, path: str) -> bytes:
        """The bytes of a file. Raises Unrepresentable (`image_missing`, `image_outside`)."""
        place = (self.folder / path).resolve() if "\0" not in path else None
        if place is None or not place.is_file():
            raise Unrepresentable("image_missing")
        if not place.is_relative_to(self.folder.resolve()):
            raise Unrepresentable("image_outside")
        return place.read_bytes()


def pictures(source: SourceConfig, root: Path) -> Pictures | None:
    """What opens the images of a source; None where it names no folder. Raises SourceError when it is not there."""
    if source.options.images is None:
        return None
    folder = root / source.options.images
    if not folder.is_dir():
        raise SourceError(
            f"source {source.name!r}: the folder of images {source.options.images!r} does not exist",
            hint="options.images is a folder, relative to the project",
        )
    return Pictures(folder)
