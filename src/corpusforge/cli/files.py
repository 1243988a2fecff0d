"""Commands on plain files, which need no project: check, verify, inspect, dedupe, index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from corpusforge.cli import output
from corpusforge.cli.options import IdColumn, Others, TextColumn, above_zero, answer, pairs, values


def check(
    path: Annotated[str, typer.Argument(help="A file, folder or glob.")],
    tokenizer: Annotated[str, typer.Option(help="Count tokens with it (a tokenizer.json); else chars/4.")] = "",
    benchmarks: Annotated[Path | None, typer.Option(help="Folder of data files that must not be in the rows.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens that the trainer looks at (1024).")] = None,
    field: Annotated[list[str] | None, typer.Option(metavar="NAME=FIELD", help="Which field is what.")] = None,
    shape: Annotated[str, typer.Option(help="What a record is; docs/shapes.md lists the shapes.")] = "auto",
    params: Annotated[Path | None, typer.Option(help="File with a `check:` block; fatal findings and limits.")] = None,
    show: Annotated[bool, typer.Option("--show", help="Show how the rows of the worst pairs begin.")] = False,
    json: output.Json = False,
) -> None:
    """Say what is wrong with a data file; needs no project. Exit code 1 when something fatal was found."""
    from corpusforge.check import check as look
    from corpusforge.check import load_check

    options: dict[str, Any] = {"counter": tokenizer} if tokenizer else {}
    if max_length is not None:
        options["max_length"] = max_length
    source = {"fields": pairs(field or []), "shape": shape}
    config = load_check(params) if params else None
    with output.progress() as say:
        found = look(path, benchmarks=benchmarks, source=source, config=config, show=show, progress=say, **options)
    output.emit(found, json)
    answer(found.passed)


def verify(
    tasks: Annotated[list[str], typer.Argument(help="Files, folders or globs, in any shape of tasks.")],
    limit: Annotated[int | None, typer.Option(min=1, help="Try the first so many tasks of each kind.")] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Runs of the same answer, which must agree.")] = 3,
    mutants: Annotated[int, typer.Option(min=0, help="Wrong answers made from each right one.")] = 3,
    seconds: Annotated[float, typer.Option(callback=above_zero, help="Longest that a right answer may take.")] = 15.0,
    field: Annotated[list[str] | None, typer.Option(metavar="NAME=FIELD", help="Which field is what.")] = None,
    shape: Annotated[str, typer.Option(help="What a record is; docs/shapes.md lists the shapes.")] = "auto",
    json: output.Json = False,
) -> None:
    """Say how healthy verifiers of tasks are; needs no project. Exit code 1 when one is not, or none can be tried."""
    from corpusforge.api import verify_tasks

    options: dict[str, Any] = {"repeats": repeats, "mutants": mutants, "seconds": seconds}
    source = {"fields": pairs(field or []), "shape": shape}
    with output.progress() as say:
        found = verify_tasks(tasks, source=source, limit=limit, progress=say, **options)
    output.emit(found, json)
    answer(found.healthy and found.unclear < found.tasks)


def inspect(
    path: Annotated[Path, typer.Argument(help="A Parquet file, a folder of them, or any data file.")],
    sample: Annotated[int, typer.Option(min=0, help="Rows shown of each table.")] = 3,
    row: Annotated[str, typer.Option(help="Show only the rows with this id, whole.")] = "",
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Groups that dedupe removed: a project, data/dedupe, or its --out DIR.")
    ] = False,
    top: Annotated[int, typer.Option(min=1, help="Groups listed, or rows of --cluster shown.")] = 10,
    cluster: Annotated[str, typer.Option(metavar="ID", help="Show one group, by a row or cluster of it.")] = "",
    texts: Annotated[
        list[str] | None, typer.Option(help="Files that `corpusforge dedupe` was given; --text, --id: columns.")
    ] = None,
    against: Annotated[list[str] | None, typer.Option(help="What it was told was there already.")] = None,
    text: TextColumn = "text",
    own_id: IdColumn = None,
    json: output.Json = False,
) -> None:
    """Describe shards or any other table: columns, figures, samples; or with --duplicates, what dedupe removed."""
    if duplicates or cluster:
        from corpusforge.api import duplicates as groups

        columns = (text, own_id)
        found = groups(
            path, top=top, cluster=cluster or None, texts=texts or (), against=against or (), columns=columns
        )
        output.emit(found, json)
        return
    from corpusforge.inspect import inspect as look

    output.emit(look(path, sample=sample, row=row or None), json)


def dedupe(
    new: Annotated[list[str], typer.Argument(help="Files, folders or globs; Parquet with a text column, or any form.")],
    against: Annotated[list[str] | None, typer.Option(help="What is there already: files, or an index.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the rows that stay, the ledger and the figures.")] = Path(
        "deduped"
    ),
    threshold: Annotated[float, typer.Option(help="Jaccard similarity from which a row is a near duplicate.")] = 0.8,
    text: TextColumn = "text",
    own_id: IdColumn = None,
    option: Others = None,
    json: output.Json = False,
) -> None:
    """Write what is new in files: no row that repeats another, or one that is there already."""
    from corpusforge.api import dedupe_files

    options = {"threshold": threshold, **values(option)}
    output.emit(dedupe_files(new, out, against=against or (), text=text, own_id=own_id, **options), json)


def index(
    rows: Annotated[list[str], typer.Argument(help="Files as for `dedupe`, or the rows that a stage wrote.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to.")],
    threshold: Annotated[float, typer.Option(help="As it will be used: the bands follow from it.")] = 0.8,
    text: TextColumn = "text",
    own_id: IdColumn = None,
    option: Others = None,
    json: output.Json = False,
) -> None:
    """Write an index of rows, for `dedupe --against`: hashes, never a text."""
    from corpusforge.api import index_files

    options = {"threshold": threshold, **values(option)}
    output.emit(index_files(rows, folder, text=text, own_id=own_id, **options), json)
