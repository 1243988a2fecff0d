"""The local engine gives what a loop gives, in the order of the items, with one worker and with two."""

from __future__ import annotations

import importlib
import os
import sys
import time

import pytest

from corpusforge.engine.local import LocalEngine, workers_from_environment
from corpusforge.errors import SourceError, WorkerError

# Workers are spawned: they import the jobs by name, which a test module loaded from its path cannot offer.
JOBS = """
import os, time
from corpusforge.errors import SourceError

def square(n):
    time.sleep(0.2 if n == 0 else 0)  # the first item is the last to be ready
    return n * n

def refuse(n):
    raise SourceError(f"item {n} is missing", hint="look")

def die(n):
    os._exit(1)

def pid(n):
    time.sleep(0.1)
    return os.getpid()

def die_early():
    os._exit(1)

def note():
    time.sleep(0.1)
    open(f"started-{os.getpid()}", "w").close()
"""


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    (tmp_path / "engine_jobs.py").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("engine_jobs")
    sys.modules.pop("engine_jobs")


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items(jobs, workers):
    assert LocalEngine(workers).map(jobs.square, [0, 1, 2, 3]) == [0, 1, 4, 9]


@pytest.mark.parametrize("workers", [1, 2])
def test_progress_counts_every_item_once(jobs, workers):
    told = []
    LocalEngine(workers).map(jobs.square, [1, 2, 3], told.append)
    assert told == [1, 2, 3]


@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_to_do_is_no_fault(jobs, workers):
    assert LocalEngine(workers).map(jobs.square, []) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_arrives_as_it_was_raised(jobs, workers):
    with pytest.raises(SourceError, match="item 1 is missing\n  look"):
        LocalEngine(workers).map(jobs.refuse, [1, 2])


def test_a_dead_worker_is_a_worker_error(jobs):
    with pytest.raises(WorkerError, match="CORPUSFORGE_WORKERS=1"):
        LocalEngine(2).map(jobs.die, [1, 2])


def test_a_worker_that_dies_while_it_starts_is_one_too(jobs):
    with LocalEngine(2) as engine:
        engine.start(jobs.die_early)
        time.sleep(5)
        with pytest.raises(WorkerError, match="CORPUSFORGE_WORKERS=1"):
            list(engine.stream(jobs.square, range(6)))


def test_two_workers_are_other_processes_and_one_is_this_one(jobs):
    assert set(LocalEngine(1).map(jobs.pid, [1, 2])) == {os.getpid()}
    assert os.getpid() not in LocalEngine(2).map(jobs.pid, [1, 2])


def test_workers_that_were_started_early_do_the_work(jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with LocalEngine(2) as engine:
        engine.start(jobs.note)
        known = {int(pid) for pid in engine.stream(jobs.pid, range(6))}
    assert {int(path.name.partition("-")[2]) for path in tmp_path.glob("started-*")} == known
    with LocalEngine(1) as engine:
        engine.start(jobs.note)
        assert set(engine.stream(jobs.pid, [1, 2])) == {os.getpid()}


def test_workers_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "3")
    assert workers_from_environment() == 3
    monkeypatch.setenv("CORPUSFORGE_WORKERS", "many")
    assert workers_from_environment() >= 1
