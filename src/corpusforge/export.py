"""export: the config files with which TRL's commands, axolotl or LLaMA-Factory train on a project's shards.

The shards are the interface: who trains with another tool keeps the curation, and the config says the same as
`train_sft`, `train_dpo` and `train_grpo` in params.yaml. What a tool has no option for is listed, in the file and in
the result.

    $ corpusforge export --for trl
    export/trl: configs for trl
    stage  rows    data    run in export/trl
    sft    11,204  shards  trl sft --config sft.yaml
    dpo     2,110  shards  trl dpo --config dpo.yaml
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from corpusforge.errors import ConfigError, ProjectError
from corpusforge.io import export as files
from corpusforge.io.shard_rows import FORM
from corpusforge.present import Block, Showable, Shown
from corpusforge.train import elsewhere
from corpusforge.train.sharegpt import REASONS

if TYPE_CHECKING:
    from corpusforge.project import Project
    from corpusforge.train.elsewhere import Tool, Written

FOLDER: Final = "export"
ALL: Final = "all"
STAGES: Final = tuple(elsewhere.KINDS)
WHY: Final = {**REASONS, "tools": "TRL's GRPO trainer does not show a row's tools to the model"}
"""Why rows are left out."""


@dataclass(frozen=True)
class StageExport:
    """One stage's config."""

    stage: str
    config: str
    """File name, in the folder of the export."""
    rows: int
    """Lines that the tool will read."""
    data: str
    """`shards`, or the file beside the config that holds the rows in another form."""
    command: str
    """To type in the folder of the export."""
    first: str = ""
    """A command to type before it, after the stage before."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Rows that have no form that the tool reads, per reason."""
    lost: list[str] = field(default_factory=list)
    """Settings that the tool has no option for."""
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, repr=False)
class Exported(Showable):
    """What was written, and what to type next."""

    tool: str
    folder: str
    stages: list[StageExport]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)

    def shown(self) -> Shown:
        """The configs, then what was left out or lost."""
        rows = [(one.stage, one.rows, one.data, one.command) for one in self.stages]
        blocks = [Block("", ("stage", "rows", "data", f"run in {self.folder}"), rows)]
        left = [(o.stage, n, reason, WHY[reason]) for o in self.stages for reason, n in o.left_out.items()]
        if left:
            note = "left_out.parquet lists them"
            blocks.append(Block("left out", ("stage", "rows", "reason", "why"), left, note))
        said = [
            f"{one.stage}: merge the adapter of sft first, as {one.config} says" for one in self.stages if one.first
        ]
        said += [f"{one.stage}: no option for {', '.join(one.lost)}" for one in self.stages if one.lost]
        said += [f"{one.stage}: {note}" for one in self.stages for note in one.notes]
        if said:
            blocks.append(Block("note", note="\n".join(said)))
        return Shown(f"{self.folder}: configs for {self.tool}", blocks)


def export(
    tool: str,
    project: Project,
    folder: str | Path | None = None,
    *,
    stage: str = ALL,
    shards: str | Path | None = None,
) -> Exported:
    """Write the configs of one tool (trl, axolotl, llamafactory) into `folder`, by default export/<tool>.

    `stage` is sft, dpo, grpo, or all that the shards have rows for; `shards` a folder of shards, by default the
    project's. Raises ConfigError for an unknown tool or stage, or settings that the tool cannot take; ProjectError
    when there are no shards, no rows of the stage, or no model.
    """
    _known("tool", tool, tuple(elsewhere.TOOLS))
    _known("stage", stage, (*STAGES, ALL))
    source = Path(shards) if shards is not None else project.data("shard")
    target = Path(folder) if folder is not None else project.root / FOLDER / tool
    if target.is_file():
        raise ConfigError(f"{target} is a file", hint="name a folder")
    made = _Export(tool, project, source, target, _stages(project, source, tool, stage))
    return Exported(tool, _shown_path(target, project), made.write())


