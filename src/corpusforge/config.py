"""params.yaml as one frozen model: a block per stage, in the order of the graph.

A wrong key, type or value is answered with file, line, the key's full path and what would be right. `workers` is not
a parameter: it must not change a byte, so it comes from CORPUSFORGE_WORKERS.

    dedupe:
      threshold: 0.8      # params.yaml:14
"""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from corpusforge import graph
from corpusforge.check import CheckConfig
from corpusforge.errors import ConfigError, UnknownKey
from corpusforge.evaluate.evaluate import EvaluateConfig
from corpusforge.evaluate.gate_models import GateModelsConfig
from corpusforge.stages._stage import StageConfig
from corpusforge.stages.blend import BlendConfig
from corpusforge.stages.decontaminate import DecontaminateConfig
from corpusforge.stages.dedupe import DedupeConfig
from corpusforge.stages.filter import FilterConfig
from corpusforge.stages.gate_data import GateDataConfig
from corpusforge.stages.grade import GradeConfig
from corpusforge.stages.health import HealthConfig
from corpusforge.stages.ingest import IngestConfig
from corpusforge.stages.report import ReportConfig
from corpusforge.stages.scrub import ScrubConfig
from corpusforge.stages.shard import ShardConfig
from corpusforge.train._config import ModelConfig
from corpusforge.train.rollout import RolloutConfig
from corpusforge.train.train_dpo import TrainDpoConfig
from corpusforge.train.train_grpo import TrainGrpoConfig
from corpusforge.train.train_raw import TrainRawConfig
from corpusforge.train.train_sft import TrainSftConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class EngineConfig(StageConfig):
    """How rows are cut into partitions; more rows per partition need more memory and allow fewer workers."""

    partition_rows: int = Field(20_000, ge=1)
    """Rows per partition file; fewer where rows are large, because a partition ends at 256 MiB of rows."""


class Params(BaseModel):
    """Everything that params.yaml may hold."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", title="CorpusForge params.yaml")

    engine: EngineConfig = EngineConfig()
    ingest: IngestConfig
    dedupe: DedupeConfig = DedupeConfig()
    filter: FilterConfig = FilterConfig()
    scrub: ScrubConfig = ScrubConfig()
    health: HealthConfig = HealthConfig()
    grade: GradeConfig = GradeConfig()
    decontaminate: DecontaminateConfig = DecontaminateConfig()
    blend: BlendConfig = BlendConfig()
    shard: ShardConfig = ShardConfig()
    report: ReportConfig = ReportConfig()
    gate_data: GateDataConfig = GateDataConfig()
    model: ModelConfig = ModelConfig()
    """The model that the training stages start from. A training stage is in the graph when its block is here."""
    train_sft: TrainSftConfig | None = None
    train_raw: TrainRawConfig | None = None
    train_dpo: TrainDpoConfig | None = None
    rollout: RolloutConfig | None = None
    train_grpo: TrainGrpoConfig | None = None
    evaluate: EvaluateConfig | None = None
    gate_models: GateModelsConfig | None = None
    check: CheckConfig = CheckConfig()
    """What `corpusforge check --params` looks for in single files; no stage reads it."""

    @property
    def training(self) -> tuple[str, ...]:
        """The training stages that have a block, in the order of the graph."""
        return tuple(name for name in graph.TRAINING if getattr(self, name) is not None)


_INDENT = "YAML is indented with spaces, never with tabs"


def load_params(path: Path) -> Params:
    """Read and check params.yaml. Raises ConfigError or UnknownKey, naming file, line and key."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path} does not exist", hint="`corpusforge init DIR` makes a project") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {type(error).__name__}") from None
    return parse_params(text, str(path.name))


