"""SIGKILL to DVC, and to the stage, in each stage in turn: nothing half-written, no child running, same hashes after.

The kill falls as soon as the stage has begun to write, so that it lands in the middle of its work.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from corpusforge import graph
from corpusforge.io import releases
from tests.projects import chat, environment, init_dvc, make_project, repro
from tests.test_pipeline import hashes

if TYPE_CHECKING:
    from corpusforge.project import Project

SOURCES = {"desk": [chat(i) for i in range(40)], "phone": [chat(i) for i in range(100, 130)]}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    """A built and published project; each kill breaks one stage of it and mends it."""
    project = make_project(tmp_path_factory.mktemp("kill"), SOURCES, engine={"partition_rows": 20})
    init_dvc(project.root)
    done = repro(project.root)
    assert done.returncode == 0, done.stdout + done.stderr
    releases.publish(project)
    return project


def stage_processes(root: Path, stage: str) -> list[int]:
    """Processes that run the stage in this project, and their workers."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                here = (entry / "cwd").readlink() == root
                if here and ((b"stage" in words and stage.encode() in words) or b"--multiprocessing-fork" in words):
                    found.append(int(entry.name))
    return found


def wait_for(condition, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.002)
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("victim", ["dvc", "stage"])
@pytest.mark.parametrize("stage", graph.DATA)
def test_a_kill_in_any_stage_costs_nothing_but_the_stage(built, stage, victim):
    before = {name: hashes(built, name) for name in graph.DATA}
    current = releases.current(built)
    shutil.rmtree(built.data(stage))
    shutil.rmtree(built.root / ".dvc" / "cache" / "runs", ignore_errors=True)  # else DVC restores what ran before
    process = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "--force", "--single-item", stage],
        cwd=built.root, env=environment(CORPUSFORGE_WORKERS="2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    begun = wait_for(lambda: any(built.root.glob(f"data/.{stage}.unfinished-*")), 60)
    running = stage_processes(built.root, stage)
    if begun and running:
        os.kill(process.pid if victim == "dvc" else running[0], signal.SIGKILL)
    process.wait(60)
    assert begun
    assert process.returncode != 0
    assert wait_for(lambda: not stage_processes(built.root, stage), 5), "a stage outlived its parent"
    if built.data(stage).exists():  # the kill came after the rename: what lies there is whole
        assert hashes(built, stage) == before[stage], "half-written output"
    assert releases.current(built) == current
    for arguments in (["--force", "--single-item", stage], []):  # forced: DVC would take it from its cache
        done = repro(built.root, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
    assert {name: hashes(built, name) for name in graph.DATA} == before
    assert not list(built.root.glob("data/.*unfinished*"))
