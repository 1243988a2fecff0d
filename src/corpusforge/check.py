"""What is wrong with a file, in a minute: no project, no git, no DVC, no network.

    corpusforge check my.jsonl --benchmarks benchmarks/          cf.check("my.jsonl")

Reads any file that `ingest` reads, runs the stages over it in memory, changes nothing, and says what the file holds,
what is wrong with which rows, and what to do about it. Some findings are fatal (`fatal` says which): then the answer
is no. Values of personal data and secrets are never shown; texts of rows only where `show` asks for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from corpusforge import findings
from corpusforge.errors import ConfigError
from corpusforge.inspect import quantiles
from corpusforge.present import Block, Showable, Shown
from corpusforge.stages._stage import StageConfig, configure

if TYPE_CHECKING:
    import polars as pl

    from corpusforge.findings import Finding
    from corpusforge.result import StageResult

Progress = Callable[[str], None]
_SNIPPET: Final = 60  # characters of a text that `show` lets through
_TOP: Final = 8
_MOST_FIELDS: Final = 40  # an object with more is a table of its own, whose keys may be anything
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,40}")
FATAL: Final = ("nothing_readable", "unknown_shape", "broken_lines", "secrets", "benchmark_hits", "conflicting_gold")


class CheckConfig(StageConfig):
    """What `check` looks for, and what makes its answer no."""

    fatal: list[str] = Field(default_factory=lambda: list(FATAL))
    """Codes of findings after which the exit code is 1 (filter rules count as well, by their reason codes)."""
    threshold: float = Field(0.8, gt=0, le=1)
    """Exact Jaccard similarity from which two rows are near duplicates."""
    max_length: int = Field(1024, ge=1)
    """Tokens that the trainer looks at; 1024 is TRL's default."""
    counter: str = "chars/4"
    """How tokens are counted: `chars/4`, or a tokenizer (a tokenizer.json, or the name of one)."""
    coverage: float = Field(0.5, gt=0, le=1)
    """Share of a benchmark item's word 8-grams from which a row holds the item."""
    listed: int = Field(10, ge=0)
    """Row numbers told per finding."""
    pairs: int = Field(5, ge=0)
    """Most similar pairs, and benchmark hits, told one by one."""

    @field_validator("fatal")
    @classmethod
    def _known(cls, fatal: list[str]) -> list[str]:
        known = {*findings.ADVICE, *_filter_reasons()}
        for code in fatal:
            if code not in known:
                raise ValueError(f"unknown finding {code!r}; there are {', '.join(sorted(known))}")
        return fatal


@dataclass(repr=False)
class Checked(Showable):
    """What a file holds and what was found. `passed` is false when a finding is fatal."""

    path: str
    records: int
    rows: int
    holds: dict[str, dict[str, int]]
    fields: list[str]  # of the first record of unknown shape
    lengths: dict[str, dict[str, float]]
    findings: list[Finding]
    fatal: list[str]
    not_checked: list[str]
    benchmarks: dict[str, int] = field(default_factory=dict)  # items looked for, by benchmark
    snippets: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        """Whether nothing fatal was found."""
        return not self.fatal

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "path": self.path,
            "passed": self.passed,
            "fatal": self.fatal,
            "records": self.records,
            "rows": self.rows,
            "holds": self.holds,
            "fields": self.fields,
            "lengths": self.lengths,
            "findings": [found.to_dict() for found in self.findings],
            "not_checked": self.not_checked,
            "benchmarks": self.benchmarks,
            **({"snippets": self.snippets} if self.snippets else {}),
        }

    def shown(self) -> Shown:
        """The result as tables."""
        return Shown(
            f"{self.path}: {self.records:,} records, {self.rows:,} rows",
            [*_what_it_holds(self), *_what_was_found(self), *_details(self)],
            _verdict(self),
        )


