"""The cache of a project's dedupe: same bytes with it and without, whatever happened to it; a line says what it was."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from filelock import FileLock
from tests.projects import chat, environment, init_dvc, make_project, repro, write_jsonl
from tests.test_pipeline import hashes

import corpusforge as cf
from corpusforge import methods
from corpusforge.config import parse_params
from corpusforge.doctor import doctor
from corpusforge.errors import ConfigError
from corpusforge.io import cache
from corpusforge.io.manifest import read_manifest
from corpusforge.project import Project
from corpusforge.shell import run_stage

if TYPE_CHECKING:
    from pathlib import Path

    from corpusforge.stages.dedupe import DedupeConfig

PLACE = ".corpusforge/dedupe"
CHATS = [chat(i) for i in range(60)]


def near(record: dict[str, Any], number: int) -> dict[str, Any]:
    """A near copy: one word more."""
    asked, answered = record["messages"]
    more = {**answered, "content": f"{answered['content']} Indeed."}
    return {"id": f"near-{number}", "messages": [asked, more]}


RECORDS = [*CHATS, *(near(CHATS[i], i) for i in range(0, 60, 3)), *(chat(i, id=f"copy-{i}") for i in range(0, 60, 7))]


def project(root: Path, records: list[Any] = RECORDS, **options: Any) -> Project:
    """A project in four partitions that has been ingested."""
    made = make_project(root, {"chats": records}, dedupe={"cache": PLACE, **options}, engine={"partition_rows": 25})
    run_stage(made, "ingest")
    return made


def built(made: Project, told: pytest.CaptureFixture[str]) -> tuple[dict[str, str], list[str]]:
    """Hashes of all that dedupe leaves, and what it says of its cache."""
    told.readouterr()
    run_stage(made, "dedupe")
    said = [line.removeprefix("dedupe: ") for line in told.readouterr().err.splitlines() if "cache" in line]
    return hashes(made, "dedupe") | {"metrics": made.metrics_path("dedupe").read_text()}, said


@pytest.fixture
def warm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Project, dict[str, str], Path]:
    """A project after its first build: what that left, and its cache."""
    made = project(tmp_path)
    cold, said = built(made, capsys)
    assert said == ["cache is not there yet: all is made anew"]
    assert json.loads(cold["metrics"])["dropped"] == 29
    return made, cold, tmp_path / PLACE / cache.NAME


def test_the_second_build_knows_all_and_leaves_the_same_bytes(warm, capsys) -> None:
    made, cold, _ = warm
    assert built(made, capsys) == (cold, ["cache knows 89 of 89 rows; 0 are made anew"])


@pytest.mark.parametrize("workers", ["1", "2"])
def test_new_and_edited_rows_by_workers_and_an_index(tmp_path: Path, capsys, monkeypatch, workers: str) -> None:
    """Held against an index, in one process and in two: a warm build is the cold one of another folder."""
    cf.index_files(project(tmp_path / "old", CHATS[:10]).root / "data/ingest/rows", tmp_path / "known")
    found = []
    for name, before in (("warm", RECORDS), ("cold", None)):
        made = project(tmp_path / name, before or [*RECORDS[4:], chat(90)], against="../known")
        if before:
            built(made, capsys)
            write_jsonl(tmp_path / name / "raw/chats.jsonl", [*RECORDS[4:], chat(90)])
            run_stage(made, "ingest")
        monkeypatch.setenv("CORPUSFORGE_WORKERS", workers)
        found.append(built(made, capsys))
        monkeypatch.delenv("CORPUSFORGE_WORKERS")
    assert found[0][0] == found[1][0]
    assert [one[1] for one in found] == [
        ["cache knows 85 of 86 rows; 1 are made anew"],
        ["cache is not there yet: all is made anew"],
    ]


@pytest.mark.parametrize("where", [0.05, 0.5, 0.75, 0.97, 0.9999])
def test_a_flipped_bit_is_found_and_the_next_cache_is_whole(warm, capsys, where: float) -> None:
    made, cold, file = warm
    data = bytearray(file.read_bytes())
    data[int(len(data) * where)] ^= 16
    file.write_bytes(data)
    same, said = built(made, capsys)
    assert same == cold
    assert "broken" in " ".join(said)
    assert built(made, capsys) == (cold, ["cache knows 89 of 89 rows; 0 are made anew"])


@pytest.mark.parametrize("left", [0, 7, 4096, -1])
def test_a_file_cut_short_tells_nothing(warm, capsys, left: int) -> None:
    made, cold, file = warm
    data = file.read_bytes()
    file.write_bytes(data[:left])
    same, (said,) = built(made, capsys)
    assert same == cold
    assert said.startswith("cache is broken: ")


def test_another_thing_in_its_place_tells_nothing(warm, capsys) -> None:
    """A folder called as the file is cannot be read, nor replaced; the build goes on."""
    made, cold, file = warm
    file.unlink()
    file.mkdir()
    same, said = built(made, capsys)
    assert same == cold
    assert [line[:20] for line in said] == ["cache is broken: it ", "cache is not written"]


@pytest.mark.parametrize(("option", "value"), [("seed", 2), ("shingle", 4), ("exact_only", True)])
def test_a_cache_of_other_options_is_not_used(warm, capsys, tmp_path: Path, option: str, value: Any) -> None:
    made, _, _ = warm
    text = (made.root / "params.yaml").read_text()
    (made.root / "params.yaml").write_text(text.replace(f"cache: {PLACE}", f"cache: {PLACE}\n  {option}: {value}"))
    same, said = built(Project(made.root), capsys)
    assert said == [f"cache is of a build with other {option}: all is made anew"]
    assert same == built(project(tmp_path / "cold", **{option: value}), capsys)[0]


def test_a_cache_of_other_code_is_not_used(warm, capsys, monkeypatch) -> None:
    """A kernel that was changed without a new number is another one all the same."""
    made, cold, _ = warm
    monkeypatch.setattr(cache, "_code", lambda: "changed")
    assert built(made, capsys) == (cold, ["cache is of a build with other code: all is made anew"])


def test_kernels_that_the_hashed_code_loads_are_hashed_too() -> None:
    """No module of `text` has a part in what is kept and is not in the list (dedupe.py loads more)."""
    loads = "; ".join(f"import corpusforge.{name}" for name in cache._CODE if name != "stages.dedupe")
    shown = "print(*(name[12:] for name in sys.modules if name.startswith('corpusforge.text.')))"
    command = [sys.executable, "-c", f"import sys; {loads}; {shown}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    assert set(done.stdout.split()) <= {*cache._CODE}


def test_a_full_disk_costs_the_cache_alone(warm, capsys, monkeypatch) -> None:
    """While sets are written or at the end: it is said, nothing is left behind, the old file stays."""
    made, cold, file = warm
    before = file.read_bytes()

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for method in ("keep", "close"):
        with monkeypatch.context() as patch:
            patch.setattr(cache._New, method, full)
            same, said = built(made, capsys)
        assert same == cold
        assert said == ["cache knows 89 of 89 rows; 0 are made anew", "cache is not written: the disk is full"]
        assert sorted(path.name for path in file.parent.iterdir()) == [".gitignore", ".lock", "rows.cache"]
        assert file.read_bytes() == before


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path, capsys) -> None:
    """A file where the folder should be."""
    made = project(tmp_path)
    (tmp_path / PLACE).write_text("")
    _, said = built(made, capsys)
    assert len(said) == 2
    assert said[1].startswith("cache is not written: ")


def test_two_builds_at_once_leave_one_cache(warm, capsys) -> None:
    """The second reads, and leaves the writing to the first."""
    made, cold, file = warm
    before = file.stat().st_mtime_ns
    with FileLock(file.parent / ".lock"):
        same, said = built(made, capsys)
    assert same == cold
    assert said[1] == "cache stays as it is: another build is writing it"
    assert file.stat().st_mtime_ns == before


KILLED = """
import os, signal, sys
from pathlib import Path
from corpusforge.io import cache
from corpusforge.io.manifest import read_manifest
from corpusforge.project import Project
from corpusforge.shell import run_stage
put = cache._New._put
def die(self, name, values):
    put(self, name, values)
    if name == "prompt":
        self._file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
