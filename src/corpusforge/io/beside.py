"""What files beside the data say of its terms: LICENSE files, READMEs, data-set cards. Shown to people, judged by none.

    raw/mbpp/LICENSE-CODE_of_carrier_repo       -> licence MIT: that of whoever carries the data, not of the data
    raw/gsm8k/README.md, `license: mit` in its card               -> licence MIT, of the data
    raw/self_instruct/human_eval_README.md, line 5: "don't use it for any training purpose"      -> no-train

A README may speak of another file in the folder, so nothing is taken over: `corpusforge licences` says where to look.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from corpusforge.errors import SourceError
from corpusforge.io import files
from corpusforge.licences import UNKNOWN, of_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from corpusforge.stages.ingest import SourceConfig

_LARGEST: Final = 200_000  # bytes of a file that is looked into
_LICENCE: Final = re.compile(r"licen[cs]e|copying", re.IGNORECASE)
_PAGE: Final = re.compile(r"readme|datasheet|data_?card|notice|terms", re.IGNORECASE)
_TEXTS: Final = frozenset({"", ".md", ".txt", ".rst"})
_KNOWN: Final = {
    "MIT": r"\bMIT License\b|Permission is hereby granted, free of charge, to any person obtaining a copy",
    "Apache-2.0": r"Apache License\s+Version 2\.0",
    "BSD-3-Clause": r"BSD 3-Clause|Neither the names? of[^.]{0,80}nor the names? of[^.]{0,20}contributors",
    "CC0-1.0": r"CC0 1\.0 Universal",
    "CC-BY-NC-SA-4.0": r"Attribution-NonCommercial-ShareAlike 4\.0",
    "CC-BY-NC-4.0": r"Attribution-NonCommercial 4\.0",
    "CC-BY-SA-4.0": r"Attribution-ShareAlike 4\.0",
    "CC-BY-SA-3.0": r"Attribution-ShareAlike 3\.0",
    "CC-BY-4.0": r"Attribution 4\.0 International",
    "GPL-3.0-only": r"GNU GENERAL PUBLIC LICENSE\s+Version 3",
    "ODbL-1.0": r"Open Data(?:base| Commons Open Database) License",
}
_SAYS: Final = {
    "no-train": r"(?:n't|\bnot|\bnever)\b[^.!\n]{0,80}\b(?:for (?:any |model )*training|to train|train (?:on|with))\b",
    "provider-terms": r"\bopenai\b\W{0,4}(?:terms|tos\b|usage polic)|terms of (?:use|service) of openai",
    "non-commercial": r"\bnon-?commercial\b",
    "research-only": r"\bfor research (?:purposes |use )?only\b|\bonly for research\b|\bresearch use only\b",
}


@dataclass(frozen=True)
class Beside:
    """One statement: where it stands, whether a licence or a restriction, and whose (`data` or `carrier`)."""

    file: str
    line: int
    says: str
    of: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"file": self.file, "line": self.line, "says": self.says, "of": self.of}


def beside(source: SourceConfig, root: Path) -> list[Beside]:
    """Statements in the folders of a source's local files; none where the source cannot be found."""
    try:
        found = files.find_files(source, root) if source.path else []
    except SourceError:
        return []
    folders = dict.fromkeys(
        file.path if file.path.is_dir() else file.path.parent for file in found if isinstance(file.path, Path)
    )
    return [one for folder in folders for one in _of_folder(folder, root)]


def _of_folder(folder: Path, root: Path) -> Iterator[Beside]:
    for path in sorted(folder.iterdir()):
        if not path.is_file() or path.stat().st_size > _LARGEST:
            continue
        label = files.shown(str(path), root)
        if path.name == "dataset_info.json":
            yield from _of_info(path, label)
        elif path.suffix.lower() not in _TEXTS and not _LICENCE.match(path.name):
            continue
        elif _LICENCE.search(path.name):
            yield from _of_licence(_text(path), label)
        elif _PAGE.search(path.name):
            yield from _of_page(_text(path), label)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _of_info(path: Path, label: str) -> Iterator[Beside]:
    """What `datasets` wrote beside a data set on disk."""
    try:
        said = json.loads(_text(path)).get("license")
    except (ValueError, AttributeError):
        return
    if said:
        yield Beside(label, 1, of_record(said), "data")


def _of_licence(text: str, label: str) -> Iterator[Beside]:
    for name, pattern in _KNOWN.items():
        hit = re.search(pattern, text)
        if hit:
            yield Beside(label, text.count("\n", 0, hit.start()) + 1, name, "carrier")
            return
    yield Beside(label, 1, UNKNOWN, "carrier")


def _of_page(text: str, label: str) -> Iterator[Beside]:
    """The licence in a card's front matter, and sentences that restrict."""
    card = re.match(r"---\n(.*?)\n---", text, re.DOTALL)
    if card:
        try:
            said = YAML(typ="safe").load(card[1])
        except YAMLError:
            said = None
        if isinstance(said, dict) and said.get("license"):
            yield Beside(label, 1, of_record(said["license"]), "data")
    for word, pattern in _SAYS.items():
        hit = re.search(pattern, text, re.IGNORECASE)
        if hit:
            yield Beside(label, text.count("\n", 0, hit.start()) + 1, word, "data")
