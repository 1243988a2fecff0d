"""Whatever is wrong with a source, the stage ends with one coded error and leaves what was there before."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.io.readers.packing import parquet
from tests.projects import chat, environment, make_project, write_jsonl
from tests.test_pipeline import edit_params

from corpusforge.errors import ConfigError, CorpusForgeError, StorageError
from corpusforge.io import partitions, sources
from corpusforge.io.readers import blocks
from corpusforge.shell import run_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from corpusforge.project import Project

LINES = "".join(json.dumps(chat(n)) + "\n" for n in range(40)).encode()


def declared(project: Project, **source: Any) -> Project:
    """The project with one more source, synced."""
    from corpusforge import methods

    def add(params: Any) -> None:
        params["ingest"]["sources"].append({"license": "MIT", "origin": "human", **source})

    changed = edit_params(project, add)
    methods.sync(changed)
    return changed


def left(project: Project) -> dict[str, bytes]:
    """Every file below data/ and metrics/, hidden ones too."""
    folders = [project.root / "data", project.root / "metrics"]
    return {str(p): p.read_bytes() for folder in folders for p in sorted(folder.rglob("*")) if p.is_file()}


def cut(root: Path) -> dict[str, Any]:
    (root / "raw/cut.jsonl.gz").write_bytes(gzip.compress(LINES, mtime=0)[:-20])
    return {"path": "raw/cut.jsonl.gz"}


def locked_zip(root: Path) -> dict[str, Any]:
    (root / "raw/a.jsonl").write_bytes(b"PK\x03\x04\x14\x00\x01\x00\x08\x00" + b"\x00" * 40)
    return {"path": "raw/a.jsonl"}


def broken_line(root: Path) -> dict[str, Any]:
    (root / "raw/b.jsonl").write_bytes(LINES + b'{"text": "secret wor\n')
    return {"path": "raw/b.jsonl"}


def no_table(root: Path) -> dict[str, Any]:
    (root / "raw/c.parquet").write_bytes(parquet(pa.table({"text": ["a"] * 50}))[:-9])
    return {"path": "raw/c.parquet"}


FAULTS: dict[str, tuple[Callable[[Path], dict[str, Any]], str, str]] = {
    "cut off": (cut, "source", r"raw/cut\.jsonl\.gz is cut off or damaged"),
    "locked zip": (locked_zip, "source", "a zip archive with a password"),
    "no footer": (no_table, "source", r"raw/c\.parquet cannot be read"),
    "no match": (lambda _: {"path": "raw/*.csv"}, "source", r"'raw/\*\.csv' matches no file"),
    "no file": (lambda _: {"path": "raw/gone.jsonl"}, "source", "does not exist"),
    "web": (lambda _: {"path": "http://127.0.0.1:9/a.jsonl"}, "source", "cannot be reached"),
    "bad query": (
        lambda _: {"reader": "sql", "options": {"query": "SELECT nope FROM nowhere"}},
        "source",
        "the query is wrong",
    ),
    "query that fails late": (
        lambda _: {"reader": "sql", "options": {"query": "SELECT 'x' AS text, error('y') AS z FROM range(3)"}},
        "source",
        "the query failed",
    ),
    "no driver": (lambda _: {"path": "s3://bucket/a.jsonl"}, "missing-extra", r"s3:// needs a package"),
    "callable": (
        lambda _: {"reader": "python", "options": {"function": "no_such_module_here:make"}},
        "source",
        "cannot be imported",
    ),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose first stage has run."""
    project = make_project(tmp_path_factory.mktemp("built"), {"desk": [chat(n) for n in range(30)]})
    run_stage(project, "ingest")
    return project


