"""Configs that train on our shards elsewhere, and the rows beside them where a tool cannot read the shards.

The configs name the shards where they are, by paths relative to the folder that is written, so that a project can be
copied whole to another machine. Rows are written anew only where they must be: LLaMA-Factory does not read messages
as JSON, and no tool can select rows as `model.where` does. They are read and written a few thousand at a time; what has
no form that the tool reads is left out with a reason.

    export/trl/sft.yaml                    output/sft            (the trained model, when the tool has run)
    export/llamafactory/sft.yaml           dataset_info.json  data/sft.parquet  left_out.parquet
"""

from __future__ import annotations

import io
import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from ruamel.yaml import YAML

from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import atomic, shard_rows
from corpusforge.train import elsewhere, sharegpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from corpusforge.train._config import ModelConfig

MARK: Final = "# Written by `corpusforge export"
DATA: Final = "data"
_ROWS: Final = 2_000  # read and written at once
_TURN: Final = pa.struct([("role", pa.string()), ("content", pa.string())])
_SHAREGPT: Final = {
    "sft": pa.schema({"messages": pa.list_(_TURN), "tools": pa.string()}),
    "dpo": pa.schema({"messages": pa.list_(_TURN), "chosen": _TURN, "rejected": _TURN, "tools": pa.string()}),
}
LEFT_OUT: Final = pa.schema({"row_id": pa.string(), "stage": pa.string(), "reason": pa.string()})


def shard_files(shards: Path, stage: str) -> list[Path]:
    """The training shards of a stage, none when there are no such rows.

    Raises ProjectError when `shards` holds no shards, or not all that its manifest lists.
    """
    paths = shard_rows.files(shards, elsewhere.KINDS[stage], "train")
    missing = [path.name for path in paths if not path.exists()]
    if missing:
        raise ProjectError(f"{shards}: {missing[0]} is missing", hint="run `dvc repro shard`, or `dvc checkout`")
    return paths


def any_row(files: list[Path], where: Mapping[str, list[str]]) -> bool:
    """Whether `where` selects a row of Parquet files."""
    return any(rows.num_rows for rows in _batches(files, ["row_id"], where))


def count(files: list[Path], column: str | None = None) -> int:
    """Rows of Parquet files; with `column`, those that are not null there."""
    total = 0
    for path in files:
        with _opened(path) as file:
            if column is None:
                total += file.metadata.num_rows
            else:
                batches = file.iter_batches(batch_size=_ROWS, columns=[column])
                total += sum(len(batch) - batch.column(0).null_count for batch in batches)
    return total


def select(
    files: list[Path], stage: str, where: Mapping[str, list[str]], out: Path, *, without_tools: bool = False
) -> tuple[int, list[dict[str, str]]]:
    """Write the rows that `where` selects, in the shards' own form; returns how many, and the rows (LEFT_OUT) dropped.

    `without_tools` drops rows with tools.
    """
    columns = [*shard_rows.FORM[elsewhere.KINDS[stage]], "row_id"]
    left_out: list[dict[str, str]] = []
    with _Output(out, None) as output:
        for rows in _batches(files, columns, where):
            if without_tools:
                gone = rows.filter(pc.is_valid(rows["tools"]))["row_id"].to_pylist()
                left_out += [{"row_id": name, "stage": stage, "reason": "tools"} for name in gone]
                rows = rows.filter(pc.is_null(rows["tools"]))
            output.write(rows)
    return output.rows, left_out


def convert(
    files: list[Path], stage: str, where: Mapping[str, list[str]], out: Path
) -> tuple[int, list[dict[str, str]]]:
    """Write rows in the form of LLaMA-Factory; returns how many, and the rows (LEFT_OUT) without such a form."""
    columns = [*shard_rows.FORM[elsewhere.KINDS[stage]], "row_id"]
    left_out = []
    with _Output(out, _SHAREGPT[stage]) as output:
        for rows in _batches(files, columns, where):
            made = []
            for row in _decoded(rows):
                try:
                    made.append(_said(row, stage) | {"tools": sharegpt.tools(row["tools"])})
                except sharegpt.NoForm as why:
                    left_out.append({"row_id": row["row_id"], "stage": stage, "reason": why.reason})
            output.write(pa.Table.from_pylist(made, schema=_SHAREGPT[stage]))
    return output.rows, left_out


def _said(row: Mapping[str, Any], stage: str) -> dict[str, Any]:
    if stage == "dpo":
        return sharegpt.pair(row["prompt"], row["chosen"], row["rejected"])
    return {"messages": sharegpt.conversation(row["messages"])}


