"""Data sets are read from a hub at one commit, as streams; what goes wrong on the way is told apart."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from tests.io.hub import Hub, serve_hub

from corpusforge.errors import SourceError
from corpusforge.io import hub
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOURCE = SourceConfig(name="s", path="hf://owner/name")
ONE, TWO = "a" * 40, "b" * 40


class Answer(Exception):
    """An error as the hub's client raises it, with the answer's status."""

    def __init__(self, status: int) -> None:
        self.response = SimpleNamespace(status_code=status)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Answer(401), "401"),
        (Answer(403), "403"),
        (Answer(404), "404"),
        (TimeoutError(), "cannot be reached"),
        (ConnectionError(), "cannot be reached"),
        (ValueError("BuilderConfig 'x' not found"), "options.subset"),
    ],
    ids=["401", "403", "404", "timeout", "connection", "value"],
)
def test_causes(monkeypatch: pytest.MonkeyPatch, error: Exception, says: str) -> None:
    """Each with what to do about it."""
    import huggingface_hub

    def fail(*_args: Any, **_options: Any) -> None:
        raise error

    monkeypatch.setattr(huggingface_hub.HfApi, "dataset_info", fail)
    with pytest.raises(SourceError, match=rf"source 's': hf://owner/name[\s\S]*{says}"):
        hub.pin(SOURCE)


@pytest.mark.parametrize("path", ["hf://a/b/c/d", "hf://a b/c"])
def test_a_name_that_is_none(path: str) -> None:
    """It is refused before anything is asked."""
    with pytest.raises(SourceError, match="hf://owner/name"):
        hub.pin(SourceConfig(name="s", path=path))


LINES = b"".join(json.dumps({"id": f"r{n}", "text": f"text {n}", "n": n}).encode() + b"\n" for n in range(1500))
EXACT = b'{"id": "x", "text": "a", "n": 18446744073709551617}\n{"id": "y", "text": "b", "n": {"mixed": [1, "t"]}}\n'
READ = """
import json, sys, warnings
warnings.simplefilter("error")
from pathlib import Path
from corpusforge.errors import CorpusForgeError
from corpusforge.io.ingest import read_with_ledger
for name, path, options in json.loads(sys.argv[1]):
    try:
        result = read_with_ledger(path, name="s", detect_language=False, root=Path("."), **options)
        rows = result.kept.to_pylist()
        said = {"ids": [r["row_id"] for r in rows], "extra": [r["extra"] for r in rows], "source": rows[0]["source"]}
    except CorpusForgeError as error:
        said = {"error": str(error), "code": error.code}
    print(json.dumps([name, said]), flush=True)