def _known(what: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        near = difflib.get_close_matches(given, known, 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
        raise ConfigError(f"no {what} {given!r}", hint=hint)


def _stages(project: Project, shards: Path, tool: str, stage: str) -> tuple[str, ...]:
    """The stages to write. Raises ConfigError when the tool has no such stage, ProjectError when there are no rows."""
    has = elsewhere.TOOLS[tool].stages
    if stage not in (*has, ALL):
        able = " or ".join(f"`--for {name}`" for name, one in elsewhere.TOOLS.items() if stage in one.stages)
        raise ConfigError(f"{elsewhere.TOOLS[tool].name} has no {stage.upper()}", hint=f"export it {able}")
    wanted = has if stage == ALL else (stage,)
    where = project.params.model.where
    found = tuple(one for one in wanted if files.any_row(files.shard_files(shards, one), where))
    if not found:
        kinds = " or ".join(elsewhere.KINDS[one] for one in wanted)
        which = " that model.where selects" if where else ""
        raise ProjectError(
            f"{shards} holds no training rows of kind {kinds}{which}", hint="`corpusforge inspect` shows what is there"
        )
    return found


def _shown_path(path: Path, project: Project) -> str:
    place = path.resolve()
    inside = place.is_relative_to(project.root.resolve())
    return place.relative_to(project.root.resolve()).as_posix() if inside else str(path)


@dataclass(frozen=True)
class _Export:
    """One run of export."""

    tool: str
    project: Project
    shards: Path
    folder: Path
    stages: tuple[str, ...]

    def write(self) -> list[StageExport]:
        done: list[StageExport] = []
        left_out: list[dict[str, str]] = []
        jobs = {stage: self._job(stage) for stage in self.stages}
        options = {stage: self._tool.options(job) for stage, job in jobs.items()}  # refuses before it writes
        for stage in self.stages:
            rows, lines = self._data(stage)
            left_out += lines
            counts = Counter(line["reason"] for line in lines)
            one = self._described(stage, rows, dict(sorted(counts.items())), options[stage])
            files.write_config(self.folder / one.config, options[stage].options, self._header(one))
            done.append(one)
        if not self._tool.reads_shards:
            entries = {elsewhere.dataset_name(s): elsewhere.dataset_info(s, f"{files.DATA}/{s}.parquet") for s in jobs}
            files.write_dataset_info(self.folder / "dataset_info.json", entries)
        files.write_left_out(self.folder / "left_out.parquet", left_out)
        return done

    @property
    def _tool(self) -> Tool:
        return elsewhere.TOOLS[self.tool]

    @cached_property
    def _marked(self) -> bool | None:
        """Whether TRL's SFT can and should tell the assistant's turns apart; None where that is not known here."""
        params = self.project.params
        options = params.train_sft.trl if params.train_sft else {}
        if "assistant_only_loss" in options or self.tool != "trl":
            return bool(options.get("assistant_only_loss", True))
        return files.assistant_only(self.project.root, params.model, options)

    def _rewritten(self, stage: str) -> bool:
        """Whether rows are written beside the config."""
        return not self._tool.reads_shards or bool(self.project.params.model.where) or self._without_tools(stage)

    def _without_tools(self, stage: str) -> bool:
        """Whether rows with tools must go, as in `train_grpo`."""
        block = self.project.params.train_grpo
        drop = stage == "grpo" and (block is None or block.lost_field == "drop")
        return drop and files.count(files.shard_files(self.shards, stage), "tools") > 0

    @property
    def _layered(self) -> bool:
        """Whether `train_grpo` rewards more than the outcome: the tools are given the outcome alone."""
        block = self.project.params.train_grpo
        return block is not None and block.layered

    def _job(self, stage: str) -> elsewhere.Job:
        config = self.project.params.model
        block = getattr(self.project.params, f"train_{stage}")
        model, tuned = self._start(stage)
        template = self.project.root / config.chat_template if config.chat_template else None
        trl = block.trl if block else {}
        return elsewhere.Job(
            stage=stage,
            model=model,
            files=tuple(files.relative(path, self.folder) for path in self._read(stage)),
            columns=FORM[elsewhere.KINDS[stage]],
            config=config,
            options=trl,
            cut=block.cut if block else "drop",
            assistant_only=stage != "sft" or self._marked is not False,
            template=files.relative(template, self.folder) if template else "",
            tuned=tuned,
        )

    def _read(self, stage: str) -> list[Path]:
        """The files that the tool reads."""
        if self._rewritten(stage):
            return [self.folder / files.DATA / f"{stage}.parquet"]
        return files.shard_files(self.shards, stage)

    def _start(self, stage: str) -> tuple[str, str]:
        """The model that a stage starts from, and the folder in which `sft` of this export leaves it tuned, if it does.

        A stage that is exported without sft starts from the project's own tuned model, if there is one.
        """
        tuned = self.project.data("train_sft") / "model"
        if stage != "sft" and "sft" not in self.stages and tuned.is_dir():
            return files.relative(tuned, self.folder), ""
        model = files.model_name(self.project.root, self.project.params.model, self.folder)
        return model, "./output/sft" if stage != "sft" and "sft" in self.stages else ""

    def _data(self, stage: str) -> tuple[int, list[dict[str, str]]]:
        """Write rows where the tool cannot read the shards; returns how many it will read, and those left out."""
        where, paths = self.project.params.model.where, files.shard_files(self.shards, stage)
        out = self._read(stage)[0]
        left: list[dict[str, str]] = []
        if not self._tool.reads_shards:
            rows, left = files.convert(paths, stage, where, out)
        elif self._rewritten(stage):
            rows, left = files.select(paths, stage, where, out, without_tools=self._without_tools(stage))
        else:
            rows = files.count(paths)
        if not rows:
            hint = "docs/training-elsewhere.md says what it reads; export another stage, or for another tool"
            raise ProjectError(
                f"{stage}: none of {len(left):,} rows has a form that {self._tool.name} reads", hint=hint
            )
        return rows, left

    def _described(self, stage: str, rows: int, left_out: dict[str, int], written: Written) -> StageExport:
        notes = []
        if self.tool == "trl" and stage == "sft" and self._marked is None:
            notes.append("TRL stops where the chat template marks no assistant turns: set assistant_only_loss to false")
        return StageExport(
            stage=stage,
            config=f"{stage}.yaml",
            rows=rows,
            data=f"{files.DATA}/{stage}.parquet" if self._rewritten(stage) else "shards",
            command=self._tool.command.format(stage=stage),
            left_out=left_out,
            first=written.first,
            lost=[*written.lost, *(["train_grpo.rewards"] if stage == "grpo" and self._layered else [])],
            notes=notes,
        )

    def _header(self, one: StageExport) -> list[str]:
        lines = [f"Written by `corpusforge export --for {self.tool}`. In this folder: {one.command}"]
        if one.first:
            lines += ["First, when sft.yaml has been trained:", one.first]
        if one.data == "shards":
            lines.append(f"Reads the shards as they are: {one.rows:,} rows. Paths are relative to this folder.")
        else:
            lines.append(
                f"Reads {one.data}, written from the shards: {one.rows:,} rows. Export again when they change."
            )
        if one.left_out:
            counts = ", ".join(f"{reason} {count:,}" for reason, count in one.left_out.items())
            lines.append(f"Left out, and listed in left_out.parquet: {counts}")
        if one.lost:
            lines.append(f"Not carried over from params.yaml, for want of an option: {', '.join(one.lost)}")
        if self.tool == "llamafactory":
            lines.append("`template: NAME` takes LLaMA-Factory's own template of your model; else it is read from the")
            lines.append("tokenizer, with tools written in LLaMA-Factory's default way.")
        return lines + one.notes
