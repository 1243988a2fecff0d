"""Image files are opened where params name their folder, and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.projects import make_project, write_jsonl

from corpusforge.errors import SourceError
from corpusforge.io.ingest import read_with_ledger
from corpusforge.methods import watched
from corpusforge.project import Project
from corpusforge.sample import content_id

if TYPE_CHECKING:
    from pathlib import Path

PNG = b"\x89PNG\r\n\x1a\n-made-up"


def read(root: Path, *images: Any, field: str = "image", **options: Any) -> Any:
    (root / "pictures" / "a").mkdir(parents=True, exist_ok=True)
    (root / "pictures" / "a" / "1.png").write_bytes(PNG)
    (root / "secret.png").write_bytes(b"secret")
    write_jsonl(root / "x.jsonl", [{"prompt": "Which?", "completion": "This.", field: image} for image in images])
    return read_with_ledger("x.jsonl", name="s", root=root, detect_language=False, **options)


@pytest.mark.parametrize(
    ("field", "image"),
    [("image", "a/1.png"), ("images", ["a/1.png"]), ("image", {"bytes": None, "path": "a/1.png"})],
    ids=["path", "paths", "as stored"],
)
def test_a_path_becomes_bytes(tmp_path: Path, field: str, image: Any) -> None:
    """However the record names it; the row's content id is that of the bytes."""
    (row,) = read(tmp_path, image, field=field, options={"images": "pictures"}).kept.to_pylist()
    assert row["images"] == [{"bytes": PNG, "path": "a/1.png"}]
    assert row["extra"] is None
    assert row["content_id"] == content_id(row)


def test_without_a_folder_a_path_stays_a_path(tmp_path: Path) -> None:
    (row,) = read(tmp_path, "a/1.png").kept.to_pylist()
    assert row["images"] == [{"bytes": None, "path": "a/1.png"}]


def test_what_is_missing_or_elsewhere_quarantines_its_record(tmp_path: Path) -> None:
    """No record can make the build read a file outside of the folder."""
    result = read(
        tmp_path, "a/2.png", "../secret.png", str(tmp_path / "secret.png"), "a/1.png", options={"images": "pictures"}
    )
    assert result.reasons() == {"image_outside": 2, "image_missing": 1}
    assert result.kept.num_rows == 1


@pytest.mark.parametrize("value", ["a photo of a dog", 7, "https://example.org/a.png", ["a/1.png", 7]])
def test_what_is_no_image_is_one_more_field(tmp_path: Path, value: Any) -> None:
    (row,) = read(tmp_path, value).kept.to_pylist()
    assert row["images"] is None
    assert row["extra"] is not None


def test_the_folder_must_be_there_and_is_watched(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="folder of images 'nowhere' does not exist"):
        read(tmp_path, "a/1.png", options={"images": "nowhere"})
    make_project(tmp_path, {"t": [{"prompt": "Q?", "completion": "A."}]})
    params = tmp_path / "params.yaml"
    params.write_text(params.read_text().replace("origin: human", "origin: human\n    options: {images: pictures}"))
    assert watched(Project(tmp_path))["ingest"] == ["raw/t.jsonl", "pictures"]
