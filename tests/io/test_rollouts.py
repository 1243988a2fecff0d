"""Rollouts over real shards with a model from nothing: every try is written, and a kill costs a chunk and no byte."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.rows import row, table

from corpusforge.errors import MissingExtra, ProjectError
from corpusforge.io import rollouts
from corpusforge.io.shards import write_shards
from corpusforge.project import Project
from corpusforge.train import generate, model, scratch
from corpusforge.train._config import ScratchConfig
from corpusforge.verify import failed, passed, sandbox, undecided

ATTEMPTS = 3
PARAMS = """\
ingest: {sources: []}
scrub: {key: public-demo}
model: {max_length: 64, where: {domain: [sums]}}
train_sft: {}
rollout: {attempts: 3, max_new_tokens: 4}
"""


def tasks(count, **more):
    """Rows of tasks about sums, and one about something else."""
    kinds = ("numeric", "exact")
    made = [
        row(number, f"{number} and {number}?", kind="task", domain="sums", source=f"s{number % 2}", **more)
        | {"verifier": {"kind": kinds[number % 2], "spec": json.dumps({"answer": str(2 * number)})}}
        for number in range(1, count + 1)
    ]
    other = row(count + 1, "Paris?", kind="task") | {"verifier": {"kind": "exact", "spec": '{"answer": "yes"}'}}
    return table([*made, other])


def make_project(root, rows, params=PARAMS):
    (root / "params.yaml").write_text(params)
    (root / "dvc.yaml").write_text("stages: {}\n")
    project = Project(root)
    write_shards(rows, project.data("shard"))
    tokenizer = scratch.train_tokenizer(["1 and 2? 3 and 4 are 7"] * 3, 340, 64)
    small = ScratchConfig(vocab_size=340, hidden_size=16, layers=1, heads=2)
    model.save(scratch.make_model(small, tokenizer, 64, 0), tokenizer, project.data("train_sft") / "model")
    return project


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path, tasks(10))


def run(project, name="out", verify=None):
    """Run the stage; figures without speed, attempts, answers."""
    out = project.root / name
    out.mkdir()
    figures = rollouts.run(project, out, verify)
    speed = figures.pop("speed")
    assert set(speed) == {"seconds", "answers", "tokens_per_second"}
    return figures, pq.read_table(out / "attempts.parquet"), pq.read_table(out / "answers.parquet")


def by_length(given, completions):
    """A verifier for texts that mean nothing: some of each outcome."""
    outcomes = (passed("test.even"), failed("test.odd"), undecided("test.third"))
    return [outcomes[len(text) % 3] for text in completions]


def test_every_task_is_tried_and_every_try_is_written(project):
    figures, attempts, answers = run(project, verify=by_length)
    assert (figures["tasks"], figures["tried"], answers.num_rows) == (10, 10, 10 * ATTEMPTS)
    for line in attempts.to_pylist():
        own = [one["outcome"] for one in answers.to_pylist() if one["row_id"] == line["row_id"]]
        assert line["passes"] == own.count("pass")
        assert line["attempts"] == own.count("pass") + own.count("fail")
        assert line["undecided"] == own.count("undecided")
    assert sum(figures["rules"].values()) == answers.num_rows
    assert set(figures["by_source"]) == {"s0", "s1"}
    assert set(figures["rules"]) == {"test.even", "test.odd", "test.third"}


def test_the_real_verifiers_judge_what_the_model_wrote(project):
    figures, _, answers = run(project)
    assert {rule.partition(".")[0] for rule in figures["rules"]} == {"numeric", "exact"}
    assert figures["attempts"] == answers.num_rows
    assert set(answers["outcome"].to_pylist()) <= {"pass", "fail"}


def test_attempts_name_rows_that_grpo_can_find_in_the_shards(project):
    _, attempts, _ = run(project, verify=by_length)
    shards = pq.read_table(project.data("shard") / "task", columns=["row_id", "domain"])
    sums = shards.filter(pa.compute.equal(shards["domain"], "sums"))["row_id"].to_pylist()
    assert sorted(attempts["row_id"].to_pylist()) == sorted(sums)
    assert len(set(attempts["model"].to_pylist())) == 1
    assert json.loads(attempts["sampling"][0].as_py())["max_new_tokens"] == 4


def test_a_run_that_is_killed_goes_on_and_leaves_the_same_bytes(project, monkeypatch):
    monkeypatch.setattr(rollouts, "CHUNK", 4)
    run(project, "whole", by_length)
    asked = []

    def dying(given, completions):
        asked.append(len(given))
        if len(asked) == 3:  # the first chunk is judged, the second is answered
            raise KeyboardInterrupt
        return by_length(given, completions)

    with pytest.raises(KeyboardInterrupt):
        run(project, "killed", dying)
    left = sorted(path.name for path in (project.root / ".corpusforge/checkpoints/rollout").iterdir())
    assert left == ["answered-00000.parquet", "answered-00001.parquet", "judged-00000.parquet", "key.json"]
    written = []
    sample = rollouts.generate.sample
    monkeypatch.setattr(rollouts.generate, "sample", lambda *given: written.append(len(given[2])) or sample(*given))
    run(project, "again", by_length)
    assert written == [2]
    for name in ("attempts.parquet", "answers.parquet"):
        assert (project.root / "again" / name).read_bytes() == (project.root / "whole" / name).read_bytes()
    assert not (project.root / ".corpusforge/checkpoints/rollout").exists()


KILLED = """
import os, pathlib, signal, sys
from corpusforge.io import rollouts
from corpusforge.project import Project
from corpusforge.verify import failed