def check(
    path: Any,
    *,
    benchmarks: str | Path | None = None,
    source: Mapping[str, Any] | None = None,
    config: CheckConfig | None = None,
    show: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Checked:
    """Look through a file (or folder, or glob, or records or rows in memory) for what would hurt a training.

    `source` says how to read it (`fields`, `shape`, `license`, … as in params.yaml). `benchmarks` is a folder whose
    every data file is a benchmark that must not be in the rows. `show` adds the first characters of the rows of the
    worst pairs. Keyword arguments are the fields of CheckConfig. Raises SourceError for a path that is not there,
    ConfigError for a wrong option.
    """
    from corpusforge.io import memory
    from corpusforge.io.ingest import read_with_ledger

    chosen = configure(CheckConfig, config, options)
    say = progress or (lambda _what: None)
    say("reading")
    named = memory.are_paths(path)
    read = read_with_ledger(data_of(Path(path)), source) if named else memory.read_records(path, source)
    items = _benchmark_items(benchmarks)
    found, dedupe_pairs = _look(read, chosen, items, say)
    rows = read.kept
    tokens = findings.token_lengths(rows, _counter(chosen.counter)) if rows.num_rows else None
    if tokens is not None:
        found += findings.lengths(rows, tokens, chosen.max_length, chosen.listed)
    codes = [one.code for one in found]
    return Checked(
        path=str(path) if named else f"{type(path).__name__} in memory",
        records=int(read.metrics.get("records", rows.num_rows + read.dropped.num_rows)),
        rows=rows.num_rows,
        holds=_holds(read),
        fields=_fields(read, path) if named else [],
        lengths=_lengths(rows, tokens),
        findings=sorted(found, key=lambda one: (one.code not in chosen.fatal, _order(one.code))),
        fatal=[code for code in dict.fromkeys(codes) if code in chosen.fatal],
        not_checked=_not_checked(items is not None),
        benchmarks=_counts(items["source"].combine_chunks().field("name")) if items is not None else {},
        snippets=_snippets(rows, dedupe_pairs) if show else {},
    )


def data_of(place: Path) -> str:
    """The path to read: of a folder of shards, the Parquet files and not the manifest beside them."""
    ours = (place / "manifest.json").is_file() and any(place.rglob("*.parquet"))
    return str(place / "**" / "*.parquet") if ours else str(place)


def load_check(path: Path) -> CheckConfig:
    """The `check:` block of a params file; the defaults where it has none. Raises ConfigError."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError

    try:
        document = YAML(typ="safe").load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {type(error).__name__}") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 0
        raise ConfigError(f"{path}:{line}: not YAML: {error.problem}") from None
    block = document.get("check") if isinstance(document, dict) else None
    if block is not None and not isinstance(block, dict):
        raise ConfigError(f"{path}: check: expected a mapping")
    return configure(CheckConfig, None, block or {})


def _look(
    read: StageResult, config: CheckConfig, benchmarks: pa.Table | None, say: Progress
) -> tuple[list[Finding], list[Any]]:
    """Every finding, and the labels of rows in the worst pairs. The slow ones run side by side."""
    rows, listed = read.kept, config.listed
    found = findings.broken(rows, read.dropped, listed)
    if not rows.num_rows:
        return [*found, findings.finding("nothing_readable", [], listed)], []
    tasks: dict[str, Callable[[], list[Finding]]] = {
        "duplicates": lambda: _duplicates(rows, config),
        "personal data and secrets": lambda: _personal(rows, listed),
        "quality rules": lambda: _filtered(rows, listed),
        "answers and licences": lambda: [*findings.answers(rows, listed), *findings.licences(rows, listed)],
    }
    if benchmarks is not None:
        tasks["benchmarks"] = lambda: _benchmark_hits(rows, benchmarks, config)
    with ThreadPoolExecutor(max_workers=2) as pool:
        futures = {what: pool.submit(task) for what, task in tasks.items()}
        for what, future in futures.items():
            say(what)
            found += future.result()
    pairs = [f[side] for one in found for f in one.facts for side in ("row", "like") if "like" in f]
    return found, list(dict.fromkeys(pairs))


def _duplicates(rows: pa.Table, config: CheckConfig) -> list[Finding]:
    from corpusforge.stages.dedupe import dedupe

    result = dedupe(rows, threshold=config.threshold)
    return [
        *findings.duplicates(rows, result, config.listed, config.pairs),
        *findings.same_prompts(result.kept, config.listed),
    ]


def _personal(rows: pa.Table, listed: int) -> list[Finding]:
    from corpusforge.stages.scrub import scan

    return findings.personal(rows, scan(rows), listed)


def _filtered(rows: pa.Table, listed: int) -> list[Finding]:
    from corpusforge.stages.filter import filter as quality

    return findings.filtered(rows, quality(rows), listed)


def _benchmark_items(folder: str | Path | None) -> pa.Table | None:
    from corpusforge.io.benchmarks import load_folder

    return None if folder is None else load_folder(Path(folder))


def _benchmark_hits(rows: pa.Table, benchmarks: pa.Table, config: CheckConfig) -> list[Finding]:
    from corpusforge.stages.decontaminate import decontaminate

    result = decontaminate(rows, benchmarks=benchmarks, threshold=config.coverage)
    return findings.benchmark_hits(rows, result, config.listed, config.pairs)


def _filter_reasons() -> tuple[str, ...]:
    from corpusforge.stages.filter import RULES

    return tuple(RULES)


def _counter(name: str) -> Callable[[pl.Series], Any]:
    """A function from a column of texts to token counts."""
    if name == "chars/4":
        return lambda texts: np.ceil(texts.str.len_chars().to_numpy() / 4).astype(np.int64)
    from corpusforge.io.tokenizer import load_tokenizer

    tokenizer: Any = load_tokenizer(name, Path())
    return lambda texts: np.array([len(one) for one in tokenizer.encode_batch(texts.to_list())], np.int64)


def _order(code: str) -> int:
    order = list(findings.ADVICE)
    return order.index(code) if code in order else len(order)


def _holds(read: StageResult) -> dict[str, dict[str, int]]:
    """Shapes of the records; kinds, languages, domains, origins and licences of the rows."""
    rows = read.kept
    source = rows["source"]
    columns = {
        "kind": rows["kind"],
        "language": rows["language"],
        "domain": rows["domain"],
        "origin": pc.struct_field(source, "origin"),
        "licence": pc.struct_field(source, "license"),
    }
    counted = {"shape": dict(read.metrics.get("shapes", {}))}
    for name, values in columns.items():
        pairs = [(c["values"] or "(none)", c["counts"]) for c in pc.value_counts(values).to_pylist()]
        counted[name] = dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
    return counted


def _fields(read: StageResult, path: str | Path) -> list[str]:
    """Names of the fields of the first record, where a shape is unknown and they look like names."""
    place = Path(path)
    if "unknown_shape" not in read.reasons() or not place.is_file():
        return []
    from corpusforge.io.readers import read_file

    for record in read_file(place, place.name):
        if record.value is not None:
            names = [name for name in record.value if name]
            return names if len(names) <= _MOST_FIELDS and all(_NAME.fullmatch(name) for name in names) else []
    return []


def _lengths(rows: pa.Table, tokens: pl.DataFrame | None) -> dict[str, dict[str, float]]:
    if tokens is None:
        return {}
    turns = np.asarray(pc.fill_null(pc.list_value_length(rows["messages"]), 0))
    spans = {"turns": quantiles(turns), "tokens": quantiles(tokens["all"].to_numpy())}
    spans["tokens before the answer"] = quantiles(tokens["before"].to_numpy())
    return {name: span for name, span in spans.items() if span is not None}


def _counts(names: pa.Array) -> dict[str, int]:
    return {one["values"]: one["counts"] for one in pc.value_counts(names).to_pylist()}


def _not_checked(with_benchmarks: bool) -> list[str]:
    missing = ["names of people and places (the `ner` extra finds them in `scrub`)", "whether answers are right"]
    missing.insert(0, "benchmark items in other words" if with_benchmarks else "benchmarks (--benchmarks DIR)")
    return missing


def _snippets(rows: pa.Table, wanted: list[Any]) -> dict[str, str]:
    """The first characters of the rows with these labels."""
    from corpusforge.text.views import row_text

    named = findings.labels(rows).tolist()
    first = {label: position for position, label in reversed(list(enumerate(named)))}
    texts = row_text(rows.take(pa.array([first[label] for label in wanted], pa.int64()))).to_pylist()
    return {
        str(label): " ".join(text[: 2 * _SNIPPET].split())[:_SNIPPET] for label, text in zip(wanted, texts, strict=True)
    }


def _what_it_holds(checked: Checked) -> list[Block]:
    rows = [
        (what, ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:_TOP]) + _more(len(counts)))
        for what, counts in checked.holds.items()
        if counts
    ]
    if checked.fields:
        rows.append(("fields", ", ".join(checked.fields)))
    blocks = [Block("what it holds", ("", "records or rows"), rows)] if rows else []
    if checked.lengths:
        spans = [(name, s["min"], s["p50"], s["p90"], s["max"]) for name, s in checked.lengths.items()]
        blocks.append(Block("lengths", ("", "least", "median", "p90", "most"), spans))
    return blocks


def _more(count: int) -> str:
    return f", and {count - _TOP} more" if count > _TOP else ""


def _what_was_found(checked: Checked) -> list[Block]:
    rows = [
        (
            "FATAL" if one.code in checked.fatal else "",
            one.code,
            one.rows,
            _where(one, (checked.rows, checked.records)),
            one.advice,
        )
        for one in checked.findings
    ]
    columns = ("", "finding", "rows", "where", "what to do")
    return [Block("what was found", columns, rows)] if rows else [Block("what was found", note="nothing")]


def _where(one: Finding, whole: tuple[int, ...]) -> str:
    if one.rows in whole and one.rows > len(one.where):
        return "all rows"
    lines = [place.removeprefix("line ") for place in one.where]
    told = "lines " if lines != list(one.where) and len(lines) > 1 else ""
    return told + ", ".join(lines if told else one.where) + (", …" if 0 < len(one.where) < one.rows else "")


def _details(checked: Checked) -> list[Block]:
    """A table per finding that has facts beyond its rows."""
    blocks = []
    for one in checked.findings:
        lists = [fact for fact in one.facts if len(fact) > 1]
        for keys in dict.fromkeys(tuple(fact) for fact in lists):
            facts = [fact for fact in lists if tuple(fact) == keys]
            blocks.append(Block(one.code, keys, [[_cell(key, fact[key]) for key in keys] for fact in facts]))
    if checked.snippets:
        rows = list(checked.snippets.items())
        blocks.append(Block("how those rows begin", ("row", "text"), rows))
    return blocks


def _cell(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    if name in ("row", "like"):
        return str(value)  # a row's name, not a quantity
    return value if isinstance(value, str | int | float | None) else str(value)


def _verdict(checked: Checked) -> str:
    said = [f"Fatal: {', '.join(checked.fatal)}." if checked.fatal else "Nothing fatal."]
    if checked.benchmarks:
        items = ", ".join(f"{name} ({count:,} items)" for name, count in sorted(checked.benchmarks.items()))
        said.append(f"Benchmarks looked for: {items}.")
    return " ".join([*said, f"Not checked: {'; '.join(checked.not_checked)}."])
