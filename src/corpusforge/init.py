"""A new project: `corpusforge init DIR --recipe NAME`, or `--from my.jsonl`.

Lays down params.yaml (with a line that lets editors complete it), dvc.yaml and methods.lock.json (as `sync` writes
them), an empty baseline, a README, and makes the folder a git repository and a DVC project. No file that is already
there is touched.
"""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import MissingKey, SourceError
from corpusforge.io import atomic, scaffold

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_LINE: Final = "# yaml-language-server: $schema=schemas/params.schema.json\n"
KEY_FILE: Final = "~/.config/corpusforge/key"
IGNORED: Final = ".corpusforge/\n/releases/\n/dvc_plots/\n/data/*\n!/data/.gitkeep\n"
README: Final = """# {name}

A CorpusForge project. `corpusforge doctor` says what is missing. `corpusforge sync` takes up changes in `params.yaml`,
`dvc repro` builds the corpus, `corpusforge publish` releases it.

| file | what |
| --- | --- |
| `params.yaml` | the sources and one block of options per stage |
| `dvc.yaml` | the graph, kept up to date by `corpusforge sync` |
| `methods.lock.json` | what each stage is made with |
| `baseline.json` | the accepted build that the gate compares with |
| `data/`, `metrics/` | what the stages leave; never edited by hand |
"""


@dataclass
class NewProject:
    """What `init` did, and what is left to do."""

    folder: str
    made: list[str] = field(default_factory=list)
    todo: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"folder": self.folder, "made": self.made, "todo": self.todo}

    def __str__(self) -> str:
        lines = [f"{self.folder}: {', '.join(self.made)}"]
        return "\n".join([*lines, *(f"  {number}. {step}" for number, step in enumerate(self.todo, 1))])


def init(
    folder: str | Path,
    *,
    recipe: str | None = None,
    source: str | Path | None = None,
    new_key: bool = False,
    force: bool = False,
) -> NewProject:
    """Make a project in `folder` from a recipe (default: demo) or around one data file.

    With `new_key`, a scrubbing key is made in `~/.config/corpusforge/key` unless there is one, and the project uses
    it. Raises ProjectError for a folder that is in use, ConfigError for an unknown recipe, SourceError for a file
    that cannot be read.
    """
    place = Path(folder)
    scaffold.check_target(place, force)
    origin = None if source is not None else scaffold.recipe(recipe or "demo")
    text = params_for(Path(source), place) if source is not None else ""
    place.mkdir(parents=True, exist_ok=True)
    done = NewProject(str(folder))
    if origin is not None:
        done.made += scaffold.copy_recipe(origin, place)
    elif scaffold.write_new(place / "params.yaml", text):
        done.made.append("params.yaml")
        done.todo.append("fill in `license` and `origin` of the source in params.yaml")
    _name_schema(place / "params.yaml")
    if new_key:
        done.made += _use_key(place / "params.yaml")
    _lay_down(place, done)
    done.made += [said for said in (scaffold.start_git(place), scaffold.start_dvc(place)) if said]
    done.todo.append(f"cd {folder}")
    _write_graph(place, done)
    done.todo.append("dvc repro")
    return done


def _lay_down(place: Path, done: NewProject) -> None:
    """The files that every project has."""
    from corpusforge import schemas

    files = {
        **{f"schemas/{name}": text for name, text in schemas.texts().items()},
        "dvc.yaml": "stages: {}\n",
        "methods.lock.json": "{}\n",
        "baseline.json": "{}\n",
        ".gitignore": IGNORED,
        "README.md": README.format(name=place.resolve().name),
        "data/.gitkeep": "",
    }
    done.made += [name for name, text in files.items() if scaffold.write_new(place / name, text)]


def _write_graph(place: Path, done: NewProject) -> None:
    """Fill in dvc.yaml and methods.lock.json; without a key the lock has to wait."""
    from corpusforge import methods
    from corpusforge.project import Project

    project = Project(place.resolve())
    try:
        methods.sync(project)
    except MissingKey as missing:
        methods.sync_graph(project)  # the graph does not need the key, and `dvc repro` then says what is missing
        done.todo += [f"{missing.message}: {missing.hint}", "corpusforge sync"]


def _name_schema(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if not text.startswith("# yaml-language-server"):
        atomic.write_text(path, SCHEMA_LINE + text)


def _use_key(path: Path) -> list[str]:
    """Make the user's key unless there is one, and let params name it; a recipe on public data keeps its own."""
    from ruamel.yaml import YAML

    from corpusforge.io.keys import new_key
    from corpusforge.pii.keys import PUBLIC_DEMO

    yaml = YAML(typ="rt")
    yaml.width = 120
    document = yaml.load(path.read_text(encoding="utf-8"))
    if document.get("scrub", {}).get("key") == PUBLIC_DEMO:
        return []
    made = [] if Path(KEY_FILE).expanduser().exists() else [f"key {new_key(Path(KEY_FILE))}"]
    document.setdefault("scrub", {})["key"] = f"file:{KEY_FILE}"
    text = io.StringIO()
    yaml.dump(document, text)
    atomic.write_text(path, text.getvalue())
    return made


def params_for(source: Path, folder: Path) -> str:
    """The text of params.yaml for one data file, with what was found in it as comments. Raises SourceError."""
    from corpusforge.io.ingest import read_with_ledger

    if not source.exists():
        raise SourceError(f"{source} does not exist")
    result = read_with_ledger(str(source))
    if not result.kept.num_rows:
        raise SourceError(
            f"{source}: no record could be read ({result.dropped.num_rows} broken)",
            hint=f"`corpusforge check {source}` says what is wrong",
        )
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", source.name.split(".")[0]).strip("-.") or "source"
    path = Path(os.path.relpath(source.resolve(), folder.resolve())).as_posix()
    return _PARAMS.format(name=json.dumps(name), path=json.dumps(path), found=_found(result.kept, result.dropped))


def _found(rows: pa.Table, broken: pa.Table) -> str:
    """One line: how many rows of which kind, how many records are broken."""
    import pyarrow.compute as pc

    kinds = sorted((c["counts"], c["values"]) for c in pc.value_counts(rows["kind"]).to_pylist())[::-1]
    line = ", ".join(f"{count:,} {kind} rows" for count, kind in kinds)
    return line + (f"; {broken.num_rows:,} records are broken and will be quarantined" if broken.num_rows else "")


_PARAMS: Final = """\
# One block per stage, in the order of the graph. Options that are not named keep their defaults:
# schemas/params.schema.json lists them (editors complete from it), docs/stages/ of CorpusForge explains them.

engine: {{}}

ingest:
  sources:
    - name: {name}
      path: {path}  # {found}
      license: unknown  # to fill in: an SPDX expression (MIT, CC-BY-4.0), or LicenseRef-internal
      origin: mixed  # to fill in: human or synthetic; mixed also says: not known

dedupe:
  threshold: 0.8  # exact Jaccard similarity from which a row is a near-duplicate

filter: {{}}

scrub:
  key: env:CORPUSFORGE_KEY  # where the key of the stand-ins comes from: env:NAME, or file:PATH outside git

health: {{}}

grade: {{}}

decontaminate:
  benchmarks: []  # what the models will be judged by: name and path of each, as for sources

blend: {{}}

shard: {{}}

report: {{}}

gate_data: {{}}
"""