def verify(tasks, completions):
    if len(tasks) > 2:  # not the first look at each kind
        os.kill(os.getpid(), signal.SIGKILL)
    return [failed("test")] * len(tasks)

out = pathlib.Path(sys.argv[1], "killed")
out.mkdir()
rollouts.run(Project(pathlib.Path(sys.argv[1])), out, verify)
"""


@pytest.mark.slow
def test_answers_outlive_a_verifier_that_takes_the_process_with_it(project, monkeypatch):
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, str(project.root)], env={**os.environ, "HF_HUB_OFFLINE": "1"}, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    monkeypatch.setattr(rollouts.generate, "sample", None)
    figures, _, answers = run(project, verify=by_length)
    assert figures["tried"] == 10
    assert answers.num_rows == 10 * ATTEMPTS


@pytest.mark.parametrize("change", ["params", "model", "tasks"])
def test_nothing_is_kept_of_a_run_that_was_another(project, monkeypatch, change):
    def dying(given, completions):
        if len(given) > 2:
            raise KeyboardInterrupt
        return by_length(given, completions)

    with pytest.raises(KeyboardInterrupt):
        run(project, "killed", dying)
    if change == "params":
        (project.root / "params.yaml").write_text(PARAMS.replace("max_new_tokens: 4", "max_new_tokens: 5"))
    if change == "model":
        (project.data("train_sft") / "model" / "notes.txt").write_text("another")
    if change == "tasks":
        write_shards(tasks(9), project.data("shard"))
    monkeypatch.setattr(rollouts.generate, "sample", None)
    with pytest.raises(TypeError):
        run(Project(project.root), "again", by_length)


def test_order_and_copies_of_the_rows_change_nothing(tmp_path):
    rows = tasks(10)
    copied = rows.take(list(range(10, -1, -1))).append_column("copies", pa.array([1, 2] * 5 + [3], pa.int32()))
    found = []
    for name, given in (("plain", rows), ("copied", copied)):
        (tmp_path / name).mkdir()
        found.append(run(make_project(tmp_path / name, given), verify=by_length))
    assert found[0] == found[1]


def test_a_limit_tries_some_tasks_and_lists_the_others(tmp_path):
    (tmp_path / "all").mkdir()
    _, whole, _ = run(make_project(tmp_path / "all", tasks(10)), verify=by_length)
    (tmp_path / "some").mkdir()
    limited = PARAMS.replace("attempts: 3", "limit: 4, attempts: 3")
    figures, attempts, answers = run(make_project(tmp_path / "some", tasks(10), limited), verify=by_length)
    assert (figures["tasks"], figures["tried"], figures["reasons"]["not_tried"]) == (10, 4, 6)
    assert answers.num_rows == 4 * ATTEMPTS
    columns = ["row_id", "passes", "attempts", "undecided"]
    assert attempts.slice(0, 4).select(columns) == whole.slice(0, 4).select(columns)


def test_a_task_that_the_model_cannot_be_asked_is_undecided(tmp_path):
    long = row(99, "1 and 2? " * 40, kind="task", domain="sums") | {"verifier": {"kind": "exact", "spec": "{}"}}
    project = make_project(tmp_path, pa.concat_tables([tasks(2), table([long])]))
    figures, attempts, answers = run(project, verify=by_length)
    assert figures["rules"]["rollout.prompt_too_long"] == ATTEMPTS
    line = next(one for one in attempts.to_pylist() if one["row_id"] == long["row_id"])
    assert (line["attempts"], line["undecided"], line["reason"]) == (0, ATTEMPTS, "undecided")
    mine = [one for one in answers.to_pylist() if one["row_id"] == long["row_id"]]
    assert {(one["completion"], one["outcome"]) for one in mine} == {(None, "undecided")}


def test_a_missing_package_is_said_before_the_first_answer(project, monkeypatch):
    def missing(given, completions):
        raise MissingExtra("no package", hint="pip install 'corpusforge[verify]'")

    monkeypatch.setattr(rollouts.generate, "sample", None)
    with pytest.raises(MissingExtra):
        run(project, verify=missing)


def test_shards_without_a_task_are_answered_with_what_to_do(tmp_path):
    project = make_project(tmp_path, tasks(2), PARAMS.replace("sums", "poems"))
    with pytest.raises(ProjectError, match=r'no task with \{"domain": \["poems"\]\}'):
        run(project)


HOSTILE = {
    "loops": "def double(x):\n    while True: pass",
    "forks": "import os\ndef double(x):\n    while True: os.fork()",
    "eats memory": "def double(x):\n    return len([0] * 10**10)",
    "calls out": "import socket\ndef double(x):\n    socket.create_connection(('127.0.0.1', PORT))\n    return 2 * x",
    "reads outside": "def double(x):\n    open('SECRET').read()\n    return 2 * x",
    "writes outside": "def double(x):\n    open('TARGET', 'w').write('x')\n    return 2 * x",
    "leaves": "import os\ndef double(x):\n    print('passed', flush=True)\n    os._exit(0)",
    "is equal to all": "class Equal:\n    def __eq__(self, other): return True\ndef double(x):\n    return Equal()",
}
GOOD = "def double(x):\n    return 2 * x"


@pytest.mark.slow
@pytest.mark.skipif(sandbox.available() is not None, reason="code cannot be confined here")
def test_hostile_answers_pass_nothing_harm_nothing_and_cost_no_other_answer(tmp_path, monkeypatch):
    """Each stands beside a right answer to the same task, which passes."""
    spec = json.dumps({"tests": ["assert double(2) == 4", "assert double(-7) == -14"], "setup": ""})
    code = [
        row(n, f"Double {n} numbers.", kind="task", domain="sums")
        | {"verifier": {"kind": "assert_tests", "spec": spec}}
        for n in range(1, len(HOSTILE) + 1)
    ]
    project = make_project(tmp_path, table(code), PARAMS.replace("attempts: 3", "attempts: 2"))
    (tmp_path / "secret").write_text("not for you")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        places = {"PORT": str(listener.getsockname()[1]), "SECRET": str(tmp_path / "secret")}
        places["TARGET"] = str(tmp_path / "target")
        wicked = [fill(text, places) for text in HOSTILE.values()]
        monkeypatch.setattr(
            generate, "sample",
            lambda model, tokenizer, tasks, sampling, tell=None: [
                generate.Sampled((bad, GOOD), (True, True), 2) for bad, _ in zip(wicked, tasks, strict=True)
            ],
        )  # fmt: skip
        out = tmp_path / "out"
        out.mkdir()
        found = rollouts.run(project, out)
        with pytest.raises(TimeoutError):
            listener.accept()
    answers = pq.read_table(out / "answers.parquet").to_pylist()
    assert {line["outcome"] for line in answers if line["attempt"] == 0} == {"fail"}
    assert {line["outcome"] for line in answers if line["attempt"] == 1} == {"pass"}
    assert (found["passes"], found["undecided"]) == (len(HOSTILE), 0)
    assert not (tmp_path / "target").exists()
    assert not any(b"def double" in line for line in command_lines())


def fill(text, places):
    for name, value in places.items():
        text = text.replace(name, value)
    return text


def command_lines():
    """What the processes of this machine were started with."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            yield entry.read_bytes()


def test_a_chunk_that_was_damaged_is_made_again(tmp_path):
    whole = rollouts.ANSWERS.empty_table()
    (tmp_path / "chunk.parquet").write_bytes(b"PAR1 cut short")
    assert rollouts._kept(tmp_path / "chunk.parquet", lambda: whole) == whole
    assert pq.read_table(tmp_path / "chunk.parquet") == whole
