"""What must not get out does not: no planted value in files or logs, no stage without the key, equal shards with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from corpusforge import graph
from corpusforge.project import Project
from corpusforge.shell import run_stage
from tests.projects import chat, environment, init_dvc, make_project, repro
from tests.test_pipeline import hashes

PLANTED = [
    "zoe.quill@corp-mail.com",
    "(212) 456-7890",
    "+49 171 2345678",
    "4111 1111 1111 1111",
    "DE89 3704 0044 0532 0130 00",
    "219-09-9998",
    "5.61.32.77",
    "AKIAQ3EGRPJ7XK2M4TBD",
    "44 Elm Street Apt. 7, Springfield OH 45501",
]
BEFORE = ("ingest", "dedupe", "filter")
AFTER = [name for name in graph.DATA if name not in BEFORE and name != "gate_data"]
DEBUG = """
import logging, sys
from pathlib import Path
logging.basicConfig(level=logging.DEBUG)
from corpusforge.project import Project
from corpusforge.shell import run_stage
for name in sys.argv[2:]:
    print(run_stage(Project(Path(sys.argv[1])), name))
logging.debug("the end")
"""
KEY = {"CORPUSFORGE_TEST_KEY": "a key that is long enough for tests"}
OTHER = {"CORPUSFORGE_TEST_KEY": "another key that is long enough"}


def planted(number: int, value: str):
    """A conversation with a value in prose, in a tool's arguments, and in a field that nobody knows."""
    one = chat(number, note={"ssn or card or key or phone": value})
    one["messages"][0]["content"] += f" My ssn, card, key, phone or address is {value} as said."
    function = {"name": "save", "arguments": json.dumps({"phone, card or ssn": value})}
    call = {"id": "c1", "type": "function", "function": function}
    one["messages"].insert(1, {"role": "assistant", "content": None, "tool_calls": [call]})
    one["messages"].insert(2, {"role": "tool", "tool_call_id": "c1", "content": f"saved, call {value}"})
    return one


def contents(root):
    """Every file that is neither a source nor of a stage before scrub, as bytes; of tables what is in them as well."""
    private = [root / "raw", *(root / "data" / name for name in BEFORE)]
    for path in sorted(root.rglob("*")):
        if path.is_file() and not any(path.is_relative_to(folder) for folder in private):
            yield path, path.read_bytes()
            if path.suffix == ".parquet":
                yield path, json.dumps(pq.read_table(path).to_pylist(), ensure_ascii=False, default=str).encode()


@pytest.mark.parametrize("options", [{}, {"actions": {"EMAIL_ADDRESS": "drop", "PHONE_NUMBER": "tag"}}])
def test_no_planted_value_is_in_any_file_or_log_at_debug_level(tmp_path, options):
    rows = [planted(number, value) for number, value in enumerate(PLANTED)]
    project = make_project(
        tmp_path, {"desk": [*rows, *map(chat, range(20, 40))]}, scrub={"key": "public-demo", **options}
    )
    for name in BEFORE:
        run_stage(project, name)
    command = [sys.executable, "-c", DEBUG, str(project.root), *AFTER]
    more = {"CORPUSFORGE_DEBUG": "1", "CORPUSFORGE_WORKERS": "2"}
    done = subprocess.run(command, env=environment(**more), capture_output=True, check=True, timeout=300)
    assert b"the end" in done.stderr
    found = [(tmp_path / "stdout", done.stdout), (tmp_path / "stderr", done.stderr), *contents(project.root)]
    assert len({path for path, _ in found}) > 20
    leaks = {(path.relative_to(tmp_path).as_posix(), v) for path, text in found for v in PLANTED if v.encode() in text}
    assert leaks == set()
    assert project.metrics("scrub")["changed"] + project.metrics("scrub")["dropped"] == len(PLANTED)


def git(root, *arguments):
    author = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *author, *arguments], cwd=root, check=True, capture_output=True, env=environment())


@pytest.fixture(scope="module")
def origin(tmp_path_factory):
    """A project in git, built with its key."""
    rows = [planted(number, value) for number, value in enumerate(PLANTED)]
    sources = {"desk": [*rows, *map(chat, range(20, 40))]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*next(iter(KEY.items())))
        project = make_project(
            tmp_path_factory.mktemp("origin"), sources, scrub={"key": f"env:{next(iter(KEY))}", "scope": "corpus"}
        )
    init_dvc(project.root)
    done = repro(project.root, "shard", **KEY)
    assert done.returncode == 0, done.stdout + done.stderr
    git(project.root, "add", "-A")
    git(project.root, "commit", "-q", "-m", "build")
    return project


def test_a_clone_without_the_key_runs_nothing_and_with_it_gives_the_same_shards(origin, tmp_path):
    git(tmp_path, "clone", "-q", str(origin.root), "clone")
    clone = Project(tmp_path / "clone")
    refused = repro(clone.root, "shard")
    said = refused.stdout + refused.stderr
    assert refused.returncode != 0
    assert "missing-key" in said
    assert "corpusforge key new" in said
    assert f"${next(iter(KEY))}" in said or next(iter(KEY)) in said
    assert not [name for name in graph.NAMES if clone.data(name).exists()]
    done = repro(clone.root, "shard", **KEY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert hashes(clone) == hashes(origin)
    assert not [value for value in PLANTED if value in said]


def test_a_clone_with_another_key_runs_nothing(origin, tmp_path):
    git(tmp_path, "clone", "-q", str(origin.root), "clone")
    clone = Project(tmp_path / "clone")
    refused = repro(clone.root, "shard", **OTHER)
    assert refused.returncode != 0
    assert "key" in refused.stdout + refused.stderr
    assert not [name for name in graph.NAMES if clone.data(name).exists()]
    shutil.rmtree(clone.root)
