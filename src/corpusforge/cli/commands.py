"""Every command of `corpusforge`, in the order of `--help`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from corpusforge.cli import files, output
from corpusforge.cli.options import answer

if TYPE_CHECKING:
    from corpusforge.project import Project

app = typer.Typer(
    name="corpusforge",
    help="Curate post-training data: every row can say why it is there or gone.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
key = typer.Typer(help="Make a scrubbing key, or tell two apart.", no_args_is_help=True)
Here = Annotated[Path, typer.Option("--project", help="The project: its folder, or one below it.")]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(version("corpusforge"))
        raise typer.Exit


@app.callback()
def corpusforge(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Curate post-training data: every row can say why it is there or gone."""


for command in (files.check, files.verify, files.inspect, files.dedupe, files.index):
    app.command()(command)


@app.command()
def licences(
    place: Annotated[Path, typer.Argument(help="A project, a release, or a folder of shards.")] = Path(),
    json: output.Json = False,
) -> None:
    """Tell under which terms a corpus stands: rows and tokens per source and licence, who said so, what was refused."""
    from corpusforge.licensing import licences as look

    output.emit(look(place), json)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="The new project's folder.")],
    recipe: Annotated[
        str, typer.Option(help="Lay down this recipe: demo (the default), math_rlvr, chat_preference, public_sets.")
    ] = "",
    source: Annotated[Path | None, typer.Option("--from", help="Start from this data file instead.")] = None,
    new_key: Annotated[bool, typer.Option("--new-key", help="Make a scrubbing key outside git.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Use a folder that is not empty; replaces no file.")] = False,
    json: output.Json = False,
) -> None:
    """Make a project: params.yaml, dvc.yaml, a git repository and DVC."""
    from corpusforge.init import init as lay_down

    if recipe and source:
        raise typer.BadParameter("--recipe and --from exclude one another")
    public = source is None and recipe in ("", "demo")
    new_key = new_key or (not public and _wants_key())
    made = lay_down(folder, recipe=recipe or None, source=source, new_key=new_key, force=force)
    output.emit(made, json)


@app.command()
def trace(
    identifier: Annotated[str, typer.Argument(help="A row id, or your own id of a record.")],
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Tell the whole life of a row. Exit code 1 when no row has the id."""
    from corpusforge.trace import trace as follow

    found = follow(identifier, project)
    output.emit(found, json)
    answer(bool(found))


@app.command()
def sources(
    benchmarks: Annotated[bool, typer.Option("--benchmarks", help="Read the benchmarks, too.")] = False,
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Say what became of every source's records in the last ingest. Exit code 1 when a line does not add up."""
    from corpusforge.api import sources as look

    found = look(project, benchmarks=benchmarks)
    output.emit(found, json)
    answer(found.adds_up)


@app.command("scrub-report")
def scrub_report(
    project: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="The project: its folder, or one below it.")
    ] = Path(),
    rows: Annotated[int, typer.Option(min=0, help="Rows searched again for what may be left.")] = 500,
    json: output.Json = False,
) -> None:
    """Say what scrub replaced, per entity, source and field, and estimate what it left."""
    from corpusforge.api import scrub_report as look

    output.emit(look(project, rows=rows), json)