@pytest.fixture
def project(built: Project, tmp_path: Path) -> Project:
    """A copy of it."""
    shutil.copytree(built.root, tmp_path / "p")
    return type(built)(tmp_path / "p")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_has_a_code_and_leaves_nothing(project: Project, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of the sources before it are not left half-written, and the last good output stays as it was."""
    monkeypatch.setitem(sys.modules, "s3fs", None)
    make, code, says = FAULTS[fault]
    before = left(project)
    changed = declared(project, name="faulty", **make(project.root))
    with pytest.raises(CorpusForgeError, match=says) as told:
        run_stage(changed, "ingest")
    assert told.value.code == code
    assert {name for name in left(project) if "metrics" not in name} == {n for n in before if "metrics" not in n}
    assert all(before[name] == data for name, data in left(project).items())


def test_two_sources_of_one_name(project: Project) -> None:
    """Told with the line of params.yaml, before anything is read."""
    with pytest.raises(ConfigError, match=r"params\.yaml:\d+: ingest\.sources.*another is called 'desk' too"):
        _ = declared(project, name="desk", path="raw/desk.jsonl").params


def test_strict_stops_at_the_first_bad_record(project: Project) -> None:
    """Naming file and line, and no word of it."""
    before = left(project)
    changed = declared(project, name="bad", **broken_line(project.root))
    changed = edit_params(changed, lambda params: params["ingest"].update(strict=True))
    with pytest.raises(CorpusForgeError, match=r"raw/b\.jsonl, line 41: broken_json") as told:
        run_stage(changed, "ingest")
    assert told.value.code == "record"
    assert "secret" not in str(told.value)
    assert all(before[name] == data for name, data in left(project).items())


def test_a_source_that_changes_while_it_is_read(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """No row of either version is kept."""
    path = project.root / "raw/desk.jsonl"
    before = left(project)
    real = partitions.make

    def meddling(job: Any) -> Any:
        with path.open("ab") as file:  # a log that grows as fast as it is read
            file.write(LINES)
        return real(job)

    monkeypatch.setenv("CORPUSFORGE_WORKERS", "1")
    monkeypatch.setattr(blocks, "SIZE", len(LINES))
    monkeypatch.setattr(sources, "_LOOK", 10 * LINES.count(b"\n"))
    monkeypatch.setattr(partitions, "make", meddling)
    with pytest.raises(CorpusForgeError, match=r"raw/desk\.jsonl changed while it was read"):
        run_stage(project, "ingest")
    assert all(before[name] == data for name, data in left(project).items())


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True)
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def noise(count: int) -> list[dict[str, Any]]:
    """Conversations that do not pack well."""
    draw = random.Random(7)
    return [chat(n, noise=draw.randbytes(3000).hex()) for n in range(count)]


def test_a_disk_that_fills_up(small_disk: Path, tmp_path: Path) -> None:
    """While rows are written: they are gone, and what was there before is there still."""
    outside = tmp_path / "raw.jsonl"
    write_jsonl(outside, noise(2000))
    project = make_project(small_disk, {"desk": [chat(n) for n in range(30)]}, engine={"partition_rows": 100})
    run_stage(project, "ingest")
    before = left(project)
    changed = declared(project, name="large", path=str(outside))
    with pytest.raises(StorageError, match="ingest: the disk is full"):
        run_stage(changed, "ingest")
    assert all(before[name] == data for name, data in left(project).items())
    assert [p.name for p in (project.root / "data").iterdir()] == ["ingest"]


def test_a_disk_too_small_for_what_is_packed(
    small_disk: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A packed table is unpacked to a temporary file."""
    table = pa.table({"text": [one["noise"] for one in noise(2000)]})
    (project.root / "raw/t.parquet.gz").write_bytes(gzip.compress(parquet(table), mtime=0))
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    with pytest.raises(StorageError, match="the disk is full"):
        run_stage(declared(project, name="large", path="raw/t.parquet.gz"), "ingest")
    assert list(small_disk.iterdir()) == []


LIMITED = """
import resource, signal, sys
from pathlib import Path
from corpusforge.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
sys.exit(main(["stage", "ingest"]))
"""


def test_a_file_that_may_not_grow(project: Project) -> None:
    """A quota or a limit speaks as a full disk does: one error, exit code 3, nothing half-written."""
    write_jsonl(project.root / "raw/large.jsonl", noise(300))
    before = left(project)
    declared(project, name="large", path="raw/large.jsonl")
    run = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=project.root, env=environment(), capture_output=True, text=True
    )
    assert (run.returncode, run.stderr.count("error[storage]")) == (3, 1), run.stderr[-2000:]
    assert all(before[name] == data for name, data in left(project).items())