cache._New._put = die
run_stage(Project(Path(sys.argv[1])), "dedupe")
"""


def test_a_kill_in_the_middle_leaves_the_old_cache(warm, capsys) -> None:
    """What the killed build left is removed by the next, which knows what the one before it knew."""
    made, cold, file = warm
    before = file.read_bytes()
    done = subprocess.run([sys.executable, "-c", KILLED, str(made.root)], env=environment(), check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(file.parent.glob(".unfinished-*"))) == 1
    assert file.read_bytes() == before
    assert built(made, capsys) == (cold, ["cache knows 89 of 89 rows; 0 are made anew"])
    assert list(file.parent.glob(".unfinished-*")) == []


@pytest.mark.parametrize("place", ["data/known", "data", "metrics", ".", "known", "known/in", "x/../data/dedupe"])
def test_a_place_that_is_something_else_is_refused(tmp_path: Path, place: str) -> None:
    """What DVC rebuilds, the project, and the index that rows are held against."""
    params = parse_params(f"ingest: {{sources: []}}\ndedupe: {{cache: {place}, against: known}}\n")
    with pytest.raises(ConfigError, match="not a place of its own"):
        cache.of(params.dedupe, tmp_path)


def test_dvc_and_git_see_nothing_of_it(tmp_path: Path) -> None:
    """Neither dependency nor output; DVC records the same with a cache as without, and a release does not state it."""
    made = make_project(tmp_path, {"chats": RECORDS}, dedupe={"cache": "last"}, engine={"partition_rows": 25})
    init_dvc(made.root)
    found = []
    for _ in range(2):
        done = repro(made.root, "shard", "--force")
        assert done.returncode == 0, done.stdout + done.stderr
        found.append(((made.root / "dvc.lock").read_bytes(), hashes(made)))
    assert "cache knows 89 of 89 rows" in done.stderr
    assert found[0] == found[1]
    assert "last" not in (made.root / "dvc.yaml").read_text()
    assert "last" not in json.dumps(methods.watched(made))
    assert "cache" not in read_manifest(made.data("shard"))["params"]["dedupe"]
    status = subprocess.run(["git", "status", "--short", "last"], cwd=made.root, capture_output=True, check=True)
    assert status.stdout == b""


def test_doctor_says_where_hashes_are_kept(warm) -> None:
    looks = {look.what: look for look in doctor(warm[0].root).looks}
    assert looks["dedupe.cache"].found == f"{PLACE}: 0 MiB, hashes of rows before scrubbing"


def test_plain_files_have_no_cache(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "new.jsonl", CHATS[:2])
    with pytest.raises(ConfigError, match="cache: files have none"):
        cf.dedupe_files(tmp_path / "new.jsonl", tmp_path / "out", cache="known")


def test_a_worker_gets_the_path_alone(tmp_path: Path) -> None:
    """What travels between processes is small."""
    import pickle

    params = parse_params("ingest: {sources: []}\ndedupe: {cache: known}\n")
    config: DedupeConfig = params.dedupe
    assert len(pickle.dumps(cache.of(config, tmp_path))) < 2_000 + len(os.fspath(tmp_path))