"""
ASKED = {
    "whole": ("hf://owner/name", {}),
    "split": ("hf://owner/name", {"options": {"split": "test"}}),
    "limited": ("hf://owner/name", {"limit": 3}),
    "earlier": ("hf://owner/name", {"options": {"revision": ONE}, "limit": 1}),
    "files": ("hf://datasets/owner/name/data/test*.jsonl", {}),
    "earlier file": (f"hf://datasets/owner/name@{ONE}/data/train.jsonl", {"limit": 1}),
    "exact": ("hf://datasets/owner/exact/all.jsonl", {}),
    "inexact": ("hf://owner/exact", {}),
    "no split": ("hf://owner/name", {"options": {"split": "dev"}}),
    "gated": ("hf://owner/gated", {}),
    "gated file": ("hf://datasets/owner/gated/all.jsonl", {}),
    "private": ("hf://owner/private", {}),
    "absent": ("hf://owner/absent", {}),
    "no revision": ("hf://owner/name", {"options": {"revision": "c" * 40}}),
    "no file": ("hf://datasets/owner/name/none.jsonl", {}),
}


def environment(alone: dict[str, str]) -> dict[str, str]:
    """What this process has, without what forbids a hub or leads to another one, and `alone`."""
    return {name: value for name, value in os.environ.items() if not re.match("HF_|TRANSFORMERS_", name)} | alone


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Any], Hub, Path]]:
    """What the readers say of each of ASKED, in a process that knows no other hub."""
    home = tmp_path_factory.mktemp("home")
    with serve_hub() as served:
        served.put("owner/name", ONE, {"data/train.jsonl": b'{"text": "old", "n": 0}\n'})
        served.put("owner/name", TWO, {"data/train.jsonl": LINES, "data/test.jsonl": LINES[: LINES.index(b"\n") + 1]})
        served.put("owner/exact", ONE, {"all.jsonl": EXACT})
        served.put("owner/gated", ONE, {"all.jsonl": EXACT})
        served.put("owner/private", ONE, {"all.jsonl": EXACT})
        served.gated.add("owner/gated")
        served.refused["owner/private"] = 401
        alone = {"HF_ENDPOINT": served.url, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
        asked = json.dumps([[name, *what] for name, what in ASKED.items()])
        run = subprocess.run(
            [sys.executable, "-c", READ, asked], env=environment(alone), cwd=home, capture_output=True, text=True
        )
        assert run.returncode == 0, run.stderr[-3000:]
        yield dict(map(json.loads, run.stdout.splitlines())), served, home


def test_a_data_set_is_read_at_one_commit(said: Any) -> None:
    """All splits, one, or the first records; rows name the commit."""
    found = said[0]
    assert found["whole"]["ids"] == [f"s#{n}" for n in range(1, 1502)]
    assert {key: found["whole"]["source"][key] for key in ("uri", "revision")} == {
        "uri": "hf://owner/name",
        "revision": TWO,
    }
    assert found["split"]["ids"] == ["s#1"]
    assert found["limited"]["ids"] == ["s#1", "s#2", "s#3"]
    assert found["earlier"]["source"]["revision"] == ONE


def test_nothing_of_it_is_stored(said: Any) -> None:
    """The data came over the line and went into rows: no file of it lies in the cache."""
    held = sum(path.stat().st_size for path in said[2].rglob("*") if path.is_file())
    assert held < len(LINES) // 10


def test_files_are_read_exactly(said: Any) -> None:
    """By our own readers, which need no common schema; at the commit, by its name in the ledger."""
    found = said[0]
    assert found["files"]["ids"] == ["s/test.jsonl#1"]
    assert (found["files"]["source"]["revision"], found["earlier file"]["source"]["revision"]) == (TWO, ONE)
    assert found["files"]["source"]["uri"] == "hf://datasets/owner/name/data/test*.jsonl"
    assert found["exact"]["extra"] == ['{"n":18446744073709551617}', '{"n":{"mixed":[1,"t"]}}']
    assert "hf://datasets/owner/exact/" in found["inexact"]["error"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no split", "options.split"),
        ("gated", r"\(403\)"),
        ("gated file", "may not be read|403"),
        ("private", r"\(401\)"),
        ("absent", r"\(404\)"),
        ("no revision", r"\(404\)"),
        ("no file", "does not exist"),
    ],
)
def test_what_the_hub_refuses(said: Any, name: str, says: str) -> None:
    """Each told as what it is."""
    assert said[0][name]["code"] == "source"
    assert re.search(says, said[0][name]["error"]), said[0][name]["error"]


def test_without_a_network(tmp_path: Path) -> None:
    """The hub is said to be out of reach, not the data set to be missing."""
    alone = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    asked = json.dumps([["none", "hf://owner/name", {}], ["file", "hf://datasets/owner/name/a.jsonl", {}]])
    run = subprocess.run(
        [sys.executable, "-c", READ, asked], env=environment(alone), cwd=tmp_path, capture_output=True, text=True
    )
    for line in run.stdout.splitlines():
        assert "cannot be reached" in json.loads(line)[1]["error"]
    assert len(run.stdout.splitlines()) == 2, run.stderr[-2000:]