@app.command()
def diff(
    a: Annotated[Path, typer.Argument(help="A project, a release, or a folder of shards.")],
    b: Annotated[Path, typer.Argument(help="Another.")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 1 when there is a difference.")] = False,
    json: output.Json = False,
) -> None:
    """Say what changed between two builds, row by row."""
    from corpusforge.diff import diff as compare

    found = compare(a, b)
    output.emit(found, json)
    if exit_code:
        answer(found.same)


@app.command()
def forget(
    record_id: Annotated[list[str] | None, typer.Option("--record-id", help="A row id, or your own id.")] = None,
    source: Annotated[str, typer.Option(help="All rows of this source.")] = "",
    match: Annotated[str, typer.Option(help="Every record that holds this text, case aside.")] = "",
    regex: Annotated[bool, typer.Option("--regex", help="--match is a regular expression (RE2).")] = False,
    why: Annotated[str, typer.Option(help="Kept in git: a case number, no personal data.")] = "",
    by: Annotated[str, typer.Option(help="Who decided; else git's user.name.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go; write nothing.")] = False,
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Let the next build forget rows, what was made from them, and their copies; say who held them."""
    from corpusforge.forget import forget as let_go
    from corpusforge.forget import on_record

    here = _find(project)
    if not (record_id or source or match):
        output.emit(on_record(here), json)
        return
    asked: dict[str, Any] = {"record_id": record_id or [], "source": source, "match": match, "regex": regex}
    output.emit(let_go(here, **asked, why=why, by=by, dry_run=dry_run), json)


@app.command()
def overrule(
    action: Annotated[str, typer.Argument(help="keep or drop; nothing: what is on record.")] = "",
    row: Annotated[list[str] | None, typer.Argument(metavar="ID", help="Row ids, or your own ids.")] = None,
    why: Annotated[str, typer.Option(help="Kept in git, with the name.")] = "",
    by: Annotated[str, typer.Option(help="Who decided; else git's user.name.")] = "",
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Keep or drop rows whatever dedupe makes of them, from the next build on (overrides.csv)."""
    from corpusforge.api import overrule as rule

    output.emit(rule(action, row or [], project, why=why, by=by), json)


@app.command()
def stage(name: Annotated[str, typer.Argument(help="A stage of dvc.yaml.")], json: output.Json = False) -> None:
    """Run one stage of the project here; dvc.yaml calls this. It dies with whoever started it."""
    from corpusforge import graph
    from corpusforge.engine.lifeline import die_with_parent
    from corpusforge.project import Project
    from corpusforge.shell import run_stage

    if name not in graph.NAMES:
        raise typer.BadParameter(f"no stage {name!r}; the stages are {', '.join(graph.NAMES)}", param_hint="NAME")
    die_with_parent()
    metrics = run_stage(Project.find("."), name)
    output.emit(metrics if json else output.counts(name, metrics), json)


@app.command()
def sync(project: Here = Path(), json: output.Json = False) -> None:
    """Bring methods.lock.json and the paths that dvc.yaml watches up to date."""
    from corpusforge import methods

    changed = methods.sync(_find(project))
    output.emit({"changed": changed} if json else "\n".join(changed) or "nothing to do", json)


@app.command()
def publish(project: Here = Path(), json: output.Json = False) -> None:
    """Make the build that passed the gate the current release."""
    from corpusforge.io import releases

    output.emit(releases.publish(_find(project)), json)


@app.command()
def rollback(
    build: Annotated[str, typer.Argument(help="A release, or the beginning of its name; else the one before.")] = "",
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Point `current` to an earlier release."""
    from corpusforge.io import releases

    output.emit(releases.rollback(_find(project), build or None), json)


@app.command()
def releases(project: Here = Path(), json: output.Json = False) -> None:
    """List the releases."""
    from corpusforge.io import releases as published

    found = published.releases(_find(project))
    output.emit(found if json else output.listing("release", found), json)


@app.command()
def accept(project: Here = Path(), json: output.Json = False) -> None:
    """Make the current release the baseline (baseline.json) that later builds are compared with."""
    from corpusforge.io import releases

    accepted = releases.accept(_find(project))
    tried = f"; rollouts.parquet: {accepted['rollouts']:,} tasks" if "rollouts" in accepted else ""
    output.emit(accepted if json else f"baseline.json: {accepted.get('build')}{tried}; commit it", json)


@app.command()
def evaluate(
    model: Annotated[
        str,
        typer.Argument(help="A folder, a name on the hub, a GGUF file, or package:module/file; else the last build's."),
    ] = "",
    out: Annotated[Path | None, typer.Option(help="Write the figures to this file, too (JSON).")] = None,
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Judge any model on the project's held-out and legacy items, or show how the build's own models did."""
    from corpusforge.api import evaluate as judge
    from corpusforge.io import atomic

    found = judge(model or None, project)
    if out:
        atomic.write_json(out.expanduser().absolute(), found.to_dict())
    output.emit(found, json)


@app.command()
def gate(
    model: Annotated[str, typer.Argument(help="A model, as for `evaluate`; else the models of the build.")] = "",
    role: Annotated[str, typer.Option("--as", metavar="ROLE", help="The accepted model: sft, dpo, grpo.")] = "sft",
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Say whether models are worse than the accepted ones. Exit code 1 when one is."""
    from corpusforge.api import gate as judge

    verdict = judge(model or None, project, role=role)
    output.emit(verdict, json)
    answer(verdict.passed)


@app.command()
def export(
    tool: Annotated[str, typer.Option("--for", metavar="TOOL", help="Who trains: trl, axolotl or llamafactory.")],
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="Where to; export/TOOL by default.")] = None,
    stage: Annotated[str, typer.Option(help="sft, dpo, grpo, or all that the shards have rows for.")] = "all",
    shards: Annotated[Path | None, typer.Option(help="A folder of shards, such as releases/current/shards.")] = None,
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Write the configs with which another trainer trains on the shards."""
    from corpusforge.export import export as write

    output.emit(write(tool, _find(project), folder, stage=stage, shards=shards), json)


@app.command()
def nightly(
    accept: Annotated[bool, typer.Option("--accept", help="Make a published build the new baseline.")] = False,
    on_failure: Annotated[str, typer.Option(help="A command or web address that gets the JSON when it fails.")] = "",
    project: Here = Path(),
    json: Annotated[bool, typer.Option("--json", help="Print indented JSON instead of one line.")] = False,
) -> None:
    """Rebuild what changed, gate it, publish it, and say so in one line of JSON."""
    from corpusforge.nightly import exit_code
    from corpusforge.nightly import nightly as rebuild

    result = rebuild(_find(project), accept=accept, on_failure=on_failure or None)
    output.emit(result, True) if json else output.line(result)
    raise typer.Exit(exit_code(result))


@app.command()
def doctor(project: Here = Path(), json: output.Json = False) -> None:
    """Look whether everything is there that a build needs. Exit code 1 when something is not."""
    from corpusforge.doctor import doctor as look

    found = look(project)
    output.emit(found, json)
    answer(found.healthy)


app.add_typer(key, name="key")


@key.command("new")
def key_new(
    path: Annotated[Path, typer.Argument(help="Where to, outside git.")] = Path("~/.config/corpusforge/key"),
    json: output.Json = False,
) -> None:
    """Make a scrubbing key, readable by you alone; never replaces one."""
    from corpusforge.io.keys import load_key, new_key
    from corpusforge.pii.keys import fingerprint

    made = new_key(path)
    found = {"path": str(made), "fingerprint": fingerprint(load_key(f"file:{made.resolve()}", Path("/nowhere")))}
    written = path if str(path).startswith("~") else made.resolve()
    output.emit(
        found if json else f"{made}: {found['fingerprint']}\nunder `scrub:` in params.yaml:\n  key: file:{written}",
        json,
    )


@key.command("fingerprint")
def key_fingerprint(
    where: Annotated[str, typer.Argument(help="env:NAME, file:PATH or public-demo; else what params.yaml names.")] = "",
    project: Here = Path(),
    json: output.Json = False,
) -> None:
    """Print the fingerprint of a key, never the key."""
    from corpusforge.io.keys import load_key
    from corpusforge.pii.keys import fingerprint

    found = _find(project) if not where else None
    name = where or (found.params.scrub.key if found else "")
    print_of = fingerprint(load_key(name, found.root if found else Path("/nowhere")))
    output.emit({"key": name, "fingerprint": print_of} if json else print_of, json)


def _wants_key() -> bool:
    """Ask, on a terminal and where no key is set, whether to make one (or to use the one that is there)."""
    if os.environ.get("CORPUSFORGE_KEY") or not sys.stdin.isatty():
        return False
    return typer.confirm("Keep a scrubbing key in ~/.config/corpusforge/key for this project?", default=True, err=True)


def _find(start: Path) -> Project:
    from corpusforge.project import Project

    return Project.find(start)