def parse_params(text: str, name: str = "params.yaml") -> Params:
    """Check the text of a params file; `name` stands in messages."""
    try:
        document = YAML(typ="rt").load(text)
        plain = json.dumps(_plain(document))
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        says = str(error.problem).split(" with value", 1)[0]
        raise ConfigError(f"{name}:{line}: not YAML: {says}", hint=_INDENT if "\\t" in says else "") from None
    except (YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: not YAML that can be read ({type(error).__name__})") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{name}: expected a mapping with one block per stage", hint="see schemas/params.schema.json")
    try:
        params = Params.model_validate_json(plain, strict=True)
    except ValidationError as error:
        raise _explain(error, document, name) from None
    for keys, called in _twice(params):
        where = ".".join(str(key) for key in keys)
        raise ConfigError(f"{name}:{_line(document, keys)}: {where}: another is called {called!r} too")
    for stage, needed in graph.missing(params.training):
        place = f"{name}:{_line(document, [stage])}"
        raise ConfigError(f"{place}: {stage} needs the block {needed}", hint=f"add `{needed}: {{}}`, or remove {stage}")
    for keys, known in _references(params):
        if keys[-1] not in known:
            near = difflib.get_close_matches(keys[-1], known, 1, 0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"declared are: {', '.join(known) or 'none'}"
            place = f"{name}:{_line(document, keys)}"
            raise ConfigError(f"{place}: {'.'.join(keys)}: nothing of this name is declared", hint=hint)
    return params


def _twice(params: Params) -> Iterator[tuple[list[Any], str]]:
    """Sources and benchmarks that have the name of an earlier one."""
    places = {("ingest", "sources"): params.ingest.sources}
    places["decontaminate", "benchmarks"] = params.decontaminate.benchmarks
    places["evaluate", "legacy"] = params.evaluate.legacy if params.evaluate else []
    for (block, field), listed in places.items():
        names = [source.name for source in listed]
        for number, called in enumerate(names):
            if called in names[:number]:
                yield [block, field, number, "name"], called


def _references(params: Params) -> Iterator[tuple[list[str], list[str]]]:
    """Keys that are names of sources or benchmarks, and the names that there are: a misspelt one would do nothing."""
    sources = [source.name for source in params.ingest.sources]
    yield from ((["blend", "sources", name], sources) for name in params.blend.sources)
    yield from ((["gate_data", "source_loss", name], sources) for name in params.gate_data.source_loss)
    wanted = params.model.where.get("source", [])
    yield from ((["model", "where", "source", name], sources) for name in wanted)
    benchmarks = [source.name for source in params.decontaminate.benchmarks]
    yield from ((["decontaminate", "thresholds", name], benchmarks) for name in params.decontaminate.thresholds)


def _plain(node: Any) -> Any:
    """The document as JSON can say it."""
    if isinstance(node, dict):
        return {_key(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    return node if node is None or isinstance(node, (str, int, float)) else str(node)


def _key(key: Any) -> str:
    """A key as text: `5`, `true` and `null` are no names, but the message must be able to say them."""
    return str(key) if not isinstance(key, (bool, type(None))) else json.dumps(key)


def _explain(error: ValidationError, document: Any, name: str) -> ConfigError:
    """The first fault, with its place in the file; unknown keys first, because a misspelling causes other faults."""
    faults = error.errors(include_url=False, include_input=False)
    first = next((fault for fault in faults if fault["type"] == "extra_forbidden"), faults[0])
    keys = _in_document(document, list(first["loc"]), first["type"] in {"extra_forbidden", "missing"})
    where, line = ".".join(str(key) for key in keys), _line(document, keys)
    place = f"{name}:{line}" if line else name
    if first["type"] == "extra_forbidden":
        known = _known_keys(keys[:-1])
        near = difflib.get_close_matches(str(keys[-1]), known, 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return UnknownKey(f"{place}: unknown key {where!r}", hint=hint)
    if first["type"] == "missing":
        return ConfigError(f"{place}: {where!r} is required", hint=_meaning(keys))
    others = len({tuple(_in_document(document, list(fault["loc"]), True)) for fault in faults}) - 1
    more = f" (and {others} more)" if others else ""
    return ConfigError(f"{place}: {where}: {_reason(first)}{more}", hint=_meaning(keys))


def _reason(fault: Any) -> str:
    """Pydantic's message, without the offending text."""
    if fault["type"] == "model_type":
        return "expected a block of options; write {} for none"
    return str(fault["msg"]).removeprefix("Value error, ")


def _meaning(keys: list[Any]) -> str:
    """What the documentation of the field says, and where there is more."""
    model = _model(_annotation(keys[:-1]))
    field = model.model_fields.get(str(keys[-1])) if model else None
    says = " ".join(field.description.split()) if field and field.description else ""
    pages = {"model": "docs/training.md", **{name: f"docs/stages/{name}.md" for name in graph.NAMES}}
    page = pages.get(keys[0], "schemas/params.schema.json")
    return f"{keys[-1]}: {says} ({page})" if says else f"see {page}"


def _in_document(document: Any, loc: list[Any], keep_last: bool) -> list[Any]:
    """The keys of a fault's place that stand in the file, without the names that pydantic adds for unions."""
    keys: list[Any] = []
    node = document
    for number, part in enumerate(loc):
        if isinstance(node, list) and isinstance(part, int):
            node = node[part]
        elif isinstance(node, dict) and part in (names := {_key(key): key for key in node}):
            node = node[names[part]]
        elif not (keep_last and number == len(loc) - 1):
            continue
        keys.append(part)
    return keys or loc


def _line(document: Any, keys: list[Any]) -> int:
    """1-based line of the deepest of `keys` that the document holds; 0 when none is."""
    line, node = 0, document
    for key in keys:
        marks: Any = getattr(node, "lc", None)  # ruamel's places: of items in a list, of keys in a mapping
        if isinstance(node, list) and isinstance(key, int):
            line, node = marks.item(key)[0] + 1, node[key]
        elif isinstance(node, dict) and key in (names := {_key(found): found for found in node}):
            line, node = marks.key(names[key])[0] + 1, node[names[key]]
        else:
            break
    return line


def _known_keys(path: list[Any]) -> list[str]:
    """Field names of the model at `path` in Params."""
    model = _model(_annotation(path))
    return list(model.model_fields) if model else []


def _annotation(path: list[Any]) -> Any:
    """The type at `path` in Params, through lists, mappings and unions; None where there is none."""
    kind: Any = Params
    for key in path:
        kind = _step(kind, key)
    return kind


def _step(kind: Any, key: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind.model_fields[key].annotation if key in kind.model_fields else None
    if get_origin(kind) in (list, dict):
        return get_args(kind)[-1]
    return next((found for inner in get_args(kind) if (found := _step(inner, key)) is not None), None)


def _model(kind: Any) -> type[BaseModel] | None:
    """The model that `kind` is, or that is one of the types it may be."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    if get_origin(kind) in (list, dict):
        return None
    return next((found for inner in get_args(kind) if (found := _model(inner)) is not None), None)