def _batches(files: list[Path], columns: list[str], where: Mapping[str, list[str]]) -> Iterator[pa.Table]:
    """The rows that `where` selects, some at a time."""
    read = list(dict.fromkeys([*columns, *sorted(where)]))
    for path in files:
        with _opened(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS, columns=read):
                rows = pa.Table.from_batches([batch])
                for column, values in sorted(where.items()):
                    rows = rows.filter(pc.is_in(rows[column], pa.array(values, pa.string())))
                if rows.num_rows:
                    yield rows.select(columns)


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """A shard. Raises ProjectError when it is damaged, or not of the form that its manifest says."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, KeyError, OSError) as error:
        raise ProjectError(
            f"{path} cannot be read ({type(error).__name__})", hint="run `dvc checkout`, or write the shards again"
        ) from error


def _decoded(rows: pa.Table) -> Iterator[dict[str, Any]]:
    """Rows as Python values, messages as dicts."""
    for row in rows.to_pylist():
        yield {
            name: [json.loads(text) for text in value] if isinstance(value, list) else value
            for name, value in row.items()
        }


class _Output:
    """A Parquet file that is whole or not there; its schema is that of the first rows where none is given."""

    def __init__(self, path: Path, schema: pa.Schema | None) -> None:
        self.path, self.schema, self.rows = path, schema, 0
        self._temporary = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
        self._writer: pq.ParquetWriter | None = None

    def __enter__(self) -> _Output:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return self

    def write(self, rows: pa.Table) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._temporary, self.schema or rows.schema, compression="zstd")
        self._writer.write_table(rows)
        self.rows += rows.num_rows

    def __exit__(self, kind: object, *_: object) -> None:
        if self._writer is not None:
            self._writer.close()
        if kind is None and self.rows:
            self._temporary.replace(self.path)
        self._temporary.unlink(missing_ok=True)


def model_name(root: Path, config: ModelConfig, folder: Path) -> str:
    """The model that params name, as the other tool must write it in a config in `folder`.

    Raises ProjectError when it is not there, ConfigError when no other tool can load it.
    """
    from corpusforge.train._config import SCRATCH, module_of
    from corpusforge.train.model import locate

    if config.name == SCRATCH:
        base = root / "data" / "train_sft" / "base"
        if not base.is_dir():
            raise ProjectError(
                "model.name is from_scratch, and train_sft has not made that model yet",
                hint="run `dvc repro train_sft`, or name a model in params.yaml",
            )
        return relative(base, folder)
    if module_of(config.name) or config.name.endswith(".gguf"):
        raise ConfigError(
            f"model.name: {config.name} is a file that only CorpusForge loads", hint="name a folder, or one on the hub"
        )
    place, _ = locate(config.name, root)
    return relative(Path(place), folder) if Path(place).is_absolute() else place


def assistant_only(root: Path, config: ModelConfig, options: Mapping[str, Any]) -> bool | None:
    """Whether `train_sft` would train on the assistant's turns alone; None where the tokenizer is not at hand."""
    from corpusforge.train import model, preflight
    from corpusforge.train._config import SCRATCH

    if config.name == SCRATCH:
        return True
    if not Path(model.locate(config.name, root)[0]).is_absolute():
        return None  # on the hub
    try:
        tokenizer = model.load_tokenizer(config.name, root=root)
        model.use_template(tokenizer, config, root)
        return preflight.assistant_only(tokenizer, options)
    except ImportError:
        return None  # what training needs is not installed here


def relative(path: Path, folder: Path) -> str:
    """`path` as seen from `folder`; begins with `.`, so that no tool takes it for a name on the hub."""
    seen = Path(os.path.relpath(path.absolute(), folder.absolute())).as_posix()
    return seen if seen.startswith(".") else f"./{seen}"


def write_config(path: Path, options: Mapping[str, Any], header: list[str]) -> None:
    """Write a config as YAML below comment lines. Raises ConfigError when the file is there and not ours."""
    text = io.StringIO()
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.sort_base_mapping_type_on_output, yaml.width = False, False, 4096
    yaml.representer.add_representer(float, _float)
    yaml.dump(dict(options), text)
    _ours(path, path.exists() and not path.read_text(encoding="utf-8", errors="replace").startswith(MARK))
    atomic.write_text(path, "".join(f"# {line}".rstrip() + "\n" for line in header) + "\n" + text.getvalue())


def _float(representer: Any, value: float) -> Any:
    """`2.0e-05`: without the point, YAML 1.1 (which these tools read) takes it for text."""
    mantissa, exponent, power = repr(value).partition("e")
    text = mantissa + ("" if not exponent or "." in mantissa else ".0") + exponent + power
    return representer.represent_scalar("tag:yaml.org,2002:float", text)


def write_dataset_info(path: Path, entries: Mapping[str, Any]) -> None:
    """Write LLaMA-Factory's dataset_info.json. Raises ConfigError when the file is there and not ours."""
    held = _read_json(path) if path.exists() else {}
    _ours(path, held is None or any(not name.startswith(elsewhere.dataset_name("")) for name in held))
    atomic.write_json(path, {**(held or {}), **entries})


def write_left_out(path: Path, rows: list[dict[str, str]]) -> None:
    """Write the rows that were left out, or remove the file where there are none."""
    if not rows:
        path.unlink(missing_ok=True)
        return
    ordered = sorted(rows, key=lambda row: (row["stage"], row["row_id"]))
    with _Output(path, LEFT_OUT) as output:
        output.write(pa.Table.from_pylist(ordered, schema=LEFT_OUT))


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return held if isinstance(held, dict) else None


def _ours(path: Path, foreign: bool) -> None:
    if foreign:
        raise ConfigError(f"{path} was not written by export", hint="name another folder, or remove the file")
