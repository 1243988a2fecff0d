"""Small real projects for tests: a folder with params.yaml, dvc.yaml, methods.lock.json and a source or two."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from corpusforge import methods
from corpusforge.io import atomic
from corpusforge.project import Project

WORDS = [
    "harbour",
    "lantern",
    "meadow",
    "copper",
    "violin",
    "thunder",
    "orchard",
    "ribbon",
    "glacier",
    "pepper",
    "window",
    "saddle",
    "canyon",
    "whistle",
    "blanket",
    "mirror",
    "pebble",
    "garden",
    "castle",
    "feather",
    "bottle",
    "tunnel",
    "anchor",
    "velvet",
    "marble",
    "cradle",
    "hammer",
    "basket",
]


def chat(number: int, **more: Any) -> dict[str, Any]:
    """A conversation unlike all others: its words depend on `number` alone."""
    picked = [
        WORDS[(number * 7 + step * (number % 5 + 3)) % len(WORDS)] + str(number * step % 97) for step in range(30)
    ]
    return {
        "id": f"chat-{number}",
        "messages": [
            {"role": "user", "content": f"Tell me about {' '.join(picked[:8])} please."},
            {"role": "assistant", "content": f"They say {' '.join(picked[8:])} and that is all there is to it."},
        ],
        **more,
    }


def write_jsonl(path: Path, records: list[Any]) -> None:
    """Records as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")


def make_project(root: Path, sources: dict[str, list[Any]], **blocks: Any) -> Project:
    """A project whose sources are JSON Lines files of the given records; `blocks` are further blocks of params.yaml."""
    declared = []
    for name, records in sources.items():
        write_jsonl(root / "raw" / f"{name}.jsonl", records)
        declared.append({"name": name, "path": f"raw/{name}.jsonl", "license": "MIT", "origin": "human"})
    params = {"ingest": {"sources": declared}, "scrub": {"key": "public-demo"}, **blocks}
    with (root / "params.yaml").open("w", encoding="utf-8") as file:
        YAML().dump(params, file)
    atomic.write_text(root / "baseline.json", "{}\n")
    project = Project(root)
    methods.sync(project)
    return Project(root)


def environment(**more: str) -> dict[str, str]:
    """The environment with this interpreter's commands first in PATH, so that DVC finds them."""
    bin_folder = str(Path(sys.executable).parent)
    return {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "DVC_NO_ANALYTICS": "1", **more}


def init_dvc(root: Path) -> None:
    """Make `root` a git and DVC repository."""
    for command in (["git", "init", "-q"], [sys.executable, "-m", "dvc", "init", "-q"]):
        subprocess.run(command, cwd=root, check=True, env=environment(), capture_output=True)


def repro(root: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`dvc repro` in `root`."""
    command = [sys.executable, "-m", "dvc", "repro", *arguments]
    return subprocess.run(command, cwd=root, env=environment(**more), capture_output=True, text=True, timeout=600)
